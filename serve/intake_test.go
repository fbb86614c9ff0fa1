package serve

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

// TestRequestsThatNeverFit has requests grow in parts: one that is too large for an idle
// server is wrong, and is not told to come again.
func TestRequestsThatNeverFit(t *testing.T) {
	in := newIntake(budget.New(1<<20), func(string) {}, func() {})
	refused := func(c *call, parts ...int64) error {
		t.Helper()
		defer c.close()
		for i, n := range parts {
			if err := c.grow(n); err != nil {
				if i < len(parts)-1 {
					t.Fatalf("part %d: %v", i, err)
				}
				return err
			}
		}
		t.Fatal("there was memory for it")
		return nil
	}
	check := func(err error, want *failure, says string) {
		t.Helper()
		var f *failure
		if !errors.As(err, &f) || f.http != want.http || !strings.Contains(err.Error(), says) {
			t.Errorf("%v", err)
		}
	}
	open := func() *call {
		t.Helper()
		c, err := in.open(func() {})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	wrong, busy := invalid("").(*failure), fail(kindBusy, "").(*failure)
	check(refused(open(), 300<<10, 300<<10), wrong, "632.0 KiB of memory")
	whole := open()
	whole.end()
	check(refused(whole, 600<<10, 600<<10), wrong, "1.2 MiB of memory")
	check(refused(open(), math.MaxInt64), wrong, "of memory")

	other := open()
	other.end()
	if err := other.grow(600 << 10); err != nil {
		t.Fatal(err)
	}
	whole = open()
	whole.end()
	check(refused(whole, 100<<10, 600<<10), busy, "ask again later")
	other.close()
}

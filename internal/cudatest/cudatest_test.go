package cudatest

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
	"github.com/gsrc-dev/gsrc/runtime/cuda/ptx"
)

// fake counts what a test is told.
type fake struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (f *fake) Errorf(_ string, args ...any) { f.errors = append(f.errors, args[0].(string)) }

func (f *fake) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

func (f *fake) Setenv(string, string) {}

func TestMockDriverFindsWhatIsLeft(t *testing.T) {
	f := &fake{TB: t}
	path := Path(t)
	MockDriver(f)
	d, err := driver.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Devices()[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Alloc(16)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Free(p + 1)
	for _, c := range f.cleanups {
		c()
	}
	all := strings.Join(f.errors, "\n")
	for _, want := range []string{"was not allocated", "device block 1 of 16 bytes", "context"} {
		if !strings.Contains(all, want) {
			t.Errorf("not told of %q: %s", want, all)
		}
	}
}

func TestMockDriverIsTheDriver(t *testing.T) {
	MockDriver(t)
	d, err := driver.Open("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.OpenBLAS(""); err != nil {
		t.Error(err)
	}
	c, err := d.Devices()[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// Every kernel that is checked in as PTX has the parameters of its source.
func TestPTXIsOfTheSources(t *testing.T) {
	MockDriver(t)
	d, err := driver.Open("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Devices()[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.LoadModule(ptx.Text())
	if err != nil {
		t.Fatal(err)
	}
	kernels := regexp.MustCompile(`(?m)\.entry (\w+)`).FindAllStringSubmatch(ptx.Text(), -1)
	if len(kernels) < 40 {
		t.Errorf("%d kernels in the PTX", len(kernels))
	}
	for _, k := range kernels {
		// Where they differ, the mock driver records a violation.
		if _, err := m.Function(k[1]); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(m.Close(), c.Close()); err != nil {
		t.Error(err)
	}
}

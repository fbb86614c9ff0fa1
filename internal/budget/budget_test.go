package budget

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAReservationIsRefusedBeforeItIsTaken(t *testing.T) {
	b := New(100)
	r, err := b.Reserve("the graph", 60)
	if err != nil {
		t.Fatal(err)
	}
	var e *ExceededError
	if _, err := b.Reserve("a body", 50); !errors.As(err, &e) || *e != (ExceededError{"a body", 50, 40, 100, false}) {
		t.Fatalf("got %v", err)
	}
	if err := r.Grow(41); !errors.As(err, &e) || *e != (ExceededError{"the graph", 101, 100, 100, false}) {
		t.Fatalf("got %v", err)
	}
	if err := r.Grow(-1); !errors.As(err, &e) {
		t.Fatalf("a size that overflowed: got %v", err)
	}
	if b.Used() != 60 || r.Bytes() != 60 {
		t.Fatalf("%d and %d bytes are used after refusals, want 60", b.Used(), r.Bytes())
	}
	if err := r.Grow(40); err != nil {
		t.Fatal(err)
	}
	r.Release()
	r.Release()
	if b.Used() != 0 {
		t.Fatalf("%d bytes are used after all was given back", b.Used())
	}
}

// What is refused does not read like what is there.
func TestAmountsThatRoundAlike(t *testing.T) {
	for want, e := range map[string]ExceededError{
		"the graph takes 838860801 bytes of memory, more than the 838860800 bytes that may be used":           {"the graph", 800<<20 + 1, 800 << 20, 800 << 20, false},
		"the graph takes 2.0 MiB of memory, more than the 1.0 MiB that may be used":                           {"the graph", 2 << 20, 1 << 20, 1 << 20, false},
		"the graph takes at least 2.0 MiB of memory, more than the 1.0 MiB that may be used":                  {"the graph", 2 << 20, 1 << 20, 1 << 20, true},
		"the graph takes 1048580 bytes of memory, and 1048576 bytes of the 2.0 MiB that may be used are free": {"the graph", 1<<20 + 4, 1 << 20, 2 << 20, false},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNoBudgetHasNoLimit(t *testing.T) {
	var b *Budget
	r, err := b.Reserve("all", math.MaxInt64)
	if err != nil || b.Used() != 0 || b.Total() != math.MaxInt64 {
		t.Fatal(err, b.Used(), b.Total())
	}
	r.Release()
}

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{"4GiB": 4 << 30, "512 MiB": 512 << 20, "1.5GB": 1_500_000_000, "1048576": 1 << 20, "10kB": 10_000, "7B": 7, "2KiB": 2048} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1GiB", "0", "NaN", "inf", "9e30TiB", "four", "1GiBGiB"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", text, got)
		}
	}
}

func TestFormat(t *testing.T) {
	for n, want := range map[int64]string{1 << 30: "1.0 GiB", 3 << 29: "1.5 GiB", 1000: "1000 bytes", 5 << 20: "5.0 MiB"} {
		if got := Format(n); got != want {
			t.Errorf("Format(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestMul(t *testing.T) {
	if Mul(3, 4, 5) != 60 || Mul(math.MaxInt64, 2) != math.MaxInt64 || Mul(math.MaxInt64, 2, 0) != 0 || Mul(-1, 2) != math.MaxInt64 {
		t.Fatal(Mul(3, 4, 5), Mul(math.MaxInt64, 2), Mul(math.MaxInt64, 2, 0), Mul(-1, 2))
	}
}

// A file that is more than may be held, or no file, is refused before it is read.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(path); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.Truncate(path, 1<<50); err != nil {
		t.Skipf("this file system has no files of 1 PiB: %v", err)
	}
	var e *ExceededError
	if _, err := ReadFile(path); !errors.As(err, &e) || !strings.Contains(err.Error(), "--memory") {
		t.Errorf("a file of 1 PiB: %v", err)
	}
	if _, err := ReadFile(os.DevNull); err == nil {
		t.Error("a device was read")
	}
}

// The limit is asked for in a process of its own, as GOMEMLIMIT is read at its start.
func TestDefaultIsWhatTheProcessMayUse(t *testing.T) {
	if os.Getenv("BUDGET_TEST_CHILD") != "" {
		n, source := Default()
		os.Stdout.WriteString(Format(n) + " by " + source)
		os.Exit(0)
	}
	if n, source := Default(); n < 1<<20 || source == "" {
		t.Fatalf("got %d bytes by %q", n, source)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestDefaultIsWhatTheProcessMayUse$")
	c.Env = append(os.Environ(), "BUDGET_TEST_CHILD=1", "GOMEMLIMIT=100MiB")
	out, err := c.Output()
	if err != nil || !strings.HasPrefix(string(out), "100.0 MiB by GOMEMLIMIT") {
		t.Fatalf("got %q, %v", out, err)
	}
}

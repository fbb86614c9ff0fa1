package filelock

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// hold is the other process: it locks the file, says so, and waits for the end of its
// standard input.
func hold(path string) {
	if _, err := TryLock(path); err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("locked\n")
	bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(0) // without unlocking
}

func TestMain(m *testing.M) {
	if path := os.Getenv("FILELOCK_TEST_HOLD"); path != "" {
		hold(path)
	}
	os.Exit(m.Run())
}

// other starts a process that holds the lock, until end is called.
func other(t *testing.T, path string) (pid int, end func()) {
	t.Helper()
	c := exec.Command(os.Args[0], "held")
	c.Env = append(os.Environ(), "FILELOCK_TEST_HOLD="+path)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return c.Process.Pid, func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSecondIsToldTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".lock")
	pid, end := other(t, path)
	_, err := TryLock(path)
	var held *HeldError
	if !errors.As(err, &held) || held.PID != pid || !strings.HasSuffix(held.Command, "held") {
		t.Fatalf("got %v, want that process %d has the lock", err, pid)
	}
	end()
	// The system dropped the lock with the process; what that wrote beside it says nothing.
	l, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Fatalf("a second lock of one process: got %v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	l, err = TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Unlock()
}

func TestAcquireWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".lock")
	_, end := other(t, path)
	told := 0
	l, err := Acquire(context.Background(), path, func(*HeldError) {
		told++
		end()
	})
	if err != nil || told != 1 {
		t.Fatalf("told %d times, %v", told, err)
	}
	defer l.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := Acquire(ctx, path, func(*HeldError) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestAFolderThatIsNotThere(t *testing.T) {
	if _, err := TryLock(filepath.Join(t.TempDir(), "none", ".lock")); err == nil || errors.As(err, new(*HeldError)) {
		t.Fatalf("got %v", err)
	}
}

// Of those who lock and remove at the same time one is in at a time, and no file stays.
func TestRemovedLocksExclude(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".lock")
	var inside, entered atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				l, err := TryLock(path)
				if err != nil {
					continue
				}
				if inside.Add(1) != 1 {
					t.Error("two have the lock")
				}
				entered.Add(1)
				inside.Add(-1)
				if err := l.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if entered.Load() == 0 {
		t.Error("nobody got the lock")
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("%q were left", left)
	}
}

package scratch

import (
	"os"
	"runtime"
	"testing"
)

func TestFloats(t *testing.T) {
	dir := t.TempDir()
	x, free, err := Floats(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if len(x) != 1<<20 || x[5] != 0 {
		t.Fatalf("%d numbers, the first ones %v", len(x), x[:6])
	}
	x[5], x[1<<20-1] = 1, 2
	if x[5] != 1 || x[1<<20-1] != 2 {
		t.Error("numbers are not kept")
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("the folder shows %v, %v", list, err)
	}
	if err := free(); err != nil {
		t.Error(err)
	}
	if x, free, err := Floats(dir, 0); err != nil || len(x) != 0 || free() != nil {
		t.Error("no numbers are an error")
	}
	if runtime.GOOS == "linux" {
		if _, _, err := Floats(dir, 1<<50); err == nil {
			t.Error("the disk has room for 4 PiB")
		}
	}
}

func TestDir(t *testing.T) {
	if runtime.GOOS == "linux" && inMemory("/dev/shm") {
		if dir, err := Dir("/dev/shm", "."); err != nil || dir != "." {
			t.Errorf("%q is taken: %v", dir, err)
		}
	}
	if dir, err := Dir("/no such folder", "."); err != nil || dir != "." {
		t.Errorf("%q is taken: %v", dir, err)
	}
}

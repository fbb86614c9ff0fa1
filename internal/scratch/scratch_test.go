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

func TestRoom(t *testing.T) {
	if x, err := Room(nil, []int32{1, 2}, 1<<22); err != nil || cap(x) != 2 {
		t.Errorf("without files there is room for %d, %v", cap(x), err)
	}
	f := &Files{Near: t.TempDir()}
	if x, err := Room(f, []bool(nil), 10); err != nil || cap(x) != 0 || len(f.free) != 0 {
		t.Errorf("10 marks have a file: %v", err)
	}
	edges, err := Room(f, [][2]int32(nil), 1<<20)
	if err != nil || len(edges) != 0 || cap(edges) < 1<<20 {
		t.Fatalf("there is room for %d pairs, %v", cap(edges), err)
	}
	marks, err := Room(f, make([]bool, 5), 3<<20+1)
	if err != nil {
		t.Fatal(err)
	}
	edges, marks = edges[:1<<20], marks[:cap(marks)]
	edges[1<<20-1], marks[len(marks)-1] = [2]int32{3, 4}, true
	if again, err := Room(f, edges, 1<<20); err != nil || &again[:1][0] != &edges[0] || len(f.free) != 2 {
		t.Errorf("what has room gets another, %v", err)
	}
	if edges[1<<20-1] != [2]int32{3, 4} || !marks[len(marks)-1] || marks[0] {
		t.Error("numbers are not kept")
	}
	if more, err := Room(f, edges, 2<<20); err != nil || cap(more) < 2<<20 || len(f.free) != 2 {
		t.Errorf("with more room there are %d files, %v", len(f.free), err)
	}
	if err := f.Free(); err != nil || len(f.free) != 0 {
		t.Errorf("%d files are left, %v", len(f.free), err)
	}
	var none *Files
	if none.Free() != nil {
		t.Error("no files are an error")
	}
	if runtime.GOOS == "linux" {
		if _, err := Room(f, []float32(nil), 1<<50); err == nil {
			t.Error("the disk has room for 4 PiB")
		}
	}
}

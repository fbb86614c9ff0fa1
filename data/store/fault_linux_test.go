package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// sum reads what it is given, on any thread of a pool.
type sum struct {
	x     []float32
	total []float32
}

func (s *sum) Do(lo, hi int) {
	for _, v := range s.x[lo:hi] {
		s.total[lo/BlockSize] += v
	}
}

// TestTruncatedWhileItIsRead truncates a file that is open: reads of it end in an error that
// names it, in this goroutine, in assembly and on the threads of a pool.
func TestTruncatedWhileItIsRead(t *testing.T) {
	o := small()
	o.Features = 512
	dir := generated(t, o)
	s := opened(t, dir)
	x := ViewOf[float32](s, "x").Unchecked()
	path := filepath.Join(dir, "x.bin")
	if err := errors.Join(os.Chmod(path, 0o644), os.Truncate(path, 4096)); err != nil {
		t.Fatal(err)
	}
	pool := kernels.NewPool(4)
	defer pool.Close()
	for name, read := range map[string]func(){
		"Go":       func() { (&sum{x, make([]float32, len(x)/BlockSize+1)}).Do(0, len(x)) },
		"assembly": func() { pool.Unary(kernels.Neg, make([]float32, 1024), x[len(x)-1024:], 0) },
		"pool":     func() { pool.For(len(x), BlockSize, &sum{x, make([]float32, len(x)/BlockSize+1)}) },
		"checksum": nil,
	} {
		err := Guard(func() error {
			if read == nil {
				return s.Verify(nil)
			}
			read()
			return nil
		})
		var damaged *DamageError
		if !errors.As(err, &damaged) || damaged.File != path {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	// Another fault is none of a store's.
	defer func() {
		if recover() == nil {
			t.Error("a nil pointer passed")
		}
	}()
	_ = Guard(func() error { var p *int; *p = 1; return nil })
}

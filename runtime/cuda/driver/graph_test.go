package driver_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
)

func TestCaptureAndReplay(t *testing.T) {
	for seed := range int64(10) {
		r := open(t)
		set(t, r.Library, "seed", seed)
		f := r.function(t, "test_scale")
		x, y := r.alloc(t, 8), r.alloc(t, 8)
		h, err := r.ctx.AllocHost(8)
		do(t, err)
		do(t, r.stream.Upload(x, bytesOf([]float32{1, 2})))
		record := func(a float32) *driver.Graph {
			g, err := r.stream.Capture(func() error {
				runtime.Gosched() // a capture stays on its thread
				return errors.Join(r.scale(f, y, x, a, 2), r.stream.Copy(x, y, 8), r.stream.Download(h.Bytes(), x))
			})
			do(t, err)
			return g
		}
		g := record(2)
		if n, err := g.Nodes(); n != 3 || err != nil {
			t.Errorf("%d nodes: %v", n, err)
		}
		e, err := g.Instantiate()
		do(t, err, g.Close())
		for range 3 {
			do(t, e.Launch(r.stream))
		}
		do(t, r.stream.Synchronize())
		if got := floatsOf(h.Bytes()); got[0] != 8 || got[1] != 16 {
			t.Errorf("after three replays %v", got)
		}
		do(t, e.Close(), h.Close(), r.ctx.Free(x), r.ctx.Free(y))
		r.close(t)
	}
}

func TestCaptureRefusals(t *testing.T) {
	for name, call := range map[string]func(r *rig, x uintptr) error{
		"alloc":       func(r *rig, _ uintptr) error { _, err := r.ctx.Alloc(8); return err },
		"free":        func(r *rig, x uintptr) error { return r.ctx.Free(x) },
		"synchronize": func(r *rig, _ uintptr) error { return r.stream.Synchronize() },
		"all":         func(r *rig, _ uintptr) error { return r.ctx.Synchronize() },
		"Go's memory": func(r *rig, x uintptr) error { return r.stream.Upload(x, make([]byte, 8)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			x := r.alloc(t, 8)
			ignored := false
			for range 2 {
				g, err := r.stream.Capture(func() error {
					err := call(r, x)
					if !errors.Is(err, driver.ErrCapture) {
						t.Errorf("in the capture: %v", err)
					}
					if ignored {
						return nil
					}
					return err
				})
				if g != nil || !errors.Is(err, driver.ErrCapture) {
					t.Errorf("the capture, error ignored %v: %v", ignored, err)
				}
				ignored = true
			}
			// The stream works again.
			do(t, r.stream.Fill(x, 0, 8), r.stream.Synchronize(), r.ctx.Free(x), r.module.Close(), r.stream.Close(), r.ctx.Close())
			if live := r.Live(); live != nil {
				t.Errorf("left: %v", live)
			}
		})
	}
}

func TestCaptureEndsWithItsFunction(t *testing.T) {
	r := open(t)
	x := r.alloc(t, 8)
	stop := errors.New("stop")
	if g, err := r.stream.Capture(func() error { return errors.Join(r.stream.Fill(x, 0, 8), stop) }); g != nil || !errors.Is(err, stop) {
		t.Errorf("graph %v: %v", g, err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = r.stream.Capture(func() error { panic("in a capture") })
	}()
	do(t, r.stream.Synchronize(), r.ctx.Free(x))
	r.close(t)
}

// A graph that outlives the memory it uses is seen when it runs.
func TestReplayOfFreedMemory(t *testing.T) {
	r := open(t)
	x := r.alloc(t, 8)
	g, err := r.stream.Capture(func() error { return r.stream.Fill(x, 0, 8) })
	do(t, err)
	e, err := g.Instantiate()
	do(t, err, r.ctx.Free(x))
	if err := errors.Join(e.Launch(r.stream), r.stream.Synchronize()); !errors.Is(err, driver.ErrLaunch) || !r.violated("not allocated any more") {
		t.Errorf("%v; violations %v", err, r.Violations())
	}
}

func TestReplayAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has pools drop what they hold")
	}
	r := open(t)
	x := r.alloc(t, 8)
	g, err := r.stream.Capture(func() error { return r.stream.Fill(x, 0, 8) })
	do(t, err)
	e, err := g.Instantiate()
	do(t, err, g.Close())
	if n := testing.AllocsPerRun(100, func() {
		if e.Launch(r.stream) != nil || r.stream.Synchronize() != nil {
			t.Fatal("failed")
		}
	}); n != 0 {
		t.Errorf("%v allocations a replay", n)
	}
	do(t, e.Close(), r.ctx.Free(x))
	r.close(t)
}

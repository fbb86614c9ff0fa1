package driver_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/mockdriver"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
)

// What every driver has to do, the mock driver's and the GPU's of the machine that the
// test runs on.
func TestOnEveryDriver(t *testing.T) {
	t.Run("mock driver", func(t *testing.T) {
		l, path := load(t)
		// The order is by the seed; the machine's own driver has but one.
		for seed := range int64(5) {
			set(t, l, "seed", seed)
			everything(t, path, mockdriver.BLAS(path))
		}
		if live := l.Live(); live != nil {
			t.Errorf("left: %v", live)
		}
		if c := l.Violations(); c != nil {
			t.Errorf("violations: %v", c)
		}
	})
	t.Run("GPU", func(t *testing.T) {
		if _, err := driver.Open(""); err != nil {
			t.Skip(err)
		}
		everything(t, "", "")
	})
}

func everything(t *testing.T, path, blasPath string) {
	d, err := driver.Open(path)
	do(t, err)
	t.Logf("%s, CUDA %s, %s, compute capability %s", d.Path(), d.Version(), d.Devices()[0].Name, d.Devices()[0].Capability())
	c, err := d.Devices()[0].Open()
	do(t, err)
	s, err := c.NewStream()
	do(t, err)
	m, err := c.LoadModule(ptx)
	do(t, err)
	scale, err := m.Function("test_scale")
	do(t, err)
	free, total, err := c.FreeMemory()
	do(t, err)
	if free <= 0 || free > total || total != d.Devices()[0].Memory {
		t.Errorf("%d of %d bytes free, the device has %d", free, total, d.Devices()[0].Memory)
	}

	// Launches, copies, events.
	n := 100_003
	x, err := c.Alloc(4 * n)
	do(t, err)
	y, err := c.Alloc(4 * n)
	do(t, err)
	r := &rig{ctx: c, stream: s}
	start, err := c.NewEvent()
	do(t, err)
	end, err := c.NewEvent()
	do(t, err)
	out := make([]byte, 4*n)
	do(t, s.Upload(x, bytesOf(slices.Repeat([]float32{1.5}, n))), s.Record(start), r.scale(scale, y, x, 2, n), s.Record(end),
		s.Fill(y+4, 0, 4), s.Download(out, y), s.Synchronize())
	got := floatsOf(out)
	if got[0] != 3 || got[1] != 0 || got[2] != 3 || got[n-1] != 3 {
		t.Errorf("elements %v and %v", got[:3], got[n-1])
	}
	if ms, err := end.Milliseconds(start); err != nil || ms < 0 || ms > 10_000 {
		t.Errorf("%v ms: %v", ms, err)
	}

	// A graph, replayed, and with other arguments.
	h, err := c.AllocHost(8)
	do(t, err)
	record := func(a float32) *driver.Graph {
		g, err := s.Capture(func() error {
			return errors.Join(r.scale(scale, y, x, a, n), s.Copy(x, y, 4*n), s.Download(h.Bytes(), x))
		})
		do(t, err)
		return g
	}
	g := record(2)
	if nodes, err := g.Nodes(); err != nil || nodes != 3 {
		t.Errorf("%d nodes: %v", nodes, err)
	}
	e, err := g.Instantiate()
	do(t, err, g.Close(), e.Launch(s), e.Launch(s), s.Synchronize())
	if got := floatsOf(h.Bytes()); got[0] != 6 || got[1] != 6 {
		t.Errorf("replayed twice: %v", got)
	}

	// Errors that leave the device as it was.
	if _, err := c.Alloc(int(total) + 1<<30); !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "asked for") {
		t.Errorf("more memory than there is: %v", err)
	}
	if _, err := c.LoadModule(ptx[:strings.LastIndex(ptx, "}")]); !errors.Is(err, driver.ErrModule) || !strings.Contains(err.Error(), "ptxas") {
		t.Errorf("broken PTX: %v", err)
	}
	if _, err := c.LoadModule(strings.Replace(ptx, ".version 6.3", "", 1)); !errors.Is(err, driver.ErrModule) || !strings.Contains(err.Error(), "not recognized") {
		t.Errorf("no PTX: %v", err)
	}

	// A product, in full float32: with TF32 the sum would lose the small addend.
	l, err := d.OpenBLAS(blasPath)
	if errors.Is(err, driver.ErrNoBLAS) {
		t.Logf("%v", err)
	} else {
		do(t, err)
		t.Logf("cuBLAS %s, %s", l.Path, l.Version)
		b, err := s.NewBLAS(l, false)
		do(t, err)
		product := make([]byte, 8)
		do(t, s.Upload(x, bytesOf([]float32{1 + 1.0/(1<<20), 2, 3, 4})), s.Upload(y, bytesOf([]float32{1, 10})))
		for _, acc := range []bool{false, true} {
			do(t, b.MatMul(y+256, x, y, 2, 1, 2, false, false, acc))
		}
		do(t, s.Download(product, y+256), s.Synchronize())
		if got := floatsOf(product); got[0] != 42+2.0/(1<<20) || got[1] != 86 {
			t.Errorf("a product, twice: %v", got)
		}
		do(t, b.Close())
	}
	do(t, e.Close(), h.Close(), start.Close(), end.Close(), c.Free(x), c.Free(y), m.Close(), s.Close(), c.Close())
}

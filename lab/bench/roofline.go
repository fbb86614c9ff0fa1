package bench

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Roofline is what this machine can do with a number of threads, measured.
type Roofline struct {
	// MatMul is the rate of the best of several large float32 matrix products, in
	// 10⁹ operations a second.
	MatMul float64 `json:"matmul_gflops"`
	// Exp is the rate of the exponential function over numbers in the cache, in
	// 10⁹ a second.
	Exp float64 `json:"exp_gelems"`
	// Bandwidth is by how much memory is touched, ascending.
	Bandwidth []Bandwidth `json:"bandwidth"`
}

// Bandwidth is the rate at which a sum of two arrays is written to a third (the
// kernel Add of McCalpin's STREAM), three times four bytes an element.
type Bandwidth struct {
	MiB float64 `json:"mib"` // of the three arrays of all threads
	GBs float64 `json:"gb_per_s"`
}

// bandwidthMiB are the sizes that bandwidth is measured at, for each thread: they
// fit the second-level cache of most processors, the last level, and none.
var bandwidthMiB = []float64{0.25, 2, 12, 96}

// At returns the bandwidth for a working set: of the smallest size measured that
// holds it, or of the largest.
func (l *Roofline) At(bytes float64) float64 {
	for _, b := range l.Bandwidth {
		if bytes <= b.MiB*(1<<20) {
			return b.GBs
		}
	}
	if n := len(l.Bandwidth); n > 0 {
		return l.Bandwidth[n-1].GBs
	}
	return 0
}

func (l *Roofline) best(m *Roofline) *Roofline {
	b := &Roofline{MatMul: max(l.MatMul, m.MatMul), Exp: max(l.Exp, m.Exp), Bandwidth: slices.Clone(l.Bandwidth)}
	for i := range b.Bandwidth {
		b.Bandwidth[i].GBs = max(b.Bandwidth[i].GBs, m.Bandwidth[i].GBs)
	}
	return b
}

// MeasureRoofline takes a second or two.
func MeasureRoofline(threads int) *Roofline {
	p := kernels.NewPool(threads)
	defer p.Close()
	l := &Roofline{}
	for _, s := range productSizes {
		l.MatMul = max(l.MatMul, productRate(p, s, 8))
	}
	const exps = 1 << 16
	x, y := ramp(exps), make([]float32, exps)
	best := fastest(50, func() { p.Unary(kernels.Exp, y, x, 0) })
	l.Exp = exps / best.Seconds() / 1e9
	for _, mib := range bandwidthMiB {
		l.Bandwidth = append(l.Bandwidth, bandwidth(mib, p.Threads()))
	}
	return l
}

// productSizes are the products m×k×n of which the best is the limit.
var productSizes = [][3]int{{1024, 1024, 1024}, {2708, 1433, 128}, {4096, 512, 128}}

func productRate(p *kernels.Pool, size [3]int, runs int) float64 {
	m, k, n := size[0], size[1], size[2]
	a, b, dst := ramp(m*k), ramp(k*n), make([]float32, m*n)
	best := fastest(runs, func() { p.MatMul(dst, a, b, m, k, n, false, false, kernels.Epilogue{}) })
	return 2 * float64(m) * float64(k) * float64(n) / best.Seconds() / 1e9
}

// glimpse measures the product again, for some milliseconds: of many moments of a
// sitting one is undisturbed.
func (l *Roofline) glimpse(threads int) {
	p := kernels.NewPool(threads)
	defer p.Close()
	l.MatMul = max(l.MatMul, productRate(p, productSizes[2], 5))
}

// ramp returns numbers between −1 and 1.
func ramp(n int) []float32 {
	x := make([]float32, n)
	const period = 201 * 16
	for i := range min(n, period) {
		x[i] = float32(i*37%201)/100 - 1
	}
	for done := period; done < n; done *= 2 {
		copy(x[done:], x[:done])
	}
	return x
}

// fastest returns the least time of a number of runs after a first one: what a
// machine that others use too can still tell.
func fastest(runs int, f func()) time.Duration {
	f()
	best := time.Duration(1<<63 - 1)
	for range runs {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best
}

// bandwidth lets every thread work on arrays of its own.
func bandwidth(mib float64, threads int) Bandwidth {
	n := int(mib * (1 << 20) / 12)
	repeat := max(1, 8*(1<<20)/(n*12)) // so that a measurement takes half a millisecond at least
	pools := make([]*kernels.Pool, threads)
	arrays := make([][3][]float32, threads)
	for i := range pools {
		pools[i] = kernels.NewPool(1)
		defer pools[i].Close()
		arrays[i] = [3][]float32{make([]float32, n), ramp(n), ramp(n)}
	}
	all := func() {
		var wg sync.WaitGroup
		for i, p := range pools {
			wg.Go(func() {
				for range repeat {
					p.Binary(kernels.Add, arrays[i][0], arrays[i][1], arrays[i][2], 1, n, kernels.Full, kernels.Full)
				}
			})
		}
		wg.Wait()
	}
	best := fastest(6, all)
	return Bandwidth{MiB: mib * float64(threads), GBs: 12 * float64(n) * float64(repeat) * float64(threads) / best.Seconds() / 1e9}
}

// Machine says where figures were measured.
type Machine struct {
	OS        string `json:"os"`
	Arch      string `json:"arch"`
	ISA       string `json:"isa"` // kernels in use
	CPUs      int    `json:"cpus"`
	Threads   int    `json:"threads"`
	GoVersion string `json:"go_version"`
}

// ThisMachine describes the machine; threads 0 is one for each processor.
func ThisMachine(threads int) Machine {
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, ISA: kernels.ISA(), CPUs: runtime.NumCPU(), Threads: threads, GoVersion: runtime.Version()}
}

func (m Machine) String() string {
	return fmt.Sprintf("%s/%s, kernels %s, %d threads of %d, %s", m.OS, m.Arch, m.ISA, m.Threads, m.CPUs, m.GoVersion)
}

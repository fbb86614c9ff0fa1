package kernels

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/rng"
)

// workload is one call of one kernel on inputs large enough for several chunks.
type workload struct {
	name string
	out  [][]float32
	run  func(p *Pool)
}

// workloads covers every kernel of the package.
func workloads() []workload {
	const rows, cols, n, b, f = 700, 65, 700 * 65, 300, 24
	x, y, pos := normals(1, n), normals(2, n), positives(3, n)
	s := randomCSR(4, rows, 400)
	tr := Transpose(s)
	e := s.NNZ()
	vals, h, g := normals(5, e), normals(6, 400*cols), normals(7, rows*cols)
	labels, idx := make([]int64, rows), make([]int64, rows)
	key := rng.New(9, "work")
	for i := range labels {
		labels[i], idx[i] = int64(i%(cols+1)), int64(key.Intn(uint64(i), 300))
	}
	var list []workload
	add := func(name string, sizes []int, f func(p *Pool, out [][]float32)) {
		w := workload{name: name}
		for _, s := range sizes {
			w.out = append(w.out, make([]float32, s))
		}
		w.run = func(p *Pool) { f(p, w.out) }
		list = append(list, w)
	}
	one := func(name string, size int, f func(p *Pool, dst []float32)) {
		add(name, []int{size}, func(p *Pool, out [][]float32) { f(p, out[0]) })
	}
	bias := normals(8, cols)
	for v := range 4 {
		ta, tb := v&1 != 0, v&2 != 0
		one(name("MatMul ", v), 300*cols, func(p *Pool, dst []float32) {
			p.MatMul(dst, x[:300*150], y[:150*cols], 300, 150, cols, ta, tb, Epilogue{Bias: bias, Act: Elu})
		})
	}
	one("MatMul long k", 20*30, func(p *Pool, dst []float32) {
		p.MatMul(dst, x[:20*1400], y[:1400*30], 20, 1400, 30, false, false, Epilogue{})
	})
	one("MatMul narrow", 700*7, func(p *Pool, dst []float32) {
		p.MatMul(dst, x, y[:cols*7], 700, cols, 7, false, false, Epilogue{Act: Relu})
	})
	one("SpMM", rows*cols, func(p *Pool, dst []float32) { p.SpMM(dst, s, vals, nil, h, cols, Epilogue{Bias: bias, Act: Relu}) })
	one("SpMM transposed", 400*cols, func(p *Pool, dst []float32) { p.SpMM(dst, tr, vals, bias2(), g, cols, Epilogue{}) })
	one("SDDMM", e, func(p *Pool, dst []float32) { p.SDDMM(dst, s, g, h, cols) })
	one("EdgeGather", e, func(p *Pool, dst []float32) { p.EdgeGather(dst, s, h, 1, Src) })
	one("EdgeSum", rows, func(p *Pool, dst []float32) { p.EdgeSum(dst, s, vals, 1, Dst) })
	one("EdgeSum columns", 400, func(p *Pool, dst []float32) { p.EdgeSum(dst, s, vals, 1, Src) })
	two := normals(10, max(8*e, 64*400))
	add("EdgeSoftmax", []int{e * 8, rows * 8}, func(p *Pool, out [][]float32) { p.EdgeSoftmax(out[0], out[1], s, two, x[:rows*8], nil, 8) })
	add("EdgeSoftmaxGrad", []int{e * 8, rows * 8, e}, func(p *Pool, out [][]float32) {
		p.EdgeSoftmaxGrad(out[0], out[1], out[2], s, two, x[:rows*8], pos[:e], two, x[:rows*8], two, nil, 8)
	})
	one("SpMM heads", rows*64, func(p *Pool, dst []float32) { p.SpMMHeads(dst, s, two, nil, two[:400*64], 64, 8, Epilogue{}) })
	one("SDDMM heads", e*8, func(p *Pool, dst []float32) { p.SDDMMHeads(dst, s, x[:rows*64], two[:400*64], 64, 8) })
	one("GroupSum", rows*8, func(p *Pool, dst []float32) { p.GroupSum(dst, x[:rows*64], rows, 64, 8) })
	one("GroupRepeat", rows*64, func(p *Pool, dst []float32) { p.GroupRepeat(dst, x[:rows*8], rows, 8, 8) })
	one("EdgeUniform", e, func(p *Pool, dst []float32) { p.EdgeUniform(dst, s, key) })
	one("DropoutSparse", e, func(p *Pool, dst []float32) { p.DropoutSparse(dst, vals, s, 400, 0.4, key) })
	one("GatherRows", rows*cols, func(p *Pool, dst []float32) { p.GatherRows(dst, x, idx, cols) })
	one("ScatterAddRows", 300*cols, func(p *Pool, dst []float32) { p.ScatterAddRows(dst, x, idx, 300, cols) })
	for op := range unaryCount {
		one(unaryNames[op], n, func(p *Pool, dst []float32) { p.Unary(op, dst, pos, 1.3) })
	}
	for op := range binaryCount {
		one(name("Binary ", op), n, func(p *Pool, dst []float32) { p.Binary(op, dst, x, y, rows, cols, Full, Full) })
		one(name("Binary row ", op), n, func(p *Pool, dst []float32) { p.Binary(op, dst, x, y, rows, cols, Full, RowVector) })
		one(name("Binary column ", op), n, func(p *Pool, dst []float32) { p.Binary(op, dst, x, y, rows, cols, ColVector, Full) })
		one(name("Binary outer ", op), n, func(p *Pool, dst []float32) { p.Binary(op, dst, x, y, rows, cols, ColVector, Scalar) })
	}
	one("ReluGrad", n, func(p *Pool, dst []float32) { p.ReluGrad(dst, x, y) })
	one("EluGrad", n, func(p *Pool, dst []float32) { p.EluGrad(dst, x, y) })
	one("Axpby", n, func(p *Pool, dst []float32) { p.Fill(dst, 1.5); p.Axpby(dst, x, 2, 3) })
	one("Scale", n, func(p *Pool, dst []float32) { p.Scale(dst, x, 2) })
	one("Copy", n, func(p *Pool, dst []float32) { p.Copy(dst, x) })
	for kind := range ReduceLSE + 1 {
		one(name("all ", kind), 1, func(p *Pool, dst []float32) { p.Reduce(kind, dst, x) })
		one(name("rows ", kind), rows, func(p *Pool, dst []float32) { p.ReduceRows(kind, dst, x, rows, cols) })
		one(name("columns ", kind), rows, func(p *Pool, dst []float32) { p.ReduceCols(kind, dst, x, rows, cols) })
	}
	one("Softmax", n, func(p *Pool, dst []float32) { p.Softmax(dst, x, rows, cols) })
	one("LogSoftmax", n, func(p *Pool, dst []float32) { p.LogSoftmax(dst, x, rows, cols) })
	one("SoftmaxCrossEntropy", 1, func(p *Pool, dst []float32) { p.SoftmaxCrossEntropy(dst, x, labels, rows, cols) })
	one("SoftmaxCrossEntropyGrad", n, func(p *Pool, dst []float32) { p.SoftmaxCrossEntropyGrad(dst, x, labels, y, rows, cols) })
	one("L2NormalizeRows", n, func(p *Pool, dst []float32) { p.L2NormalizeRows(dst, x, rows, cols, 1e-6) })
	one("L2NormalizeRowsGrad", n, func(p *Pool, dst []float32) { p.L2NormalizeRowsGrad(dst, x, y, rows, cols, 1e-6) })
	one("L1NormalizeRows", n, func(p *Pool, dst []float32) { p.L1NormalizeRows(dst, x, rows, cols, 1e-6) })
	u, v := unitRows(1, b, f), unitRows(2, b, f)
	ws := make([]float32, PairwiseWorkspace(b, f))
	add("PairwiseReduce", []int{b, b, b, 1}, func(p *Pool, o [][]float32) {
		p.PairwiseReduce(PairwiseResult{RowLSE: o[0], ColLSE: o[1], Diag: o[2], SumSq: o[3]}, u, v, b, f, 0.3, nil, ws)
	})
	row, col, long := normals(3, b), normals(4, b), normals(6, 100+30*(splitLeast+30))
	add("PairwiseReduceGrad", []int{b * f, b * f}, func(p *Pool, o [][]float32) {
		p.PairwiseReduceGrad(o[0], o[1], u, v, row, col, PairwiseCotangent{row, col, row, col}, b, f, 0.3, nil, ws)
	})
	add("PairwiseMean", []int{b, b * f}, func(p *Pool, o [][]float32) {
		p.PairwiseReduce(PairwiseResult{RowLSE: o[0], Mean: o[1]}, u, v, b, f, 0.3, nil, ws)
	})
	one("PairwiseMeanGrad", b*f, func(p *Pool, dst []float32) { p.PairwiseMeanGrad(dst, u, v, v, row, col, b, f, 0.3) })
	one("PairwiseSelf", b, func(p *Pool, dst []float32) { p.PairwiseSelf(dst, u, b, f, 0.3, nil, ws) })
	one("PairwiseSelfGrad", b*f, func(p *Pool, dst []float32) { p.PairwiseSelfGrad(dst, u, row, col, b, f, 0.3, nil, ws) })
	one("MatMulSplit", 20*30, func(p *Pool, dst []float32) {
		p.MatMul(dst, long, long[100:], 20, splitLeast+30, 30, true, false, Epilogue{})
	})
	one("Uniform", n, func(p *Pool, dst []float32) { p.Uniform(dst, key) })
	one("Normal", n, func(p *Pool, dst []float32) { p.Normal(dst, key) })
	one("Dropout", n, func(p *Pool, dst []float32) { p.Dropout(dst, x, 0.3, key) })
	m, w, q := make([]float32, n), make([]float32, n), make([]AdamParam, 2)
	one("AdamStep", n, func(p *Pool, dst []float32) {
		clear(m)
		clear(w)
		copy(dst, y)
		q[0] = AdamParam{dst[:100], x[:100], m[:100], w[:100], 0.1}
		q[1] = AdamParam{dst[100:], x[100:], m[100:], w[100:], 0}
		p.AdamStep(q, 0.1, 0.9, 0.99, 1e-8, 3)
	})
	return list
}

func bias2() []float32 { return twoRows }

var twoRows = normals(10, 400)

func TestSameBitsForAnyThreads(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		single := NewPool(1)
		defer single.Close()
		want := workloads()
		for _, w := range want {
			w.run(single)
		}
		for _, threads := range []int{2, 3, 7} {
			p := NewPool(threads)
			defer p.Close()
			for i, w := range workloads() {
				w.run(p)
				for k := range w.out {
					sameBits(t, name(w.name, ", ", threads, " threads"), w.out[k], want[i].out[k])
				}
			}
		}
	})
}

// After the first call a kernel allocates nothing, on any thread.
func TestNoAllocations(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, w := range workloads() {
			if n := testing.AllocsPerRun(3, func() { w.run(p) }); n != 0 {
				t.Errorf("%s: %g allocations a call", w.name, n)
			}
		}
	})
}

type counter struct {
	seen []atomic.Int32
	bad  atomic.Int32
}

func (c *counter) Do(lo, hi int) {
	if lo%10 != 0 || hi-lo > 10 || hi <= lo {
		c.bad.Add(1)
	}
	for i := lo; i < hi; i++ {
		c.seen[i].Add(1)
	}
}

func TestForVisitsEachOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 7} {
		p := NewPool(threads)
		for round := range 300 {
			c := &counter{seen: make([]atomic.Int32, round*7%1001)}
			p.For(len(c.seen), 10, c)
			for i := range c.seen {
				if n := c.seen[i].Load(); n != 1 {
					t.Fatalf("%d threads, round %d: element %d visited %d times", threads, round, i, n)
				}
			}
			if c.bad.Load() != 0 {
				t.Fatalf("%d threads: chunk borders are no multiples of the grain", threads)
			}
			if round%100 == 0 {
				time.Sleep(5 * time.Millisecond) // lets the workers park
			}
		}
		p.Close()
		p.Close()
		c := &counter{seen: make([]atomic.Int32, 25)}
		p.For(25, 10, c)
		if c.seen[24].Load() != 1 {
			t.Fatal("a closed pool does not run its caller's work")
		}
	}
}

func TestCloseEndsGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		p := NewPool(4)
		p.Fill(make([]float32, 5*elemChunk), 1)
		p.Close()
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// An idle pool costs nothing: its goroutines wait on channels.
func TestIdlePoolParks(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	p.Fill(make([]float32, 5*elemChunk), 1)
	deadline := time.Now().Add(10 * time.Second)
	for i := range p.workers {
		for p.workers[i].parked.Load() != 1 {
			if time.Now().After(deadline) {
				t.Fatalf("worker %d is not parked after 10 s", i)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

type failing struct{ at int }

func (f failing) Do(lo, _ int) {
	if lo == f.at {
		panic("from the body")
	}
}

// A body that panics on the calling goroutine leaves the pool usable.
func TestPanicLeavesPoolUsable(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	q := NewPool(2)
	defer q.Close()
	q.Close() // its calls run on the caller alone
	for _, p := range []*Pool{p, q} {
		if msg := panics(func() { p.For(100, 1, failing{at: 7}) }); msg != "from the body" {
			t.Errorf("panic %q, want the body's", msg)
		}
		c := &counter{seen: make([]atomic.Int32, 100)}
		p.For(100, 10, c)
		for i := range c.seen {
			if c.seen[i].Load() != 1 {
				t.Fatalf("element %d visited %d times after a panic", i, c.seen[i].Load())
			}
		}
	}
}

// ending is a context whose error is that of a function.
type ending struct {
	context.Context
	err func() error
}

func (e ending) Err() error { return e.err() }

// What is to stop does so at the next chunk, from within an error, too, and the pool goes on.
func TestUntil(t *testing.T) {
	end := errors.New("the end")
	for _, threads := range []int{1, 3} {
		p := NewPool(threads)
		defer p.Close()
		asked := 0
		ctx := ending{t.Context(), func() error {
			if asked++; asked > 3 {
				return end
			}
			return nil
		}}
		c := &counter{seen: make([]atomic.Int32, 10000)}
		all := func() error {
			for range 5 {
				p.For(len(c.seen), 1, c)
			}
			return nil
		}
		wrapped := func() (err error) {
			defer func() { err = fmt.Errorf("a kernel failed: %w", recover().(error)) }()
			return all()
		}
		for _, do := range []func() error{all, wrapped} {
			asked = 0
			if err := p.Until(ctx, do); err != end {
				t.Errorf("%d threads: error %v, want the one it was to stop with", threads, err)
			}
		}
		other := errors.New("another")
		if err := p.Until(ctx, func() error { return other }); err != other {
			t.Errorf("%d threads: error %v, want that of what was done", threads, err)
		}
		asked = 0
		if msg := panics(func() { _ = p.Until(ctx, func() error { p.For(100, 100, failing{at: 0}); return nil }) }); msg != "from the body" {
			t.Errorf("%d threads: panic %q, want the body's", threads, msg)
		}
		c.seen = make([]atomic.Int32, 10000)
		if err := all(); err != nil || asked > 3 || c.seen[9999].Load() != 5 {
			t.Errorf("%d threads: behind Until it is asked %d times, error %v", threads, asked, err)
		}
	}
}

func TestSetISA(t *testing.T) {
	before := ISA()
	if err := SetISA("mmx"); err == nil || ISA() != before {
		t.Errorf("SetISA(mmx): error %v, now %s", err, ISA())
	}
	names := ISAs()
	if names[len(names)-1] != "go" {
		t.Errorf("instruction sets %v, want go last", names)
	}
}

func BenchmarkRegion(b *testing.B) {
	p := NewPool(2)
	defer p.Close()
	c := &counter{seen: make([]atomic.Int32, 20)}
	for b.Loop() {
		p.For(20, 10, c)
	}
}

// A large buffer of sizes that vary a little is made anew only now and then.
func TestGrow(t *testing.T) {
	const n = largeBuffer / 4
	var buf []float32
	for _, c := range []struct{ n, want int }{
		{100, 100}, {101, 101}, // small: as many as are asked for
		{n, n}, {n + 1, n + 1 + (n+1)/growBy}, {n + n/20, n + 1 + (n+1)/growBy},
		{2 * n, 2 * n}, // for another use
		{n, 2 * n},
	} {
		if got := grow(&buf, c.n); len(got) != c.n || len(buf) != c.want {
			t.Errorf("%d of %d elements, want %d of %d", len(got), len(buf), c.n, c.want)
		}
	}
}

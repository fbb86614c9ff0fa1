package kernels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// task is the work of one parallel region: do computes one chunk. worker is in
// [0, threads) and names the scratch memory the call may use.
type task interface {
	do(chunk, worker int)
}

// Body is the work of [Pool.For]: Do handles the elements lo ≤ i < hi.
type Body interface {
	Do(lo, hi int)
}

// BodyFunc makes a function a [Body], where the allocation does not matter.
type BodyFunc func(lo, hi int)

func (f BodyFunc) Do(lo, hi int) { f(lo, hi) }

// Pool is a fixed set of threads that run kernels. The goroutine that calls a
// kernel is one of them; the others are goroutines that wait, spinning for some
// tens of microseconds and then parked, so that an idle pool costs nothing.
//
// A pool runs one kernel at a time: it must not be used by two goroutines at
// once, nor from inside a [Body] that it is running.
type Pool struct {
	threads int
	workers []worker
	exited  sync.WaitGroup
	closed  bool

	// The open region. gate says which region is open and how many workers
	// are inside it; job and chunks are written only while none is.
	gate   atomic.Uint64
	next   atomic.Int64
	chunks int64
	job    task
	done   chan struct{}
	failed atomic.Pointer[any] // what a worker's chunk panicked with
	ctx    context.Context     // see Until

	// Buffers that grow to the largest need and are then reused.
	local [][]float32 // one for each thread
	index [][]uint64  // one for each thread, scatterMax long
	ints  [][]int32   // one for each thread
	room  []float32   // roomStep numbers for each thread
	packB []float32   // packed right-hand matrix
	part  []float32   // partial results of reductions, one row a chunk
	keys  []uint64    // of rows' neighbours

	nonZeros nonZeros
	turns    []*sync.Mutex // for blocks of rows

	jobs jobs
}

// worker is the mailbox of one waiting goroutine, padded to its own cache line.
type worker struct {
	parked atomic.Uint32
	quit   atomic.Bool
	wake   chan struct{}
	_      [40]byte
}

const (
	roomStep = 128
	roomPart = roomStep / 4
)

// The gate word: region number in the high half, then the flags, then the
// number of workers inside.
const (
	gateClosed = 1 << 31 // nobody may enter
	gateWaiter = 1 << 30 // the caller sleeps until the last worker leaves
	gateCount  = gateWaiter - 1
)

// NewPool starts a pool of the given number of threads, the caller included;
// threads ≤ 0 means one for each processor Go may use. Close it when done.
func NewPool(threads int) *Pool {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	p := &Pool{
		threads: threads,
		workers: make([]worker, threads-1),
		local:   make([][]float32, threads),
		index:   make([][]uint64, threads),
		ints:    make([][]int32, threads),
		room:    make([]float32, threads*roomStep),
		done:    make(chan struct{}, 1),
	}
	for i := range p.index {
		p.index[i] = make([]uint64, scatterMax)
	}
	p.gate.Store(gateClosed)
	p.exited.Add(threads - 1)
	for i := range p.workers {
		p.workers[i].wake = make(chan struct{}, 1)
		go p.work(i)
	}
	return p
}

// Threads returns the number of threads, the caller's included.
func (p *Pool) Threads() int { return p.threads }

// Close ends the pool's goroutines and waits for them. A second call does
// nothing; kernels called after Close run on the calling goroutine alone.
func (p *Pool) Close() {
	if p.closed {
		return
	}
	p.closed = true
	for i := range p.workers {
		w := &p.workers[i]
		w.quit.Store(true)
		if w.parked.CompareAndSwap(1, 0) {
			w.wake <- struct{}{}
		}
	}
	p.exited.Wait()
	p.workers = nil
}

// For runs body over [0, n) in chunks of grain elements (at least 1). Chunk
// borders are multiples of grain, so they do not depend on the threads.
func (p *Pool) For(n, grain int, body Body) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	runJob(p, &p.jobs.loop, forJob{n: n, grain: grain, body: body}, ceilDiv(n, grain))
}

type forJob struct {
	n, grain int
	body     Body
}

func (j *forJob) do(c, _ int) {
	lo := c * j.grain
	j.body.Do(lo, min(lo+j.grain, j.n))
}

// runJob runs a job at its place among those of the pool, so that nothing is allocated, and clears
// that, so that nothing of it is kept alive.
func runJob[J any, T interface {
	*J
	task
}](p *Pool, at T, job J, chunks int) {
	*at = job
	p.run(chunks, at)
	*at = *new(J)
}

// run computes the chunks 0..chunks-1 of t and returns when all are done.
func (p *Pool) run(chunks int, t task) {
	p.ask()
	if chunks <= 1 || len(p.workers) == 0 {
		for c := range chunks {
			p.ask()
			t.do(c, 0)
		}
		return
	}
	p.job, p.chunks = t, int64(chunks)
	p.next.Store(0)
	region := p.gate.Load()>>32 + 1
	p.gate.Store(region << 32) // opens the gate and publishes the job
	for i := range p.workers[:min(len(p.workers), chunks-1)] {
		w := &p.workers[i]
		if w.parked.Load() == 1 && w.parked.CompareAndSwap(1, 0) {
			w.wake <- struct{}{}
		}
	}
	defer p.finish() // also when a chunk panics on this goroutine
	p.drain(p.threads - 1)
}

// finish closes the region and waits until the workers have left it.
func (p *Pool) finish() {
	p.gate.Or(gateClosed)
	p.awaitEmpty()
	p.job = nil
	if v := p.failed.Swap(nil); v != nil {
		panic(*v)
	}
}

// drain computes chunks until none is left.
func (p *Pool) drain(worker int) {
	t, n := p.job, p.chunks
	for {
		c := p.next.Add(1) - 1
		if c >= n {
			return
		}
		if worker == p.threads-1 {
			p.ask()
		}
		t.do(int(c), worker)
	}
}

// Until runs do. When ctx ends, which the calling goroutine looks at before each chunk of a kernel,
// it ends do with the error of ctx; what kernels were computing is unspecified then.
func (p *Pool) Until(ctx context.Context, do func() error) (err error) {
	p.ctx = ctx
	defer func() {
		p.ctx = nil
		if v := recover(); v != nil {
			if err = reason(v); err == nil {
				panic(v)
			}
		}
	}()
	if err = do(); err != nil { // a kernel's panic may have become an error
		err = cmp.Or(reason(err), err)
	}
	return err
}

// stopped is what a kernel panics with that [Pool.Until] ends.
type stopped struct{ error }

// reason is why kernels were stopped, nil where they were not.
func reason(v any) error {
	var s stopped
	if err, ok := v.(error); ok && errors.As(err, &s) {
		return s.error
	}
	return nil
}

// ask ends the kernel that the calling goroutine runs if it is to stop.
func (p *Pool) ask() {
	if p.ctx == nil {
		return
	}
	if err := p.ctx.Err(); err != nil {
		p.next.Store(p.chunks) // for the workers
		panic(stopped{err})
	}
}

// drainWorker is drain on a worker, whose panics the caller gets: a read of a mapped file
// that is not there any more must not end the process.
func (p *Pool) drainWorker(worker int) {
	defer func() {
		if v := recover(); v != nil {
			p.fail(v)
		}
	}()
	p.drain(worker)
}

// fail ends the region because of a panic. (It is a function, since the address of what is
// recovered is taken: that would be an allocation for each region.)
//
//go:noinline
func (p *Pool) fail(v any) {
	p.next.Store(p.chunks)
	p.failed.Store(&v)
}

// How long to spin before parking: rounds of pauses, yielding the processor
// after each round. About 50 µs in all.
const (
	spinRounds = 40
	spinPauses = 30
)

// awaitEmpty returns when no worker is inside the closed region.
func (p *Pool) awaitEmpty() {
	for range spinRounds {
		for range spinPauses {
			if p.gate.Load()&gateCount == 0 {
				return
			}
			pause()
		}
		runtime.Gosched()
	}
	for {
		g := p.gate.Load()
		if g&gateCount == 0 {
			return
		}
		if p.gate.CompareAndSwap(g, g|gateWaiter) {
			<-p.done
			return
		}
	}
}

// work is the life of worker i.
func (p *Pool) work(i int) {
	defer p.exited.Done()
	debug.SetPanicOnFault(true)
	w := &p.workers[i]
	var last uint64
	for {
		region, ok := p.await(w, last)
		if !ok {
			return
		}
		p.drainWorker(i)
		if g := p.gate.Add(^uint64(0)); g&gateCount == 0 && g&gateWaiter != 0 {
			p.done <- struct{}{}
		}
		last = region
	}
}

// await enters the next region after last. It returns false on quit.
func (p *Pool) await(w *worker, last uint64) (uint64, bool) {
	for {
		for range spinRounds {
			for range spinPauses {
				if region, ok := p.enter(last); ok {
					return region, true
				}
				pause()
			}
			if w.quit.Load() {
				return 0, false
			}
			runtime.Gosched()
		}
		// Park. Whoever takes the flag back from 1 to 0 owns the wake-up: the
		// region opened between the last look and the flag is seen here.
		w.parked.Store(1)
		region, ok := p.enter(last)
		if (ok || w.quit.Load()) && w.parked.CompareAndSwap(1, 0) {
			return region, ok
		}
		<-w.wake
		if ok {
			return region, true
		}
	}
}

// enter counts the caller into the open region if there is one after last.
func (p *Pool) enter(last uint64) (uint64, bool) {
	for {
		g := p.gate.Load()
		if g&gateClosed != 0 || g>>32 == last {
			return 0, false
		}
		if p.gate.CompareAndSwap(g, g+1) {
			return g >> 32, true
		}
	}
}

// scratch makes every thread's buffer at least n long.
func (p *Pool) scratch(n int) {
	if len(p.local[0]) >= n {
		return
	}
	for i := range p.local {
		p.local[i] = make([]float32, n)
	}
}

// intScratch does so of numbers.
func (p *Pool) intScratch(n int) {
	for i := range p.ints {
		if len(p.ints[i]) < n {
			p.ints[i] = make([]int32, n)
		}
	}
}

// growKeys makes room for n keys.
func (p *Pool) growKeys(n int) {
	if len(p.keys) < n {
		p.keys = make([]uint64, n)
	}
}

// grow returns *buf with at least n elements, contents unspecified. One that is large is given back
// before the next is made, which has some room if it was little that lacked: such sizes vary.
func grow(buf *[]float32, n int) []float32 {
	if old := len(*buf); old < n {
		size := n
		if 4*old >= largeBuffer {
			if n-old <= old/growBy {
				size += n / growBy
			}
			*buf = nil
			runtime.GC()
		}
		*buf = make([]float32, size)
	}
	return (*buf)[:n]
}

const (
	growBy      = 16
	largeBuffer = 4 << 20 // bytes
)

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// need panics when a slice is shorter than a kernel's shape asks for: the
// assembly behind it checks nothing.
func need(kernel, what string, have, want int) {
	if want < 0 || have < want {
		panic(fmt.Sprintf("kernels: %s: %s has %d elements, its shape needs %d", kernel, what, have, want))
	}
}

// needIfAny is need of a slice that may be nil.
func needIfAny[T any](kernel, what string, x []T, want int) {
	if x != nil {
		need(kernel, what, len(x), want)
	}
}

// elemChunk is the number of elements of one chunk of an elementwise kernel: 32 KiB of
// each operand, so that a chunk stays in the first-level cache.
const elemChunk = 8192

// rowsPerChunk returns how many rows of the given width make one chunk of
// about elemChunk elements.
func rowsPerChunk(cols int) int { return max(1, elemChunk/max(cols, 1)) }

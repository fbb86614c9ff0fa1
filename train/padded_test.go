package train

import (
	"context"
	"math"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/cuda"
)

// sparseShapes are shapes whose features are stored sparsely.
func sparseShapes(t testing.TB, count int) *data.Collection {
	c := shapes(t, count)
	x := &data.Features{Rows: c.X.Rows, Cols: c.X.Cols, RowPtr: []int32{0}}
	for i := range x.Rows {
		for k, v := range c.X.Dense[i*x.Cols:][:x.Cols] {
			if v != 0 {
				x.Col, x.Val = append(x.Col, int32(k)), append(x.Val, v)
			}
		}
		x.RowPtr = append(x.RowPtr, int32(len(x.Col)))
	}
	c.X = x
	return c
}

// What a function computes of a batch does not depend on the nodes and entries that are
// appended to it: loss, gradients and the statistics of batch normalisation are those of
// the batch itself, of every model, and every function that steps or evaluates takes
// such batches.
func TestPaddedBatchesComputeTheSame(t *testing.T) {
	for _, m := range models.All {
		if m.Graphs == nil {
			continue
		}
		classifiers := []string{""}
		if m.Refines {
			classifiers = models.GraphClassifiers()
		}
		for _, classifier := range classifiers {
			for i, readout := range []string{"sum", "mean", "max"} {
				sets := []string{"model.readout=" + readout, "model.dropout=0.3"}
				if classifier != "" {
					sets = append(sets, "model.classifier="+classifier)
				}
				c := shapes(t, 70)
				if i == 1 {
					c = sparseShapes(t, 70)
				}
				d := remote(t)
				d.Pad = true
				compareBatches(t, Job{Model: m.Name, Task: Graphs(c)}, d, sets)
			}
		}
	}
}

// The kernels for CUDA go past what is appended as those of the CPU do.
func TestCUDAPaddedBatchesComputeTheSame(t *testing.T) {
	cudatest.Either(t)
	for i, m := range models.All {
		if m.Graphs == nil {
			continue
		}
		c := shapes(t, 70)
		if i%2 == 1 {
			c = sparseShapes(t, 70)
		}
		d := gpu(t, cuda.Options{})
		compareBatches(t, Job{Model: m.Name, Task: Graphs(c)}, d, []string{"model.readout=" + []string{"sum", "mean", "max"}[i%3], "model.dropout=0.3"})
		closed(t, d)
	}
}

func compareBatches(t *testing.T, job Job, d runtime.Device, sets []string) {
	t.Helper()
	var trainers []*trainer
	var batches []*graphBatch
	for _, on := range []runtime.Device{nil, d} {
		tr, err := newTrainer(context.Background(), job, graphConfig(t, job.Model, sets...), Options{Device: on})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.close()
		s := rng.New(1, "padded")
		for _, p := range tr.optim.Params { // not the zeros and ones that they begin with
			for i := range p.Value.F32 {
				p.Value.F32[i] += 0.1 * s.Sub(p.Name).Uniform(uint64(i))
			}
		}
		p := tr.steps.(*graphSteps)
		if tr.prog.Func("fit") != nil {
			e := someCandidates(t, p.c)
			p.batch.refined = newCandidateBatch(e)
			tr.prog.inputs["lo"], tr.prog.inputs["hi"] = runtime.Scalar(-0.5), runtime.Scalar(0.9)
		}
		trainers, batches = append(trainers, tr), append(batches, p.batch)
	}
	graphs := []int32{3, 50, 11, 12, 69, 0, 33}
	for _, name := range []string{"train", "pretrain", "fit", "joint", "classify"} {
		if trainers[0].prog.Func(name) == nil {
			continue
		}
		var fs []*function
		for k, tr := range trainers {
			f, err := tr.prog.function(name)
			if err != nil {
				t.Fatal(err)
			}
			if f.padded != (k == 1) {
				t.Errorf("%s: @%s takes padded batches: %v", job.Model, name, f.padded)
			}
			if err := batches[k].join(graphs, batches[k].refines(f)); err != nil {
				t.Fatal(err)
			}
			if err := batches[k].bind(f); err != nil {
				t.Fatal(err)
			}
			if err := f.Run(5); err != nil {
				t.Fatal(err)
			}
			fs = append(fs, f)
		}
		if n := batches[1].g.Dims[0]; n <= batches[0].g.Dims[0] || n != batches[1].present.Dims[0] {
			t.Fatalf("%d nodes are padded to %d", batches[0].g.Dims[0], n)
		}
		for _, out := range fs[0].Outputs() {
			want, err := fs[0].Read(out)
			if err != nil {
				t.Fatal(err)
			}
			got, err := fs[1].Read(out)
			if err != nil {
				t.Fatal(err)
			}
			size := 0.1 // gradients of biases before batch normalisation are nothing but rounding
			for _, v := range want.F32 {
				size = max(size, math.Abs(float64(v)))
			}
			for i, w := range want.F32 {
				if diff := math.Abs(float64(got.F32[i] - w)); !(diff <= 1e-4*size) {
					t.Fatalf("%s %v: result %s of @%s has %g at %d, on the CPU %g", job.Model, sets, out, name, got.F32[i], i, w)
				}
			}
		}
	}
}

// A padded batch that is no larger than one before takes no new memory.
func TestPaddedBatchesAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, c := range []*data.Collection{shapes(t, 70), sparseShapes(t, 70)} {
		b := newGraphBatch(c, nil)
		b.refined = newCandidateBatch(someCandidates(t, c))
		first := int32(0)
		step := func() {
			graphs := [...]int32{first, first + 1, first + 2, first + 3}
			first = (first + 5) % 60
			if err := b.join(graphs[:], true); err != nil {
				t.Fatal(err)
			}
			b.pad(true)
		}
		for range 12 {
			step()
		}
		if n := allocations(12, step); n > 0 {
			t.Errorf("12 batches allocate %d times", n)
		}
	}
}

// someCandidates are the edges of a collection and pairs of neighbours in number.
func someCandidates(t *testing.T, c *data.Collection) *collectionEdges {
	t.Helper()
	var near []int32
	for g, n := range c.Graphs {
		for v := range n.N {
			near = append(near, c.Offset[g]+int32((v+2)%n.N))
		}
	}
	cand, err := graph.NewCandidates(c.Union().Undirected(), near, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	e := &collectionEdges{known: &edges{cand: cand}, starts: cand.Starts(nil, c.Offset)}
	for i := range cand.Edges {
		e.known.p, e.weights = append(e.known.p, float32(i%7)/7), append(e.weights, float32(i%5)/5)
	}
	return e
}

package runtime

import (
	"fmt"
	"testing"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// BenchmarkOverhead runs 1000 operations on one element each: what is left is
// the executor.
func BenchmarkOverhead(b *testing.B) {
	m := ir.NewModule("chain")
	build := m.NewFunc("f")
	x := build.Arg("x", ir.T(ir.F32, "N"))
	for range 1000 {
		x = build.One("neg", nil, x)
	}
	build.Return("y", x)
	for _, e := range executors() {
		b.Run(e.String(), func(b *testing.B) {
			pool := kernels.NewPool(1)
			defer pool.Close()
			f := mustFunction(b, m, "f", Options{NewExecutor: e.make, Pool: pool})
			bindAll(b, f, map[string]*Buffer{"x": Zeros(1)})
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Run(0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/instr")
		})
	}
}

// BenchmarkStep runs training steps at the size of Cora: 2708 nodes, 1433 binary
// features of which 1.3 % are set, 5278 undirected edges, anchors of 512 nodes.
func BenchmarkStep(b *testing.B) {
	o := models.Default()
	o.Features, o.Classes = 1433, 7
	for _, c := range []struct{ model, fn string }{{"gcn", "train"}, {"mlp", "train"}, {"ecl-gsr", "pretrain"}, {"ecl-gsr", "joint"}} {
		model, err := models.Lookup(c.model)
		if err != nil {
			b.Fatal(err)
		}
		p, err := compiler.Compile(model.Build(o), compiler.Options{Data: passes.DataInfo{SparseArgs: []string{"x"}}})
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range executors() {
			b.Run(fmt.Sprintf("%s/%s/%s", c.model, c.fn, e), func(b *testing.B) {
				f := mustFunction(b, p.Module, c.fn, Options{NewExecutor: e.make, Seed: rng.New(1, "bench")})
				sz := sizes{"N": 2708, "E": -1, "M": -1, "B": 512, "T": 140, "C": 7}
				args := inputArguments(b, p.Module, p.Module.Func(c.fn), sz, rng.New(1, "bench"))
				args["x"] = sparseFeatures(b, 2708, 1433, 18)
				bindAll(b, f, args, moduleParams(b, p.Module))
				b.ReportAllocs()
				for step := uint64(0); b.Loop(); step++ {
					if err := f.Run(step); err != nil {
						b.Fatal(err)
					}
				}
				plan := f.Main().Plan()
				b.ReportMetric(float64(plan.Bytes)/(1<<20), "MiB")
				b.ReportMetric(float64(plan.Instructions), "instr")
			})
		}
	}
}

// sparseFeatures is a binary matrix with the same number of ones in every row.
func sparseFeatures(b *testing.B, rows, cols, perRow int) *Buffer {
	b.Helper()
	rowPtr, col, vals := []int32{0}, []int32{}, []float32{}
	for r := range rows {
		for k := range perRow {
			col = append(col, int32((r*7+k*cols/perRow)%cols))
			vals = append(vals, 1)
		}
		rowPtr = append(rowPtr, int32(len(col)))
	}
	s, err := Sparse(rows, cols, rowPtr, col, vals)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

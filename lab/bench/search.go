package bench

import (
	"errors"
	"fmt"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// searchCase is an exact search for the k nearest neighbours of n nodes, by an embedding of
// f columns, as training makes for new candidates.
type searchCase struct{ n, f, k int }

// searchCases are of as many nodes as workloads have.
func searchCases() []Case {
	var cases []Case
	for _, data := range []string{"cora", "coauthor_phy", "arxiv"} {
		s := searchCase{n: FindWorkload(data).Nodes, f: 128, k: 5}
		cases = append(cases, Case{Name: "search/" + data, Doc: fmt.Sprintf("the %d nearest neighbours of each of %d nodes by an embedding of %d normal numbers, exactly", s.k, s.n, s.f),
			Heavy: data != "cora", Alone: true, run: s.run})
	}
	return cases
}

// work is what the search computes. The CPU makes each product of two rows once, a GPU
// twice.
func (s searchCase) work(times float64) *Cost {
	n, f := float64(s.n), float64(s.f)
	return &Cost{Flops: times * n * n * f, Bytes: 4*n*f + 8*n*float64(s.k), Set: 4 * n * f}
}

func (s searchCase) run(e *env) (r Result, err error) {
	emb := runtime.Zeros(s.n, s.f)
	pool := kernels.NewPool(e.Threads)
	defer pool.Close()
	pool.Normal(emb.F32, rng.New(0, "bench").Sub("embedding"))
	if e.Device == nil {
		var search graph.Neighbors
		r, err = e.rounds(func() error { search.Exact(pool, emb.F32, s.n, s.f, s.k); return nil })
		r.Cost, r.PeakMiB = s.work(1), peakMiB()
	} else {
		defer func() { err = errors.Join(err, e.Device.ReleaseAll()) }()
		if err := e.Device.ToDevice(emb); err != nil {
			return r, err
		}
		idx := make([]int32, s.n*s.k)
		r, err = e.rounds(func() error { return e.Device.Nearest(idx, nil, emb, s.k) })
		r.Cost, r.PlannedMiB = s.work(2), float64(e.Device.NearestBytes(s.n, s.f, s.k))/(1<<20)
	}
	r.Data = fmt.Sprintf("generated [%d,%d]", s.n, s.f)
	return r, err
}

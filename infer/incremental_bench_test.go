//go:build unix

package infer

import (
	"context"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// BenchmarkUpdate adds a node and three edges to a graph of 50,000 nodes and 300,000 edges.
func BenchmarkUpdate(b *testing.B) {
	for name, c := range map[string]struct {
		model string
		set   []string
	}{
		"gcn":     {"gcn", nil},
		"ecl-gsr": {"ecl-gsr", []string{"train.pretrain_steps=2", "train.joint_every=0", "model.edges.judge=embedding"}},
		// As on own data, and as on generated graphs.
		"evidence":          {"ecl-gsr", []string{"train.pretrain_steps=2", "train.joint_every=0", "model.edges.judge=evidence", "candidates.similarity=evidence", "candidates.two_step=10", "candidates.k=5", "candidates.mutual=false"}},
		"evidence-embedded": {"ecl-gsr", []string{"train.pretrain_steps=2", "train.joint_every=0", "model.edges.judge=evidence"}},
	} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			run := Train(b, filepath.Join(dir, "run"), c.model, data.Synthetic, export.BuildOptions{}, append([]string{"train.epochs=2", "synthetic.features=100"}, c.set...)...)
			dist := run.Dist
			large := run.Config.Synthetic.CSBM(7)
			large.Nodes, large.Degree, large.CommunitySize = 50_000, 12, 40
			r, err := OpenGraph(b.Context(), dist, data.Synthetic, GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU, Load: data.LoadOptions{Seed: 7, Synthetic: &large}}})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			if r.inc == nil {
				b.Fatal("updates compute the whole graph anew")
			}
			b.Logf("%d nodes, %d edges", r.Snapshot().Nodes(), r.Snapshot().Edges())
			stream, at := rng.New(1, "updates"), uint64(0)
			draw := func() int { at++; return stream.Intn(at, 50_000) }
			start := processorTime()
			b.ResetTimer()
			for range b.N {
				s := r.Snapshot()
				fresh := strconv.Itoa(s.Numbers())
				u := Update{X: s.x.row(draw()), Sources: []string{fresh, fresh, strconv.Itoa(draw())}}
				for range 3 {
					u.Targets = append(u.Targets, strconv.Itoa(draw()))
				}
				if _, err := r.Update(context.Background(), u); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime()-start).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// processorTime is what the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

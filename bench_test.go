package gsrc_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/lab/bench"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/train"
)

// load reads a workload's data below GSRC_DATA, or skips.
func load(b *testing.B, name string) *data.Dataset {
	root := os.Getenv("GSRC_DATA")
	ds, err := bench.FindWorkload(name).Load(root)
	if err != nil {
		b.Fatal(err)
	}
	if ds.Source == bench.Generated {
		b.Skipf("no data set %s below %s: set GSRC_DATA", name, root)
	}
	return ds
}

func newSession(b *testing.B, j bench.Job) *train.Session {
	s, err := bench.NewSession(j)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

func stepper(b *testing.B, s *train.Session, fn string) func() {
	return func() {
		if _, err := s.Step(fn); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGCN is 200 epochs of the two-layer GCN, each with an evaluation
// pass.
func BenchmarkGCN(b *testing.B) {
	for _, name := range []string{"cora", "citeseer", "actor"} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", name, threads), func(b *testing.B) {
				s := newSession(b, bench.Job{Data: load(b, name), Model: "gcn", Options: models.Default(), Threads: threads})
				step := stepper(b, s, "train")
				classify, err := s.Function("classify")
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					for epoch := range 200 {
						step()
						if err := classify.Run(uint64(epoch)); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

// BenchmarkECLStep is one pre-training step of the paper (see
// bench.PaperOptions), with and without the project-noise pass.
func BenchmarkECLStep(b *testing.B) {
	for _, c := range []struct {
		data           string
		anchors, width int
	}{
		{"cora", 512, 1433}, {"cora", 512, 128}, {"cora", 0, 1433}, {"citeseer", 512, 3703}, {"actor", 512, 932},
	} {
		for _, without := range [][]string{nil, {"project-noise"}} {
			b.Run(fmt.Sprintf("%s/anchors=%d/struct=%d/without=%v", c.data, c.anchors, c.width, without), func(b *testing.B) {
				step := stepper(b, newSession(b, bench.Job{Data: load(b, c.data), Model: "ecl-gsr", Options: bench.PaperOptions(c.width), Anchors: c.anchors, Threads: 2, Without: without}), "pretrain")
				step()
				for b.Loop() {
					step()
				}
			})
		}
	}
}

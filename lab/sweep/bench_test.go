package sweep

import (
	"fmt"
	"testing"
)

// What it takes to find out which jobs a store has.
func BenchmarkPlan(b *testing.B) {
	var jobs []Job
	for i := range 100 {
		jobs = append(jobs, Job{Model: "ecl-gsr", Data: "synthetic", Set: []string{fmt.Sprintf("train.lr=0.%02d", i/10+1)}, Seed: i % 10})
	}
	for b.Loop() {
		r := &Runner{}
		if _, _, _, err := r.plan(b.Context(), jobs); err != nil {
			b.Fatal(err)
		}
	}
}

// Sixteen small runs, one after the other with all processors each, and side by
// side with one thread each.
func BenchmarkRunner(b *testing.B) {
	var jobs []Job
	for i := range 16 {
		jobs = append(jobs, Job{Model: "ecl-gsr", Data: "synthetic", Set: []string{"synthetic.nodes=600", "train.epochs=40", "train.pretrain_steps=10"}, Seed: i})
	}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			for b.Loop() {
				r := &Runner{Workers: workers}
				if _, err := r.Run(b.Context(), jobs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

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
		if _, _, err := r.plan(b.Context(), jobs); err != nil {
			b.Fatal(err)
		}
	}
}

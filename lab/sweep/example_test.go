package sweep_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gsrc-dev/gsrc/lab/sweep"
)

// Every value with every seed; what the store has is not run again.
func ExampleRunner() {
	dir, err := os.MkdirTemp("", "sweep")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	grid, err := sweep.ParseGrid(`
[train]
epochs = 3
[synthetic]
nodes = 120
[sweep]
"model.hidden" = [8, 16]
seeds = 3
`)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		r := sweep.Runner{Dir: dir, Observer: func(p sweep.Progress) {
			if p.Done == p.Total {
				fmt.Printf("%d of %d runs, %d of them from the store\n", p.Done, p.Total, p.Stored)
			}
		}}
		records, err := r.Run(context.Background(), grid.Jobs("gcn", "synthetic"))
		if err != nil {
			log.Fatal(err)
		}
		for _, row := range sweep.Summarize(records).Rows[:1] {
			fmt.Printf("%d runs of the best setting\n", row.Runs)
		}
	}
	// Output:
	// 6 of 6 runs, 0 of them from the store
	// 3 runs of the best setting
	// 6 of 6 runs, 6 of them from the store
	// 3 runs of the best setting
}

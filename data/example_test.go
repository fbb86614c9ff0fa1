package data_test

import (
	"fmt"
	"log"

	"github.com/gsrc-dev/gsrc/data"
)

func Example() {
	ds, err := data.Load("testdata/planetoid-p2", data.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	split, err := ds.SplitFor(0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ds.Graph.N, "nodes,", len(ds.Graph.Edges), "edges,", ds.X.Cols, "features,", ds.Classes, "classes")
	fmt.Println("train on", split.Train, "test on", split.Test)
	// Output:
	// 8 nodes, 6 edges, 4 features, 2 classes
	// train on [0 1] test on [4 5 7]
}

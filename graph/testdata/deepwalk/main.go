// Command deepwalk embeds the graph of an edge list and writes the walks and
// the embedding, for compare.py beside it.
//
//	go run ./graph/testdata/deepwalk NODES EDGES.txt WALKS.txt EMBEDDING.f32 EPOCHS SEED THREADS
//
// EDGES.txt holds two node numbers a line, WALKS.txt gets one walk a line and
// EMBEDDING.f32 the [N, 128] embedding as little-endian float32. It prints the
// seconds that the embedding took.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

func main() {
	if len(os.Args) != 8 {
		log.Fatal("usage: deepwalk NODES EDGES.txt WALKS.txt EMBEDDING.f32 EPOCHS SEED THREADS")
	}
	number := func(i int) int {
		v, err := strconv.Atoi(os.Args[i])
		check(err)
		return v
	}
	in, err := os.Open(os.Args[2])
	check(err)
	var src, dst []int32
	for r := bufio.NewReader(in); ; {
		var u, v int32
		if _, err := fmt.Fscan(r, &u, &v); err != nil {
			break
		}
		src, dst = append(src, u), append(dst, v)
	}
	g, _, err := graph.Build(number(1), src, dst, nil, false)
	check(err)
	o := graph.DeepWalkOptions{Epochs: number(5), Seed: uint64(number(6))}

	walks, err := graph.RandomWalks(g, o)
	check(err)
	f, err := os.Create(os.Args[3])
	check(err)
	w := bufio.NewWriter(f)
	for _, walk := range walks {
		for _, v := range walk {
			fmt.Fprint(w, v, " ")
		}
		fmt.Fprintln(w)
	}
	check(w.Flush())
	check(f.Close())

	pool := kernels.NewPool(number(7))
	defer pool.Close()
	start := time.Now()
	x, err := graph.DeepWalk(pool, g, o)
	check(err)
	fmt.Printf("%.2f\n", time.Since(start).Seconds())
	f, err = os.Create(os.Args[4])
	check(err)
	check(binary.Write(f, binary.LittleEndian, x))
	check(f.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

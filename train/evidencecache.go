package train

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
)

// FittedEvidence keeps what the evidence for edges was fitted to, for runs on one graph that differ
// in what they train on it: the same graph, features, sources and seed are fitted once. The zero
// value is empty; several runs may use one at the same time.
type FittedEvidence struct {
	params sync.Map // by key: the parameters, map[string][]float32
}

// fit is [evidence.fit], or gives the parameters what it gave them in an earlier run.
func (c *FittedEvidence) fit(e *evidence, x graph.NodeFeatures, places bool, labels, training []int32, seed uint64) error {
	if c == nil {
		return e.fit(x, places, labels, training, seed)
	}
	key := e.key(x, places, labels, training, seed)
	if known, ok := c.params.Load(key); ok {
		for name, v := range known.(map[string][]float32) {
			e.setFloats(name, v)
		}
		return nil
	}
	if err := e.fit(x, places, labels, training, seed); err != nil {
		return err
	}
	known := map[string][]float32{}
	for _, name := range e.fittedParams() {
		known[name] = slices.Clone(e.prog.params.Lookup(name).Value.F32)
	}
	c.params.Store(key, known)
	return nil
}

// fittedParams are the parameters that [evidence.fit] gives values.
func (e *evidence) fittedParams() (names []string) {
	for _, p := range e.prog.Module.Params {
		if p.Attrs.Str("group") == models.EvidenceGroup {
			names = append(names, p.Name)
		}
	}
	return names
}

// key is of all that [evidence.fit] reads.
func (e *evidence) key(x graph.NodeFeatures, places bool, labels, training []int32, seed uint64) (key [sha256.Size]byte) {
	h := sha256.New()
	write := func(v any) { _ = binary.Write(h, binary.LittleEndian, v) } // a hash takes all
	fmt.Fprintln(h, seed, places, e.g.N, len(e.g.Edges), x.Cols, len(x.RowPtr), len(x.Col), len(x.Val), len(x.Dense), e.fittedParams())
	for _, f := range e.prog.Module.Funcs {
		if f.Attrs.Bool(ir.Fixed) || f.Name == "rows" {
			fmt.Fprintln(h, f)
		}
	}
	for _, v := range []any{e.g.Edges, e.g.Weights, x.RowPtr, x.Col, x.Val, x.Dense} {
		write(v)
	}
	if e.prog.params.Lookup(models.EvidenceClasses) != nil {
		for _, v := range training {
			write([2]int32{v, labels[v]})
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

package gorgonia

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"gorgonia.org/gorgonia"
)

// WriteDot writes the graph in Graphviz's language: a node for each of gorgonia's,
// with the operation as the IR prints it (inputs are filled, results have a double
// border), and an edge from each operand, labelled with its position.
func (g *Graph) WriteDot(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "digraph %q {\n\tnode [shape=box, fontname=monospace]\n", g.fn.Name)
	labels := map[*gorgonia.Node]string{g.step: "step"}
	for _, v := range g.inputs {
		labels[g.nodes[v]] = fmt.Sprintf("%s: %s", v.Ref(), v.Type)
	}
	results := map[*gorgonia.Node]bool{}
	for _, r := range g.fn.Results {
		results[g.nodes[r.Value]] = true
	}
	nodes := slices.SortedFunc(slices.Values(g.expr.AllNodes()), func(a, b *gorgonia.Node) int { return int(a.ID() - b.ID()) })
	for _, n := range nodes {
		label, style := labels[n], ", style=filled"
		if n.Op() != nil {
			label, style = n.Op().String(), ""
		}
		if results[n] {
			style += ", peripheries=2"
		}
		fmt.Fprintf(b, "\tn%d [label=%q%s]\n", n.ID(), label, style)
		operands := 0
		for from := g.expr.From(n.ID()); from != nil && from.Next(); operands++ {
			fmt.Fprintf(b, "\tn%d -> n%d [headlabel=%d]\n", from.Node().ID(), n.ID(), operands)
		}
	}
	fmt.Fprintln(b, "}")
	return b.Flush()
}

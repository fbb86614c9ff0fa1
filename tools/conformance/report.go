package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/export/manifest"
)

// row is one model of one export.
type row struct{ dist, model string }

func (r row) key() string { return r.dist + " " + r.model }

// writeReport writes the outcomes as a page.
func writeReport(path string, folders []string, list []*outcome) error {
	var rows []row
	for _, dir := range folders {
		m, err := manifest.Read(dir)
		if err != nil {
			return err
		}
		for _, model := range []string{"encoder", "scorer", "classifier"} {
			if _, ok := m.Models[model]; ok {
				rows = append(rows, row{filepath.Base(dir), model})
			}
		}
		for _, model := range slices.Sorted(maps.Keys(m.Models)) {
			if !slices.Contains(rows, row{filepath.Base(dir), model}) {
				rows = append(rows, row{filepath.Base(dir), model})
			}
		}
	}
	return os.WriteFile(path, page(rows, list), 0o644)
}

// notes numbers texts, each once.
type notes []string

func (n *notes) mark(text string) string {
	i := slices.Index(*n, text)
	if i < 0 {
		*n, i = append(*n, text), len(*n)
	}
	return fmt.Sprintf("[%d]", i+1)
}

// page is the report.
func page(rows []row, list []*outcome) []byte {
	var b bytes.Buffer
	b.WriteString(`# Conformance

<!-- Written by make conformance; do not edit. -->

The same files in other runtimes. ` + "`make conformance`" + ` trains small models on generated data, exports them with
` + "`gsrc build --test-cases`" + `, and runs every file on every graph of the family that builds are checked on (the
training graph, a larger one, a part, isolated nodes, none and one edge, duplicate and unsorted edges, self-loops given twice,
directed edges, one node, and a hub of 10⁵ neighbours; 5000 with ` + "`scatter`" + `, whose float32 sums go one after another, and 1000
with ` + "`dense`" + `). An output is right when max|a − b| ≤ 1e-5 + 1e-4·max|b|, b being gsrc's own forward pass, and with ` + "`int8`" + `, which rounds
what goes into a linear layer to 8 bits, when it is ≤ 0.1 + 0.25·max|b|. The programs are in
[conformance](../conformance), each to be copied.

`)
	failed, compared := 0, 0
	var ran []*outcome
	for _, o := range list {
		if o.skipped != "" {
			continue
		}
		ran = append(ran, o)
		for _, r := range o.results {
			compared += r.graphs
			if r.status == statusFail {
				failed++
			}
		}
	}
	fmt.Fprintf(&b, "%d failures among %d graphs run.\n\n## Largest error\n\nmax|a − b| over all graphs. It is large where outputs are: gin sums, so that a hub's logits are in the tens of thousands.\n"+
		"A number in brackets stands for what a runtime lacks to run a model.\n\n| export, model |", failed, compared)
	for _, o := range ran {
		fmt.Fprintf(&b, " %s |", o.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(ran)) + "\n")
	var lacks notes
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s, %s |", r.dist, r.model)
		for _, o := range ran {
			cell := "not run"
			if x, ok := o.results[r.key()]; ok {
				cell = x.cell(&lacks)
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	if len(lacks) > 0 {
		b.WriteString("\n")
		for i, text := range lacks {
			fmt.Fprintf(&b, "%d. %s\n", i+1, escape(text))
		}
	}
	b.WriteString(`
## Faulty graphs

Edges to nodes that there are not: a source or target beyond the nodes, a negative one, one far beyond. The check of edges in
each program, for the host to copy, must refuse all of them, and where the runtime looks at what a ` + "`Gather`" + ` reads the
file does too (node ` + "`edge_index_is_within_the_nodes`" + `).

| runtime | version | graphs run | faulty graphs | refused by the host's check | refused by the file |
|---|---|---|---|---|---|
`)
	for _, o := range ran {
		graphs, refused, byFile := 0, 0, 0
		for _, r := range o.results {
			graphs, refused, byFile = graphs+r.graphs, refused+r.refused, byFile+r.byFile
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d |\n", o.title, o.version, graphs, refused, refused, byFile)
	}
	for _, o := range list {
		if o.skipped != "" {
			fmt.Fprintf(&b, "\nLeft out: %s (%s).\n", o.title, escape(o.skipped))
		}
	}
	return b.Bytes()
}

// cell is a square of the table.
func (r result) cell(lacks *notes) string {
	switch {
	case r.status == statusFail:
		return "**FAIL** " + escape(r.text)
	case r.status == statusLacks:
		return lacks.mark(r.text)
	case r.hasMax:
		return fmt.Sprintf("%.1e", r.max)
	}
	return "ok"
}

// escape keeps a runtime's words from being Markdown.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "[", `\[`, "`", "'").Replace(text)
}

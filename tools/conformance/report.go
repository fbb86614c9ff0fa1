package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/gsrc-dev/gsrc/export/manifest"
)

type row struct{ dist, model string }

func (r row) key() string { return r.dist + " " + r.model }

func writeReport(path string, folders []string, list []*outcome) error {
	var rows []row
	for _, dir := range folders {
		m, err := manifest.Read(dir)
		if err != nil {
			return err
		}
		for _, model := range append([]string{"encoder", "scorer", "classifier"}, slices.Sorted(maps.Keys(m.Models))...) {
			r := row{filepath.Base(dir), model}
			if _, ok := m.Models[model]; ok && !slices.Contains(rows, r) {
				rows = append(rows, r)
			}
		}
	}
	text, err := page(rows, list)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
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

//go:embed page.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"inc": func(i int) int { return i + 1 }, "escape": escape,
}).Parse(pageText))

func page(rows []row, list []*outcome) ([]byte, error) {
	var view struct {
		Failed, Compared int
		Ran, Skipped     []string
		Rows             [][]string
		Lacks            notes
		Faulty           [][]any
	}
	for _, r := range rows {
		view.Rows = append(view.Rows, []string{r.dist + ", " + r.model})
	}
	for _, o := range list {
		if o.skipped != "" {
			view.Skipped = append(view.Skipped, fmt.Sprintf("%s (%s)", o.title, escape(o.skipped)))
			continue
		}
		view.Ran = append(view.Ran, o.title)
		graphs, refused, byFile := 0, 0, 0
		for _, r := range o.results {
			graphs, refused, byFile = graphs+r.graphs, refused+r.refused, byFile+r.byFile
		}
		view.Compared += graphs
		view.Failed += o.failures()
		view.Faulty = append(view.Faulty, []any{o.title, o.version, graphs, refused, refused, byFile})
	}
	for i, r := range rows { // so that notes are numbered row by row
		for _, o := range list {
			if x, ok := o.results[r.key()]; ok && o.skipped == "" {
				view.Rows[i] = append(view.Rows[i], x.cell(&view.Lacks))
			} else if o.skipped == "" {
				view.Rows[i] = append(view.Rows[i], "not run")
			}
		}
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, view)
	return b.Bytes(), err
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

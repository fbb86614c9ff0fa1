package parity

import (
	"bytes"

	"github.com/gsrc-dev/gsrc/export/manifest"

	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
)

//go:embed report.html
var reportText string

var reportTemplate = template.Must(template.New("report").Parse(reportText))

// reportModel is what the page tells of one model.
type reportModel struct {
	Name, Signature string
	Rows            []reportRow
	Refused         []string
}

// reportRow is one output on one graph in one runtime.
type reportRow struct {
	Case, Runtime, Output   string
	Nodes, Edges            int
	MaxAbs, MaxRel, Bound   string
	Share                   float64 // of the bound that MaxAbs takes, in percent
	OK                      bool
	Equal                   string // share of elements with the same bits
	Within, Largest, Argmax string
	Bars                    []reportBar
}

// reportBar is one bin of a histogram.
type reportBar struct {
	X, Y, Height float64
	Title        string
}

// The room of a bar and the height of a histogram, in pixels; a bar is 6 wide.
const barRoom, histogramHeight = 7, 24

// Page writes the parity report as a page that needs nothing else.
func Page(m *manifest.Manifest, r *Report) ([]byte, error) {
	page := struct {
		Manifest          *manifest.Manifest
		Runtimes, Bound   string
		Models            []*reportModel
		Comparisons, Bad  int
		Refusals          int
		WorstShare        float64
		Agree, Rows       int
		HistogramHeight   int
		Unverified        bool
		WorstAt           string
		DisagreementsNote bool
	}{Manifest: m, Bound: strings.ReplaceAll(r.Bound, "<=", "≤"), Refusals: len(r.Refusals), HistogramHeight: histogramHeight, Unverified: !m.Verified}
	var runtimes []string
	for _, name := range slices.Sorted(maps.Keys(r.Runtimes)) {
		runtimes = append(runtimes, name+" "+r.Runtimes[name])
	}
	page.Runtimes = strings.Join(runtimes, ", ")
	models := map[string]*reportModel{}
	for _, name := range slices.Sorted(maps.Keys(m.Models)) {
		info := m.Models[name]
		models[name] = &reportModel{Name: info.File, Signature: manifest.Signature(info.Inputs) + " → " + manifest.Signature(info.Outputs)}
		page.Models = append(page.Models, models[name])
	}
	for _, c := range r.Cases {
		for _, o := range c.Outputs {
			row := newReportRow(c, o)
			models[c.Model].Rows = append(models[c.Model].Rows, row)
			page.Comparisons++
			if !o.OK {
				page.Bad++
			}
			if row.Share > page.WorstShare {
				page.WorstShare, page.WorstAt = row.Share, fmt.Sprintf("%s of %s on “%s”", o.Name, c.Model, c.Case)
			}
			if o.Argmax != nil {
				page.Agree, page.Rows = page.Agree+o.Argmax.Agree, page.Rows+o.Argmax.Rows
			}
		}
	}
	page.DisagreementsNote = page.Agree < page.Rows
	for _, x := range r.Refusals {
		models[x.Model].Refused = append(models[x.Model].Refused, x.Case)
	}
	var b bytes.Buffer
	err := reportTemplate.Execute(&b, page)
	return b.Bytes(), err
}

func newReportRow(c Case, o Output) reportRow {
	row := reportRow{Case: c.Case, Runtime: c.Runtime, Output: o.Name, Nodes: c.Nodes, Edges: c.Edges, OK: o.OK,
		MaxAbs: fmt.Sprintf("%.2e", o.MaxAbs), MaxRel: fmt.Sprintf("%.2e", o.MaxRel), Bound: fmt.Sprintf("%.2e", o.Bound), Share: 100}
	if o.Bound > 0 {
		row.Share = min(100, 100*o.MaxAbs/o.Bound)
	}
	total, most := 0, 0
	for _, n := range o.Ulps {
		total += n
		most = max(most, n)
	}
	if total > 0 {
		row.Equal = fmt.Sprintf("%.1f %%", 100*float64(o.Ulps[0])/float64(total))
		_, row.Largest = ulpBin(len(o.Ulps) - 1)
	}
	for i, n := range o.Ulps {
		lo, hi := ulpBin(i)
		text := lo
		if lo != hi {
			text = lo + " to " + hi
		}
		bar := reportBar{X: float64(i * barRoom), Height: histogramHeight * float64(n) / float64(max(1, most)), Title: fmt.Sprintf("%s ulp: %d of %d", text, n, total)}
		if n > 0 {
			bar.Height = max(1, bar.Height) // a single element is seen too
		}
		bar.Y = histogramHeight - bar.Height
		row.Bars = append(row.Bars, bar)
	}
	if a := o.Argmax; a != nil {
		row.Argmax = fmt.Sprintf("%d of %d", a.Agree, a.Rows)
	}
	return row
}

// ulpBin returns the least and greatest distance of a bin of [Output.Ulps].
func ulpBin(i int) (lo, hi string) {
	if i == 0 {
		return "0", "0"
	}
	return fmt.Sprint(uint64(1) << (i - 1)), fmt.Sprint(uint64(1)<<i - 1)
}

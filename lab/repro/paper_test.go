package repro

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestPaper(t *testing.T) {
	all := Paper()
	counts := map[string]int{}
	for _, p := range all {
		counts[p.Target]++
		if !p.OOM && p.Value <= 0 {
			t.Errorf("%+v has no value", p)
		}
		if !p.OOM && p.Quantity == "accuracy" && (p.Value > 100 || p.Std <= 0) {
			t.Errorf("%+v is no accuracy", p)
		}
	}
	// Fourteen methods on eight data sets; eleven at eight label ratios; thirteen
	// on four data sets, four of them not on Pubmed; ten on three collections.
	for target, want := range map[string]int{"table1": 14 * 8, "table2": 11 * 8, "table3": 2 * (13*4 - 4), "table4": 10 * 3} {
		if counts[target] != want {
			t.Errorf("%s has %d numbers, want %d", target, counts[target], want)
		}
	}
	for _, c := range []struct {
		target, row, panel, x, quantity, want string
	}{
		{"table1", "ECL-GSR", "cora", "", "accuracy", "84.06 ± 0.84"},
		{"table1", "ECL-GSR", "ogbn-arxiv", "", "accuracy", "71.09 ± 0.31"},
		{"table1", "LDS", "pubmed", "", "accuracy", "OOM"},
		{"table1", "GAuG-O", "actor", "", "accuracy", "25.80 ± 1.00"},
		{"table2", "ECL-GSR", "citeseer", "1", "accuracy", "68.06 ± 0.54"},
		{"table2", "GCN", "cora", "10", "accuracy", "83.53 ± 0.42"},
		{"table3", "GCN", "cora", "", "t", "12.33"},
		{"table3", "GCN", "cora", "", "p", "4.2e-09"},
		{"table4", "ECL-GSR", "mutag", "", "accuracy", "91.45 ± 2.75"},
	} {
		p, ok := printed(c.target, c.row, c.panel, c.x, c.quantity)
		if !ok || p.String() != c.want {
			t.Errorf("%s %s %s %s: %q, want %q", c.target, c.row, c.panel, c.x, p, c.want)
		}
	}
	if _, ok := printed("table3", "LDS", "pubmed", "", "t"); ok {
		t.Error("the paper has no test against LDS on Pubmed")
	}
}

// TestPaperAgainstSource holds the numbers to the paper's own text, line by line,
// where the environment variable GSRC_PAPER names it.
func TestPaperAgainstSource(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("GSRC_PAPER"))
	if err != nil {
		t.Skip("GSRC_PAPER does not name the paper's source, ecl-gsr.tex")
	}
	table := map[string]string{}
	for _, target := range []string{"table1", "table2", "table3", "table4"} {
		end := strings.Index(string(text), `\label{`+target+`}`)
		if end < 0 {
			t.Fatalf("the source has no %s", target)
		}
		table[target] = string(text[strings.LastIndex(string(text[:end]), `\begin{tabular}`):end])
	}
	number := regexp.MustCompile(`\d+\.\d+`)
	for target, body := range table {
		for _, method := range methods(target) {
			var line string
			for l := range strings.Lines(body) {
				if strings.HasPrefix(strings.TrimSpace(l), method) {
					line = l
				}
			}
			// The width of a rule is a number too.
			line = regexp.MustCompile(`^\s*\\midrule\[[^]]*\]`).ReplaceAllString(line, "")
			want := number.FindAllString(line, -1)
			var got []string
			for _, p := range Paper() {
				if p.Target != target || p.Row != method || p.OOM {
					continue
				}
				got = append(got, ownDigits(target, p)...)
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s, %s: %v, the paper has %v", target, method, got, want)
			}
		}
	}
}

// ownDigits are a number's digits as paper.csv has them.
func ownDigits(target string, p Printed) (digits []string) {
	for l := range strings.Lines(string(paperText)) {
		f := strings.Split(strings.TrimSpace(l), ",")
		if f[0] == target && f[1] == p.Row && f[2] == p.Panel && f[3] == p.X && f[4] == p.Quantity {
			for _, v := range f[5:] {
				if mantissa, _, _ := strings.Cut(v, "e"); mantissa != "" {
					digits = append(digits, mantissa)
				}
			}
		}
	}
	return digits
}

// The row of the preset has what docs/paper.md says follows from the data.
func TestPresetOfData(t *testing.T) {
	text, err := os.ReadFile("../../docs/paper.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range append([]string{"actor"}, append(citations, webPages...)...) {
		var values []string
		for _, set := range asInPaper.byData[data] {
			_, value, _ := strings.Cut(set, "=")
			values = append(values, value)
		}
		row := regexp.MustCompile(`(?mi)^\|[^|]*\b` + data + `\b[^|]*\| \d+ \| ` + strings.Join(values, ` \| `) + ` \|$`)
		if len(values) != 3 || !row.Match(text) {
			t.Errorf("docs/paper.md has not %v for %s", values, data)
		}
	}
}

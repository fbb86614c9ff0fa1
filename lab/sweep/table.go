package sweep

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gsrc-dev/gsrc/config"
)

// Table is what came of many runs: a row for each setting.
type Table struct {
	// Keys are the options in which the settings differ, in the order of
	// config.KeyNames.
	Keys []string
	// Rows are ordered by the mean validation accuracy, the best first; equal
	// ones by model, data set and values.
	Rows []Row
}

// Row is the outcome of one setting. Accuracies are in percent; standard
// deviations are those of the sample (divisor n − 1), and 0 for one run.
type Row struct {
	Model, Dataset string
	// Values are those of the table's keys, as TOML; "" where a setting leaves
	// an option at its default.
	Values   []string
	Runs     int // that gave a result
	Failed   int
	ValMean  float64 // NaN where all failed
	ValStd   float64
	TestMean float64 // NaN where a run has no test nodes
	TestStd  float64
	Seconds  float64 // mean duration of a run
}

// Summarize makes a table of records; nil ones are passed over, and of several
// records of one run only the first counts.
func Summarize(records []*Record) *Table {
	type setting struct {
		model, dataset string
		values         map[string]string
		records        []*Record
	}
	groups := map[string]*setting{}
	seen := map[string]bool{}
	differs := map[string]bool{}
	var first map[string]string
	for _, r := range records {
		if r == nil || seen[r.Key] {
			continue
		}
		seen[r.Key] = true
		values := map[string]string{}
		for _, s := range r.Set {
			k, v, _ := strings.Cut(s, "=")
			v = strings.TrimSpace(v)
			if text, err := strconv.Unquote(v); err == nil && text != "" {
				v = text
			}
			values[config.Canonical(strings.TrimSpace(k))] = v
		}
		delete(values, "train.seed")
		if first == nil {
			first = values
		}
		for _, m := range []map[string]string{values, first} {
			for k := range m {
				a, in := first[k]
				b, too := values[k]
				differs[k] = differs[k] || a != b || in != too
			}
		}
		id := fmt.Sprint(modelName(r.Model), "\x00", r.Dataset, "\x00", values) // fmt sorts maps
		g := groups[id]
		if g == nil {
			g = &setting{model: modelName(r.Model), dataset: r.Dataset, values: values}
			groups[id] = g
		}
		g.records = append(g.records, r)
	}
	t := &Table{}
	for _, k := range config.KeyNames() {
		if differs[k] {
			t.Keys = append(t.Keys, k)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		g := groups[id]
		row := newRow(g.records)
		row.Model, row.Dataset = g.model, g.dataset
		for _, k := range t.Keys {
			row.Values = append(row.Values, g.values[k])
		}
		t.Rows = append(t.Rows, row)
	}
	slices.SortStableFunc(t.Rows, func(a, b Row) int {
		return cmp.Or(compareMeans(a.ValMean, b.ValMean), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Dataset, b.Dataset), slices.CompareFunc(a.Values, b.Values, compareValues))
	})
	return t
}

// compareMeans puts the greater first and NaN last.
func compareMeans(a, b float64) int { return cmp.Compare(b, a) }

// compareValues orders numbers by size and other texts by letters.
func compareValues(a, b string) int {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err == nil && err2 == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// newRow sums up the records of one setting, whatever their order.
func newRow(records []*Record) Row {
	slices.SortFunc(records, func(a, b *Record) int { return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Key, b.Key)) })
	var row Row
	var val, test, seconds []float64
	for _, r := range records {
		seconds = append(seconds, r.Seconds)
		if r.Failed() {
			row.Failed++
			continue
		}
		row.Runs++
		val = append(val, r.Result.ValAcc)
		if r.Result.TestAcc != nil {
			test = append(test, *r.Result.TestAcc)
		}
	}
	row.ValMean, row.ValStd = meanStd(val)
	row.TestMean, row.TestStd = math.NaN(), math.NaN()
	if len(test) == len(val) {
		row.TestMean, row.TestStd = meanStd(test)
	}
	row.Seconds, _ = meanStd(seconds)
	return row
}

// meanStd is NaN, NaN without values and has the deviation 0 for one.
func meanStd(x []float64) (mean, std float64) {
	switch len(x) {
	case 0:
		return math.NaN(), math.NaN()
	case 1:
		return x[0], 0
	}
	mean = meanOf(x)
	for _, v := range x {
		std += float64((v - mean) * (v - mean))
	}
	return mean, math.Sqrt(std / float64(len(x)-1))
}

func meanOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// WriteCSV writes the table with a column for each of the keys. All columns but
// the last, seconds, are the same whenever the same jobs are run.
func (t *Table) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	head := append([]string{"model", "data"}, t.Keys...)
	lines := [][]string{append(head, "runs", "failed", "val_acc_mean", "val_acc_std", "test_acc_mean", "test_acc_std", "seconds")}
	number := func(v float64) string {
		if math.IsNaN(v) {
			return ""
		}
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
	for _, r := range t.Rows {
		line := append([]string{r.Model, r.Dataset}, r.Values...)
		lines = append(lines, append(line, strconv.Itoa(r.Runs), strconv.Itoa(r.Failed), number(r.ValMean), number(r.ValStd), number(r.TestMean), number(r.TestStd), strconv.FormatFloat(r.Seconds, 'f', 3, 64)))
	}
	return c.WriteAll(lines)
}

// Write writes the table for people.
func (t *Table) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	several := func(name func(Row) string) bool {
		return slices.ContainsFunc(t.Rows, func(r Row) bool { return name(r) != name(t.Rows[0]) })
	}
	models := several(func(r Row) string { return r.Model })
	sets := several(func(r Row) string { return r.Dataset })
	var head []string
	if models {
		head = append(head, "model")
	}
	if sets {
		head = append(head, "data")
	}
	fmt.Fprintln(tw, strings.Join(append(append(head, t.Keys...), "val %", "test %", "runs", "s/run"), "\t"))
	for _, r := range t.Rows {
		var cells []string
		if models {
			cells = append(cells, r.Model)
		}
		if sets {
			cells = append(cells, r.Dataset)
		}
		for _, v := range r.Values {
			cells = append(cells, cmp.Or(v, "default"))
		}
		runs := strconv.Itoa(r.Runs)
		if r.Failed > 0 {
			runs += fmt.Sprintf(" (%d failed)", r.Failed)
		}
		fmt.Fprintln(tw, strings.Join(append(cells, plusMinus(r.ValMean, r.ValStd), plusMinus(r.TestMean, r.TestStd), runs, fmt.Sprintf("%.2f", r.Seconds)), "\t"))
	}
	return tw.Flush()
}

func plusMinus(mean, std float64) string {
	if math.IsNaN(mean) {
		return "–"
	}
	return fmt.Sprintf("%.2f ± %.2f", mean, std)
}

// Line is a row as gsrc sweep --json prints it; what is unknown is null.
type Line struct {
	Summary     bool              `json:"summary"` // true: tells the line from a run's
	Model       string            `json:"model"`
	Data        string            `json:"data"`
	Set         map[string]string `json:"set"`
	Runs        int               `json:"runs"`
	Failed      int               `json:"failed"`
	ValAccMean  *float64          `json:"val_acc_mean"`
	ValAccStd   *float64          `json:"val_acc_std"`
	TestAccMean *float64          `json:"test_acc_mean"`
	TestAccStd  *float64          `json:"test_acc_std"`
	Seconds     float64           `json:"seconds"`
}

// JSON returns the rows as lines of JSON.
func (t *Table) JSON() []Line {
	known := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	var lines []Line
	for _, r := range t.Rows {
		l := Line{Summary: true, Model: r.Model, Data: r.Dataset, Set: map[string]string{}, Runs: r.Runs, Failed: r.Failed, Seconds: r.Seconds,
			ValAccMean: known(r.ValMean), ValAccStd: known(r.ValStd), TestAccMean: known(r.TestMean), TestAccStd: known(r.TestStd)}
		for i, k := range t.Keys {
			if r.Values[i] != "" {
				l.Set[k] = r.Values[i]
			}
		}
		lines = append(lines, l)
	}
	return lines
}

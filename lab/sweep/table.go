package sweep

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/lab"
)

// Table is what came of many runs: a row for each setting.
type Table struct {
	// Keys are the options in which the settings differ, in the order of
	// config.KeyNames.
	Keys []string
	// Rows are ordered by the mean validation accuracy, the best first; equal
	// ones by model, data set and values.
	Rows []Row
	// Warnings say of which settings and seeds there are runs of several programs.
	Warnings []string
}

// Row is the outcome of one setting, and a line of gsrc sweep --json. Accuracies are
// in percent; standard deviations are those of the sample (divisor n − 1), and 0 for
// one run.
type Row struct {
	Summary bool   `json:"summary"` // true: tells the line from a run's
	Model   string `json:"model"`
	Dataset string `json:"data"`
	// Set has the table's keys that the setting does not leave at their defaults.
	Set      map[string]string `json:"set"`
	Runs     int               `json:"runs"` // that gave a result
	Failed   int               `json:"failed"`
	ValMean  Figure            `json:"val_acc_mean"` // NaN where all failed
	ValStd   Figure            `json:"val_acc_std"`
	TestMean Figure            `json:"test_acc_mean"` // NaN where a run has no test nodes
	TestStd  Figure            `json:"test_acc_std"`
	Seconds  float64           `json:"seconds"` // mean duration of a run
}

// Figure is a number that may be unknown: NaN, null in JSON.
type Figure float64

// MarshalJSON writes a number or null.
func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// Summarize makes a table of records; nil ones are passed over, and of several
// records of one run only the first counts. Different data of one name have rows of their own,
// with the first digits of their checksums behind the name.
func Summarize(records []*Record) *Table {
	type setting struct {
		set     map[string]string
		records []*Record
		sum     string // that tells the data from others of the name
	}
	groups := map[string]*setting{}
	seen := map[string]bool{}
	for _, r := range records {
		if r == nil || seen[r.Key] {
			continue
		}
		seen[r.Key] = true
		set := map[string]string{}
		for _, s := range r.Set {
			k, v := splitOption(s)
			if text, err := strconv.Unquote(v); err == nil && text != "" {
				v = text
			}
			set[k] = v
		}
		delete(set, "train.seed")
		id := fmt.Sprint(modelName(r.Model), "\x00", r.Dataset, "\x00", set) // fmt sorts maps
		if groups[id] == nil {
			groups[id] = &setting{set: set}
		}
		groups[id].records = append(groups[id].records, r)
	}
	for id, s := range maps.Clone(groups) {
		sums, seeds, pairs := map[string][]*Record{}, map[int]bool{}, map[string]bool{}
		drawn := slices.ContainsFunc(s.records, func(r *Record) bool { return r.Files == "" })
		for _, r := range s.records {
			sum := r.Files
			if drawn {
				sum = r.Checksum
			}
			sums[sum] = append(sums[sum], r)
			seeds[r.Seed], pairs[fmt.Sprint(sum, " ", r.Seed)] = true, true
		}
		// Data that are drawn by the seed, as synthetic ones, have a checksum for each.
		if len(sums) == 1 || drawn && len(sums) == len(pairs) && len(seeds) == len(pairs) {
			continue
		}
		delete(groups, id)
		for sum, records := range sums {
			groups[id+"\x00"+sum] = &setting{maps.Clone(s.set), records, fmt.Sprintf(" (%.8s)", sum)}
		}
	}
	t := &Table{}
	ids := slices.Sorted(maps.Keys(groups))
	for _, k := range config.KeyNames() {
		value := func(id string) string { return groups[id].set[k] }
		if slices.ContainsFunc(ids, func(id string) bool { return value(id) != value(ids[0]) }) {
			t.Keys = append(t.Keys, k)
		}
	}
	for _, id := range ids {
		row := newRow(groups[id].records)
		row.Set = groups[id].set
		row.Dataset += groups[id].sum
		records := groups[id].records // by seed
		for i, b := range records[1:] {
			if a := records[i]; a.Seed == b.Seed {
				t.Warnings = append(t.Warnings, fmt.Sprintf("%s: the records %.12s and %.12s are of different programs or defaults, and the table counts both; remove one", b.Job, a.Key, b.Key))
			}
		}
		maps.DeleteFunc(row.Set, func(k, _ string) bool { return !slices.Contains(t.Keys, k) })
		t.Rows = append(t.Rows, row)
	}
	slices.SortStableFunc(t.Rows, func(a, b Row) int {
		order := cmp.Or(cmp.Compare(b.ValMean, a.ValMean), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Dataset, b.Dataset)) // NaN is last
		for _, k := range t.Keys {
			order = cmp.Or(order, compareValues(a.Set[k], b.Set[k]))
		}
		return order
	})
	return t
}

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
	row := Row{Summary: true, Model: modelName(records[0].Model), Dataset: records[0].Dataset}
	var val, test, seconds []float64
	for _, r := range records {
		seconds = append(seconds, r.Seconds)
		if r.Failed() {
			row.Failed++
			continue
		}
		row.Runs++
		if r.Result.Judged() {
			val = append(val, r.Result.ValAcc)
		}
		if r.Result.TestAcc != nil {
			test = append(test, *r.Result.TestAcc)
		}
	}
	if len(val) < row.Runs {
		val = nil
	}
	if len(test) < row.Runs {
		test = nil
	}
	row.ValMean, row.ValStd = meanStd(val)
	row.TestMean, row.TestStd = meanStd(test)
	row.Seconds, _ = lab.MeanStd(seconds)
	return row
}

func meanStd(x []float64) (mean, std Figure) {
	m, s := lab.MeanStd(x)
	return Figure(m), Figure(s)
}

// The columns of the table's CSV before and after those of the options.
var (
	firstColumns = []string{"model", "data"}
	lastColumns  = []string{"runs", "failed", "val_acc_mean", "val_acc_std", "test_acc_mean", "test_acc_std", "seconds"}
)

// IsCSV reports whether a file begins as [Table.WriteCSV] begins one, of whatever options.
func IsCSV(beginning []byte) bool {
	head, _, _ := strings.Cut(string(beginning), "\n")
	return strings.HasPrefix(head, strings.Join(firstColumns, ",")+",") && strings.HasSuffix(strings.TrimSpace(head), ","+strings.Join(lastColumns, ","))
}

// WriteCSV writes the table with a column for each of the keys. All columns but
// the last, seconds, are the same whenever the same jobs are run.
func (t *Table) WriteCSV(w io.Writer) error {
	lines := [][]string{slices.Concat(firstColumns, t.Keys, lastColumns)}
	for _, r := range t.Rows {
		line := append([]string{r.Model, r.Dataset}, r.values(t.Keys, "")...)
		line = append(line, strconv.Itoa(r.Runs), strconv.Itoa(r.Failed))
		for _, v := range []Figure{r.ValMean, r.ValStd, r.TestMean, r.TestStd} {
			text := ""
			if !math.IsNaN(float64(v)) {
				text = fmt.Sprintf("%.4f", v)
			}
			line = append(line, text)
		}
		lines = append(lines, append(line, fmt.Sprintf("%.3f", r.Seconds)))
	}
	return csv.NewWriter(w).WriteAll(lines)
}

func (r *Row) values(keys []string, other string) (values []string) {
	for _, k := range keys {
		values = append(values, cmp.Or(r.Set[k], other))
	}
	return values
}

// Write writes the table for people. Models and data sets are named where there are
// several.
func (t *Table) Write(w io.Writer) error {
	several := func(name func(Row) string) bool {
		return slices.ContainsFunc(t.Rows, func(r Row) bool { return name(r) != name(t.Rows[0]) })
	}
	models, sets := several(func(r Row) string { return r.Model }), several(func(r Row) string { return r.Dataset })
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(model, dataset string, cells ...string) {
		if sets {
			cells = append([]string{dataset}, cells...)
		}
		if models {
			cells = append([]string{model}, cells...)
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	line("model", "data", slices.Concat(t.Keys, []string{"val %", "test %", "runs", "s/run"})...)
	for _, r := range t.Rows {
		runs := strconv.Itoa(r.Runs)
		if r.Failed > 0 {
			runs += fmt.Sprintf(" (%d failed)", r.Failed)
		}
		line(r.Model, r.Dataset, append(r.values(t.Keys, "default"), plusMinus(r.ValMean, r.ValStd, r.Runs), plusMinus(r.TestMean, r.TestStd, r.Runs), runs, fmt.Sprintf("%.2f", r.Seconds))...)
	}
	return tw.Flush()
}

func plusMinus(mean, std Figure, n int) string {
	if math.IsNaN(float64(mean)) {
		return "–"
	}
	return lab.PlusMinus("%.2f", float64(mean), float64(std), n)
}

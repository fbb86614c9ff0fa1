package repro

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/lab"
	"github.com/gsrc-dev/gsrc/lab/sweep"
)

// ResultRow is a run as a target's CSV file holds it. What was not measured is nil, an
// empty field.
type ResultRow struct {
	Panel string `csv:"panel"` // column of the table, plot of the figure
	Row   string `csv:"row"`   // row of the table, line of the figure
	X     string `csv:"x"`     // place along it, if there are several
	Seed  int    `csv:"seed"`
	Data  string `csv:"data"` // data set, also where a generated one took its place
	Model string `csv:"model"`
	// Set are the options beside the defaults, separated by spaces: gsrc train
	// MODEL --data DATA --seed SEED with --set for each repeats the run.
	Set    string `csv:"set"`
	Budget string `csv:"budget"`
	Split  string `csv:"split"`
	// Accuracies are in percent, at the epoch that validation chose.
	TestAcc   *float64 `csv:"test_acc"`
	ValAcc    *float64 `csv:"val_acc"`
	BestEpoch *int     `csv:"best_epoch"`
	// MacroF1 and AUC, in percent, and ECE, a share, are of the test predictions:
	// see eval.Report.
	MacroF1         *float64 `csv:"macro_f1"`
	AUC             *float64 `csv:"auc"`
	ECE             *float64 `csv:"ece"`
	EdgesBefore     *int     `csv:"edges_before"`
	EdgesAfter      *int     `csv:"edges_after"`
	HomophilyBefore *float64 `csv:"homophily_before"`
	HomophilyAfter  *float64 `csv:"homophily_after"`
	// PeakBytes is the most memory that a training step takes.
	PeakBytes int64 `csv:"peak_bytes"`
	// TestCurve is, where graphs are classified, the test accuracy at each
	// evaluation, separated by spaces: GIN's protocol chooses by it.
	TestCurve string `csv:"test_curve"`
	// Hash is that of the run's weights and graph, train.Result.Hash; empty in lines of
	// versions before there was one.
	Hash  string `csv:"hash"`
	Error string `csv:"error"` // why the run failed
	// Chosen is the candidate that auto has trained.
	Chosen string `csv:"chosen,optional"`
	EdgeMeasures
	// Seconds is how long the run took: the only column that differs between
	// equal runs on one machine. On others PeakBytes may.
	Seconds float64 `csv:"seconds"`
}

// EdgeMeasures are what Table E holds against the truth. These columns are in the files
// that have them; auc, precisions and shares are between 0 and 1.
type EdgeMeasures struct {
	// Source is what alone judges the edges; empty is what the run joins of all.
	Source         string   `csv:"source,optional"`
	Wrong          *int     `csv:"wrong,optional"`           // wrong edges among the old ones
	WrongAUC       *float64 `csv:"wrong_auc,optional"`       // of telling them from the others
	WrongPrecision *float64 `csv:"wrong_precision,optional"` // of as many least likely old edges
	Hidden         *int     `csv:"hidden,optional"`          // hidden edges
	HiddenFound    *float64 `csv:"hidden_found,optional"`    // of them, among as many likeliest new ones
	// EdgeECE is the calibration error of old edges' probabilities, in 10 bins.
	EdgeECE          *float64 `csv:"edge_ece,optional"`
	Dropped          *int     `csv:"dropped,optional"`           // old edges that are not in the refined graph
	DroppedPrecision *float64 `csv:"dropped_precision,optional"` // share of them that is wrong
}

// ResultRows are the runs of a target, in its order.
type ResultRows []ResultRow

// line makes the line of a run that has ended.
func (p planned) line(budget string, rec *sweep.Record) ResultRow {
	l := ResultRow{Panel: p.panel, Row: p.row, X: p.x, Seed: p.job.Seed, Data: p.data, Model: p.model, Set: strings.Join(p.set, " "), Budget: budget,
		PeakBytes: rec.PeakBytes, Error: rec.Error, Chosen: rec.Chosen, Seconds: rec.Seconds}
	if r := rec.Result; r != nil {
		l.Split, l.TestAcc, l.ValAcc, l.BestEpoch = r.Split, r.TestAcc, &r.ValAcc, &r.BestEpoch
		var curve []string
		for _, v := range r.TestCurve {
			curve = append(curve, strconv.FormatFloat(v, 'f', 3, 64))
		}
		l.TestCurve, l.Hash = strings.Join(curve, " "), r.Hash
		if r.Test != nil {
			l.MacroF1, l.AUC, l.ECE = &r.Test.MacroF1, r.Test.AUC, &r.Test.ECE
		}
		l.EdgesBefore, l.EdgesAfter, l.HomophilyBefore, l.HomophilyAfter = &r.EdgesBefore, r.EdgesAfter, r.HomophilyBefore, r.HomophilyAfter
	}
	return l
}

// column is a field of the lines of a file. An optional one is left out of a file where
// no line has it.
type column struct {
	name     string
	optional bool
	index    []int
}

func columnsOf(t reflect.Type) (all []column) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			name, optional := strings.CutSuffix(f.Tag.Get("csv"), ",optional")
			all = append(all, column{name, optional, f.Index})
		}
	}
	return all
}

func names(columns []column) []string {
	return distinct(columns, func(c column) string { return c.name })
}

// Write writes the lines as CSV with a header.
func (ls ResultRows) Write(w io.Writer) error { return writeCSV(w, ls) }

func writeCSV[T any](w io.Writer, rows []T) error {
	columns := slices.DeleteFunc(columnsOf(reflect.TypeFor[T]()), func(c column) bool {
		return c.optional && !slices.ContainsFunc(rows, func(r T) bool { return field(reflect.ValueOf(r).FieldByIndex(c.index)) != "" })
	})
	lines := [][]string{names(columns)}
	for _, r := range rows {
		var line []string
		for _, c := range columns {
			line = append(line, field(reflect.ValueOf(r).FieldByIndex(c.index)))
		}
		lines = append(lines, line)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

func field(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if v.CanFloat() {
		if math.IsNaN(v.Float()) { // such as of no edges: it was not measured
			return ""
		}
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits())
	}
	return fmt.Sprint(v.Interface())
}

// readCSV reads what [writeCSV] wrote. name is the source, for errors.
func readCSV[T any](name string, r io.Reader) ([]T, error) {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	columns := slices.DeleteFunc(columnsOf(reflect.TypeFor[T]()), func(c column) bool { return c.optional && !slices.Contains(header, c.name) })
	if all := names(columns); !slices.Equal(header, all) {
		return nil, fmt.Errorf("%s: not a file of gsrc repro: its columns are not %s", name, strings.Join(all, ","))
	}
	lines := []T{}
	for {
		record, err := in.Read()
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var l T
		v := reflect.ValueOf(&l).Elem()
		for i, text := range record {
			if err := setField(v.FieldByIndex(columns[i].index), text); err != nil {
				line, _ := in.FieldPos(i)
				return nil, fmt.Errorf("%s:%d: %s: %w", name, line, columns[i].name, err)
			}
		}
		lines = append(lines, l)
	}
}

func setField(f reflect.Value, text string) error {
	if f.Kind() == reflect.Pointer {
		if text == "" {
			return nil
		}
		f.Set(reflect.New(f.Type().Elem()))
		f = f.Elem()
	}
	switch f.Kind() {
	case reflect.String:
		f.SetString(text)
	case reflect.Float32, reflect.Float64:
		x, err := strconv.ParseFloat(text, f.Type().Bits())
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%q is not a finite number", text)
		}
		f.SetFloat(x)
	default:
		x, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not an integer", text)
		}
		f.SetInt(x)
	}
	return nil
}

func (ls ResultRows) of(panel, row, x string) ResultRows {
	return slices.DeleteFunc(slices.Clone(ls), func(l ResultRow) bool { return l.Panel != panel || l.Row != row || l.X != x })
}

func (ls ResultRows) panels() []string {
	return distinct(ls, func(l ResultRow) string { return l.Panel })
}

// rows are those of a panel, or of all where it is empty.
func (ls ResultRows) rows(panel string) []string {
	return distinct(ls.in(panel), func(l ResultRow) string { return l.Row })
}

func (ls ResultRows) xs(panel string) []string {
	return distinct(ls.in(panel), func(l ResultRow) string { return l.X })
}

// places are all panels and what varies in them.
func (ls ResultRows) places() (places []place) {
	for _, panel := range ls.panels() {
		for _, x := range ls.xs(panel) {
			places = append(places, place{panel, x})
		}
	}
	return places
}

func (ls ResultRows) in(panel string) ResultRows {
	return slices.DeleteFunc(slices.Clone(ls), func(l ResultRow) bool { return panel != "" && l.Panel != panel })
}

func (ls ResultRows) seeds() int {
	n := 0
	for _, l := range ls {
		n = max(n, l.Seed+1)
	}
	return n
}

func testAcc(l ResultRow) *float64 { return l.TestAcc }
func valAcc(l ResultRow) *float64  { return l.ValAcc }

func (ls ResultRows) values(of func(ResultRow) *float64) (values []float64) {
	for _, l := range ls {
		if v := of(l); v != nil {
			values = append(values, *v)
		}
	}
	return values
}

// meanStd are those of a sample; ok is false where there is no value. The standard
// deviation of one value is 0.
func (ls ResultRows) meanStd(of func(ResultRow) *float64) (mean, std float64, ok bool) {
	mean, std = lab.MeanStd(ls.values(of))
	return mean, std, !math.IsNaN(mean)
}

func (ls ResultRows) mean(form string, of func(ResultRow) *float64) string {
	if mean, _, ok := ls.meanStd(of); ok {
		return fmt.Sprintf(form, mean)
	}
	return missing
}

// spread writes the mean of a quantity and its standard deviation.
func (ls ResultRows) spread(form string, of func(ResultRow) *float64) string {
	if mean, std, ok := ls.meanStd(of); ok {
		return fmt.Sprintf(form, mean, std)
	}
	return missing
}

// number is a count as a quantity.
func number(n *int) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// paired tests the test accuracies of two rows of a panel against each other, by
// seed; nil where there are not two pairs.
func (ls ResultRows) paired(panel, x, a, b string) *lab.Comparison {
	return pairedBySeed(testAcc, ls.of(panel, a, x), ls.of(panel, b, x))
}

// pairedBySeed tests a quantity of runs against that of others, by seed; nil where there
// are not two pairs.
func pairedBySeed(of func(ResultRow) *float64, a, b ResultRows) *lab.Comparison {
	var xs, ys []float64
	for _, l := range a {
		for _, m := range b {
			if p, q := of(l), of(m); l.Seed == m.Seed && p != nil && q != nil {
				xs, ys = append(xs, *p), append(ys, *q)
			}
		}
	}
	c, err := lab.Paired(xs, ys)
	if err != nil {
		return nil
	}
	return c
}

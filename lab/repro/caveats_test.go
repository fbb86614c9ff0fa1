package repro

import (
	"strings"
	"testing"
)

// What was not chosen on validation alone, and where ecl-gsr loses, stands at the rows.
func TestCaveats(t *testing.T) {
	var ls ResultRows
	add := func(panel, row string, test, val float64) {
		for seed := range 2 {
			ls = append(ls, ResultRow{Panel: panel, Row: row, Seed: seed, Data: panel, Model: "ecl-gsr", Budget: Full, TestAcc: f64(test), ValAcc: f64(val), Seconds: 1})
		}
	}
	for _, panel := range []string{"cora", "texas", "proteins", "collab"} {
		add(panel, eclGSR, 80, 70)
		add(panel, rawGraph, 81, 71)
		add(panel, "gcn", 79, 60)
	}
	add("citeseer", eclGSR, 50, 72)
	add("citeseer", rawGraph, 60, 71)
	add("citeseer", "gcn", 70, 60)
	text := wide(Find("table1"), ls)
	for _, want := range []string{
		"- † texas: `train.select`", "- † proteins: `train.select`", "- † collab: `model.classifier`", "not on validation alone",
		"- ecl-gsr is below a plain gcn on citeseer (50.00 against 70.00).",
		"- The highest mean is not that of ecl-gsr on cora (80.00; “ecl-gsr on the raw graph” 81.00), texas (80.00; “ecl-gsr on the raw graph” 81.00), proteins (80.00; “ecl-gsr on the raw graph” 81.00), collab (80.00; “ecl-gsr on the raw graph” 81.00), citeseer (50.00; “gcn” 70.00).",
		"- Validation nodes prefer the raw graph on cora (70.00 against 71.00), texas (70.00 against 71.00), proteins (70.00 against 71.00), collab (70.00 against 71.00):",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table does not say %q:\n%s", want, text)
		}
	}
	marks := map[string]int{}
	for line := range strings.Lines(text) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok {
			marks[strings.TrimSpace(name)] = strings.Count(rest, "†")
		}
	}
	if marks[eclGSR] != 3 || marks[rawGraph] != 3 || marks["gcn"] != 1 {
		t.Errorf("marks %v of:\n%s", marks, text)
	}
}

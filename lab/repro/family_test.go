package repro

import (
	"slices"
	"strings"
	"testing"
)

// TestFamilyIsOfTheTables holds the cells of the family to those that the tables run.
func TestFamilyIsOfTheTables(t *testing.T) {
	list := family()
	if len(list) != 28 {
		t.Errorf("%d cells", len(list))
	}
	for _, f := range list {
		target := Find(f.target)
		for _, row := range []string{f.refined, f.raw} {
			if !slices.ContainsFunc(target.cells, func(c cell) bool { return c.panel == f.panel && c.x == f.x && c.row == row }) {
				t.Errorf("%s has no row %q at %s %s", f.target, row, f.panel, f.x)
			}
		}
	}
}

func TestFamilyCountsAndCorrects(t *testing.T) {
	var table1, table4 ResultRows
	add := func(ls *ResultRows, panel string, gains ...float64) {
		for seed, gain := range gains {
			raw, refined := 80.0, 80+gain
			*ls = append(*ls, ResultRow{Panel: panel, Row: rawGraph, Seed: seed, TestAcc: &raw}, ResultRow{Panel: panel, Row: eclGSR, Seed: seed, TestAcc: &refined})
		}
	}
	add(&table1, "cora", 1, 1.6, 0.9)         // p = 0.033
	add(&table1, "texas", 1, 1.4, 0.8)        // p = 0.026: twice that is above 0.05
	add(&table4, "mutag", -3, -3.1, -3, -3.1) // p below 1e-5
	text := familyText(map[string]ResultRows{"table1": table1, "table4": table4})
	for _, want := range []string{
		"Of 3 cells refinement is better at 2 and worse at 1 where each p stands for itself, and better at 0 and worse at 1",
		"Not run on both graphs: gcn, cornell;",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if familyText(nil) != "" {
		t.Error("there is a text of nothing")
	}
}

func TestAutoIsHeldAgainstValidation(t *testing.T) {
	var ls ResultRows
	add := func(panel, row, chosen string, valid float64, test ...float64) {
		for seed := range test {
			ls = append(ls, ResultRow{Panel: panel, Row: row, Chosen: chosen, Seed: seed, ValAcc: &valid, TestAcc: &test[seed]})
		}
	}
	add("cora", "gcn", "", 84, 80, 81, 82, 99)
	add("cora", "gat", "", 83, 90, 90, 90)   // better, as only test nodes say
	add("cora", "grand", "", 99, 90, 90)     // without a partner for each run
	add("cora", "lds", "", 99, 90, 90, 90)   // has learned labels of validation nodes
	add("cora", "auto", "x", 99, 79, 81, 81) // 0.67 lower, with a standard error of 0.33
	add("texas", "gcn", "", 84, 80, 84)
	add("texas", "auto", "y", 84, 80, 82) // 1.00 lower, with a standard error of 1.00
	attacked := slices.Clone(ls[len(ls)-4:])
	for i := range attacked {
		attacked[i].X = "Metattack 20 %"
	}
	text := autoText(map[string]ResultRows{"table1": ls, "tableR": attacked})
	fields := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{"At 2 of 3 places", "| cora | Table 1 | 3 | 80.33 | gcn | 81.00 | -0.67 | 0.33 | no | x (3) |", "| texas | Table 1 | 2 | 81.00 | gcn | 82.00 | -1.00 | 1.00 | yes | y (2) |", "| texas at Metattack 20 % | Table R | 2 |"} {
		if !strings.Contains(fields, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if autoText(nil) != "" {
		t.Error("there is a text of nothing")
	}
}

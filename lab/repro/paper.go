package repro

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// The numbers that the paper prints, read off its Tables 1 to 4. The figures print
// none.
//
//go:embed paper.csv
var paperText []byte

// Printed is a number that the paper prints.
type Printed struct {
	Target string // table1 to table4
	Row    string // method, as the paper writes it: "ECL-GSR", "GAuG-O"
	Panel  string // data set, by its name in the catalog
	X      string // label ratio in percent in table2, else empty
	// Quantity is "accuracy" (percent), and in table3 "t" or "p".
	Quantity string
	Value    float64
	Std      float64 // of an accuracy
	OOM      bool    // the paper ran out of memory
}

// String writes the number as the tables show it.
func (p Printed) String() string {
	switch {
	case p.OOM:
		return "OOM"
	case p.Quantity == "accuracy":
		return meanStd(p.Value, p.Std)
	case p.Quantity == "p":
		return fmt.Sprintf("%.2g", p.Value)
	}
	return fmt.Sprintf("%.2f", p.Value)
}

// Paper returns all numbers that the paper prints, in its order.
var Paper = sync.OnceValue(func() []Printed {
	records, err := csv.NewReader(bytes.NewReader(paperText)).ReadAll()
	if err != nil {
		panic(err) // embedded, and held by a test
	}
	number := func(s string) float64 {
		if s == "" {
			return 0
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			panic(err)
		}
		return v
	}
	var all []Printed
	for _, r := range records[1:] {
		p := Printed{Target: r[0], Row: r[1], Panel: r[2], X: r[3], Quantity: r[4], OOM: r[5] == "OOM"}
		if !p.OOM {
			p.Value, p.Std = number(r[5]), number(r[6])
		}
		all = append(all, p)
	}
	return all
})

// printed looks one number up; ok is false where the paper has none.
func printed(target, row, panel, x, quantity string) (p Printed, ok bool) {
	for _, p := range Paper() {
		if p.Target == target && p.Row == row && p.Panel == panel && p.X == x && p.Quantity == quantity {
			return p, true
		}
	}
	return Printed{}, false
}

// methods lists the paper's rows of a table in their order.
func methods(target string) []string {
	of := slices.DeleteFunc(slices.Clone(Paper()), func(p Printed) bool { return p.Target != target })
	return distinct(of, func(p Printed) string { return p.Row })
}

func meanStd(mean, std float64) string { return fmt.Sprintf("%.2f ± %.2f", mean, std) }

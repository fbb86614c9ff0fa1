package data

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/rng"
)

func TestGiveaways(t *testing.T) {
	const n = 400
	var nodes, edges strings.Builder
	nodes.WriteString("id,label,split,age,plan,closed,score,lucky\n")
	edges.WriteString("source,target\n")
	for i := range n {
		r := (i*7919 + 13) % 101 // as good as random
		label, plan := "stays", fmt.Sprintf("p%d", r%5)
		if r%4 == 0 {
			label, plan = "leaves", "p"+fmt.Sprint(5+r%3)
		}
		closed := "" // a date that only those have who left
		score := float64(r) / 7
		if label == "leaves" {
			closed, score = fmt.Sprintf("2021-06-%02d", 1+r%28), 40+float64(r)/7
		}
		split := []string{"train", "train", "val", "test"}[i%4]
		fmt.Fprintf(&nodes, "n%d,%s,%s,%d,%s,%s,%.3f,%.3f\n", i, label, split, 20+(i*31)%50, plan, closed, score, float64((i*613)%97)/3)
		fmt.Fprintf(&edges, "n%d,n%d\n", i, (i+1)%n)
	}
	ds := mustLoad(t, writeFiles(t, map[string]string{"nodes.csv": nodes.String(), "edges.csv": edges.String()}), LoadOptions{})
	var found []string
	for _, w := range ds.Warnings(ds.Splits[0]) {
		if name, _, ok := strings.Cut(w, " gives the label away"); ok {
			found = append(found, strings.TrimPrefix(name, "the column "))
		}
	}
	if got := strings.Join(found, " "); got != `"plan" "closed" "score"` {
		t.Errorf("the columns %s are named, want plan, closed and score; columns %+v", got, ds.Columns.Columns)
	}
	few := Split{Train: ds.Splits[0].Train, Val: ds.Splits[0].Val[:4]}
	if w := ds.giveaways(few); w != nil {
		t.Errorf("four validation nodes tell of %q", w)
	}
}

func TestGiveawaysOfARareClass(t *testing.T) {
	const n, noise = 10_000, 20
	columns := []schema.Column{{Name: "score", Kind: schema.Number}, {Name: "loss", Kind: schema.Number}, {Name: "sign", Kind: schema.Number}, {Name: "band", Kind: schema.Number, Missing: true}}
	for i := range noise {
		columns = append(columns, schema.Column{Name: fmt.Sprint("noise", i), Kind: schema.Number})
	}
	columns = append(columns, schema.Column{Name: "often", Kind: schema.Number}) // mostly 0, whatever the class
	for _, every := range []int{200, 100, 50, 20} {
		draws, at := rng.New(uint64(every), "columns"), uint64(0)
		ds := &Dataset{Labels: make([]int32, n), Classes: 2, Columns: &schema.Schema{Columns: columns}, X: &Features{Rows: n, Cols: len(columns) + 1}}
		s := Split{}
		u := func() float32 { at++; return draws.Uniform(at) }
		for i := range n {
			row := []float32{u(), 0, 0.3 + u(), 3 * u(), 0}
			if i%2 == 0 { // a gap stands where the band is
				row[3], row[4] = 1.5, 1
			}
			if row[3] > 1 && row[3] < 2 && row[4] == 0 {
				row[3]++
			}
			if i%every == 1 {
				ds.Labels[i] = 1
				row = []float32{10 + u(), 10 + 490*u(), -0.3 - u(), 1.2 + 0.6*u(), 0}
			}
			for range noise {
				row = append(row, u())
			}
			ds.X.Dense = append(ds.X.Dense, append(row, max(0, u()-0.8))...)
			switch k := i / every % 5; {
			case k < 3:
				s.Train = append(s.Train, int32(i))
			case k == 3:
				s.Val = append(s.Val, int32(i))
			}
		}
		var found []string
		for _, w := range ds.giveaways(s) {
			found = append(found, strings.Split(w, `"`)[1])
		}
		if got := strings.Join(found, " "); got != "score loss sign band" {
			t.Errorf("one node in %d is of the class: named are %s, want score, loss, sign and band", every, got)
		}
	}
}

package data

import (
	"fmt"
	"strings"
	"testing"
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

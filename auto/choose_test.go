package auto

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
)

// The options that are said to be those of graphs of one's own are all of them that a refined graph's classifier reads.
func TestConsistentIsTheOwnClassifier(t *testing.T) {
	for neighbours, set := range map[config.Neighbours][]string{config.Alike: consistent, config.Unrelated: unrelated} {
		own, err := config.LoadOwn("ecl-gsr", "mine", "", nil, neighbours)
		if err != nil {
			t.Fatal(err)
		}
		general, err := config.Load("ecl-gsr", "mine", "", set)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(general.Model, own.Model) || !reflect.DeepEqual(general.Train, own.Train) {
			t.Errorf("with %v the general defaults are not those of graphs of one's own:\n%+v\n%+v", set, general, own)
		}
	}
}

// made is a list of candidates with scores of a formula.
func made(n int, simple func(i int) bool) []*Candidate {
	var list []*Candidate
	for i := range n {
		list = append(list, &Candidate{Name: fmt.Sprint(i), Simple: simple(i)})
	}
	return list
}

// What a limit cuts off is the end of one sequence, whatever the limit, and also where
// candidates fail.
func TestLimitsCutOneSequence(t *testing.T) {
	for nodes, resplits := range map[int]int{250: 10, 30: 34, 2: 40} {
		limitsCutOneSequence(t, newLadder(nodes), resplits)
	}
}

func limitsCutOneSequence(t *testing.T, upTo ladder, resplits int) {
	score := func(f fit) float64 {
		var i int
		fmt.Sscan(f.c.Name, &i)
		return float64((7*i+5*f.resplit)%11) + float64(i%4)
	}
	climb := func(limit int) (sequence []string, list []*Candidate) {
		list = made(13, func(i int) bool { return i < 5 })
		for rung := range len(upTo) + 1 {
			for {
				todo := upTo.fits(list, rung)
				if len(todo) == 0 {
					break
				}
				if len(sequence) == limit {
					return sequence, list
				}
				f := todo[0]
				sequence = append(sequence, fmt.Sprint(f.c.Name, "/", f.resplit, "/", f.restart))
				if f.c.Name == "2" || f.c.Name == "8" && f.resplit == 3 {
					f.c.Failed = "diverged"
					continue
				}
				if f.resplit < 0 {
					f.c.Restarts = append(f.c.Restarts, float64(80+f.restart%3))
					continue
				}
				f.c.Scores = append(f.c.Scores, score(f))
			}
		}
		return sequence, list
	}
	whole, list := climb(1 << 20)
	if winner, choice := upTo.choose(list); winner == nil || choice.Resplits != resplits || len(winner.Restarts) != restarts || choice.Restart != 2 {
		t.Errorf("winner %v, %+v", winner, choice)
	}
	for limit := range whole {
		part, list := climb(limit)
		if got, want := strings.Join(part, " "), strings.Join(whole[:limit], " "); got != want {
			t.Fatalf("cut off at %d: %s, want %s", limit, got, want)
		}
		winner, _ := upTo.choose(list)
		if (winner != nil) != (limit > 0) {
			t.Errorf("cut off at %d: winner %v", limit, winner)
		}
	}
}

func TestOthersWinByMoreThanAStandardError(t *testing.T) {
	for _, x := range []struct {
		simple, other []float64
		want          string
	}{
		{[]float64{80, 80, 80, 80, 80}, []float64{81, 81, 80, 81, 82}, "1"},
		{[]float64{80, 80, 80, 80, 80}, []float64{84, 76, 85, 77, 79}, "0"}, // 0.2 ± 1.8
		{[]float64{80, 80, 80, 80, 80}, []float64{80, 80, 80, 80, 80}, "0"},
		{[]float64{80, 80, 80, 80}, []float64{90, 90, 90, 90}, "0"}, // too few resplits
		{[]float64{80, 80}, []float64{90, 90}, "0"},
		{[]float64{80, 80}, nil, "0"},
	} {
		list := made(2, func(i int) bool { return i == 0 })
		list[0].Scores, list[1].Scores = x.simple, x.other
		if winner, choice := newLadder(100).choose(list); winner.Name != x.want {
			t.Errorf("%v against %v: %+v", x.simple, x.other, choice)
		}
	}
}

func TestRefinementIsToldHonestly(t *testing.T) {
	on := func(n int) []bool { // the first n of 100 nodes
		b := make([]bool, 100)
		for i := range n {
			b[i] = true
		}
		return b
	}
	for _, x := range []struct {
		with, without, chosen int
		structure             string
		want                  string
	}{
		{90, 80, 90, refined, "refinement brings +10.0 ± 5.9 points of accuracy over the same classifier on your graph"},
		{81, 80, 81, refined, "gains nothing on others: refinement brings +1.0 ± 2.0 points of accuracy over the same classifier on your graph (; 100 nodes that did not choose), no more than chance"},
		{70, 80, 70, refined, "gains nothing on others: refinement brings -10.0 ± 5.9 points of accuracy over the same classifier on your graph (; 100 nodes that did not choose)"},
		{70, 80, 75, raw, "your graph is better left as it is: refinement brings -10.0 ± 5.9"},
		{82, 80, 85, raw, "refinement brings +2.0 ± 2.8 points of accuracy over the same classifier on your graph (; 100 nodes that did not choose), no more than chance: your graph may as well be left as it is"},
		{80, 80, 80, raw, "no more than chance: your graph may as well"},
		{80, 80, 85, noEdges, "gcn reads none of your edges; refinement brings +0.0 ± 0.0"},
		{80, 80, 85, rewired, "gcn reads your edges as their features change them; refinement brings +0.0"},
		{90, 80, 92, raw, "gcn, which was chosen, has +2.0 ± 2.8 points against it there"},
		{90, 80, 85, raw, "gcn, which was chosen, has -5.0 ± 4.3 points against it there"},
	} {
		var r Refinement
		r.compare(on(x.with), on(x.without), on(x.chosen), &Candidate{Name: "gcn", Structure: x.structure})
		if !strings.Contains(r.Text, x.want) || strings.Contains(r.Text, "chance") != (x.with-x.without < 10 && x.without-x.with < 10) {
			t.Errorf("%d against %d on %s: %s", x.with, x.without, x.structure, r.Text)
		}
	}
	r := Refinement{Undirected: true}
	if r.compare(on(90), on(80), nil, &Candidate{Structure: refined}); !strings.Contains(r.Text, "on your graph, without directions (") {
		t.Errorf("on a graph with directions: %s", r.Text)
	}
}

// Intervals are as wide as Student's t has them, by the table and beyond it.
func TestInterval(t *testing.T) {
	for nu, want := range map[int]float64{1: 12.706, 9: 2.262, 10: 2.228, 11: 2.201, 19: 2.093, 39: 2.023} {
		v := make([]float64, nu+1)
		v[0] = 1
		if got := interval(v) / deviation(v) * math.Sqrt(float64(nu+1)); math.Abs(got-want) > 0.001 {
			t.Errorf("%d degrees of freedom: t is %.4f, want %.3f", nu, got, want)
		}
	}
}

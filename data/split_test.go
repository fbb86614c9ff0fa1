package data

import (
	"slices"
	"testing"
)

func TestParseSplit(t *testing.T) {
	for _, text := range []string{"per-class:20,500,1000", "per-class:1,0,rest", "random:0.6,0.2,0.2", "random:0.1,0,0", "ratio:0.05"} {
		s, err := ParseSplit(text)
		if err != nil || s.String() != text {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
	if s, err := ParseSplit(""); s != nil || err != nil || s.String() != "" {
		t.Error("the empty text asks for no split")
	}
	for text, column := range map[string]string{"part": "part", "column:a:b": "a:b"} {
		if s, err := ParseSplit(text); err != nil || s.Column != column {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"column", "column:", "random", "random:1,2", "random:0.5,0.5,0.5", "random:-1,0.5,0.5", "random:nan,0,0", "random:0,0.5,0.5",
		"per-class:0,1,1", "per-class:a,b,c", "per-class:1,rest,1", "per-class:1,2,-1", "perclass:1,2,3", "per-class:9999999999999,1,1",
		"ratio", "ratio:", "ratio:0", "ratio:1", "ratio:-0.1", "ratio:nan", "ratio:0.1,0.2,0.3"} {
		_, err := ParseSplit(text)
		wantError(t, err, "split", "per-class:20,500,1000")
	}
	_, err := Load("testdata/csr.npz", LoadOptions{Split: "half"})
	wantError(t, err, `split "half"`)
}

func TestDraw(t *testing.T) {
	labels := make([]int32, 100)
	for v := range labels {
		labels[v] = int32(v % 4)
		if v%4 == 3 {
			labels[v] = -1
		}
	}
	counts := func(nodes []int32) [3]int {
		var n [3]int
		for _, v := range nodes {
			n[labels[v]]++
		}
		return n
	}
	for _, c := range []struct {
		spec             string
		train, val, test int
	}{{"per-class:5,20,30", 15, 20, 30}, {"per-class:5,20,rest", 15, 20, 40}, {"random:0.6,0.2,0.2", 45, 15, 15}, {"random:0.2,0.2,0.2", 15, 15, 15}, {"random:1,0,0", 75, 0, 0}} {
		spec, err := ParseSplit(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		a, err := spec.Draw(labels, 3, 1)
		if err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		if len(a.Train) != c.train || len(a.Val) != c.val || len(a.Test) != c.test {
			t.Errorf("%s: %d, %d, %d nodes; want %d, %d, %d", c.spec, len(a.Train), len(a.Val), len(a.Test), c.train, c.val, c.test)
		}
		if err := a.check(labels); err != nil {
			t.Errorf("%s: %v", c.spec, err)
		}
		if spec.PerClass && counts(a.Train) != [3]int{5, 5, 5} {
			t.Errorf("%s: %v training nodes in the classes", c.spec, counts(a.Train))
		}
		same, _ := spec.Draw(labels, 3, 1)
		other, _ := spec.Draw(labels, 3, 2)
		if !slices.Equal(a.Train, same.Train) || !slices.Equal(a.Test, same.Test) {
			t.Errorf("%s: the same seed draws another split", c.spec)
		}
		if c.train < 75 && slices.Equal(a.Train, other.Train) {
			t.Errorf("%s: another seed draws the same split", c.spec)
		}
	}
	for spec, want := range map[string]string{
		"per-class:26,1,1":   "class 0 has 25 labelled nodes",
		"per-class:20,10,10": "20 nodes beside the training nodes; 15 labelled ones are left",
		"random:0.001,0,0":   "train part empty",
		"random:0.9,0.001,0": "val part empty",
	} {
		s, err := ParseSplit(spec)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Draw(labels, 3, 0)
		wantError(t, err, want)
	}
}

// A split that was asked for takes the place of the fixed ones.
func TestSplitFor(t *testing.T) {
	ds := mustLoad(t, "testdata/heterophilous.npz", LoadOptions{Split: "random:0.5,0.25,0.25"})
	a, err := ds.SplitFor(0)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Train) != 4 || len(a.Val) != 2 || len(a.Test) != 2 {
		t.Errorf("split %v", a)
	}
	if in := ds.Info(); in.SplitSpec != "random:0.5,0.25,0.25" {
		t.Errorf("split_spec %q", in.SplitSpec)
	}
	ds.SplitSpec = &SplitSpec{PerClass: true, Train: 5}
	_, err = ds.SplitFor(0)
	wantError(t, err, "heterophilous.npz", "class 0 has 4")
	ds.ClassNames = slices.Repeat([]string{"cat"}, ds.Classes)
	_, err = ds.SplitFor(0)
	wantError(t, err, "class cat has 4")
}

// A ratio draws other training nodes, in proportion to the classes, and leaves
// validation and test as they came.
func TestSplitRatio(t *testing.T) {
	const n = 400
	ds := &Dataset{Source: "made", Classes: 4, Labels: make([]int32, n)}
	var fixed Split
	for v := range int32(n) {
		// Class 0 has half of the nodes, class 1 a quarter, class 2 the rest but
		// four, which are class 3.
		switch {
		case v%2 == 0:
			ds.Labels[v] = 0
		case v%4 == 1:
			ds.Labels[v] = 1
		case v%100 == 3:
			ds.Labels[v] = 3
		default:
			ds.Labels[v] = 2
		}
		switch {
		case v >= 300:
			fixed.Test = append(fixed.Test, v)
		case v >= 200:
			fixed.Val = append(fixed.Val, v)
		case v < 8:
			fixed.Train = append(fixed.Train, v)
		}
	}
	ds.Splits = []Split{fixed}
	draw := func(ratio float64, seed uint64) Split {
		t.Helper()
		ds.SplitSpec = &SplitSpec{Ratio: ratio}
		s, err := ds.SplitFor(seed)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.check(ds.Labels); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.Val, fixed.Val) || !slices.Equal(s.Test, fixed.Test) {
			t.Fatal("validation or test nodes are others than those that came with the data")
		}
		return s
	}
	counts := func(s Split) (c [4]int) {
		for _, v := range s.Train {
			c[ds.Labels[v]]++
		}
		return c
	}
	for ratio, want := range map[float64][4]int{0.01: {1, 1, 1, 1}, 0.05: {10, 5, 4, 1}, 0.1: {20, 10, 9, 1}, 0.5: {100, 50, 48, 2}} {
		if got := counts(draw(ratio, 1)); got != want {
			t.Errorf("ratio %v: %v training nodes in the classes, want %v", ratio, got, want)
		}
	}
	if !slices.Equal(draw(0.1, 1).Train, draw(0.1, 1).Train) || slices.Equal(draw(0.1, 1).Train, draw(0.1, 2).Train) {
		t.Error("the training nodes are not a function of the seed")
	}
	for _, c := range []struct {
		ratio float64
		want  string
	}{{0.6, "200 are neither validation nor test nodes"}, {0.005, "fewer than one of each of the 4 classes"}} {
		ds.SplitSpec = &SplitSpec{Ratio: c.ratio}
		_, err := ds.SplitFor(1)
		wantError(t, err, "made", c.want)
	}
	ds.Splits = nil
	_, err := ds.SplitFor(1)
	wantError(t, err, "made comes without a split", "ratio:0.005")
	// Data that were made in memory have a name alone, or none.
	ds.SplitSpec, ds.Source, ds.Name = nil, "", "mine"
	_, err = ds.SplitFor(1)
	wantError(t, err, "mine comes without a split", "ParseSplit")
	ds.Name = ""
	_, err = ds.SplitFor(1)
	wantError(t, err, "the data set comes without a split")
	// Entries of fixed splits without a label are dropped, as without a ratio.
	loaded := mustLoad(t, "testdata/heterophilous.npz", LoadOptions{Split: "ratio:0.5"})
	if plain := mustLoad(t, "testdata/heterophilous.npz", LoadOptions{}); loaded.Repairs != plain.Repairs {
		t.Errorf("repairs %+v, without the ratio %+v", loaded.Repairs, plain.Repairs)
	}
}

func TestSplitCheck(t *testing.T) {
	labels := []int32{0, 1, -1, 0}
	for _, c := range []struct {
		s   Split
		err string
	}{
		{Split{Train: []int32{0}, Val: []int32{1}, Test: []int32{3}}, ""},
		{Split{Train: []int32{4}}, "node 4, nodes are numbered 0 to 3"},
		{Split{Val: []int32{-1}}, "the val split has node -1"},
		{Split{Test: []int32{2}}, "no label"},
		{Split{Train: []int32{0}, Test: []int32{0}}, "in both the train and the test split"},
		{Split{Train: []int32{3, 0}}, "ascending"},
	} {
		err := c.s.check(labels)
		if c.err == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantError(t, err, c.err)
	}
}

// FuzzParseSplit holds that a specification that is accepted prints as what it is,
// and draws a sound split or says why not.
func FuzzParseSplit(f *testing.F) {
	for _, text := range []string{"", "per-class:2,3,rest", "random:0.6,0.2,0.2", "ratio:0.05", "ratio:1e-300", "random:1e-9,1,0", "per-class:2147483647,0,0", "random:\x1b,1,1", "x:1,2,3"} {
		f.Add(text, uint64(0))
	}
	ds := mustLoad(f, "testdata/heterophilous.npz", LoadOptions{})
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		spec, err := ParseSplit(text)
		if err != nil {
			checkText(t, err)
			return
		}
		again, err := ParseSplit(spec.String())
		if err != nil || (spec == nil) != (again == nil) || spec != nil && *spec != *again {
			t.Fatalf("%q is printed as %q, which reads as %+v (%v), want %+v", text, spec, again, err, spec)
		}
		d := *ds
		d.SplitSpec = spec
		s, err := d.SplitFor(seed)
		if err != nil {
			checkText(t, err)
			return
		}
		if err := s.check(d.Labels); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	})
}

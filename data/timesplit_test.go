package data

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSplitByTime(t *testing.T) {
	var nodes, edges strings.Builder
	nodes.WriteString("id,label,size,\"at, local\",day\n")
	edges.WriteString("source,target\n")
	for i := range 20 {
		at, label := fmt.Sprintf("2021-06-%02d", 1+(i*7)%20), "a"
		if i == 3 {
			at = "" // no time
		}
		if i == 5 {
			label = "" // no label
		}
		fmt.Fprintf(&nodes, "n%d,%s,%d,%s,%d\n", i, label, 3*i*i%17, at, i/10)
		fmt.Fprintf(&edges, "n%d,n%d\n", i, (i+1)%20)
	}
	dir := writeFiles(t, map[string]string{"nodes.csv": nodes.String(), "edges.csv": edges.String()})
	ds := mustLoad(t, dir, LoadOptions{Split: "time:at, local,0.5,0.25"})
	if got := ds.SplitSpec.String(); got != "time:at, local,0.5,0.25" {
		t.Errorf("the split is called %q", got)
	}
	s, err := ds.SplitFor(3)
	if err != nil {
		t.Fatal(err)
	}
	day := func(v int32) int { return 1 + (int(v)*7)%20 }
	latest := func(nodes []int32) int {
		return day(slices.MaxFunc(nodes, func(a, b int32) int { return day(a) - day(b) }))
	}
	earliest := func(nodes []int32) int {
		return day(slices.MinFunc(nodes, func(a, b int32) int { return day(a) - day(b) }))
	}
	if len(s.Train) != 9 || len(s.Val) != 5 || len(s.Test) != 4 || latest(s.Train) >= earliest(s.Val) || latest(s.Val) >= earliest(s.Test) {
		t.Errorf("train %v, val %v, test %v", s.Train, s.Val, s.Test)
	}
	for _, part := range [][]int32{s.Train, s.Val, s.Test} {
		if slices.Contains(part, 3) || slices.Contains(part, 5) || !slices.IsSorted(part) {
			t.Errorf("the part %v has a node without time or label, or is not sorted", part)
		}
	}
	// Nodes of one time are not torn apart, also where the column is left out of the features.
	ds = mustLoad(t, dir, LoadOptions{Split: "time:day,0.3,0.7", Tables: Tables{Ignore: []string{"day"}}})
	if s, err := ds.SplitFor(0); err != nil || len(s.Train) != 9 || len(s.Val) != 10 || len(s.Test) != 0 { // n3 has a day
		t.Errorf("two times make %+v, %v", s, err)
	}
	for split, want := range map[string]string{"time:day,0.3,0.5": "test part empty", "time:day,0.6,0.4": "val part empty"} {
		_, err := mustLoad(t, dir, LoadOptions{Split: split}).SplitFor(0)
		wantError(t, err, split, want)
	}
	for split, want := range map[string]string{"time:size": "expected time:COLUMN,TRAIN,VAL", "time:size,0.5,2": "not a fraction", "time:size,0.6,0.6": "more than all", "time:none,0.5,0.2": "no column of times", "time:id,0.5,0.2": "no column of times", "time:label,0.5,0.2": "no column of times"} {
		if _, err := Load(dir, LoadOptions{Split: split}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "nodes.csv:") && !strings.Contains(err.Error(), "nodes.csv: ") {
			t.Errorf("%s: %v, want %s, of no row of the file", split, err, want)
		}
	}
	bad := writeFiles(t, map[string]string{"nodes.csv": "id,label,at\na,x,soon\nb,y,2021-01-01\n", "edges.csv": "source,target\na,b\n"})
	if _, err := Load(bad, LoadOptions{Split: "time:at,0.5,0.2"}); err == nil || !strings.Contains(err.Error(), "neither a time nor a number") {
		t.Errorf("a word as a time: %v", err)
	}
	if _, err := Load(Synthetic, LoadOptions{Split: "time:at,0.5,0.2"}); err == nil || !strings.Contains(err.Error(), "no table of nodes") {
		t.Errorf("times of generated data: %v", err)
	}
}

// A zone that has only a name stands for another offset from place to place, and is not read.
func TestZonesOfTimes(t *testing.T) {
	if x, ok := seconds("2021-01-01 22:00:00"); !ok || x != 1609538400 {
		t.Errorf("%v, %v", x, ok)
	}
	for _, s := range []string{"2021-01-01 22:00:00 UTC", "2021-01-01 22:00:00 GMT", "2021-01-01T22:00:00Z", "2021/01/01 22:00:00UTC", "2021-01-01 17:00:00 -05", "2021-01-02 03:30:00 +0530", "2021-01-02 03:30+05:30", "2021-01-02T03:30:00+0530", "2021-01-01T22:00Z", "20210101T220000Z", "20210102T033000+0530", "20210101T220000", "20210101T220000.000Z"} {
		if x, ok := seconds(s); !ok || x != 1609538400 {
			t.Errorf("%s: %v, %v", s, x, ok)
		}
	}
	if x, ok := seconds("20210101T220000.25+0000"); !ok || x != 1609538400.25 {
		t.Errorf("a fraction: %v, %v", x, ok)
	}
	var nodes strings.Builder
	nodes.WriteString("id,label,x,at,due\n")
	for i := range 40 {
		fmt.Fprintf(&nodes, "n%d,a,%d,2021-01-%02d 20:00:01 EST,2021-01-%02d 20:00:01 %s\n", i, i*i%11, 1+i%28, 1+i%28, []string{"UTC", "CET"}[i/39])
	}
	dir := writeFiles(t, map[string]string{nodesFile: nodes.String(), edgesFile: "source,target\nn0,n1\n"})
	wantNotes(t, mustLoad(t, dir, LoadOptions{Tables: Tables{Ignore: []string{"due"}}}), `"at" is left out: its times have a zone that has only a name; the zone EST is not read: write its offset`)
	_, err := Load(dir, LoadOptions{Split: "time:at,0.5,0.2"})
	wantError(t, err, "neither a time nor a number", "the zone EST is not read: write its offset")
	_, err = Load(dir, LoadOptions{})
	wantError(t, err, `nodes.csv:41`, "the zone CET is not read")
}

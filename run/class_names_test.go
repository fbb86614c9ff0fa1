package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/train"
)

// labelledFrom1 writes a graph of nodes of the classes 1, 2 and 3.
func labelledFrom1(t *testing.T, nodes int) string {
	t.Helper()
	dir := t.TempDir()
	var rows, edges strings.Builder
	rows.WriteString("id,a,b,c,label\n")
	edges.WriteString("source,target\n")
	for v := range nodes {
		x := [3]int{}
		x[v%3] = 1
		fmt.Fprintf(&rows, "n%d,%d,%d,%d,%d\n", v, x[0], x[1], x[2], v%3+1)
		fmt.Fprintf(&edges, "n%d,n%d\n", v, (v+3)%nodes)
	}
	for name, text := range map[string]string{"nodes.csv": rows.String(), "edges.csv": edges.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A run gives nodes of another graph the names of classes of the data that it was trained on, and
// so does one of an earlier version, which did not keep them, while these data are there.
func TestClassNames(t *testing.T) {
	first, second, out := labelledFrom1(t, 90), labelledFrom1(t, 60), filepath.Join(t.TempDir(), "run")
	o := TrainOptions{Model: "gcn", Data: first, Out: out, Set: []string{"train.epochs=30", "data.prepare=false", "data.split=random:0.4,0.3,0.3"}}
	if _, err := Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	predict := func() (*infer.Prediction, error) {
		return Predict(t.Context(), out, second, "", infer.PredictOptions{Load: data.LoadOptions{}})
	}
	check := func(what string) {
		t.Helper()
		p, err := predict()
		if err != nil || !slices.Equal(p.Classes, []string{"1", "2", "3"}) || p.Report == nil || p.Report.Accuracy < 0.9 {
			t.Fatalf("%s: %+v, %v", what, p, err)
		}
	}
	check("names in the run")
	path := filepath.Join(out, "run.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var info map[string]any
	if err := json.Unmarshal(text, &info); err != nil {
		t.Fatal(err)
	}
	delete(info["data"].(map[string]any), "class_names")
	delete(info, "checksum")
	info["schema_version"] = 1
	if text, err = json.Marshal(info); err == nil {
		err = os.WriteFile(path, text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	check("names in the data")
	if err := os.RemoveAll(first); err != nil {
		t.Fatal(err)
	}
	if _, err := predict(); err == nil || !strings.Contains(err.Error(), "classes are called") {
		t.Errorf("without the data: %v", err)
	}
	if info, err := train.ReadInfo(out); err != nil || info.Data.ClassNames != nil {
		t.Errorf("%v %v", info, err)
	}
}

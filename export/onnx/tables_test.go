package onnx

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/onnxtest"
)

var updateVectors = flag.Bool("update-vectors", false, "write tools/conformance/engines/buckets/vectors.json anew")

const bucketsFolder = "../../tools/conformance/engines/buckets"

// tableVector is one of the vectors that the table builder of every language is
// tested on.
type tableVector struct {
	Name      string               `json:"name"`
	NumNodes  int                  `json:"num_nodes"`
	EdgeIndex [2][]int64           `json:"edge_index"`
	Tables    map[string]tableData `json:"tables"`
}

type tableData struct {
	Shape []int64 `json:"shape"`
	Data  []int64 `json:"data"`
}

// tableVectors holds the awkward graphs, small enough for a file that people read.
func tableVectors(t *testing.T) []tableVector {
	graphs := []*onnxtest.Graph{{Name: "the example of the documentation", N: 5, Src: []int64{1, 0, 2, 0, 3, 1, 2, 4}, Dst: []int64{0, 1, 0, 2, 0, 2, 2, 2}}}
	for _, g := range onnxtest.Graphs() {
		if g.N <= 200 && len(g.Src) <= 200 {
			graphs = append(graphs, g)
		}
	}
	hubs := &onnxtest.Graph{Name: "64, 65, 128 and 257 edges into a node", N: 8}
	for v, degree := range []int{64, 65, 128, 257} {
		for k := range degree {
			hubs.Add(4+k%4, v)
		}
	}
	huge := &onnxtest.Graph{Name: "4097 edges into a node", N: 3}
	for k := range 4097 {
		huge.Add(1+k%2, 0)
	}
	var list []tableVector
	for _, g := range append(graphs, hubs, huge) {
		tables, err := BuildTables(g.N, g.EdgeIndex())
		if err != nil {
			t.Fatal(err)
		}
		v := tableVector{Name: g.Name, NumNodes: g.N, EdgeIndex: [2][]int64{append([]int64{}, g.Src...), append([]int64{}, g.Dst...)}, Tables: map[string]tableData{}}
		for name, x := range tables.Inputs() {
			v.Tables[name] = tableData{x.Shape, append([]int64{}, x.I64...)}
		}
		list = append(list, v)
	}
	return list
}

func TestTableVectors(t *testing.T) {
	var want bytes.Buffer
	for i, v := range tableVectors(t) {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "%s%s", map[bool]string{true: "[\n", false: ",\n"}[i == 0], line)
	}
	want.WriteString("\n]\n")
	path := filepath.Join(bucketsFolder, "vectors.json")
	if *updateVectors {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what BuildTables gives; go test ./export -run TestTableVectors -update-vectors writes it anew", path)
	}
}

// TestTablePorts runs the table builders of other languages on the vectors.
func TestTablePorts(t *testing.T) {
	rust := filepath.Join(t.TempDir(), "buckets")
	for _, command := range [][]string{{"python3", "buckets.py"}, {"node", "buckets.mjs"}, {"java", "Buckets.java"}, {"rustc", "buckets.rs"}} {
		t.Run(command[0], func(t *testing.T) {
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skipf("%s is not installed", command[0])
			}
			if command[0] == "python3" && exec.Command(command[0], "-c", "import numpy").Run() != nil {
				t.Skip("python3 has no NumPy")
			}
			args := []string{command[0], command[1], "vectors.json"}
			if command[0] == "rustc" {
				compile := exec.CommandContext(t.Context(), "rustc", "--edition", "2021", "-o", rust, command[1])
				compile.Dir = bucketsFolder
				if out, err := compile.CombinedOutput(); err != nil {
					t.Fatalf("rustc: %v: %s", err, out)
				}
				args = []string{rust, "vectors.json"}
			}
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Dir = bucketsFolder
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v: %s", command, err, out)
			}
		})
	}
}

package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
)

func TestFolder(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"edges.csv": "source,target,weight\nann,bob,0.5\nbob,ann,0.25\nbob,\"c, d\",2\nann,ann,1\nann,bob,0.5\n",
		"nodes.csv": "\xef\xbb\xbfid,label,split,age,height\r\nann,cat,train,1,0\r\nbob,dog,VAL,0,2.5\r\n\"c, d\",,test,0,0\r\neve,cat,,3,-1e-3\r\n",
	})
	ds := mustLoad(t, dir, LoadOptions{NoPrepare: true})
	if got, want := fmt.Sprint(ds.Graph.Edges, ds.Graph.Weights), "[[0 1] [1 2]] [0.5 2]"; got != want {
		t.Errorf("edges %s, want %s", got, want)
	}
	if want := []float32{1, -1, -1, -1}; !slices.Equal(ds.Loops, want) {
		t.Errorf("self-loops weigh %v, want %v", ds.Loops, want)
	}
	if want := []string{"ann", "bob", "c, d", "eve"}; !slices.Equal(ds.NodeIDs, want) || ds.NodeID(2) != "c, d" {
		t.Errorf("ids %q", ds.NodeIDs)
	}
	if !slices.Equal(ds.Labels, []int32{0, 1, -1, 0}) || !slices.Equal(ds.ClassNames, []string{"cat", "dog"}) || ds.Classes != 2 {
		t.Errorf("labels %v, classes %q", ds.Labels, ds.ClassNames)
	}
	if want := []float32{1, 0, 0, 2.5, 0, 0, 3, -1e-3}; !slices.Equal(ds.X.ToDense().Dense, want) {
		t.Errorf("features %v", ds.X.Dense)
	}
	want := Repairs{DuplicateEdges: 1, ReversedEdges: 1, WeightConflicts: 1, SelfLoops: 1, Unlabelled: 1, EmptyRows: 1, SplitUnlabelled: 1}
	if ds.Repairs != want {
		t.Errorf("repairs %+v, want %+v", ds.Repairs, want)
	}
	s := ds.Splits[0]
	if fmt.Sprint(s) != "{[0] [1] [] []}" {
		t.Errorf("split %v", s)
	}

	// A split that is drawn takes the place of the column, with what is wrong with it.
	if ds := mustLoad(t, dir, LoadOptions{Split: "random:0.4,0.3,0.3"}); ds.Repairs.SplitUnlabelled != 0 || ds.SplitSpec == nil {
		t.Errorf("a drawn split: %+v", ds.Repairs)
	}

	// Directed: ann → bob and bob → ann are two edges.
	ds = mustLoad(t, dir, LoadOptions{Directed: true})
	if got, want := fmt.Sprint(ds.Graph.Edges, ds.Graph.Weights), "[[0 1] [1 0] [1 2]] [0.5 0.25 2]"; got != want {
		t.Errorf("directed edges %s, want %s", got, want)
	}
	if ds.Repairs.WeightConflicts != 0 || ds.Repairs.ReversedEdges != 0 {
		t.Errorf("repairs %+v", ds.Repairs)
	}
}

// Text of numbers with the line ends of old Macs is one line; it is refused, and not
// read as one.
func TestTextOfOldMacs(t *testing.T) {
	f := newTextFile("X_A.txt", strings.NewReader("1, 2\r2, 1\r"), nil, nil)
	err := f.each(func() {})
	wantError(t, err, "X_A.txt:1", "carriage return alone")
	// A carriage return within quotes is part of a name.
	if _, _, i := widest([]byte("id,label\r\n\"a\rb\",c\r\n")); i >= 0 {
		t.Errorf("position %d", i)
	}
}

func TestFolderWithFeatureFiles(t *testing.T) {
	ds := mustLoad(t, "testdata/folder-npy", LoadOptions{})
	if fmt.Sprint(ds.Graph.Edges) != "[[0 1] [1 2]]" || ds.Graph.N != 4 || ds.Classes != 0 || ds.NodeIDs != nil || ds.Name != "folder-npy" {
		t.Errorf("%+v", ds)
	}
	if x := ds.X.ToDense().Dense; x[5] != 0 || x[6] != 1 || x[4] != 4 { // big-endian, Fortran order
		t.Errorf("features %v", x)
	}
	_, err := ds.SplitFor(0)
	wantError(t, err, "no labels")
	_, err = mustLoad(t, "testdata/folder-npy", LoadOptions{Split: "per-class:1,1,1"}).SplitFor(0)
	wantError(t, err, "no labels")

	ds = mustLoad(t, "testdata/folder-npz", LoadOptions{})
	if fmt.Sprint(ds.Graph.Edges, ds.Graph.Weights) != "[[0 1]] [0.5]" || ds.Graph.N != 4 || ds.NodeIDs[3] != "p4" {
		t.Errorf("%+v", ds)
	}
	if !slices.Equal(ds.Labels, []int32{0, 1, -1, 0}) || ds.X.ToDense().Dense[6] != 1 {
		t.Errorf("labels %v, features %v", ds.Labels, ds.X)
	}

	dir := copyDir(t, "testdata/folder-npy")
	os.Remove(filepath.Join(dir, npyFile))
	os.WriteFile(filepath.Join(dir, npzFile), mustRead(t, "testdata/dense.npz"), 0o644)
	if ds = mustLoad(t, dir, LoadOptions{}); ds.X.ToDense().Dense[6] != 1 {
		t.Errorf("features %v", ds.X)
	}
	os.WriteFile(filepath.Join(dir, npzFile), mustRead(t, "testdata/csc.npz"), 0o644)
	_, err = Load(dir, LoadOptions{})
	wantError(t, err, npzFile, "not in CSR form", "tocsr()")
	os.WriteFile(filepath.Join(dir, npzFile), mustRead(t, "testdata/csr.npz"), 0o644)
	_, err = Load(dir, LoadOptions{})
	wantError(t, err, npzFile, "expected one dense array")
	os.WriteFile(filepath.Join(dir, npyFile), mustRead(t, "testdata/folder-npy/features.npy"), 0o644)
	_, err = Load(dir, LoadOptions{})
	wantError(t, err, "both features.npy and features.npz")
}

func TestEdgeHeaders(t *testing.T) {
	nodes := "id,x\n1,1\n2,1\n3,1\nu,1\nv,1\n"
	for _, c := range []struct{ text, want string }{
		{"1,2\n", "[[0 1]] []"},
		{"1,2,0.5\n", "[[0 1]] [0.5]"},
		{"source,target\n1,2\n", "[[0 1]] []"},
		{"Target , Source\n1,2\n", "[[0 1]] []"},
		{"weight,src,dst\n3,1,2\n", "[[0 1]] [3]"},
		{"source,target\n", "[] []"},
		{"source,target,weight\n", "[] []"},
		{"u,v\n", "[[3 4]] []"}, // both are nodes, so this is an edge
		{"from,to\r\n1,3\r\n", "[[0 2]] []"},
		{"payer,payee\n1,3\n", "[[0 2]] []"}, // other names, above ids of nodes
		{"weight,payer,payee\n2,1,3\n", "[[0 2]] [2]"},
		{"1, 2\n\n2, 3", "[[0 1] [1 2]] []"},
	} {
		ds, err := Load(writeFiles(t, map[string]string{edgesFile: c.text, nodesFile: nodes}), LoadOptions{})
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := fmt.Sprint(ds.Graph.Edges, ds.Graph.Weights); got != c.want {
			t.Errorf("%q: edges %s, want %s", c.text, got, c.want)
		}
	}
}

// Where more than two columns hold ids of nodes, nothing is guessed.
func TestEndsThatAreNotCertain(t *testing.T) {
	dir := writeFiles(t, map[string]string{nodesFile: "id,x\n0,1\n1,1\n2,1\n", edgesFile: "Unnamed: 0,a,b\n0,1,2\n1,2,0\n"})
	_, err := Load(dir, LoadOptions{})
	wantError(t, err, `edges.csv:1:1`, `the columns "Unnamed: 0", "a", "b" all hold ids of nodes`, "--source and --target")
	for _, o := range []Tables{{Source: "a", Target: "b"}, {Ignore: []string{"Unnamed: 0"}}, {Weight: "Unnamed: 0"}} {
		if ds := mustLoad(t, dir, LoadOptions{Tables: o}); ds.Roles.Source != "a" || ds.Roles.Target != "b" || fmt.Sprint(ds.Graph.Edges) != "[[0 2] [1 2]]" {
			t.Errorf("%+v: %+v, %v", o, ds.Roles, ds.Graph.Edges)
		}
	}
}

func TestFolderFaults(t *testing.T) {
	edges, nodes := "a,b\n", "id,label,x\na,0,1\nb,1,2\n"
	for _, c := range []struct {
		name         string
		edges, nodes string
		err          []string
	}{
		{"empty edges", "", nodes, []string{"edges.csv: the file is empty", "source,target alone"}},
		{"blank edges", " \n\n", nodes, []string{"edges.csv: the file is empty"}},
		{"empty nodes", edges, "", []string{"nodes.csv: the file is empty"}},
		{"no nodes", "source,target\n", "id,x\n", []string{"nodes.csv", "has a header but no nodes"}},
		{"unknown id", "a,b\na,zoe\n", nodes, []string{`edges.csv:2:3: "zoe"`, "nodes.csv has no node of this id"}},
		{"unknown first id", "start,end\na,zoe\n", nodes, []string{`edges.csv:1:1: "start"`, "a header line would be source,target, or --source and --target say"}},
		{"unknown first ids", "7,8\n1,2\n", "id,x\n1,1\n2,1\n", []string{`edges.csv:1:1: "7"`, "has no node of this id"}},
		{"empty id", "a,b\n,a\n", nodes, []string{"edges.csv:2:1", "the id is empty"}},
		{"tabs", "a\tb\n", nodes, []string{"edges.csv:1:1", "separated by tabs; use commas"}},
		{"line ends of old Macs", "source,target\rann,bob\r", nodes, []string{"edges.csv:1", "carriage return alone", "line feeds"}},
		{"line ends of both kinds", "source,target\nann,bob\rbob,cid\n", nodes, []string{"edges.csv:2", "carriage return alone"}},
		{"semicolons", "a;b\n", nodes, []string{"separated by semicolons"}},
		{"unknown end among known ones", "payer,payee,amount,at\n1,2,9,x\n2,EXT,9,x\n3,4,9,y\n", "id,x\n1,1\n2,1\n3,1\n4,1\n", []string{`edges.csv:3:3: "EXT"`, "nodes.csv has no node of this id"}},
		{"unknown end beside numbers that are ids", "payer,payee,month\n1,2,4\n2,9,4\n3,4,4\n", "id,x\n1,1\n2,1\n3,1\n4,1\n", []string{"edges.csv:1:1", `the columns "payer", "payee", "month" all hold ids of nodes, or do so in most rows`}},
		{"unknown end beside such a weight", "payer,payee,weight\n1,2,4\n2,9,4\n3,4,4\n", "id,x\n1,1\n2,1\n3,1\n4,1\n", []string{`edges.csv:3:3: "9"`, "nodes.csv has no node of this id"}},
		{"mostly unknown ends", "payer,payee,amount,at\n1,X,9,x\n2,EXT,9,x\n3,4,9,y\n", "id,x\n1,1\n2,1\n3,1\n4,1\n", []string{"edges.csv:1:20", "--source and --target", `"payer" has ids of nodes in 3 of the first 3 rows; "payee" has ids of nodes in 1 of the first 3 rows, and "X" is none`}},
		{"ends of another form", "payer,payee,amount,at\n7,8,9,x\n8,7,9,x\n", "id,x\n07,1\n08,1\n", []string{"edges.csv:1:20", `such as "07": below the header is "7", "8", "9", "x"`}},
		{"one column", "a\nb\n", nodes, []string{"edges.csv:1:1", "expected source,target"}},
		{"four columns", "a,b,1,2\n", nodes, []string{`edges.csv:1:7: "2"`, "give a header"}},
		{"row cut", "a,b,1\na,b\n", nodes, []string{"edges.csv:2", "the row has 2 fields, the first has 3", "truncated"}},
		{"row long", "a,b\na,b,7\n", nodes, []string{"edges.csv:2:5", `"7"`, "has 3 fields"}},
		{"weight text", "a,b,heavy\n", nodes, []string{`edges.csv:1:5: "heavy"`, "a number of 0 or more"}},
		{"weight NaN", "a,b,nan\n", nodes, []string{`edges.csv:1:5: "nan"`}},
		{"weight infinite", "a,b,1\nb,a,1e99\n", nodes, []string{`edges.csv:2:5: "1e99"`, "of 0 or more, up to 1e+29"}},
		{"weights whose sum is infinite", "a,b,3e38\nb,a,1\n", nodes, []string{`edges.csv:1:5: "3e38"`, "the sum of those at a node", "a larger unit"}},
		{"weight negative", "a,b,-1\n", nodes, []string{`edges.csv:1:5: "-1"`, "--ignore-weights leaves weights out"}},
		{"weight empty", "a,b,\n", nodes, []string{"edges.csv:1:5", "a number of 0 or more"}},
		{"header twice", "source,from\na,b\n", nodes, []string{"edges.csv:1:8", "two columns for the same"}},
		{"header partly", "source,weight\na,b\n", nodes, []string{"needs the columns source and target"}},
		{"open quote", "a,\"b\n", nodes, []string{"edges.csv:", "quote"}},
		{"stray quote", "a,b\"c\n", nodes, []string{"edges.csv:1:", "quote"}},
		{"zero byte", "a,b\n\x00\n", nodes, []string{"edges.csv:2", "zero byte", "UTF-8"}},
		{"Latin-1 edge", "a,b\na,\xfc\n", nodes, []string{`edges.csv:2:3: "\xfc"`, "no UTF-8", "save it as CSV, UTF-8"}},
		{"Latin-1 header", edges, "id,gr\xf6\xdfe\na,1\n", []string{`nodes.csv:1:6: "gr\xf6\xdfe"`, "no UTF-8"}},
		{"Latin-1 label", edges, "id,label,x\na,größe,1\nb,gr\xf6\xdfe,1\n", []string{`nodes.csv:3:5: "gr\xf6\xdfe"`, "save it as CSV, UTF-8"}},
		{"Latin-1 ids", edges, "name,x\nb,1\n\xe4,1\n", []string{`nodes.csv:3:1: "\xe4"`}},
		{"half a letter", edges, "id,x\na,\xc3", []string{`nodes.csv:2:3: "\xc3"`}},
		{"escapes", "a,\x1b[31mred\n", nodes, []string{`"\x1b[31mred"`}},

		{"no id column", edges, "name,x\na,1\n", []string{"nodes.csv:1:1", "no id column", "id,label,split"}},
		{"guessed id twice", "source,target\na,b\n", "user_id,x\na,1\nb,1\na,2\n", []string{"no id column", `"user_id" has "a" in two rows`}},
		{"guessed id of another form", "source,target\n1,2\n", "user,x\n1.0,1\n2.0,1\n", []string{"no id column", `"user" differs in every row, but few edges refer to it: their first row is "1", "2"`}},
		{"guessed id empty", "source,target\na,b\n", "user_id,x\n,1\n,1\na,1\nb,1\n", []string{"no id column", `"user_id" is empty in 2 of 4 rows`}},
		{"node tabs", edges, "id\tx\na\t1\n", []string{"nodes.csv:1:1", "separated by tabs"}},
		{"nameless column", edges, "id,,x\na,1,2\n", []string{"nodes.csv:1:4", "column 2 of the header has no name", "nodes.csv starts with a header such as id,label", "index=False"}},
		{"pandas index", ",source,target\n0,a,b\n", "id,x\na,1\nb,2\n", []string{"edges.csv:1:1", "column 1 of the header has no name; edges.csv starts with a header such as source,target,weight", "index=False"}},
		{"column twice", edges, "id,x,X\na,1,2\n", []string{"nodes.csv:1:6", "twice"}},
		{"id twice", edges, "id,x\na,1\nb,1\na,2\n", []string{`nodes.csv:4:1: "a"`, "the same id as in line 2"}},
		{"id empty", edges, "id,x\n,1\n", []string{"nodes.csv:2", "the id is empty"}},
		{"feature text", edges, "id,x,y\na,1,red\n", []string{`nodes.csv:2:5: "red"`, `feature "y" of node "a"`, "finite number"}},
		{"feature empty", edges, "id,x,y\na,1,\n", []string{"nodes.csv:2:5", "finite number"}},
		{"feature NaN", edges, "id,x\na,NaN\n", []string{`nodes.csv:2:3: "NaN"`}},
		{"feature infinite", edges, "id,x\na,1e39\n", []string{`nodes.csv:2:3: "1e39"`, "not a finite number within ±3.4e+38"}},
		{"node row cut", edges, "id,x,y\na,1,2\nb,1\n", []string{"nodes.csv:3", "the row has 2 fields, the header has 3", "truncated"}},
		{"node row long", edges, "id,x\na,1,2\n", []string{"nodes.csv:2:5", "the row has 3 fields"}},
		{"split name", edges, "id,split,x\na,training,1\n", []string{`nodes.csv:2:3: "training"`, "train, val, test or nothing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := writeFiles(t, map[string]string{edgesFile: c.edges, nodesFile: c.nodes})
			ds, err := Load(dir, LoadOptions{NoPrepare: true})
			wantError(t, err, append(c.err, dir)...)
			var fe *FileError
			if !errors.As(err, &fe) {
				t.Errorf("%T is not a *FileError", err)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\x1b\x00") {
				t.Errorf("control characters in %q", err)
			}
			if ds != nil {
				t.Error("half a data set came with the error")
			}
		})
	}
}

func TestFolderWithoutNodes(t *testing.T) {
	for _, c := range []struct {
		edges string
		err   []string
	}{
		{"a,b\n", []string{`edges.csv:1:1: "a"`, "not a node number", "0 to 3"}},
		{"0,4\n", []string{`edges.csv:1:3: "4"`, "no such node", "4 rows"}},
		{"0,-1\n", []string{`edges.csv:1:3: "-1"`, "no such node"}},
	} {
		dir := copyDir(t, "testdata/folder-npy")
		os.WriteFile(filepath.Join(dir, edgesFile), []byte(c.edges), 0o644)
		_, err := Load(dir, LoadOptions{})
		wantError(t, err, c.err...)
	}
	_, err := Load(writeFiles(t, map[string]string{edgesFile: "0,1\n"}), LoadOptions{})
	wantError(t, err, "no node features")

	dir := copyDir(t, "testdata/folder-npy")
	os.WriteFile(filepath.Join(dir, nodesFile), []byte("id,label\n0,1\n1,0\n"), 0o644)
	_, err = Load(dir, LoadOptions{})
	wantError(t, err, "features.npy: has 4 rows", "nodes.csv has 2 nodes")
	os.WriteFile(filepath.Join(dir, nodesFile), []byte("id,label,x\n0,1,1\n1,0,1\n2,0,0\n3,0,0\n"), 0o644)
	_, err = Load(dir, LoadOptions{})
	wantError(t, err, "given twice")
	os.WriteFile(filepath.Join(dir, nodesFile), []byte("id,label\n0,1\n1,0\n2,0\n3,0\n"), 0o644)
	if ds := mustLoad(t, dir, LoadOptions{}); ds.NodeIDs != nil || ds.Classes != 2 {
		t.Errorf("ids 0 to 3 need no names: %q", ds.NodeIDs)
	}
}

func TestLabelClasses(t *testing.T) {
	for _, c := range []struct {
		labels string
		names  []string
		want   []int32
	}{
		{"10 9 -1 10", []string{"9", "10"}, []int32{1, 0, -1, 1}}, // numbers by size
		{"b a ? B", []string{"B", "a", "b"}, []int32{2, 1, -1, 0}},
		{"10 9 x NA", []string{"10", "9", "x"}, []int32{0, 1, 2, -1}},
		{"none nan null -1", nil, []int32{-1, -1, -1, -1}},
		{"N/A n/a \\N NaT", nil, []int32{-1, -1, -1, -1}},
		{"#N/A -1.0 1.0 -1.5", []string{"-1.5", "1.0"}, []int32{-1, -1, 1, 0}},
	} {
		nt := &nodeTable{labels: strings.Fields(c.labels)}
		got, names := nt.labelClasses(4)
		if !slices.Equal(got, c.want) || !slices.Equal(names, c.names) {
			t.Errorf("%q: %v %q, want %v %q", c.labels, got, names, c.want, c.names)
		}
	}
}

// That -1 is no class is said where it may be meant as one.
// Words among the labels that count as none are named: they may be meant as classes.
func TestUnknownWords(t *testing.T) {
	for labels, want := range map[string]string{
		"-1 0 1": `"-1" (1 nodes)`, "-1.0 -1 1": `"-1" (1 nodes), "-1.0" (1 nodes)`, "-1 a b": `"-1" (1 nodes)`, "None None b": `"None" (2 nodes)`, "NA a ?": `"?" (1 nodes), "NA" (1 nodes)`,
		"0 1 2": "", "a b _": "",
	} {
		s := strings.Fields(strings.ReplaceAll(labels, "_", `""`))
		ds := mustLoad(t, writeFiles(t, map[string]string{edgesFile: "a,b\n", nodesFile: fmt.Sprintf("id,label,x\na,%s,1\nb,%s,0\nc,%s,1\n", s[0], s[1], s[2])}), LoadOptions{})
		if want != "" {
			want = "nodes.csv: nodes count as unlabelled whose label is " + want + "; write another word where it is a class"
		}
		if got := strings.Join(ds.Notes, "\n"); !strings.Contains(got, want) || strings.Contains(got, "unlabelled") != (want != "") {
			t.Errorf("%s: notes %q", labels, ds.Notes)
		}
	}
}

// A wide sparse table stays sparse, and its memory follows the file.
func TestNodesSparse(t *testing.T) {
	var b strings.Builder
	b.WriteString("id")
	for j := range 1000 {
		fmt.Fprintf(&b, ",f%d", j)
	}
	for i := range 20 {
		fmt.Fprintf(&b, "\n%d", i)
		for j := range 1000 {
			if j == i {
				b.WriteString(",1")
			} else {
				b.WriteString(",0")
			}
		}
	}
	dir := writeFiles(t, map[string]string{edgesFile: "source,target\n", nodesFile: b.String()})
	ds := mustLoad(t, dir, LoadOptions{})
	if !ds.X.IsSparse() || ds.X.NNZ() != 20 || ds.X.Cols != 1000 || ds.X.Col[7] != 7 {
		t.Errorf("%+v", ds.X)
	}
}

func FuzzCSV(f *testing.F) {
	f.Add("a,b\n", "id,label,x\na,0,1\nb,1,2\n", true)
	f.Add("a,b\n", "id,label,x\na,0,1\nb,1,2\n", false)
	f.Add("source,target,weight\n1,2,0.5\n", "id,split,x\n1,train,1\n2,,1e-3\n", true)
	f.Add("source,target,weight\n1,2,0.5\n", "id,split,x\n1,train,1\n2,,1e-3\n", false)
	f.Add("\"a,\"\"x\",b\r\n", "\xef\xbb\xbfid,x\n\"a,\"\"x\",1\nb,nan\n", true)
	f.Add("\"a,\"\"x\",b\r\n", "\xef\xbb\xbfid,x\n\"a,\"\"x\",1\nb,nan\n", false)
	f.Add("u,v\n", "id,label\nu,?\nv,-1\n", true)
	f.Add("u,v\n", "id,label\nu,?\nv,-1\n", false)
	f.Add("", "id\n", true)
	f.Add("", "id\n", false)
	f.Add("a\tb", "id,x\n\x00", true)
	f.Add("a\tb", "id,x\n\x00", false)
	f.Add("payer,payee,at\nC1,C2,2020-01-01\n", "customer_id,age,city,joined,churned\nC1,,Rome,2020-01-01,yes\nC2,41,,2021-01-01T10:00:00Z,no\n", false)
	f.Add(":START_ID,:END_ID\na,b\n", ":ID,w0,w1,label\na,0.6,0.8,x|y\nb,1,0,y|z\n", false)
	f.Add("id1,id2,n\na,b,1\n", "k,x\na,1e308\nb,-1e308\n", false)
	f.Fuzz(func(t *testing.T, edges, nodes string, noPrepare bool) {
		r := &tableReader{file: &tableSchema{}, noPrepare: noPrepare}
		edgeFile := tableFile{path: edgesFile, bytes: []byte(edges)}
		nt, err := r.nodes(tableFile{path: nodesFile, bytes: []byte(nodes)}, edgeFile)
		if err != nil {
			checkFault(t, err)
			nt = &nodeTable{features: &Features{Rows: 3, Cols: 1, Dense: make([]float32, 3)}}
		}
		n := max(len(nt.ids), 3)
		if nt.features != nil {
			if err := nt.features.Check(); err != nil {
				t.Errorf("features that are not valid came out: %v", err)
			}
			n = nt.features.Rows
		}
		labels, names := nt.labelClasses(n)
		for _, c := range labels {
			if c < -1 || int(c) >= len(names) {
				t.Errorf("label %d of %d classes", c, len(names))
			}
		}
		list := &edgeList{}
		if err := r.edges(edgeFile, nt, n, list, func(rows func() error) error { return rows() }); err != nil {
			checkFault(t, err)
			return
		}
		for _, directed := range []bool{false, true} {
			var rep Repairs
			g, err := list.build(n, directed, false, &rep, nil)
			if err != nil {
				t.Fatalf("edges that passed do not build: %v", err)
			}
			if err := g.Validate(); err != nil {
				t.Error(err)
			}
			if got := len(g.Edges) + rep.DuplicateEdges + rep.SelfLoops + rep.ReversedEdges; got != len(list.src) {
				t.Errorf("%d edges listed, %d accounted for: %+v", len(list.src), got, rep)
			}
		}
	})
}

// checkFault fails if an error about a file would be of no use or of harm.
func checkFault(t *testing.T, err error) {
	t.Helper()
	var fe *FileError
	if !errors.As(err, &fe) || fe.File == "" || (fe.Msg == "" && fe.Err == nil) {
		t.Errorf("error %#v says too little", err)
	}
	checkText(t, err)
}

// Nodes that have no columns but id, label and split are described by their places in the graph.
func TestFolderWithoutFeatures(t *testing.T) {
	dir := writeFiles(t, map[string]string{edgesFile: "source,target\na,b\nb,c\nc,d\na,c\n", nodesFile: "id,label\na,x\nb,x\nc,y\nd,y\ne,\n"})
	ds := mustLoad(t, dir, LoadOptions{})
	if !ds.Structural || ds.X.Rows != 5 || ds.X.Cols != graph.EncodingWidth(5) || len(ds.Notes) == 0 || !strings.Contains(ds.Notes[len(ds.Notes)-1], "DeepWalk take their place") {
		t.Errorf("%v %d×%d, notes %q", ds.Structural, ds.X.Rows, ds.X.Cols, ds.Notes)
	}
	if x := ds.X.Dense; x[0] <= x[4*ds.X.Cols] {
		t.Errorf("a node of two neighbours has the degree %v, one of none %v", x[0], x[4*ds.X.Cols])
	}
	roles := mustLoad(t, dir, LoadOptions{NodeFeatures: FeaturesRoles, AddEdges: 0.5})
	if want := mustLoad(t, dir, LoadOptions{AddEdges: 0.5}); roles.X.Cols != 4 || !slices.Equal(roles.X.Dense[4:8], want.X.Dense[want.X.Cols:][:4]) {
		t.Errorf("%d columns say what roles nodes have in the graph with other edges", roles.X.Cols)
	}
	before := mustLoad(t, dir, LoadOptions{})
	before.PlacesAs(68)
	if x := before.X; x.Cols != 68 || !slices.Equal(x.Dense[68:136], ds.X.Dense[ds.X.Cols:][:68]) {
		t.Errorf("as models of earlier versions know places there are %d columns, or other ones", x.Cols)
	}
	if mustLoad(t, dir, LoadOptions{NoPrepare: true}).X.Dense[7] != ds.X.Dense[7] {
		t.Error("read again, the columns are others")
	}
	// Columns that are all left out change nothing of that, nor does reading them again.
	left := writeFiles(t, map[string]string{edgesFile: "source,target\na,b\nb,c\nc,d\na,c\n", nodesFile: "id,label,note\na,x,\nb,x,\nc,y,\nd,y,\ne,,\n"})
	same := mustLoad(t, left, LoadOptions{})
	if !same.Structural || !slices.Equal(same.X.Dense, ds.X.Dense) {
		t.Errorf("with a column that is left out there are %d others", same.X.Cols)
	}
	wantNotes(t, same, "DeepWalk take their place", `the column "note" is left out: it is empty`)
	for _, dir := range []string{dir, left} {
		if again := mustLoad(t, dir, LoadOptions{Columns: same.Columns}); !again.Structural {
			t.Errorf("with the columns of a model, %s is read otherwise", dir)
		}
	}
	// Where the graph is damaged on purpose, the columns are of the damaged one.
	damaged := mustLoad(t, dir, LoadOptions{AddEdges: 0.5, RemoveEdges: 0.5})
	want, err := graph.Encodings(damaged.Graph)
	if err != nil || slices.Equal(damaged.X.Dense, ds.X.Dense) || !slices.Equal(damaged.X.Dense, want) {
		t.Errorf("the columns of a damaged graph are not its own, %v", err)
	}
}

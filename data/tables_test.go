package data

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/gsrc-dev/gsrc/data/company"
	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/tomltext"
)

// wantNotes fails unless the notes have every piece.
func wantNotes(t *testing.T, ds *Dataset, pieces ...string) {
	t.Helper()
	text := strings.Join(append(slices.Clone(ds.Notes), ds.Warnings(Split{})...), "\n")
	for _, p := range pieces {
		if !strings.Contains(text, p) {
			t.Errorf("notes %q lack %q", text, p)
		}
	}
}

func TestRoles(t *testing.T) {
	nodes := "customer,churned,part,x,y\nC1,yes,train,1,0\nC2,no,val,0,1\nC3,no,test,1,1\n"
	edges := "from_account,to_account,amount,at\nC1,C2,5,2020-01-01\nC2,C3,7,2020-01-02\n"
	dir := writeFiles(t, map[string]string{nodesFile: nodes, edgesFile: edges})
	ds := mustLoad(t, dir, LoadOptions{Split: "part", Tables: Tables{Label: "churned", Weight: "amount"}})
	if want := (Roles{ID: "customer", Label: "churned", Split: "part", Source: "from_account", Target: "to_account", Weight: "amount"}); ds.Roles != want {
		t.Errorf("roles %+v, want %+v", ds.Roles, want)
	}
	if ds.X.Cols != 2 || fmt.Sprint(ds.Graph.Weights) != "[5 7]" || fmt.Sprint(ds.Splits) != "[{[0] [1] [2] []}]" || ds.SplitSpec != nil {
		t.Errorf("%+v %v", ds, ds.Graph.Weights)
	}
	wantNotes(t, ds, `"customer" is taken as the id`, "--id says otherwise", `"from_account" and "to_account" are taken as source and target`, `left out: "at" (times)`)

	// Where another column has an id in every row, one with gaps is none, though edges refer to it as often.
	next := writeFiles(t, map[string]string{nodesFile: "next,stop,x,label\ns2,s1,1,a\ns3,s2,2,b\n,s3,3,a\n", edgesFile: "source,target\ns1,s2\ns2,s3\n"})
	if ds := mustLoad(t, next, LoadOptions{}); ds.Roles.ID != "stop" {
		t.Errorf("the id is %s", ds.Roles.ID)
	}
	gap := writeFiles(t, map[string]string{nodesFile: nodes + ",yes,test,0,0\n", edgesFile: edges})
	if _, err := Load(gap, LoadOptions{Split: "part", Tables: Tables{Label: "churned"}}); err == nil || !strings.Contains(err.Error(), "nodes.csv:5:1: the id is empty") {
		t.Errorf("a missing id: %v", err)
	}

	ds = mustLoad(t, dir, LoadOptions{Tables: Tables{Ignore: []string{"churned", "part", "AT"}, Source: "to_account", Target: "from_account"}})
	if ds.Classes != 0 || ds.X.Cols != 2 || ds.Graph.Weights != nil || ds.Roles.Source != "to_account" {
		t.Errorf("%+v", ds)
	}
	wantNotes(t, ds, `left out: "amount" (numbers); --weight amount takes "amount" as weight`)

	for _, c := range []struct {
		o    LoadOptions
		want []string
	}{
		{LoadOptions{Tables: Tables{Label: "churnd"}}, []string{`nodes.csv:1: has no column "churnd", which is to be the label; did you mean "churned"?`}},
		{LoadOptions{Tables: Tables{Label: "customer", ID: "customer"}}, []string{"two things at once"}},
		{LoadOptions{Tables: Tables{Target: "from_account", Source: "from_account"}}, []string{"two things at once"}},
		{LoadOptions{Tables: Tables{Ignore: []string{"colour"}}}, []string{`no table has the column "colour"`}},
		{LoadOptions{Tables: Tables{Merge: "median"}}, []string{`"median"`, "sum, mean, max or first"}},
		{LoadOptions{Split: "parts"}, []string{`has no column "parts"`, `did you mean "part"?`}},
	} {
		_, err := Load(dir, c.o)
		wantError(t, err, c.want...)
	}
	_, err := Load("testdata/heterophilous.npz", LoadOptions{Tables: Tables{Label: "x"}})
	wantError(t, err, "these data have no tables")

	// What Neo4j exports.
	ds = mustLoad(t, writeFiles(t, map[string]string{"nodes.csv": ":ID,x\na,1\nb,0\n", "edges.csv": ":START_ID,:END_ID,:TYPE\na,b,KNOWS\n"}), LoadOptions{})
	if len(ds.Graph.Edges) != 1 || ds.Roles.ID != ":ID" {
		t.Errorf("%+v", ds)
	}
	wantNotes(t, ds, `":ID" is taken as the id, by its name`, `left out: ":TYPE" (text)`)
}

// Masks of the parts are the split, not features.
func TestMasks(t *testing.T) {
	nodes := "id,label,x,train_mask,val_mask,test_mask\na,p,1,True,False,False\nb,q,2,False,True,False\nc,p,4,False,,1.0\nd,q,4,0,no,false\n"
	files := map[string]string{nodesFile: nodes, edgesFile: "source,target\na,b\n"}
	dir := writeFiles(t, files)
	for _, split := range []string{"", "train_mask", "column:Val_mask"} {
		ds := mustLoad(t, dir, LoadOptions{Split: split})
		if ds.SplitSpec != nil || fmt.Sprint(ds.Splits) != "[{[0] [1] [2] []}]" || len(ds.Columns.Columns) != 1 {
			t.Errorf("%s: %v, %+v", split, ds.Splits, ds.Columns)
		}
		wantNotes(t, ds, `nodes.csv: the columns "train_mask", "val_mask", "test_mask" are taken as the split; --ignore leaves them out`)
	}
	ds := mustLoad(t, dir, LoadOptions{Tables: Tables{Ignore: []string{"train_mask", "val_mask", "test_mask"}}})
	if ds.Splits != nil || len(ds.Columns.Columns) != 1 {
		t.Errorf("ignored: %v, %+v", ds.Splits, ds.Columns)
	}
	if ds := mustLoad(t, dir, LoadOptions{Columns: &schema.Schema{Version: schema.Version, Columns: []schema.Column{{Name: "train_mask", Kind: schema.Boolean}}}}); ds.Splits != nil {
		t.Errorf("a feature of the model: %v", ds.Splits)
	}
	text, err := DescribeTables(dir, LoadOptions{})
	if err == nil {
		files[SchemaFile] = text
		ds = mustLoad(t, writeFiles(t, files), LoadOptions{})
	}
	if err != nil || len(ds.Splits) != 1 {
		t.Errorf("described: %v, %v\n%s", ds.Splits, err, text)
	}
	files = map[string]string{nodesFile: nodes + "e,p,1,yes,no,yes\nf,q,1,maybe,no,yes\n", edgesFile: files[edgesFile]}
	_, err = Load(writeFiles(t, files), LoadOptions{})
	wantError(t, err, "nodes.csv:6:14", "in both the train and the test part", "nodes.csv:7", `"maybe": the mask of a part of the split is not a boolean`)
}

// Columns that say by their names which part of a split a node is in are no features where another split is taken.
func TestUnusedSplitColumns(t *testing.T) {
	nodes := "id,label,x,split,train_mask,val_mask,test_mask,fold\na,p,1,train,1,0,0,val\nb,q,2,val,0,1,0,train\nc,p,4,test,0,0,1,test\nd,q,4,,0,0,0,test\n"
	files := map[string]string{nodesFile: nodes, edgesFile: "source,target\na,b\n"}
	dir := writeFiles(t, files)
	for _, c := range []struct {
		o              LoadOptions
		features, note string
	}{
		{LoadOptions{}, "x fold", `"train_mask", "val_mask", "test_mask"; a kind under [nodes.columns] in schema.toml`},
		{LoadOptions{Split: "fold"}, "x", `"split", "train_mask", "val_mask", "test_mask"; a kind`},
		{LoadOptions{Split: "train_mask"}, "x fold", `none: "split"; a kind`},
		{LoadOptions{Tables: Tables{Ignore: []string{"split", "train_mask"}}}, "x fold", `"val_mask", "test_mask"; a kind`},
	} {
		ds := mustLoad(t, dir, c.o)
		if got := columnNames(ds); got != c.features {
			t.Errorf("%+v: the features are %s, want %s", c.o, got, c.features)
		}
		wantNotes(t, ds, c.note)
	}
	for schemaFile, want := range map[string]string{
		"[nodes.columns]\ntrain_mask = \"boolean\"\n": "x train_mask fold",
		"[nodes]\nsplit = \"\"\n":                     "x split train_mask val_mask test_mask fold",
	} {
		files[SchemaFile] = schemaFile
		if got := columnNames(mustLoad(t, writeFiles(t, files), LoadOptions{})); got != want {
			t.Errorf("%s: the features are %s, want %s", schemaFile, got, want)
		}
	}
	want := &schema.Schema{Version: schema.Version, Columns: []schema.Column{{Name: "split", Kind: schema.Number, Scale: 1}}}
	delete(files, SchemaFile)
	files[nodesFile] = strings.NewReplacer("train,", "1,", "val,", "2,", "test,", "3,").Replace(nodes)
	if got := columnNames(mustLoad(t, writeFiles(t, files), LoadOptions{Columns: want})); got != "split" {
		t.Errorf("a model's feature: the features are %s", got)
	}
}

func columnNames(ds *Dataset) string {
	var names []string
	for _, c := range ds.Columns.Columns {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

func TestMerge(t *testing.T) {
	nodes := "id,x\na,1\nb,0\nc,1\n"
	weighted := "source,target,weight\na,b,1\nb,a,4\na,b,4\nb,c,2\n"
	for _, c := range []struct {
		edges, merge, want string
		directed           bool
	}{
		{weighted, "", "[1 2]", false},
		{weighted, MergeFirst, "[1 2]", false},
		{weighted, MergeSum, "[9 2]", false},
		{weighted, MergeMean, "[3 2]", false},
		{weighted, MergeMax, "[4 2]", false},
		{weighted, MergeSum, "[5 4 2]", true},
		{"source,target\na,b\nb,c\na,b\n", MergeSum, "[2 1]", false},
		{"source,target\na,b\nb,c\na,b\n", MergeMean, "[]", false},
	} {
		dir := writeFiles(t, map[string]string{nodesFile: nodes, edgesFile: c.edges})
		ds := mustLoad(t, dir, LoadOptions{Directed: c.directed, Tables: Tables{Merge: c.merge}})
		if got := fmt.Sprint(ds.Graph.Weights); got != c.want {
			t.Errorf("%s of %q: weights %s, want %s", c.merge, c.edges, got, c.want)
		}
		var text strings.Builder
		if err := ds.Info().WriteText(&text); err != nil || strings.Contains(text.String(), "the first was kept") != (ds.Repairs.WeightConflicts > 0 && (c.merge == "" || c.merge == MergeFirst)) {
			t.Errorf("%s of %q: %v, said\n%s", c.merge, c.edges, err, text.String())
		}
	}
}

func packGzip(tb testing.TB, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func packZstd(tb testing.TB, text string, o ...zstd.EOption) string {
	w, err := zstd.NewWriter(nil, o...)
	if err != nil {
		tb.Fatal(err)
	}
	return string(w.EncodeAll([]byte(text), nil))
}

func TestPackedTables(t *testing.T) {
	nodes, edges := "id,x\na,1\nb,0\n", "source,target\na,b\n"
	ds := mustLoad(t, writeFiles(t, map[string]string{"nodes.csv.gz": packGzip(t, nodes), "edges.csv.zst": packZstd(t, edges)}), LoadOptions{})
	if ds.X.NNZ() != 1 || len(ds.Graph.Edges) != 1 {
		t.Errorf("%+v", ds)
	}
	// The zstd command packs a file into one segment, of which all is the window.
	whole := packZstd(t, strings.Repeat(edges[len("source,target\n"):], 5000), zstd.WithSingleSegment(true))
	if ds := mustLoad(t, writeFiles(t, map[string]string{"nodes.csv.gz": packGzip(t, nodes), "edges.csv.zst": whole}), LoadOptions{}); ds.Repairs.DuplicateEdges != 4999 {
		t.Errorf("%+v", ds.Repairs)
	}
	for name, want := range map[string][]string{
		"edges.csv.gz":  {"edges.csv.gz: not a gzip file", "unpacked without being renamed"},
		"edges.csv.zst": {"edges.csv.zst: not a Zstandard file"},
	} {
		_, err := Load(writeFiles(t, map[string]string{nodesFile: nodes, name: edges}), LoadOptions{})
		wantError(t, err, want...)
	}
	half := packGzip(t, strings.Repeat(edges, 100))
	_, err := Load(writeFiles(t, map[string]string{nodesFile: nodes, "edges.csv.gz": half[:len(half)-9]}), LoadOptions{})
	wantError(t, err, "cannot be unpacked", "truncated")
	_, err = Load(writeFiles(t, map[string]string{nodesFile: nodes, edgesFile: edges, "edges.csv.gz": packGzip(t, edges)}), LoadOptions{})
	wantError(t, err, "has both edges.csv and edges.csv.gz")

	// A bomb is refused before it is unpacked.
	for name, bomb := range map[string]string{"edges.csv.gz": packGzip(t, strings.Repeat("\n", 64<<20)), "edges.csv.zst": packZstd(t, strings.Repeat("\n", 64<<20))} {
		dir := writeFiles(t, map[string]string{nodesFile: nodes, name: bomb})
		var err error
		if took := allocated(func() { _, err = Load(dir, LoadOptions{MaxBytes: 16 << 20}) }); took > 64<<20 {
			t.Errorf("%s takes %d bytes", name, took)
		}
		wantError(t, err, "--memory")
	}
}

// All that is wrong with a file is said at once, with its place, up to a limit.
func TestAllFaultsAtOnce(t *testing.T) {
	dir := writeFiles(t, map[string]string{edgesFile: "source,target\na,b\n",
		nodesFile: "id,split,x,y\na,train,1,2\n,val,1,2\nb,vat,abc,2\na,test,1,2\nc,test,1\nd,,3,2021-01-01\ne,,4,5\nf,,4,5\n"})
	_, err := Load(dir, LoadOptions{})
	var faults *Faults
	if !errors.As(err, &faults) || faults.Total != 6 {
		t.Fatalf("%v", err)
	}
	for i, want := range []string{":3:1: the id is empty", `:4:3: "vat"`, `:4:7: "abc"`, `:5:1: "a": the same id as in line 2`, ":6: the row has 3 fields", `:7:6: "2021-01-01"`} {
		if got := faults.List[i].Error(); !strings.HasPrefix(got, filepath.Join(dir, nodesFile)+want) {
			t.Errorf("fault %d: %s, want %s", i, got, want)
		}
	}
	var fe *FileError
	if !errors.As(err, &fe) {
		t.Error("no *FileError among the faults")
	}
	wantError(t, err, "nodes.csv: 6 faults")

	dir = writeFiles(t, map[string]string{nodesFile: "id,x\na,1\nb,0\n", edgesFile: "source,target\n" + strings.Repeat("a,z\n", 1000)})
	_, err = Load(dir, LoadOptions{})
	wantError(t, err, "edges.csv: 1000 faults, of which 980 are not shown")
}

func TestSchemaFile(t *testing.T) {
	files := map[string]string{
		"people.csv":   "person,kind,age,code,note,when\np1,a,30,7,x,2020-01-01\np2,b,,8,y,2021-06-01\np3,a,50,7,z,2022-01-01\n",
		"calls.csv.gz": packGzip(t, "u,v,minutes,line\np1,p2,3,l1\np2,p1,4,l2\np2,p3,5,l1\n"),
		SchemaFile: "[nodes]\nfile = \"people.csv\"\nid = \"person\"\nlabel = \"kind\"\n[nodes.columns]\ncode = \"category\"\nnote = \"ignore\"\n" +
			"[edges]\nfile = \"calls.csv.gz\"\nweight = \"minutes\"\nmerge = \"sum\"\n[edges.columns]\nline = \"ignore\"\n",
	}
	ds := mustLoad(t, writeFiles(t, files), LoadOptions{})
	if ds.Classes != 2 || fmt.Sprint(ds.Graph.Weights) != "[7 5]" || len(ds.Columns.Columns) != 3 || ds.Columns.Columns[1].Kind != schema.Category {
		t.Errorf("%+v %+v", ds, ds.Columns)
	}
	if text := strings.Join(ds.Notes, "\n"); strings.Contains(text, "line") || strings.Contains(text, "left out") {
		t.Errorf("what %s says is said again: %s", SchemaFile, text)
	}
	// Options count more.
	if ds = mustLoad(t, writeFiles(t, files), LoadOptions{Tables: Tables{Label: "code", Merge: MergeMax}}); ds.Roles.Label != "code" || fmt.Sprint(ds.Graph.Weights) != "[4 5]" {
		t.Errorf("%+v", ds)
	}
	for text, want := range map[string][]string{
		"[nodes":                               {"schema.toml:1", "expected"},
		"[nodes]\ncolour = 1\n":                {`"nodes.colour" is not an option`},
		"[nodes]\nlabel_kind = \"x\"\n":        {"label_kind"},
		"[nodes.columns]\nage = \"integer\"\n": {`"age" is "integer"`, "number"},
		"[nodes.columns]\nsize = \"number\"\n": {`nodes.csv has no column "size"`},
		"[edges]\nfile = \"../x.csv\"\n":       {"not the name of a table in this folder"},
		"[edges]\nmerge = \"x\"\n":             {"sum, mean, max or first"},
		"[edges.columns]\nx = \"number\"\n":    {"can only be"},
	} {
		files := map[string]string{nodesFile: "id,age\np1,1\n", edgesFile: "source,target\n", SchemaFile: text}
		_, err := Load(writeFiles(t, files), LoadOptions{})
		wantError(t, err, append(want, SchemaFile)...)
	}
}

// What schema.toml empties or ignores is not found by its usual name, and --ignore leaves out
// what no option names.
func TestColumnsThatAreNot(t *testing.T) {
	files := map[string]string{
		nodesFile: "id,label,split,x\na,p,train,1\nb,q,val,0\nc,p,test,1\n",
		edgesFile: "source,target,weight\na,b,2\nb,c,3\n",
	}
	for _, c := range []struct {
		schema string
		o      Tables
		want   Roles
	}{
		{"", Tables{}, Roles{Label: "label", Split: "split", Weight: "weight"}},
		{"[nodes]\nlabel = \"\"\nsplit = \"\"\n[edges]\nweight = \"\"\n", Tables{}, Roles{}},
		{"[nodes.columns]\nlabel = \"ignore\"\nsplit = \"ignore\"\n[edges.columns]\nweight = \"ignore\"\n", Tables{}, Roles{}},
		{"[edges]\nweight = \"\"\n[nodes.columns]\nlabel = \"ignore\"\n", Tables{Label: "label", Weight: "weight"}, Roles{Label: "label", Split: "split", Weight: "weight"}},
		{"[edges]\nweight = \"weight\"\n[edges.columns]\nweight = \"ignore\"\n", Tables{}, Roles{Label: "label", Split: "split", Weight: "weight"}},
		{"[edges]\nweight = \"weight\"\n", Tables{Ignore: []string{"weight", "label"}}, Roles{Split: "split"}},
		{"", Tables{Ignore: []string{"weight", "label", "Source", "id"}, Label: "label", Weight: "weight"}, Roles{Label: "label", Split: "split", Weight: "weight"}},
	} {
		if files[SchemaFile] = c.schema; c.schema == "" {
			delete(files, SchemaFile)
		}
		c.want.ID, c.want.Source, c.want.Target = "id", "source", "target"
		ds := mustLoad(t, writeFiles(t, files), LoadOptions{Tables: c.o})
		if ds.Roles != c.want || (ds.Graph.Weights != nil) != (c.want.Weight != "") || (ds.Labels[0] >= 0) != (c.want.Label != "") || len(ds.Splits) > 0 != (c.want.Split != "") {
			t.Errorf("%q with %+v: %+v, want %+v", c.schema, c.o, ds.Roles, c.want)
		}
	}
	// A model's columns are found although schema.toml ignores them.
	delete(files, SchemaFile)
	files[edgesFile] = "source,target,amount\na,b,2\nb,c,3\n"
	model := mustLoad(t, writeFiles(t, files), LoadOptions{Tables: Tables{Weight: "amount"}}).Columns
	files[SchemaFile] = "[nodes.columns]\nx = \"ignore\"\n[edges.columns]\namount = \"ignore\"\n"
	if ds := mustLoad(t, writeFiles(t, files), LoadOptions{Columns: model}); ds.Roles.Weight != "amount" || ds.X.Cols != 1 {
		t.Errorf("%+v", ds.Roles)
	}
}

// What data init writes reads as what was found, and the tables as before.
func TestDescribeTables(t *testing.T) {
	dir := t.TempDir()
	if err := company.Write(dir, company.Options{Nodes: 1000, Edges: 4000}); err != nil {
		t.Fatal(err)
	}
	o := LoadOptions{Tables: Tables{Label: "churned"}}
	text, err := DescribeTables(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id = "customer_id"`, `label = "churned"`, `source = "payer"`, `target = "payee"`, `"age" = "number"`, `"premium" = "boolean"`, `"region" = "category"`,
		`"joined" = "time"`, `"last_login" = "time"`, `"note" = "ignore"  # it is free text`, `"row" = "ignore"`, `"currency" = "ignore"`, `"channel" = "ignore"`, "% missing"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	before := mustLoad(t, dir, o)
	if err := os.WriteFile(filepath.Join(dir, SchemaFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	after := mustLoad(t, dir, LoadOptions{})
	if before.Roles != after.Roles || !slices.Equal(before.X.ToDense().Dense, after.X.ToDense().Dense) || !slices.Equal(before.Labels, after.Labels) {
		t.Error("the tables read otherwise with what data init writes")
	}
	if n := len(after.Columns.LeftOut); n != 0 {
		t.Errorf("%d columns that %s ignores are warned of", n, SchemaFile)
	}

	// What options say is in the file, and nothing that was only not found.
	dir = writeFiles(t, map[string]string{nodesFile: "id,label,x,y,z\na,p,1,0,4\nb,q,0,1,7\n", edgesFile: "source,target,weight,n\na,b,2,3\nb,a,5,4\n"})
	for _, o := range []LoadOptions{
		{}, {Tables: Tables{Ignore: []string{"z"}}}, {Tables: Tables{Ignore: []string{"label", "x", "y", "z", "n"}, Merge: MergeMax}},
		{Tables: Tables{Ignore: []string{"weight"}, Merge: MergeSum}}, {Tables: Tables{Weight: "n", Ignore: []string{"n"}}},
	} {
		os.Remove(filepath.Join(dir, SchemaFile))
		want := mustLoad(t, dir, o)
		if text, err = DescribeTables(dir, o); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, SchemaFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got := mustLoad(t, dir, LoadOptions{})
		if got.Roles != want.Roles || !same(got.X, want.X) || !slices.Equal(got.Graph.Weights, want.Graph.Weights) {
			t.Errorf("with %+v: %+v %v, want %+v %v, from\n%s", o.Tables, got.Roles, got.Graph.Weights, want.Roles, want.Graph.Weights, text)
		}
	}
	text, err = DescribeTables(dir, LoadOptions{})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, SchemaFile), []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	model := *before.Columns
	model.Merge, model.Columns = MergeSum, mustLoad(t, dir, LoadOptions{}).Columns.Columns
	if ds := mustLoad(t, dir, LoadOptions{Columns: &model}); fmt.Sprint(ds.Graph.Weights) != "[7]" {
		t.Errorf("weights %v: the file has another merge than the model, which no option gave", ds.Graph.Weights)
	}

	dir = writeFiles(t, map[string]string{"a.csv": "id,x\nk,1\nl,0\n", "b.csv": "from,to\nk,l\n"})
	if text, err = DescribeTables(dir, LoadOptions{}); err != nil || !strings.Contains(text, `file = "b.csv"`) || !strings.Contains(text, "1 columns of features are prepared") {
		t.Errorf("%s %v", text, err)
	}
	for _, files := range []map[string]string{{"x.txt": ""}, {"a.csv": "id,x\nk,1\n"}, {"a.csv": "from,to\n", "b.csv": "from,to\n"}} {
		if _, err := DescribeTables(writeFiles(t, files), LoadOptions{}); err == nil {
			t.Errorf("%v are described", files)
		}
	}
	dir = writeFiles(t, map[string]string{nodesFile: "id,x\nk,1\nl,0\n", edgesFile: "source,target" + strings.Repeat(",c", 900) + "\n"})
	if _, err = DescribeTables(dir, LoadOptions{MaxBytes: 400 << 10}); err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, edgesFile)+": reading it takes") {
		t.Errorf("the error is %v", err)
	}
}

// A label that is no class is refused, and what it looks like is said.
func TestLabelsThatAreNoClasses(t *testing.T) {
	load := func(labels []string, schema string) error {
		var b strings.Builder
		b.WriteString("id,label,x\n")
		for i, s := range labels {
			fmt.Fprintf(&b, "n%d,%q,%d\n", i, s, i%2)
		}
		files := map[string]string{nodesFile: b.String(), edgesFile: "source,target\nn0,n1\n"}
		if schema != "" {
			files[SchemaFile] = schema
		}
		_, err := Load(writeFiles(t, files), LoadOptions{})
		return err
	}
	list := func(n int, f func(i int) string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = f(i)
		}
		return out
	}
	prices := list(100, func(i int) string { return fmt.Sprintf("%d.%02d", 10+i, i) })
	ages := list(400, func(i int) string { return fmt.Sprint(18 + i%70) })
	genres := list(100, func(i int) string { return [...]string{"a", "a|b", "b|c", "c"}[i%4] })
	for what, labels := range map[string][]string{"prices": prices, "ages": ages, "row numbers": list(300, func(i int) string { return fmt.Sprint(i) })} {
		err := load(labels, "")
		if err == nil {
			t.Errorf("%s pass as classes", what)
			continue
		}
		wantError(t, err, "regression", "not supported", "different values", "--label", "label_kind")
	}
	for _, labels := range [][]string{genres, list(100, func(i int) string { return [...]string{"['x', 'y']", "['y']", "['x']"}[i%3] })} {
		wantError(t, load(labels, ""), "several values in one cell", "several labels", "not supported")
	}
	names := list(400, func(i int) string { return fmt.Sprintf("name %d", i) })
	dates := list(400, func(i int) string { return time.Unix(int64(i%220)*86400, 0).UTC().Format(time.DateOnly) })
	for _, labels := range [][]string{names, dates} {
		wantError(t, load(labels, ""), "different values in 400 rows", "tells rows apart", "--label", "label_kind")
	}
	for what, labels := range map[string][]string{
		"texts of three rows each": list(600, func(i int) string { return fmt.Sprintf("c%d", i/3) }),
		"few rows":                 names[:50],
		"whole numbers from 0":     list(3000, func(i int) string { return fmt.Sprint(i % 150) }),
		"few halves":               list(100, func(i int) string { return fmt.Sprintf("%d.5", i%4) }),
		"names with a comma":       list(100, func(i int) string { return [...]string{"arts, crafts", "food, drink", "toys"}[i%3] }),
		"a few that have several":  append(list(200, func(int) string { return "cat" }), "a|b", "b|c"),
		"none that is known":       list(50, func(int) string { return "?" }),
	} {
		if err := load(labels, ""); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, labels := range [][]string{ages, genres, names} {
		if err := load(labels, "[nodes]\nlabel_kind = \"class\"\n"); err != nil {
			t.Error(err)
		}
	}
}

// Times of other forms are named as such.
func TestTimesThatAreNotRead(t *testing.T) {
	for _, form := range []string{"Jan 02, 2006 15:04", "Mon, 02 Jan 2006 15:04:05", "02-Jan-2006 1504", "2006.01.02 15:04", "20060102T15", "15:04:05.000", "2006-01-02T15:04:05Z[UTC]"} {
		var p profile
		for i := range 40 {
			p.add(time.Unix(1e9+int64(i)*100_003, 0).UTC().Format(form), nil)
		}
		if kind, reason := p.kind("x"); kind != schema.Ignore || !strings.Contains(reason, "times of a form that is not read") {
			t.Errorf("%s: %s, %s", form, kind, reason)
		}
	}
}

// Numbers with signs that are not read are named as such, and lists of numbers are not.
func TestNumbersThatAreNotRead(t *testing.T) {
	const commas, own = "its numbers have commas", "nearly every row has a value of its own"
	for form, want := range map[string]string{
		"%d,820.66": commas, "%d,820,001": commas, "%d.3%%": `written with "%"`, "€ %d,820.5": `written with "€"`, "$%d": `written with "$"`, "(%d)": `written with "()"`, "−%d": `written with "−"`, "%d'000": `written with "'"`,
		"%d,2,3": own, "%d%%x": own,
	} {
		var p profile
		for i := range 40 {
			p.add(fmt.Sprintf(form, i+1), nil)
		}
		if kind, reason := p.kind("x"); kind != schema.Ignore || !strings.Contains(reason, want) {
			t.Errorf("%s: %s, %s", form, kind, reason)
		}
	}
}

// A category that is left out because its values are rare is said to be that.
func TestCategoryOfManyValues(t *testing.T) {
	var nodes strings.Builder
	nodes.WriteString("id,label,brand,name\n")
	for i := range 300 {
		fmt.Fprintf(&nodes, "n%d,%s,brand%d,name%d\n", i, [...]string{"a", "b"}[i%2], i%155, i)
	}
	files := map[string]string{nodesFile: nodes.String(), edgesFile: "source,target\nn0,n1\n"}
	wantNotes(t, mustLoad(t, writeFiles(t, files), LoadOptions{}), `"brand" is left out: it has 155 different values in 300 rows, too few rows of each to learn from; "brand" = "category" in schema.toml takes it`, `"name" is left out: nearly every row has a value of its own`)
	files[SchemaFile] = "[nodes.columns]\n\"brand\" = \"category\"\n"
	if ds := mustLoad(t, writeFiles(t, files), LoadOptions{}); len(ds.Columns.Columns) != 1 || len(ds.Columns.Columns[0].Categories) == 0 {
		t.Errorf("with schema.toml: %+v", ds.Columns)
	}
}

// Forms that could be read in two ways are left out, with what to write.
func TestFormsThatAreNotRead(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,label,x,price,day,month\n")
	for i := range 40 {
		price := fmt.Sprintf("\"%d,%d\"", i%7, i%5)
		if i%4 == 0 {
			price = fmt.Sprint(i)
		}
		fmt.Fprintf(&b, "n%d,a,%d,%s,%d.%d.2021,%d/%d/21 10:00\n", i, i*i%11, price, 1+i%3, 1+i%12, 1+i%12, 1+i%28)
	}
	ds := mustLoad(t, writeFiles(t, map[string]string{nodesFile: b.String(), edgesFile: "source,target\nn0,n1\n"}), LoadOptions{})
	wantNotes(t, ds, `"price" is left out: its numbers have commas, which are not read: write them as 1234.5`,
		`the columns "day", "month" are left out, each for this: its dates are of a form that is not read: write them as 2021-06-14`)
	want := "every node with a label is of class a, so that there is nothing to tell apart"
	if got := ds.Warnings(Split{Train: []int32{0}, Val: []int32{1}}); len(got) == 0 || got[0] != want {
		t.Errorf("one class: %q", got)
	}
}

// Columns of every kind become what the documentation says.
func TestPreparedColumns(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,label,age,member,city,since,note,one,row,big\n")
	for i := range 40 {
		age := fmt.Sprint(20 + i)
		if i == 3 {
			age = "NA"
		}
		city := [...]string{"Oslo", "Rome", "Oslo", ""}[i%4]
		if i == 5 {
			city = "Ur"
		}
		fmt.Fprintf(&b, "n%d,%s,%s,%v,%s,2020-01-%02dT06:00:00Z,some words %d,7,%d,%d\n", i, [...]string{"a", "b"}[i%2], age, i%3 == 0, city, 1+i%28, i, 1+i, i*i*i*i)
	}
	dir := writeFiles(t, map[string]string{nodesFile: b.String(), edgesFile: "source,target\nn0,n1\n"})
	ds := mustLoad(t, dir, LoadOptions{})
	s := ds.Columns
	want := []string{"age", "age missing", "member", "city=", "city=Oslo", "city=Rome", "city=Ur", "city other", "since", "since week sin", "since week cos", "since day sin", "since day cos", "big"}
	if !slices.Equal(s.Features(), want) || s.Width() != ds.X.Cols || s.Nodes != 40 {
		t.Fatalf("features %q of %d nodes, %d columns; want %q", s.Features(), s.Nodes, ds.X.Cols, want)
	}
	wantNotes(t, ds, `the column "note" is left out: it is free text`, `"one" is left out: every row has the same value`, `"row" is left out: it numbers the rows`, "statistics of all 40 nodes")
	x := ds.X.ToDense().Dense
	row := func(i int) []float32 { return x[i*len(want) : (i+1)*len(want)] }
	// 39 ages, 20 to 59 without 23: the median is 40, the quartiles 30.5 and 49.5.
	if c := s.Columns[0]; c.Center != 40 || c.Scale != 19 || !c.Missing {
		t.Errorf("age is %+v", c)
	}
	if r := row(3); r[0] != 0 || r[1] != 1 || r[2] != 1 || r[3] != 1 || r[4] != 0 {
		t.Errorf("a row with gaps is %v", r)
	}
	if r := row(1); r[0] != float32(-1) || r[5] != 1 || r[7] != 0 || !(math.Abs(float64(r[11]-1)) <= 1e-7) || !(math.Abs(float64(r[12])) <= 1e-7) { // 6 o'clock
		t.Errorf("row 1 is %v", r)
	}
	if r := row(39); r[13] <= 1 || r[13] > schema.Clip {
		t.Errorf("row 39 is %v", r)
	}

	// The same columns in another order, with others among them, are the same features.
	shuffled := "when,big,city,note,since,member,age,extra,id\n"
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n")[1:] {
		f := strings.Split(line, ",")
		shuffled += strings.Join([]string{"x", f[9], f[4], f[6], f[5], f[3], f[2], "q", f[0]}, ",") + "\n"
	}
	other := writeFiles(t, map[string]string{nodesFile: shuffled, edgesFile: "source,target\nn0,n1\n"})
	again := mustLoad(t, other, LoadOptions{Columns: s})
	if !slices.Equal(again.X.ToDense().Dense, x) {
		t.Error("the order of columns matters")
	}
	wantNotes(t, again, `the model does not know the column "when", "extra"; left out`)
	for change, want := range map[[2]string][]string{
		{",21,", ",1e200,"}:      {`"1e200": the column "age" of node "n1" is not a finite number within ±1e+150, which`},
		{",21,", ",-Inf,"}:       {`"-Inf": the column "age" of node "n1" is not a finite number within ±1e+150`},
		{",age,", ",years,"}:     {`lacks the column "age" that the model reads`},
		{",true,", ",maybe,"}:    {`"maybe": the column "member" of node "n0" is not a boolean`, "which the model was trained on"},
		{"2020-01-05T", "5.1.T"}: {`"5.1.T06:00:00Z"`, `the column "since"`, "date or time"},
		{"Oslo", "7"}:            nil,
	} {
		text := strings.ReplaceAll(shuffled, change[0], change[1])
		_, err := Load(writeFiles(t, map[string]string{nodesFile: text, edgesFile: "source,target\nn0,n1\n"}), LoadOptions{Columns: s})
		if want == nil && err == nil {
			continue
		}
		wantError(t, err, want...)
	}
	text := strings.NewReplacer("Oslo", "7", "Rome", "8", "Ur", "9").Replace(shuffled)
	_, err := Load(writeFiles(t, map[string]string{nodesFile: text, edgesFile: "source,target\nn0,n1\n"}), LoadOptions{Columns: s})
	wantError(t, err, `the column "city" holds numbers; the model was trained on a category`)

	// Gaps where the training had none, and unseen categories.
	text = strings.NewReplacer("Rome", "Paris").Replace(shuffled)
	ds = mustLoad(t, writeFiles(t, map[string]string{nodesFile: strings.ReplaceAll(text, "x,0,", "x,,"), edgesFile: "source,target\nn0,n1\n"}), LoadOptions{Columns: s})
	if r := ds.X.ToDense().Dense; r[13] != 0 || r[len(want)+7] != 1 || r[len(want)+5] != 0 {
		t.Errorf("%v", r[:2*len(want)])
	}
}

// Nodes whose columns all have the median are not said to have no features.
func TestPreparedZeros(t *testing.T) {
	dir := writeFiles(t, map[string]string{nodesFile: "id,x\na,10\nb,20\nc,30\n", edgesFile: "a,b\n"})
	ds := mustLoad(t, dir, LoadOptions{})
	if w := ds.EmptyWarning(); ds.X.EmptyRows() != 1 || ds.Repairs.EmptyRows != 0 || w != "" {
		t.Errorf("%d, %q", ds.Repairs.EmptyRows, w)
	}
}

// Features that are prepared already stay as they are, to the bit.
func TestPreparedFeaturesAreLeftAlone(t *testing.T) {
	counts := "id"
	for j := range 20 {
		counts += fmt.Sprintf(",w%d", j)
	}
	for i := range 30 {
		counts += fmt.Sprintf("\n%d", i)
		for j := range 20 {
			if (i+j)%7 == 0 {
				counts += fmt.Sprintf(",%d", 1+j%3)
			} else {
				counts += ",0"
			}
		}
	}
	mixed := "id,age,e0,e1,e2,e3,e4,e5,e6,e7\n"
	for i := range 10 {
		mixed += fmt.Sprintf("%d,%d,0.1,0.2,-3,1.5,2.5,0.25,-0.5,%d\n", i, 20+7*i%50, i)
	}
	for what, c := range map[string]struct {
		nodes string
		left  int // columns
	}{
		"0 and 1":         {"id,x,y,z\na,1,0,1\nb,0,0,1\n", 3},
		"rows of unit L2": {"id,x,y\na,0.6,0.8\nb,-1,0\nc,0,0\n", 2},
		"rows of unit L1": {"id,x,y\na,0.25,0.75\nb,0.5,-0.5\n", 2},
		"counts":          {counts, 20},
		"an embedding":    {mixed, 8},
	} {
		dir := writeFiles(t, map[string]string{nodesFile: c.nodes, edgesFile: "source,target\n"})
		ds, plain := mustLoad(t, dir, LoadOptions{}), mustLoad(t, dir, LoadOptions{NoPrepare: true})
		left := 0
		for _, x := range ds.Columns.Columns {
			if x.Kind == schema.Value {
				left++
			}
		}
		if left != c.left || plain.Columns.Prepared() {
			t.Errorf("%s: %d columns are left alone, want %d", what, left, c.left)
		}
		if left == len(ds.Columns.Columns) && !slices.Equal(ds.X.ToDense().Dense, plain.X.ToDense().Dense) {
			t.Errorf("%s: features changed", what)
		}
		if what == "an embedding" && (ds.X.ToDense().Dense[1+3] != 1.5 || ds.X.ToDense().Dense[9*9+8] != 9) {
			t.Errorf("%s: %v", what, ds.X.ToDense().Dense)
		}
	}
}

func FuzzSchemaFile(f *testing.F) {
	f.Add("[nodes]\nfile = \"nodes.csv.gz\"\nid = \"x\"\n[nodes.columns]\nx = \"time\"\n")
	f.Add("[edges]\nmerge = \"sum\"\n[edges.columns]\n\"a b\" = \"ignore\"\n")
	f.Add("[nodes]\nlabel_kind = 1\n")
	f.Add("nodes = 3")
	f.Fuzz(func(t *testing.T, text string) {
		s := &tableSchema{}
		if err := parseSchema(SchemaFile, []byte(text), s); err != nil {
			checkText(t, err)
			return
		}
		for _, name := range []string{s.Nodes.ID, s.Nodes.Label} {
			again := &tableSchema{}
			if err := parseSchema(SchemaFile, []byte("[nodes]\nid = "+tomltext.Quote(name)+"\n"), again); err != nil || again.Nodes.ID != name {
				t.Errorf("%q is written as %s, which reads as %q, %v", name, tomltext.Quote(name), again.Nodes.ID, err)
			}
		}
	})
}

// Opposite edges of a directed graph are two edges, in memory and in a store.
func TestDirectedConflicts(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"nodes.csv": "id,label,f0\na,x,1\nb,y,2\n",
		"edges.csv": "source,target,weight\na,b,1\nb,a,1\na,b,2\nb,a,2\n",
	})
	o := LoadOptions{Directed: true}
	want := Repairs{DuplicateEdges: 2, WeightConflicts: 2}
	if ds := mustLoad(t, dir, o); ds.Repairs != want {
		t.Errorf("in memory %+v, want %+v", ds.Repairs, want)
	}
	out := filepath.Join(t.TempDir(), "store")
	if err := Convert(dir, out, ConvertOptions{Load: o}); err != nil {
		t.Fatal(err)
	}
	if ds := mustLoad(t, out, o); ds.Repairs != want {
		t.Errorf("in a store %+v, want %+v", ds.Repairs, want)
	}
}

// An edge whose ends are spelled otherwise than the nodes, as pandas writes numbers of a column with gaps, in another case
// or with zeros before them, is told so.
func TestEndsSpelledOtherwise(t *testing.T) {
	for _, c := range [][3]string{{"1", "1.0", `astype("Int64")`}, {"1.0", "1", `astype("Int64")`}, {"1", "001", "alike in both tables"}, {"001", "1", "alike in both tables"}, {"n1", "N1", "alike in both tables"}, {"N1", "n1", "alike in both tables"}} {
		_, err := Load(writeFiles(t, map[string]string{nodesFile: "id,label,x\n" + c[0] + ",a,2\n2,b,3\n", edgesFile: "source,target\n2,2\n" + c[1] + ",2\n"}), LoadOptions{})
		wantError(t, err, "the node is called "+c[0]+" there", c[2])
	}
}

// Numbers that begin with a zero may be codes: they stay numbers, and are noted.
func TestCodesAreNoted(t *testing.T) {
	var nodes strings.Builder
	nodes.WriteString("id,label,zip,share\n")
	for i := range 40 {
		fmt.Fprintf(&nodes, "n%d,%s,%05d,0.%d\n", i, [...]string{"a", "b"}[i%2], 501+i*i%7*3000, i*7%31)
	}
	ds := mustLoad(t, writeFiles(t, map[string]string{nodesFile: nodes.String(), edgesFile: "source,target\nn0,n1\n"}), LoadOptions{})
	wantNotes(t, ds, `the column "zip" is taken as numbers, of which`, `such as 00501: where they are codes, "zip" = "category" in schema.toml says so`)
	if got := ds.Columns.Columns; len(got) != 2 || got[0].Kind != schema.Number {
		t.Errorf("the columns are %+v", got)
	}
	if strings.Contains(strings.Join(ds.Notes, "\n"), `"share" is taken`) {
		t.Errorf("a share is noted: %q", ds.Notes)
	}
}

// Whole numbers of which float64 makes fewer are a category, or noted where nearly all of them differ.
func TestLongCodes(t *testing.T) {
	var nodes strings.Builder
	nodes.WriteString("id,branch,wei,far,x\n")
	for i := range 40 {
		fmt.Fprintf(&nodes, "n%d,16500000000000000%02d,1%018d,%d,%d\n", i, i%5*3, i*i*20, 1650000000000000000+int64(i%5)<<40, i*7%31)
	}
	ds := mustLoad(t, writeFiles(t, map[string]string{nodesFile: nodes.String(), edgesFile: "source,target\nn0,n1\n"}), LoadOptions{})
	if c := ds.Columns.Columns; len(c) != 4 || c[0].Kind != schema.Category || len(c[0].Categories) != 5 || c[1].Kind != schema.Number || c[2].Kind != schema.Number {
		t.Errorf("the columns are %+v", c)
	}
	if wantNotes(t, ds, `"wei" is taken as numbers, of which some beyond 2^53 become equal, such as 1000000000000000000 and 1000000000000000020: where they are codes, "wei" = "category"`); strings.Count(strings.Join(ds.Notes, " "), "is taken as numbers") != 1 {
		t.Errorf("the notes are %q", ds.Notes)
	}
}

// Columns most of whose cells are nothing like those of a model's training are told of.
func TestColumnsUnlikeTheTraining(t *testing.T) {
	table := func(row func(i int) string) string {
		text := "id,age,plan,member,since,rare\n"
		for i := range 60 {
			text += fmt.Sprintf("n%d,%s\n", i, row(i))
		}
		return writeFiles(t, map[string]string{nodesFile: text, edgesFile: "source,target\nn0,n1\n"})
	}
	usual := func(i int) string {
		return fmt.Sprintf("%d,%s,%t,2020-01-%02d,r%d", 20+i, []string{"Basic", "Gold"}[i%2], i%3 == 0, 1+i%28, i)
	}
	train := mustLoad(t, table(usual), LoadOptions{}).Columns
	// A column whose values were all too rare to count is as it was with other ones.
	train.Columns = append(train.Columns, schema.Column{Name: "rare", Kind: schema.Category})
	timed := *train // whose times had one of day
	timed.Columns = slices.Clone(train.Columns)
	timed.Columns[slices.IndexFunc(timed.Columns, func(c schema.Column) bool { return c.Name == "since" })].Cycles = []string{"week", "day"}
	larger := *train // in which some values were rare
	larger.Nodes = 5000
	wide := func(known int) func(i int) string {
		return func(i int) string {
			if i < known {
				return usual(i)
			}
			return strings.NewReplacer("Basic", fmt.Sprint("b", i), "Gold", fmt.Sprint("g", i)).Replace(usual(i))
		}
	}
	for name, c := range map[string]struct {
		row  func(i int) string
		want []string
	}{
		"alike":              {usual, nil},
		"timed, dates alone": {usual, []string{`most cells are dates without a time of day, which training had, in the column "since" (midnight in all rows)`}},
		"timed, one with a time": {func(i int) string {
			return strings.Replace(usual(i), "2020-01-09", "2020-01-09T10:00:00Z", 1)
		}, nil},
		"half of the cells": {func(i int) string {
			if i%2 == 0 {
				return fmt.Sprintf(",,,,r%d", i)
			}
			return usual(i)
		}, nil},
		"gaps": {func(i int) string { return fmt.Sprintf(",,,,r%d", i) },
			[]string{`most cells are gaps, of which training had none, in the column "age" (60 of 60 rows), "plan" (60 of 60 rows), "member" (60 of 60 rows), "since" (60 of 60 rows)`}},
		"case": {func(i int) string { return strings.ToLower(usual(i)) },
			[]string{`most cells are values that training hardly had, which count as one, in the column "plan" (such as "basic", where it had such as "Gold")`}},
		"other values once each, and a few known": {wide(20),
			[]string{`training hardly had, which count as one, in the column "plan" (such as "b20", where it had such as "Gold")`}},
		"larger, other values once each":       {wide(0), []string{`training hardly had, which count as one, in the column "plan" (such as "b0", where it had such as "Gold")`}},
		"larger, known values among rare ones": {wide(20), nil},
		"unit": {func(i int) string {
			return fmt.Sprintf("%d", 20+i) + "00" + strings.Replace(usual(i), "2020", "2029", 1)[2:]
		},
			[]string{`most cells are values more than 5 scales from the median of the training, which count as the farthest that the model knows, in the column "age" (in training number, median 49.5, scale 29.5), "since" (in training time, median 2020-01-`}},
	} {
		from := train
		if strings.HasPrefix(name, "larger") {
			from = &larger
		} else if strings.HasPrefix(name, "timed") {
			from = &timed
		}
		ds := mustLoad(t, table(c.row), LoadOptions{Columns: from})
		found := slices.DeleteFunc(slices.Clone(ds.Notes), func(s string) bool { return !strings.Contains(s, "most cells are") })
		if len(found) != len(c.want) {
			t.Errorf("%s: the notes are %q", name, found)
		}
		wantNotes(t, ds, c.want...)
	}
}

// Classes that are one but for their spelling are told of.
func TestSpellingsOfClasses(t *testing.T) {
	for labels, want := range map[string]string{
		"0 1 False True": `"0", "False"; "1", "True"; write`,
		"Fraud fraud ok": `"Fraud", "fraud"; write`,
		"Y yes N":        `"Y", "yes"; write`,
		"1 1.0 0":        `"1", "1.0"; write`,
		"0 0.0 1 2":      `"0", "0.0"; write`,
		"1 01 2 x":       `"01", "1"; write the label in one way, unless those that begin with a zero are codes`,
		"1650000000000000001 1650000000000000002": "",
		"0 1 2 -1 10 0x":   "",
		"0 1":              "",
		"F N T Y C":        "", // letters
		"Fraud fraudulent": "",
	} {
		text := "id,label,x\n"
		for i, s := range strings.Fields(labels) {
			text += fmt.Sprintf("n%d,%s,%d\n", i, s, i)
		}
		ds := mustLoad(t, writeFiles(t, map[string]string{nodesFile: text, edgesFile: "source,target\nn0,n1\n"}), LoadOptions{})
		notes := strings.Join(ds.Notes, "\n")
		if has := strings.Contains(notes, "another spelling"); has != (want != "") || !strings.Contains(notes, want) {
			t.Errorf("%s: the notes are %q", labels, notes)
		}
	}
}

// Where edges refer to several columns alike, none is taken for the id by its place.
func TestColumnsThatCouldBeTheID(t *testing.T) {
	nodes := "row_nr,customer_nr,copy,x\n1,3,3,a\n2,1,1,b\n3,2,2,a\n"
	load := func(nodes, edges string, o Tables) (*Dataset, error) {
		return Load(writeFiles(t, map[string]string{nodesFile: nodes, edgesFile: "payer,payee\n" + edges}), LoadOptions{Tables: o})
	}
	_, err := load(nodes, "1,2\n2,3\n", Tables{})
	wantError(t, err, `nodes.csv:1:1: "row_nr": the columns "row_nr", "customer_nr" all differ in every row`, "say which with --id, or leave the others out with --ignore")
	pandas := strings.NewReplacer("\n1,", "\n0,", "\n2,", "\n1,", "\n3,", "\n2,").Replace(nodes)
	late := strings.Repeat("1,2\n", 150) + "2,3\n"
	for _, c := range []struct {
		nodes, edges string
		o            Tables
		want         string
	}{
		{nodes, "1,2\n2,3\n", Tables{ID: "customer_nr"}, "customer_nr"},
		{nodes, "1,2\n2,3\n", Tables{Ignore: []string{"row_nr"}}, "customer_nr"},
		{pandas, late, Tables{}, "customer_nr"}, // the last edge decides
		{strings.ReplaceAll(nodes, "copy", "id"), "1,2\n2,3\n", Tables{}, "id"},
	} {
		if ds, err := load(c.nodes, c.edges, c.o); err != nil || ds.Roles.ID != c.want {
			t.Errorf("with %+v, want %s: %v", c.o, c.want, err)
		}
	}
}

// Booleans are such in any mixture of their spellings, and nothing else is.
func TestMixedBooleans(t *testing.T) {
	for values, want := range map[string]schema.Kind{
		"yes Y True 1 no N False 0": schema.Boolean,
		"1 0 1.0 0 1 T 1":           schema.Boolean, // mostly numbers
		"yes no":                    schema.Boolean,
		"yes no 2":                  schema.Category,
		"yes no 0.5":                schema.Category,
		"yes no maybe 1":            schema.Category,
		"Y N T F C":                 schema.Category,
		"0 1 2":                     schema.Number,
	} {
		p := profile{}
		for _, s := range strings.Fields(values) {
			p.add(s, nil)
		}
		if kind, _ := p.kind("x"); kind != want {
			t.Errorf("%s: %s, want %s", values, kind, want)
		}
	}
	ds := mustLoad(t, writeFiles(t, map[string]string{nodesFile: "id,active,x\na,yes,1\nb,0,3\nc,1,7\nd,1,8\n", edgesFile: "source,target\na,b\n"}), LoadOptions{})
	if x := ds.X.ToDense().Dense; ds.X.Cols != 2 || x[0] != 1 || x[2] != 0 || x[4] != 1 {
		t.Errorf("the features are %v", x)
	}
}

// Edges of the node in the first line of a table without a header say that it has none.
func TestNodesWithoutHeader(t *testing.T) {
	const looks = "first line of nodes.csv, which is taken for a header and looks like data: put a header such as id,label,split,f0,f1 above it"
	for edges, want := range map[string]bool{
		"source,target\nb,c\nc,b\nb,c\na,b\n":    true,
		"b,a\nb,c\nc,b\n":                        true, // no header either
		"source,target\nb,c\nc,b\nb,c\nd,b\n":    false,
		"source,target\nb,c\nc,b\nb,c\na,peer\n": false, // a header in the midst
	} {
		_, err := Load(writeFiles(t, map[string]string{nodesFile: "a,cat,1.5\nb,dog,2.5\nc,cat,3\n", edgesFile: edges}), LoadOptions{})
		if wantError(t, err, "nodes.csv has no node of this id"); err != nil && strings.Contains(err.Error(), looks) != want {
			t.Errorf("%q: %v", edges, err)
		}
	}
}

// Columns by name for a model whose features have none are taken in their order, and a seed that nothing is drawn by
// changes nothing, which is said of both.
func TestNotesOfOrderAndSeed(t *testing.T) {
	const order, seed = `are taken in their order: "b", "a"`, "the seed 7 changes nothing of"
	dir := writeFiles(t, map[string]string{nodesFile: "id,label,b,a\n1,u,2,5\n2,v,3,1\n3,u,4,4\n4,v,1,2\n", edgesFile: "source,target\n1,2\n3,4\n"})
	wantNotes(t, mustLoad(t, dir, LoadOptions{Trained: "0", NoPrepare: true, Seed: 7}), order, seed)
	for _, o := range []LoadOptions{
		{NoPrepare: true}, {Seed: 7, Split: "random:0.5,0.25,0.25"}, {Seed: 7, AddEdges: 0.5}, {Seed: 7, Synthetic: &graph.CSBM{Seed: 7}},
	} {
		if text := fmt.Sprint(mustLoad(t, dir, o).Notes); strings.Contains(text, order) || strings.Contains(text, seed) {
			t.Errorf("%+v: %s", o, text)
		}
	}
}

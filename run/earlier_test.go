package run

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/data/company"
	"github.com/gsrc-dev/gsrc/train"
)

// The data of a run are read as they were for it: with the columns that it says, and as
// they are where it says nothing of columns, as runs of earlier versions do.
func TestColumnsOfARun(t *testing.T) {
	dir := t.TempDir()
	if err := company.Write(dir, company.Options{Nodes: 200, Edges: 400}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "run")
	o := TrainOptions{Model: "mlp", Data: dir, Out: out, Set: []string{"data.label=churned", "data.split=random:0.5,0.25,0.25", "data.ignore=premium,region,product,joined,last_login,currency,note,age,income", "train.epochs=1"}}
	var notes []string
	o.Note = func(text string) { notes = append(notes, text) }
	if _, err := Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if len(notes) == 0 {
		t.Error("nothing is said of what was guessed")
	}
	r, err := Open(out)
	if err == nil {
		err = r.LoadData("")
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := train.ReadInfo(out)
	if err != nil || info.Data.Columns == nil || len(info.Data.Columns.Columns) != 2 || !info.Data.Columns.Prepared() {
		t.Fatalf("%+v %v", info.Data.Columns, err)
	}
	info.Data.Columns = nil
	earlier, err := trainingData(info, r.Trained.Config, "", "")
	if err != nil {
		t.Fatal(err)
	}
	ds, _ := earlier.data()
	plain, err := Prepare(TrainOptions{Model: "mlp", Data: dir, Set: append(o.Set, "data.prepare=false")})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ds.X.ToDense().Dense, plain.Data.X.ToDense().Dense) || slices.Equal(ds.X.ToDense().Dense, r.Data.X.ToDense().Dense) {
		t.Error("a run that says nothing of columns does not get them as they are")
	}
}

// A run that an earlier version of gsrc began goes on and ends as it would have ended there:
// its program, options and checkpoint read the same, and the same numbers are drawn.
// testdata/earlier was stopped in its first epochs; the version that began it gives an
// undisturbed run the hash below.
func TestEarlierRunResumes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "earlier"))); err != nil {
		t.Fatal(err)
	}
	r, err := Resume(context.Background(), dir, ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "9c43ac4fb1bf4f4f"; r.Result.Hash != want {
		t.Errorf("the run ends with the hash %s, that of the earlier version with %s", r.Result.Hash, want)
	}
	if _, err := Open(dir); err != nil {
		t.Error(err)
	}
}

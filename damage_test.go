package gsrc_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// How many random damages the tests below try, and which: the short form resumes few
// of the runs that it damages, since a resumption trains.
var (
	damages     = flag.Int("damages", 1000, "random damages of a run, and of an export")
	resumptions = flag.Int("resumptions", 150, "random damages of a run that is then resumed")
	damageSeed  = flag.Uint64("damage-seed", 1, "seed of the random damages")
)

// damaged damages one file of a folder, chosen like the damage at random, and says how.
// other is a folder with files of the same names, whose place they may take. mend puts
// the file back.
func damaged(t *testing.T, r *rand.Rand, dir, other string) (what string, mend func()) {
	t.Helper()
	what, _, mend = damagedOf(t, r, dir, other, func(string) bool { return true })
	return what, mend
}

// damagedOf damages one of the files of a folder that wanted picks, and returns its name
// too.
func damagedOf(t *testing.T, r *rand.Rand, dir, other string, wanted func(name string) bool) (what, name string, mend func()) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && wanted(path[len(dir)+1:]) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	path := files[r.IntN(len(files))]
	name = path[len(dir)+1:]
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad, gone := bytes.Clone(good), false
	at, end := 0, 0
	if n := len(good); n > 0 {
		at = r.IntN(n)
		end = min(n, at+1+r.IntN(1+min(n, 5000)))
	}
	switch r.IntN(12) {
	default: // half of all
		if what = "a turned bit"; len(bad) > 0 {
			bad[at] ^= 1 << r.IntN(8)
		}
	case 0:
		what = "zeros"
		clear(bad[at:end])
	case 1:
		what = "noise"
		for i := at; i < end; i++ {
			bad[i] = byte(r.Uint32())
		}
	case 2:
		what, bad = "an early end", bad[:at]
	case 3:
		what, bad = "bytes behind the end", append(bad, good[at:end]...)
	case 4:
		what, bad = "bytes left out", append(bad[:at], good[end:]...)
	case 5:
		what = "another's file"
		if theirs, err := os.ReadFile(filepath.Join(other, name)); err == nil {
			bad = theirs
		} else {
			what, gone = "no file", true
		}
	}
	if bytes.Equal(good, bad) && !gone {
		return damagedOf(t, r, dir, other, wanted)
	}
	if gone {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, bad, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s in %s at %d to %d of %d", what, name, at, end, len(good)), name, func() {
		if err := os.WriteFile(path, good, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sameModel reports whether two runs have learnt the same.
func sameModel(a, b *gsrc.Run) bool {
	x, y := a.Trained, b.Trained
	return reflect.DeepEqual(x.Params, y.Params) && reflect.DeepEqual(x.Refined, y.Refined) && reflect.DeepEqual(x.Struct, y.Struct) &&
		x.Model == y.Model && x.Config.Hash() == y.Config.Hash() && x.Module.String() == y.Module.String() && a.Result.ValAcc == b.Result.ValAcc && reflect.DeepEqual(a.Result.TestAcc, b.Result.TestAcc)
}

var structured = []string{"deepwalk.width=4", "deepwalk.length=10"}

// Whatever is damaged of a finished run, opening it (as build, refine and plot do) and
// reading its metrics fails, or gives what it gave.
func TestDamagedRunsAreRefusedOrTheSame(t *testing.T) {
	base := t.TempDir()
	dir, other := filepath.Join(base, "run"), filepath.Join(base, "other")
	quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Out: dir, Set: structured})
	quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Out: other, Set: structured, Seed: 3})
	want, err := gsrc.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := checkpoint.ReadMetrics(dir)
	if err != nil {
		t.Fatal(err)
	}
	untimed := func(records []checkpoint.Record) []checkpoint.Record {
		for i := range records {
			records[i].Time = checkpoint.RecordTime{}
		}
		return records
	}
	untimed(metrics)
	r := rand.New(rand.NewPCG(*damageSeed, 1))
	refused := 0
	for range *damages {
		what, mend := damaged(t, r, dir, other)
		run, err := gsrc.OpenRun(dir)
		var records []checkpoint.Record
		if err == nil {
			records, err = checkpoint.ReadMetrics(dir)
		}
		switch {
		case err != nil:
			refused++
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: the error %q names no file", what, err)
			}
		case !sameModel(run, want) || !reflect.DeepEqual(untimed(records), metrics):
			t.Errorf("%s: the run was read, and is another", what)
		}
		mend()
	}
	if refused < *damages/2 {
		t.Errorf("only %d of %d damages were refused", refused, *damages)
	}
	if _, err := gsrc.OpenRun(dir); err != nil {
		t.Errorf("the mended run: %v", err)
	}
}

// A run of an earlier version goes on working, says what cannot be checked, and gets its
// checksums by Seal.
func TestEarlierRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "earlier", "run"))); err != nil {
		t.Fatal(err)
	}
	before, err := gsrc.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := checkpoint.ReadMetrics(dir)
	if err != nil {
		t.Fatal(err)
	}
	if before.Unchecked() == "" {
		t.Error("a run without checksums is said to have been checked")
	}
	if added, err := train.Seal(dir); !added || err != nil {
		t.Fatalf("added %v, %v", added, err)
	}
	after, err := gsrc.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := checkpoint.ReadMetrics(dir)
	if err != nil || !reflect.DeepEqual(metrics, again) {
		t.Errorf("the metrics are others: %v", err)
	}
	if after.Unchecked() != "" || !sameModel(before, after) || !reflect.DeepEqual(before.Result, after.Result) {
		t.Error("with checksums the run is another")
	}
	if added, err := train.Seal(dir); added || err != nil {
		t.Errorf("a second time: added %v, %v", added, err)
	}
	r := rand.New(rand.NewPCG(*damageSeed, 3))
	for range 100 {
		what, mend := damaged(t, r, dir, filepath.Join("testdata", "earlier", "run"))
		run, err := gsrc.OpenRun(dir)
		if err == nil {
			_, err = checkpoint.ReadMetrics(dir)
		}
		if err == nil && !sameModel(run, before) {
			t.Errorf("%s: the run was read, and is another", what)
		}
		mend()
	}
	// Weights that were damaged before get no checksum.
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "earlier", "run")))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "weights.safetensors")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-5] ^= 1
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := train.Seal(dir); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("damaged weights: error %v", err)
	}
}

// Whatever is damaged of a run that was stopped, it is not resumed, or ends as if
// nothing had been.
func TestDamagedRunsResumeToTheSameOrNotAtAll(t *testing.T) {
	base := t.TempDir()
	stopped := func(name string, seed int) string {
		dir := filepath.Join(base, name)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_, err := gsrc.Train(ctx, gsrc.TrainOptions{Model: "ecl-gsr", Data: data.Synthetic, Set: append(structured, quick...), Seed: seed, Out: dir, Observer: stopAfter{3, cancel}})
		if !errors.Is(err, train.ErrInterrupted) {
			t.Fatal(err)
		}
		return dir
	}
	dir, other := stopped("run", 0), stopped("other", 3)
	want := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Set: structured})
	copied := filepath.Join(base, "copy")
	r := rand.New(rand.NewPCG(*damageSeed, 2))
	refused := 0
	for range *resumptions {
		if err := errors.Join(os.RemoveAll(copied), os.CopyFS(copied, os.DirFS(dir))); err != nil {
			t.Fatal(err)
		}
		what, _ := damaged(t, r, copied, other)
		run, err := gsrc.Resume(context.Background(), copied, gsrc.ResumeOptions{Threads: 1})
		switch {
		case err != nil:
			refused++
			if !strings.Contains(err.Error(), copied) {
				t.Errorf("%s: the error %q names no file", what, err)
			}
		case !sameModel(run, want):
			t.Errorf("%s: the run was resumed, and ended otherwise", what)
		default:
			if _, err := gsrc.OpenRun(copied); err != nil {
				t.Errorf("%s: the run was resumed, and cannot be opened: %v", what, err)
			}
		}
	}
	if refused < *resumptions/2 {
		t.Errorf("only %d of %d damages were refused", refused, *resumptions)
	}
}

// Whatever is damaged of an export, the commands that use it fail, or give what they
// gave.
func TestDamagedExportsAreRefusedOrTheSame(t *testing.T) {
	lib := orttest.Need(t)
	ctx := context.Background()
	base := t.TempDir()
	dist, other := filepath.Join(base, "dist"), filepath.Join(base, "other")
	var trained data.LoadOptions
	for dir, seed := range map[string]int{dist: 2, other: 3} {
		run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Seed: seed, Set: []string{"model.edges.judge=embedding"}})
		if _, err := run.Build(ctx, dir, gsrc.BuildOptions{Unverified: true, Lowering: onnx.Scatter, Pipeline: export.PipelineOff}); err != nil {
			t.Fatal(err)
		}
		if dir == dist {
			c := run.Trained.Config.Synthetic.CSBM(2)
			trained = data.LoadOptions{Seed: 2, Synthetic: &c}
		}
	}
	fresh := trained
	fresh.Seed = 9
	on := func(load data.LoadOptions) gsrc.PredictOptions {
		return gsrc.PredictOptions{Library: &lib, Provider: ort.CPU, Threads: 1, Load: load}
	}
	predict := func() (any, error) { return gsrc.Predict(ctx, dist, data.Synthetic, "", on(trained)) }
	refine := func() (any, error) {
		return gsrc.Refine(ctx, dist, gsrc.RefineOptions{Data: data.Synthetic, Predict: on(fresh)})
	}
	neighbors := func() (any, error) {
		return infer.Neighbors(ctx, dist, data.Synthetic, []string{"1", "7"}, on(trained))
	}
	uses := []func() (any, error){predict, refine, neighbors}
	var want []any
	for _, use := range uses {
		answer, err := use()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, answer)
	}
	opened := map[string][]int{ // by which uses
		"manifest.json": {0, 1, 2}, "inference.json": {0, 1, 2}, "refined_edges.csv": {0, 2}, "classifier.onnx": {0}, "encoder.onnx": {1}, "scorer.onnx": {1},
	}
	r := rand.New(rand.NewPCG(*damageSeed, 4))
	try := func(wanted func(string) bool) (refused int) {
		what, name, mend := damagedOf(t, r, dist, other, wanted)
		defer mend()
		which, ok := opened[name]
		if !ok {
			which = []int{0, 1, 2}
		}
		for _, i := range which {
			answer, err := uses[i]()
			switch {
			case err != nil:
				refused = 1
				if !strings.Contains(err.Error(), dist) {
					t.Errorf("%s: the error %q names no file", what, err)
				}
			case !reflect.DeepEqual(answer, want[i]):
				t.Errorf("%s: the export was used, and gave something else", what)
			}
		}
		return refused
	}
	refused := 0
	for range *damages {
		refused += try(func(name string) bool { return opened[name] != nil })
	}
	if refused != *damages {
		t.Errorf("%d of %d damages of files that are opened were refused", refused, *damages)
	}
	for range 15 {
		try(func(name string) bool { return opened[name] == nil })
	}
}

// An export of an earlier version goes on working, says what cannot be checked, and gets
// its checksums by Verify.
func TestEarlierExports(t *testing.T) {
	lib := orttest.Need(t)
	ctx := context.Background()
	earlier := filepath.Join("testdata", "earlier", "export")
	dist := filepath.Join(t.TempDir(), "dist")
	if err := os.CopyFS(dist, os.DirFS(earlier)); err != nil {
		t.Fatal(err)
	}
	run, err := gsrc.OpenRun(filepath.Join("testdata", "earlier", "run"))
	if err != nil {
		t.Fatal(err)
	}
	c := run.Trained.Config.Synthetic.CSBM(0)
	var said []string
	o := gsrc.PredictOptions{Library: &lib, Provider: ort.CPU, Load: data.LoadOptions{Synthetic: &c}, Log: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	before, err := gsrc.Predict(ctx, dist, data.Synthetic, "", o)
	if err != nil {
		t.Fatal(err)
	}
	directed := o
	directed.Load.Directed = true // the export does not tell whether its training was so
	if _, err := gsrc.Predict(ctx, dist, data.Synthetic, "", directed); err != nil && strings.Contains(err.Error(), "--directed") {
		t.Error(err)
	}
	warning := func() bool { return strings.Contains(strings.Join(said, "\n"), "of an earlier version") }
	if !warning() {
		t.Errorf("nothing is said of the manifest without a checksum: %q", said)
	}
	change := func(name, old, new string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(earlier, name))
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Replace(text, []byte(old), []byte(new), 1)
		if bytes.Equal(changed, text) {
			t.Fatalf("%s does not hold %q", name, old)
		}
		if err := os.WriteFile(filepath.Join(dist, name), changed, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Even without a checksum most of it is found.
	for _, x := range [][4]string{
		{"manifest.json", "\"0\",\n    \"1\"", "\"1\",\n    \"0\"", "list of classes"},
		{"manifest.json", "\"num_features\": 6", "\"num_features\": 7", "columns"},
		{"refined_edges.csv", ",new", ",old", "its SHA-256 is"},
		{"classifier.onnx", "classifier/conv1", "classifier/conv2", "its SHA-256 is"},
	} {
		change(x[0], x[1], x[2])
		if _, err := gsrc.Predict(ctx, dist, data.Synthetic, "", o); err == nil || !strings.Contains(err.Error(), x[3]) {
			t.Errorf("%s with %q: error %v, want %q", x[0], x[2], err, x[3])
		}
		if err := os.RemoveAll(dist); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dist, os.DirFS(earlier)); err != nil {
			t.Fatal(err)
		}
	}
	verify := func(seal bool) error {
		_, _, err := gsrc.Verify(ctx, dist, gsrc.VerifyOptions{Library: &lib, Provider: ort.CPU, Seal: seal})
		return err
	}
	if err := errors.Join(verify(true), verify(false), verify(true)); err != nil {
		t.Fatal(err)
	}
	said = nil
	after, err := gsrc.Predict(ctx, dist, data.Synthetic, "", o)
	if err != nil {
		t.Fatal(err)
	}
	if warning() || !reflect.DeepEqual(before, after) {
		t.Errorf("with checksums it is said that %q", said)
	}
}

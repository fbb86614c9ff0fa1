package run

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/datatest"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/train"
)

// The page's program, which extends a model in ten lines, trains to other weights than the
// model's own, the model's own energy by its text to the same ones; its run is resumed and
// exported without the file. On Cora where GSRC_DATA has it.
func TestExtendedModel(t *testing.T) {
	lib := orttest.Need(t)
	page, err := os.ReadFile("../docs/add-a-model.md")
	if err != nil {
		t.Fatal(err)
	}
	changed := regexp.MustCompile("(?s)```gsr\n(extends .*?)```").FindStringSubmatch(string(page))[1]
	if n := len(strings.Split(strings.TrimSpace(changed), "\n")) - 1; n > 10 { // beside the empty one
		t.Errorf("the program of the page has %d lines", n)
	}
	dir, source := t.TempDir(), "synthetic"
	if path, ok := datatest.Find("planetoid/cora"); ok {
		source = path
	}
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	o := TrainOptions{Model: "ecl-gsr", Data: source, Set: []string{"train.pretrain_steps=3", "train.epochs=3", "train.joint_every=2", "train.refresh_every=2", "train.anchors=64", "model.encoder.hidden=16", "candidates.k=3", "model.ecl.tau=0.7"}}
	trained := func(model, out string) *Run {
		o := o
		o.Model, o.Out = model, out
		r, err := Train(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	zoo := trained("ecl-gsr", "")
	energy := zoo.Trained.Module.Func("energy").String()
	if own := trained(write("own.gsr", "extends ecl_gsr\n"+energy), ""); own.Result.Hash != zoo.Result.Hash {
		t.Errorf("with its own energy: %s, the model %s", own.Result.Hash, zoo.Result.Hash)
	}
	file, out := write("mine.gsr", changed), filepath.Join(dir, "run")
	mine := trained(file, out)
	if mine.Result.Hash == zoo.Result.Hash {
		t.Error("another energy gives the same weights")
	}

	write("mine.gsr", "extends nothing")
	again, err := Resume(t.Context(), out, ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if again.Result.Hash != mine.Result.Hash {
		t.Errorf("resumed: %s, before %s", again.Result.Hash, mine.Result.Hash)
	}
	opened, err := Open(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Build(t.Context(), filepath.Join(dir, "dist"), BuildOptions{Library: &lib}); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(out, "module.gsr"), []byte(zoo.Trained.Module.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := train.Load(out); err == nil {
		t.Error("the model's program is taken in the place of the one that was trained")
	}
}

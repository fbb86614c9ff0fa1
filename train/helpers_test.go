package train

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/datatest"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// synthetic generates a small graph whose damage is known.
func synthetic(t testing.TB, seed uint64, sets ...string) *data.Dataset {
	t.Helper()
	cfg, err := config.Load("gcn", "synthetic", "", slices.Concat(small, sets))
	if err != nil {
		t.Fatal(err)
	}
	o := cfg.Synthetic.CSBM(seed)
	ds, err := data.Load(data.Synthetic, data.LoadOptions{Seed: seed, Synthetic: &o, Split: "random:0.2,0.3,0.5"})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// small are options of a run that takes a fraction of a second.
var small = []string{
	"synthetic.nodes=150", "synthetic.classes=3", "synthetic.features=40", "synthetic.signal=1.5", "synthetic.density=0.2",
	"model.hidden=16", "model.dropout=0.3", "model.input_dropout=0.1", "model.norm=none", "model.encoder.hidden=12", "model.encoder.projection=8", "model.ecl.sgld_steps=2",
	"train.epochs=24", "train.pretrain_steps=16", "train.joint_every=5", "train.refresh_every=7", "train.anchors=40",
	"train.log_every=4", "train.checkpoint_every=6",
	"deepwalk.walks=2", "deepwalk.length=10", "deepwalk.window=3",
	"model.edges.old_lo=0.1", "model.edges.new_hi=0.9", "model.edges.threshold=0.5",
	"model.edges.judge=embedding", // by evidence, the default, a run takes some times as long
}

// weigh gives the edges of a data set weights.
func weigh(ds *data.Dataset) *data.Dataset {
	for i := range ds.Graph.Edges {
		ds.Graph.Weights = append(ds.Graph.Weights, 0.25+float32(i%7))
	}
	return ds
}

func configure(t testing.TB, model string, sets ...string) *config.Config {
	t.Helper()
	cfg, err := config.Load(model, "synthetic", "", append(append([]string{}, small...), sets...))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// started returns a trainer that has not begun.
func started(t testing.TB, job Job, cfg *config.Config, opts Options) *trainer {
	t.Helper()
	tr, err := newTrainer(context.Background(), job, cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// forecastOf returns what a trainer will hold, and what of that was there before it.
func forecastOf(t testing.TB, tr *trainer) (f *Forecast, before int) {
	t.Helper()
	f, err := tr.job.Task.Forecast(nil, tr.prog.Module, tr.cfg, tr.split, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Parts {
		if p.Name == "data set" {
			before = p.Bytes
		}
	}
	return f, before
}

func run(t testing.TB, model string, ds *data.Dataset, opts Options, sets ...string) *Result {
	t.Helper()
	res, err := Train(context.Background(), Job{Model: model, Task: Nodes(ds)}, configure(t, model, sets...), opts)
	if err != nil {
		t.Fatalf("%s: %v", model, err)
	}
	return res
}

// dataset loads real data, or skips the test where it is not there.
func dataset(t testing.TB, path string) *data.Dataset {
	t.Helper()
	ds, err := data.Load(datatest.Path(t, path), data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// contents reads the files of a run directory that must be equal in equal runs,
// metrics without their times. What is left beside them is an error.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		s := string(text)
		switch e.Name() {
		case checkpoint.MetricsFile:
			var lines []string
			for line := range strings.Lines(s) {
				before, _, ok := strings.Cut(line, `,"time":`)
				if !ok || !strings.HasSuffix(line, "}\n") {
					t.Errorf("line of metrics without its time, or not whole: %q", line)
				}
				lines = append(lines, before)
			}
			s = strings.Join(lines, "\n")
		case checkpoint.InfoFile:
			var lines []string
			for line := range strings.Lines(s) {
				if !strings.Contains(line, "wall_s") && !strings.Contains(line, "peak_rss") && !strings.Contains(line, `"checksum": "crc32c:`) {
					lines = append(lines, line)
				}
			}
			s = strings.Join(lines, "")
		}
		out[e.Name()] = s
	}
	return out
}

// sameRuns compares what two runs left.
func sameRuns(t testing.TB, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s differs (%d bytes, want %d)", name, len(got[name]), len(want[name]))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s was left behind", name)
		}
	}
}

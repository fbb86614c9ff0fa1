package train

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

var updateBits = flag.Bool("update-bits", false, "rewrite testdata/bits.txt")

// bitsRuns are short runs of what training has, by the name of their hash.
var bitsRuns = []struct {
	name   string
	graphs bool
	model  string
	sets   []string
}{
	{"gcn", false, "gcn", nil},
	{"gat", false, "gat", []string{"train.select=auc"}},
	{"gin", false, "gin", []string{"train.select=loss"}},
	{"acm", false, "acm", []string{"train.select=macro_f1"}},
	{"ecl-gsr", false, "ecl-gsr", []string{"model.edges.judge=embedding"}},
	{"ecl-gsr/evidence", false, "ecl-gsr", []string{"model.edges.judge=evidence"}},
	{"ecl-gsr/wide", false, "ecl-gsr", []string{"model.edges.judge=embedding", "train.anchors=0", "model.encoder.hidden=80", "model.encoder.projection=70", "model.hidden=72"}},
	{"lds", false, "lds", []string{"train.joint_every=1", "train.pretrain_steps=0", "candidates.k=6", "model.lds.restart=5", "model.lds.steps=3"}},
	{"graphs/gcn", true, "gcn", []string{"model.readout=mean"}},
	{"graphs/gat", true, "gat", []string{"model.readout=max"}},
	{"graphs/gin", true, "gin", nil},
	{"graphs/ecl-gsr", true, "ecl-gsr", nil},
}

// Short runs end in the same weights and the same graph with every instruction set, on
// every processor in those whose hashes stand in testdata/bits.txt. "make bits-arm64" and
// "make bits-avx512" run it on emulated ones.
func TestSameBits(t *testing.T) {
	const file = "testdata/bits.txt"
	text, err := os.ReadFile(file)
	if err != nil && !*updateBits {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 {
			want[f[0]] = f[1]
		}
	}
	before := kernels.ISA()
	defer func() { _ = kernels.SetISA(before) }()
	var lines strings.Builder
	for _, c := range bitsRuns {
		t.Run(c.name, func(t *testing.T) {
			hashes := map[string]string{}
			for _, isa := range kernels.ISAs() {
				if err := kernels.SetISA(isa); err != nil {
					t.Fatal(err)
				}
				sets := append([]string{"train.epochs=9", "train.pretrain_steps=6", "train.threads=2"}, c.sets...)
				var res *Result
				if c.graphs {
					res = trainGraphs(t, c.model, Options{}, sets...)
				} else {
					res = run(t, c.model, synthetic(t, 3), Options{}, sets...)
				}
				hashes[isa] = fmt.Sprintf("%s/%d", res.Hash, res.BestEpoch)
			}
			first := hashes[kernels.ISAs()[0]]
			for isa, h := range hashes {
				if h != first {
					t.Fatalf("weights, graph and kept epoch differ between instruction sets (%s): %v", isa, hashes)
				}
			}
			fmt.Fprintf(&lines, "%s %s\n", c.name, first)
			if !*updateBits && want[c.name] != first {
				t.Errorf("the hash of weights and graph and the kept epoch are %s, in %s %q: if what a run computes was to change, run go test -run TestSameBits -update-bits", first, file, want[c.name])
			}
		})
	}
	if *updateBits && !t.Failed() {
		if err := os.WriteFile(file, []byte("# Hashes of short runs, and their kept epochs; see TestSameBits.\n"+lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

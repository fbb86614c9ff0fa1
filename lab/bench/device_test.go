package bench

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/cuda"
)

// gpu opens the mock driver's GPU.
func gpu(t *testing.T) *cuda.Device {
	t.Helper()
	cudatest.MockDriver(t)
	d, err := cuda.Open(cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if now, _ := d.Held(); now != 0 {
			t.Errorf("%d bytes are held", now)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Steps on a GPU have the parts of those on the CPU, each once, with its work, and
// are held against what the GPU can do.
func TestDeviceSteps(t *testing.T) {
	d := gpu(t)
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	l, err := MeasureDevice(d, 1<<16, 32)
	if err != nil {
		t.Fatal(err)
	}
	if l.MatMul <= 0 || len(l.Bandwidth) != 1 || l.Bandwidth[0].GBs <= 0 || l.Bandwidth[0].MiB != 0.125 {
		t.Errorf("limits %+v", l)
	}
	few := tiny // the emulator takes its time
	few.Nodes, few.Edges = 20, 30
	small, err := few.Generate()
	if err != nil {
		t.Fatal(err)
	}
	report := &Report{Schema: 1, Limits: l, Device: &Device{Name: d.Name(), Capability: "9.0", Products: d.Products(), Date: "2026-01-02"}}
	for _, s := range []stepCase{
		{data: "cora", model: "ecl-gsr", fn: "pretrain", anchors: 4, width: 8},
		{data: "cora", model: "ecl-gsr", fn: "fit", recipe: true},
		{data: "cora", model: "gcn", fn: "train"},
	} {
		ds := ds
		if s.fn == "pretrain" {
			ds = small
		}
		want, err := s.run(&env{Options: Options{Rounds: 5, Threads: 1}, ds: ds})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.run(&env{Options: Options{Rounds: 1, Threads: 1, Device: d}, ds: ds})
		if err != nil {
			t.Fatalf("%s: %v", s.name(), err)
		}
		got.Name = s.name()
		if got.MS <= 0 || got.Rounds != 1 || got.PlannedMiB <= 0 {
			t.Errorf("%s: %+v", s.name(), got)
		}
		counts := map[string]int{}
		for _, p := range want.Parts {
			counts[p.Op] = p.Count
		}
		if s.fn == "pretrain" { // of each layer, found by the device
			counts["sample_block"] = 2
		}
		delete(counts, "count") // of sizes alone: computed when these change, not in a step
		delete(counts, "fill")
		for _, p := range got.Parts {
			if p.MS <= 0 || p.Cost.Bytes <= 0 || !(math.Abs(p.OfStep-p.MS/got.MS) <= 1e-9) {
				t.Errorf("%s: %+v", s.name(), p)
			}
			if counts[p.Op] != p.Count {
				t.Errorf("%s: %d of %s, on the CPU %d", s.name(), p.Count, p.Op, counts[p.Op])
			}
			delete(counts, p.Op)
		}
		if len(counts) > 0 {
			t.Errorf("%s: parts are missing: %v", s.name(), counts)
		}
		report.Results = append(report.Results, got)
	}
	report.judge()
	for _, x := range report.Results {
		for _, p := range x.Parts {
			if p.Share <= 0 || (p.GFlops > 0) == (p.GBs > 0) {
				t.Errorf("%s: %s has the rates %v and %v, share %v", x.Name, p.Op, p.GFlops, p.GBs, p.Share)
			}
		}
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(text, &again); err != nil || *again.Device != *report.Device || len(again.Results) != 3 {
		t.Errorf("as JSON and back: %v, %s", err, text)
	}
	var b bytes.Buffer
	if err := report.Write(&b, Text, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cuda:0 (gsrc mock driver), compute capability 9.0, matrix products by cuBLAS", "2026-01-02\n", "\nlimits: matrix product ", " GB/s over 0.125 MiB\n", "\nstep/gcn/cora", "\n  pairwise_reduce ×", "MFLOP"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &b)
		}
	}
	t.Logf("\n%s", &b)
}

// A session on a GPU makes the steps of one on the CPU.
func TestDeviceSessionFollowsTheCPU(t *testing.T) {
	d := gpu(t)
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	losses := func(j Job) (l []float64) {
		s, err := NewSession(j)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 5 {
			loss, err := s.Step("train")
			if err != nil {
				t.Fatal(err)
			}
			l = append(l, loss)
		}
		return l
	}
	j := Job{Data: ds, Model: "gcn", Options: models.Default(), Threads: 1}
	want := losses(j)
	j.Device = d
	for i, l := range losses(j) {
		if !(math.Abs(l-want[i]) <= 1e-5) {
			t.Errorf("step %d: loss %v, on the CPU %v", i, l, want[i])
		}
	}
	if want[4] == want[0] {
		t.Errorf("the loss stays %v", want)
	}
}

// A search on a GPU is held against its products; that on the CPU makes half of them.
func TestDeviceSearch(t *testing.T) {
	d := gpu(t)
	s := searchCase{n: 40, f: 8, k: 3}
	l := &Roofline{MatMul: 100, Bandwidth: []Bandwidth{{MiB: 1, GBs: 10}}}
	here, err := s.run(&env{Options: Options{Rounds: 1, Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	there, err := s.run(&env{Options: Options{Rounds: 1, Threads: 1, Device: d}})
	if err != nil {
		t.Fatal(err)
	}
	if here.MS <= 0 || there.MS <= 0 || there.PlannedMiB <= 0 || there.Cost.Flops != 2*40*40*8 || here.Cost.Flops != there.Cost.Flops/2 {
		t.Errorf("%+v here, %+v there", here, there)
	}
	there.Name = "search/few"
	r := &Report{Device: &Device{}, Limits: l, Results: []Result{there}}
	r.judge()
	var b bytes.Buffer
	if err := r.Write(&b, Text, true); err != nil {
		t.Fatal(err)
	}
	if x := r.Results[0]; x.GFlops <= 0 || x.Share <= 0 || !strings.Contains(b.String(), "0.0256 MFLOP") || strings.Contains(b.String(), "between kernels") {
		t.Errorf("%+v\n%s", x, &b)
	}
	names := map[string]bool{}
	for _, c := range DeviceCases() {
		names[c.Name] = true
	}
	if !names["search/coauthor_phy"] || !names["search/arxiv"] {
		t.Errorf("there is no search among %v", names)
	}
}

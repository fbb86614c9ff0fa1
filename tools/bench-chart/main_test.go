package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/lab/bench"
)

func TestDraw(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "baselines.json"), filepath.Join(dir, "baselines.svg")
	write := func(r bench.BaselineReport) {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(from, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(bench.BaselineReport{Python: "Python 9, PyTorch 9", Results: []bench.BaselineResult{{Work: "epochs/gcn/cora", MS: 8, Baselines: []bench.BaselineTimes{
		{Name: "PyTorch Geometric", MS: 40, Ratio: 5}, {Name: "faster", MS: 2, Ratio: 0.25}, {Name: "broken", Failed: "MemoryError"}}}}})
	if err := run(from, to); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the chart is no XML: %v", err)
		}
	}
	for _, want := range []string{"epochs gcn cora: PyTorch Geometric", "epochs gcn cora: faster", "Python 9, PyTorch 9"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
	if strings.Contains(string(svg), "broken") {
		t.Error("a comparison that failed is drawn")
	}

	write(bench.BaselineReport{})
	if err := run(from, to); err == nil {
		t.Error("a chart of nothing is drawn")
	}
	if kept, err := os.ReadFile(to); err != nil || string(kept) != string(svg) {
		t.Errorf("a chart that failed took the place of the old one (%v)", err)
	}
}

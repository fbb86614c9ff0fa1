//go:build unix

package infer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// BenchmarkPredictLargeModel predicts the classes of as many nodes as Cora has with a model
// whose weights are a file of GSRC_MODEL_BYTES (such as 2GiB; 128 MiB by default), and says
// how much of its processor time the checksum takes. Making the file takes three times its
// size in memory.
func BenchmarkPredictLargeModel(b *testing.B) {
	const width, features, classes = 2048, 1433, 7
	size, err := budget.Parse(cmp.Or(os.Getenv("GSRC_MODEL_BYTES"), "128MiB"))
	if err != nil {
		b.Fatal(err)
	}
	mlp, err := models.Lookup("mlp")
	if err != nil {
		b.Fatal(err)
	}
	o := models.Default()
	o.Features, o.Classes, o.Hidden, o.Layers, o.Norm = features, classes, width, 2+int(size/(4*width*width)), "l1"
	build := export.BuildOptions{Module: mlp.Build(o), Params: map[string][]float32{}, Unverified: true, ExternalData: 1 << 20, Model: "mlp", Classes: []string{"a", "b", "c", "d", "e", "f", "g"},
		Sample: parity.ExampleInputs{X: ort.Float32s(make([]float32, 2*features), 2, features), Edges: ort.Int64s(nil, 2, 0)}}
	at := uint32(1)
	for _, p := range build.Module.Params {
		dims, err := p.Type.Shape(nil)
		if err != nil {
			b.Fatal(err)
		}
		n := 1
		for _, d := range dims {
			n *= d
		}
		x := make([]float32, n)
		for i := range x {
			at = at*1664525 + 1013904223
			x[i] = (float32(at>>8)/(1<<24) - 0.5) / 16
		}
		build.Params[p.Name] = x
	}
	zeros := ort.Float32s(make([]float32, 2*classes), 2, classes)
	build.Forward = func(string, map[string]ort.Tensor) (map[string]ort.Tensor, error) { // of the export's test data
		return map[string]ort.Tensor{"logits": zeros, "probabilities": zeros}, nil
	}
	info, err := json.Marshal(Info{SchemaVersion: 1, Graph: "raw", RawWeight: 1})
	if err != nil {
		b.Fatal(err)
	}
	build.Files = map[string][]byte{InfoFile: info}
	dir := filepath.Join(b.TempDir(), "dist")
	if _, _, err := export.Build(b.Context(), dir, build); err != nil {
		b.Fatal(err)
	}
	build.Params = nil
	m, err := manifest.Read(dir)
	if err != nil {
		b.Fatal(err)
	}
	weights := m.Path(m.Models["classifier"].Data)
	nodes := graph.CSBM{Nodes: 2708, Features: features, Classes: classes, Degree: 4, Homophily: 0.8, Signal: 1, Density: 0.02}
	predict := PredictOptions{Provider: ort.CPU, Load: data.LoadOptions{Synthetic: &nodes}}
	var whole, checks float64
	for b.Loop() {
		start := processorTime()
		if _, err := Predict(b.Context(), dir, data.Synthetic, "", predict); err != nil {
			b.Fatal(err)
		}
		whole += (processorTime() - start).Seconds()
		start = processorTime()
		f, err := os.Open(weights)
		if err != nil {
			b.Fatal(err)
		}
		sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		if _, err := io.Copy(sum, f); err != nil {
			b.Fatal(err)
		}
		f.Close()
		if have := fmt.Sprintf("crc32c:%08x", sum.Sum32()); have != m.Files[filepath.Base(weights)].CRC32C {
			b.Fatalf("%s and %s", have, m.Files[filepath.Base(weights)].CRC32C)
		}
		checks += (processorTime() - start).Seconds()
	}
	b.ReportMetric(whole/float64(b.N), "cpu-s/op")
	b.ReportMetric(100*checks/whole, "%-checksum")
}

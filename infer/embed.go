package infer

import (
	"context"
	"fmt"
	"io"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// StructFile is the file of an export that has the structural attributes of the training
// graph, where its encoder reads some.
const StructFile = "x_struct.safetensors"

// Embedding is what an encoder makes of the nodes of a graph.
type Embedding struct {
	// IDs are what the data call the nodes, nil where these are called by number.
	IDs []string
	// Selected are the numbers of the nodes that were asked for, which alone have rows, in that
	// order; nil for all.
	Selected []int
	Width    int
	Values   []float32 // [N, Width], row-major
}

// NewEmbedding makes an embedding of values for all nodes of a data set, [N, width]: of those
// selected, or of all if that is nil.
func NewEmbedding(ds *data.Dataset, values []float32, width int, selected []int) *Embedding {
	if selected == nil {
		return &Embedding{IDs: ds.NodeIDs, Width: width, Values: values}
	}
	e := &Embedding{Selected: selected, Width: width}
	for _, v := range selected {
		e.Values = append(e.Values, values[v*width:(v+1)*width]...)
		if ds.NodeIDs != nil {
			e.IDs = append(e.IDs, ds.NodeIDs[v])
		}
	}
	return e
}

// Embed runs the encoder of an export on the data at path. An encoder with structural
// attributes serves its training graph alone.
func Embed(ctx context.Context, dist, path string, o PredictOptions) (*Embedding, error) {
	m, err := manifest.Read(dist)
	if err != nil {
		return nil, err
	}
	if _, ok := m.Models["encoder"]; !ok && m.Task != manifest.TaskGraphs {
		return nil, fmt.Errorf("the model %s in %s has no encoder that was trained; ecl-gsr trains one", m.Model, dist)
	}
	p, err := newPredictor(dist, path, o)
	if err != nil {
		return nil, err
	}
	defer p.close()
	p.noteFewEdges()
	selected, err := o.Wanted(p.ds)
	if err != nil {
		return nil, err
	}
	if err := p.fits(p.ds.Graph, "encoder"); err != nil {
		return nil, err
	}
	if err := p.models(ctx); err != nil {
		return nil, err
	}
	structural, err := p.structural()
	if err != nil {
		return nil, err
	}
	out, _, err := p.encode(p.x, structural, p.ds.Graph)
	if err != nil {
		return nil, err
	}
	h := out["embedding"]
	return NewEmbedding(p.ds, h.F32, int(h.Shape[1]), selected), nil
}

// structural are the structural attributes of the training graph, nil where the encoder
// reads none.
func (p *predictor) structural() (*ort.Tensor, error) {
	if p.manifest.Inductive {
		return nil, nil
	}
	if !p.onTrainingGraph() {
		return nil, fmt.Errorf("%s is not the graph that the model was trained on (%s), and its encoder reads structural attributes (x_struct), whose columns mean something for that graph only; train with --set deepwalk.width=0 for a model that serves other graphs", p.ds.Source, p.info.Data.Name)
	}
	text, err := p.manifest.ReadFile(StructFile)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", StructFile, err)
	}
	n := p.ds.Graph.N
	for _, t := range f.Tensors {
		if x, ok := t.Data.([]float32); ok && t.Name == "x_struct" && len(t.Shape) == 2 && t.Shape[0] == n {
			return new(ort.Float32s(x, int64(n), int64(t.Shape[1]))), nil
		}
	}
	return nil, fmt.Errorf("%s has no tensor x_struct with a row for each of the %d nodes", StructFile, n)
}

// EmbeddingFormat returns the format of a file of an embedding by its name's extension:
// csv, npz or parquet. The error is a *FormatError.
func EmbeddingFormat(path string) (string, error) {
	format, err := GraphFormat(path)
	if err == nil && format == "json" {
		return "", fmt.Errorf("an embedding is written as csv, npz or parquet, not as json")
	}
	return format, err
}

// WriteFile writes the embedding to a file, whose extension is its format; the file is
// there whole or not at all.
//
//   - csv: a header, and a row for each node: id, e0, e1, …
//   - parquet: the same columns; id is a string where the data name
//     their nodes, int64 elsewhere, the others are float32.
//   - npz: arrays for NumPy: id [n], embedding float32 [n, width].
func (e *Embedding) WriteFile(path string) error {
	format, err := EmbeddingFormat(path)
	if err != nil {
		return err
	}
	n := len(e.Values) / max(1, e.Width)
	id := numbers("id", func(i int) int64 { return int64(i) })
	switch {
	case e.IDs != nil:
		id = texts("id", func(i int) string { return e.IDs[i] })
	case e.Selected != nil:
		id = numbers("id", func(i int) int64 { return int64(e.Selected[i]) })
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		if format == "npz" {
			return writeNPZ(w, []array{id.arrayOf(n), {name: "embedding", write: func(w io.Writer) error {
				return writeMatrix(w, n, e.Width, func(i int) []float32 { return e.Values[i*e.Width : (i+1)*e.Width] }, nil)
			}}})
		}
		columns := []column{id}
		for c := range e.Width {
			columns = append(columns, floats(fmt.Sprintf("e%d", c), func(i int) float32 { return e.Values[i*e.Width+c] }))
		}
		if format == "csv" {
			return writeCSV(w, n, columns, nil)
		}
		return writeParquet(w, n, columns, "", nil)
	})
}

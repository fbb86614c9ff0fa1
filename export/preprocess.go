package export

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// PreprocessFile is the model that makes features of the columns of a table.
const PreprocessFile = "preprocess.onnx"

// preparationSlack bounds the difference between the file and the preparation here.
const preparationSlack = 1e-5

// trialRows is how many rows of values the files are tried on.
const trialRows = 256

// WithColumnsFile is the classifier behind the preparation of columns, in one file.
const WithColumnsFile = "classifier_with_columns.onnx"

// addPreprocess writes the preparation of columns as a model, where there is any, and with
// WithColumns the classifier behind it. Both run in onnxruntime on values of every sort.
func (o *BuildOptions) addPreprocess(ctx context.Context, models []built, files map[string][]byte) error {
	if o.Columns == nil || !o.Columns.Prepared() {
		if o.WithColumns {
			return fmt.Errorf("the training data have no columns that are prepared, so there are none to join to the classifier")
		}
		return nil
	}
	proto, output, err := onnx.Preprocess(o.Columns, onnx.ModelOptions{Name: o.Model + "_preprocess", Doc: "Makes the features x of the columns of a table.", Opset: o.Opset, ProducerVersion: o.Version,
		Metadata: map[string]string{"task": "preprocessing", "model": o.Model, "gsrc_version": o.Version, "dataset": o.Dataset, "columns": jsonText(o.Columns)}})
	if err != nil {
		return err
	}
	if files[PreprocessFile], err = onnx.Marshal(proto); err != nil {
		return err
	}
	var classifier *built
	if o.WithColumns {
		if classifier, err = o.join(models, proto, files); err != nil {
			return err
		}
	}
	if o.Unverified {
		return nil
	}
	lib, err := o.Library.OrEnsure(ctx, o.Log)
	if err != nil {
		return err
	}
	run := func(name string, in map[string]ort.Tensor) (map[string]ort.Tensor, error) {
		s, err := ort.OpenBytes(files[name], ort.Options{Provider: ort.CPU, Threads: 1, Library: lib})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer s.Close()
		out, err := s.RunContext(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return out, nil
	}
	inputs, want := trials(o.Columns)
	out, err := run(PreprocessFile, inputs)
	if err != nil {
		return err
	}
	names := o.Columns.Features()
	worst, err := near(PreprocessFile, out[output].F32, want, func(i int) string { return fmt.Sprintf("the feature %q", names[i%len(names)]) })
	if err != nil {
		return err
	}
	o.Log("columns: %s prepares %d of them, within %.1e of the training", PreprocessFile, len(o.Columns.Columns), worst)
	if classifier == nil {
		return nil
	}
	// A ring of the rows, for the classifier alone and behind the columns.
	var edges [2 * trialRows]int64
	ones := make([]float32, trialRows)
	for i := range int64(trialRows) {
		edges[i], edges[trialRows+i], ones[i] = i, (i+1)%trialRows, 1
	}
	alone := map[string]ort.Tensor{"x": ort.Float32s(want, trialRows, int64(len(names)))}
	for _, in := range classifier.Proto.Graph.Input {
		switch in.Name {
		case onnx.InputEdgeIndex:
			inputs[in.Name] = ort.Int64s(edges[:], 2, trialRows)
		case onnx.InputEdgeWeight:
			inputs[in.Name] = ort.Float32s(ones, trialRows)
		case onnx.InputKnownLabels:
			inputs[in.Name] = parity.KnownLabels(trialRows, int(in.Type.GetTensorType().Shape.Dim[1].GetDimValue()))
		default:
			continue
		}
		alone[in.Name] = inputs[in.Name]
	}
	a, err := run(classifier.Name+".onnx", alone)
	if err != nil {
		return err
	}
	b, err := run(WithColumnsFile, inputs)
	if err != nil {
		return err
	}
	for _, v := range classifier.Proto.Graph.Output {
		if _, err := near(WithColumnsFile, b[v.Name].F32, a[v.Name].F32, func(int) string { return v.Name }); err != nil {
			return err
		}
	}
	o.Log("columns: %s gives what %s and %s.onnx do", WithColumnsFile, PreprocessFile, classifier.Name)
	return nil
}

// join writes the classifier behind the preparation of columns.
func (o *BuildOptions) join(models []built, prepare *onnxpb.ModelProto, files map[string][]byte) (*built, error) {
	i := slices.IndexFunc(models, func(m built) bool { return m.Name == "classifier" })
	switch {
	case i < 0:
		return nil, fmt.Errorf("there is no classifier to join columns to")
	case o.SparseX:
		return nil, fmt.Errorf("columns become a dense matrix, and the features of this export are in CSR; leave one of the two out")
	case models[i].Lowering == onnx.PrecomputedBuckets || models[i].Lowering == onnx.Dense:
		return nil, fmt.Errorf("columns are joined to a classifier that takes edge_index alone; take the lowering degree-buckets or scatter")
	case models[i].Weights != nil:
		return nil, fmt.Errorf("columns are joined to a classifier in one file, and large weights are in %s; keep them in it with --external-data none", models[i].WeightsFile())
	}
	joined, err := onnx.JoinColumns(prepare, models[i].Proto)
	if err != nil {
		return nil, err
	}
	files[WithColumnsFile], err = onnx.Marshal(joined)
	return &models[i], err
}

// near returns the largest difference, or an error that names where it is too large.
func near(file string, have, want []float32, name func(i int) string) (worst float64, err error) {
	if len(have) != len(want) {
		return 0, fmt.Errorf("%s gives %d values, want %d", file, len(have), len(want))
	}
	for i, v := range want {
		d := math.Abs(float64(v) - float64(have[i]))
		if !(d <= preparationSlack*max(1, math.Abs(float64(v)))) {
			return 0, fmt.Errorf("%s gives %v for %s, and %v is right", file, have[i], name(i), v)
		}
		worst = max(worst, d)
	}
	return worst, nil
}

// trials returns values of every column, gaps and unseen ones among them, as inputs of
// preprocess.onnx, and the features that they become.
func trials(s *schema.Schema) (inputs map[string]ort.Tensor, features []float32) {
	const rows = trialRows
	width := s.Width()
	inputs, features = map[string]ort.Tensor{}, make([]float32, rows*width)
	at := 0
	for i := range s.Columns {
		c := &s.Columns[i]
		w := c.Width()
		if c.Kind == schema.Category {
			v := schema.Values{Texts: append([]string{"", "\u00e9, never seen"}, c.Categories...)}
			codes, cells := c.Codes(v), make([]string, rows)
			for r := range rows {
				k := (r + i) % len(v.Texts)
				cells[r] = v.Texts[k]
				features[r*width+at+int(codes[k])] = 1
			}
			inputs[c.Name] = ort.Strings(cells, rows)
			at += w
			continue
		}
		cells := make([]float64, rows)
		for r := range rows {
			switch k := float64(r - rows/2); {
			case r%7 == 3 && c.Kind != schema.Value:
				cells[r] = math.NaN()
			case c.Kind == schema.Boolean:
				cells[r] = float64(r % 2)
			case c.Kind == schema.Value:
				cells[r] = k / 3
			case r%7 == 5: // far out
				cells[r] = c.Center + 1e6*k*c.Scale
			default:
				cells[r] = c.Center + k/20*c.Scale
			}
			c.Put(features[r*width+at:r*width+at+w], cells[r])
		}
		inputs[c.Name] = ort.Float64s(cells, rows)
		at += w
	}
	return inputs, features
}

package export

import (
	"context"
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// PreprocessFile is the model that makes features of the columns of a table.
const PreprocessFile = "preprocess.onnx"

// preparationSlack bounds the difference between the file and the preparation here.
const preparationSlack = 1e-5

// addPreprocess writes the preparation of columns as a model, where there is any, and runs
// it in onnxruntime on values of every sort.
func (o *BuildOptions) addPreprocess(ctx context.Context, files map[string][]byte) error {
	if o.Columns == nil || !o.Columns.Prepared() {
		return nil
	}
	proto, output, err := onnx.Preprocess(o.Columns, onnx.ModelOptions{Name: o.Model + "_preprocess", Doc: "Makes the features x of the columns of a table.", Opset: o.Opset, ProducerVersion: o.Version,
		Metadata: map[string]string{"task": "preprocessing", "model": o.Model, "gsrc_version": o.Version, "dataset": o.Dataset, "columns": jsonText(o.Columns)}})
	if err != nil {
		return err
	}
	text, err := onnx.Marshal(proto)
	if err != nil {
		return err
	}
	files[PreprocessFile] = text
	if o.Unverified {
		return nil
	}
	lib := o.Library
	if lib == nil {
		found, err := ort.Ensure(ctx, o.Log)
		if err != nil {
			return err
		}
		lib = &found
	}
	s, err := ort.OpenBytes(text, ort.Options{Provider: ort.CPU, Threads: 1, Library: lib})
	if err != nil {
		return fmt.Errorf("%s: %w", PreprocessFile, err)
	}
	defer s.Close()
	inputs, want := trials(o.Columns)
	out, err := s.RunContext(ctx, inputs)
	if err != nil {
		return fmt.Errorf("%s: %w", PreprocessFile, err)
	}
	have, width := out[output].F32, o.Columns.Width()
	if len(have) != len(want) {
		return fmt.Errorf("%s gives %d values, want %d", PreprocessFile, len(have), len(want))
	}
	worst := 0.0
	for i, v := range want {
		d := math.Abs(float64(v) - float64(have[i]))
		if !(d <= preparationSlack*max(1, math.Abs(float64(v)))) {
			return fmt.Errorf("%s gives %v for the feature %q, the preparation here %v", PreprocessFile, have[i], o.Columns.Features()[i%width], v)
		}
		worst = max(worst, d)
	}
	o.Log("columns: %s prepares %d of them, within %.1e of the training", PreprocessFile, len(o.Columns.Columns), worst)
	return nil
}

// trials returns values of every column, gaps and unseen ones among them, as inputs of
// preprocess.onnx, and the features that they become.
func trials(s *schema.Schema) (inputs map[string]ort.Tensor, features []float32) {
	const rows = 256
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

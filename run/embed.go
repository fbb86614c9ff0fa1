package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/train"
)

// Embed returns the trained encoder's output for the training graph, [N, width]
// row-major, and its width; nil and 0 if the model has none that was trained.
// threads is as in [BuildOptions].
func (r *Run) Embed(threads int) (h []float32, width int, err error) {
	t := r.Trained
	if err := ort.CheckThreads(threads); err != nil {
		return nil, 0, err
	}
	if t.Embedding != nil {
		return t.Embedding, t.EmbeddingWidth, nil
	}
	if !hasEncoder(t) {
		return nil, 0, nil
	}
	if err := r.LoadData(""); err != nil {
		return nil, 0, err
	}
	f, err := r.forward(threads)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	inputs, err := r.task.encoderInputs(t)
	if err != nil {
		return nil, 0, err
	}
	out, err := f.Run("encode", inputs)
	if err != nil {
		return nil, 0, err
	}
	e, ok := out["embedding"]
	if !ok || len(e.Shape) != 2 {
		return nil, 0, errors.New("@encode has no result embedding with a row for each node")
	}
	return e.F32, int(e.Shape[1]), nil
}

// Classify returns the trained classifier's logits and probabilities for the training graph,
// [N, classes] row-major, and the nodes that the run is judged on: its test split, or the
// validation split where there is none. All are nil where the model has no classifier, or the
// data are many graphs. threads is as in [BuildOptions].
func (r *Run) Classify(threads int) (logits, probabilities []float32, judged []int32, err error) {
	t := r.Trained
	if err := cmp.Or(ort.CheckThreads(threads), r.LoadData("")); err != nil {
		return nil, nil, nil, err
	}
	classify := t.Module.Func("classify")
	if r.Data == nil || classify == nil {
		return nil, nil, nil, nil
	}
	if judged = t.Split.Test; len(judged) == 0 {
		judged = t.Split.Val
	}
	if t.Logits != nil {
		return t.Logits, t.Probabilities, judged, nil
	}
	f, err := r.forward(threads)
	if err != nil {
		return nil, nil, nil, err
	}
	defer f.Close()
	s := nodeTask{train.Nodes(r.Data), r.Data}.sample(t)
	inputs := map[string]ort.Tensor{"x": s.X, "edge_index": s.Edges}
	if s.Refined != nil {
		inputs["edge_index"] = *s.Refined
	}
	if s.Weights != nil {
		inputs["edge_weight"] = *s.Weights
	}
	if classify.Arg(models.KnownLabels) != nil {
		known := make([]float32, r.Data.Graph.N*r.Data.Classes)
		for _, v := range t.Split.Train {
			known[int(v)*r.Data.Classes+int(r.Data.Labels[v])] = 1
		}
		inputs[models.KnownLabels] = ort.Float32s(known, int64(r.Data.Graph.N), int64(r.Data.Classes))
	}
	if classify.Arg("embedding") != nil {
		made, err := f.Run("encode", map[string]ort.Tensor{"x": s.X, "edge_index": s.Edges})
		if err != nil {
			return nil, nil, nil, err
		}
		delete(inputs, "x")
		inputs["embedding"] = made["embedding"]
	}
	out, err := f.Run("classify", inputs)
	if err != nil {
		return nil, nil, nil, err
	}
	return out["logits"].F32, out["probabilities"].F32, judged, nil
}

// calibrated is Classify with the probabilities that an export gives.
func (r *Run) calibrated(threads int) (logits, probabilities []float32, err error) {
	logits, probabilities, _, err = r.Classify(threads)
	if c := r.Result.Calibration; c != nil && err == nil {
		probabilities = metrics.Tempered(logits, r.Data.Classes, c.Temperature)
	}
	return logits, probabilities, err
}

// hasEncoder tells whether an encoder took part in the training.
func hasEncoder(t *train.Model) bool {
	f := t.Module.Func("encode")
	return f != nil && f.Arg("p") == nil && t.Refined != nil && !t.Refined.Raw
}

// Embed returns what the encoder of a run or an export in a directory makes of nodes. path
// says where the data of a run are now, if not where they were; an export takes any data that
// the model fits, and so does a run whose encoder can be cut ([Deployed.Cut]): over chunks of
// nodes, within the limit of memory. Other runs embed their training graph.
func Embed(ctx context.Context, dir, path string, o infer.PredictOptions) (*infer.Embedding, error) {
	if isExport(dir) {
		if path == "" {
			return nil, fmt.Errorf("%s is an export, which does not know where its data are; say what to embed with --data", dir)
		}
		return infer.Embed(ctx, dir, path, o)
	}
	r, err := openWriting(dir, &o.Load)
	if err != nil {
		return nil, err
	}
	if !hasEncoder(r.Trained) {
		return nil, fmt.Errorf("the model %s in %s has no encoder that was trained; ecl-gsr trains one", r.Trained.Model, dir)
	}
	if r.OfGraphs() {
		return nil, fmt.Errorf("the model %s in %s classifies whole graphs, and the nodes of one graph are what gsrc embeds", r.Trained.Model, dir)
	}
	d, whole := r.deploy()
	if whole = r.orExport(whole); whole == nil {
		_, whole = d.Cut("encode", compiler.Inference, passes.DataInfo{})
	}
	var e *infer.Embedding
	err = r.use(ctx, path, &o, whole, func() error {
		selected, err := o.Wanted(r.Data)
		if err != nil {
			return err
		}
		h, width, err := r.Embed(o.Threads)
		if err == nil {
			e = infer.NewEmbedding(r.Data, h, width, selected)
		}
		return err
	}, func(a *application) error {
		selected, err := o.Wanted(a.ds)
		if err != nil {
			return err
		}
		h, err := a.embed()
		if err == nil {
			e = infer.NewEmbedding(a.ds, h.F32, h.Dims[1], selected)
		}
		return err
	})
	return e, err
}

// isExport reports whether a folder is one of an export.
func isExport(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, manifest.FileName))
	return err == nil
}

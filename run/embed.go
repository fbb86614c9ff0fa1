package run

import (
	"errors"

	"github.com/gsrc-dev/gsrc/train"
)

// Embed returns the trained encoder's output for the training graph, [N, width]
// row-major, and its width; nil and 0 if the model has none that was trained.
// threads is as in [BuildOptions].
func (r *Run) Embed(threads int) (h []float32, width int, err error) {
	t := r.Trained
	if t.Embedding != nil {
		return t.Embedding, t.EmbeddingWidth, nil
	}
	if !hasEncoder(t) {
		return nil, 0, nil
	}
	if err := r.LoadData(""); err != nil {
		return nil, 0, err
	}
	f, err := newForward(exported(t), t.Params, nil, threads)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	inputs, err := r.task.encoderInputs(t, threads)
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

// hasEncoder tells whether an encoder took part in the training.
func hasEncoder(t *train.Model) bool {
	return t.Module.Func("encode") != nil && t.Refined != nil && !t.Refined.Raw
}

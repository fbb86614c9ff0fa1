package train

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/internal/shell"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// Model is a trained model: what exporting and predicting start from.
type Model struct {
	Model  string
	Module *ir.Module // as it was trained, before any pass
	Config *config.Config
	// Params are the kept parameters by name, row-major; Module has the shapes.
	Params map[string][]float32
	// Struct are the structural attributes [N, StructWidth] of the training
	// graph, nil where the model has none.
	Struct      []float32
	StructWidth int
	// Refined is the graph that the classifier is evaluated on, nil for models
	// that take the raw one.
	Refined *graph.Refined
	// Split is what it was trained, chosen and judged on; empty for models that learn without
	// labels.
	Split data.Split

	// What follows is not in a run directory.

	// Embedding [N, EmbeddingWidth] is the encoder's output for the training
	// graph, nil for models without an encoder.
	Embedding      []float32
	EmbeddingWidth int
	// Logits and Probabilities [N, classes] are the classifier's.
	Logits, Probabilities []float32
}

// write leaves the weights and the refined edges in the run directory.
func (r *Model) write(dir string, task Task) error {
	f := &safetensors.File{Metadata: map[string]string{"model": r.Model}}
	for _, p := range r.Module.Params {
		shape, _ := p.Type.Shape(nil) // optim.New refuses others
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: p.Name, Shape: shape, Data: r.Params[p.Name]})
	}
	if err := atomicfile.Write(filepath.Join(dir, checkpoint.WeightsFile), f.Write); err != nil {
		return err
	}
	if r.Refined == nil || r.Refined.Raw {
		return nil
	}
	return atomicfile.Write(filepath.Join(dir, checkpoint.EdgesFile), func(w io.Writer) error {
		return task.WriteRefined(w, r.Refined)
	})
}

// Load reads the trained model of a finished run from its directory. Every file that
// run.json lists is held against it, those that are not needed for the model too.
func Load(dir string) (*Model, *Info, error) {
	info, err := ReadInfo(dir)
	if err != nil {
		return nil, nil, err
	}
	if info.Result == nil {
		return nil, nil, fmt.Errorf("the run in %s is not finished; go on with it by --resume %s", dir, shell.Quote(dir))
	}
	cfg, err := config.Read(filepath.Join(dir, checkpoint.ConfigFile))
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, checkpoint.ModuleFile)
	text, err := info.readFile(dir, checkpoint.ModuleFile)
	if err != nil {
		return nil, nil, err
	}
	m, err := ir.Parse(path, string(text))
	if err != nil {
		return nil, nil, err
	}
	split, err := info.readSplit(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range []string{checkpoint.WeightsFile, checkpoint.EdgesFile, checkpoint.AutoFile} {
		if err := info.CheckFile(dir, name); err != nil {
			return nil, nil, err
		}
	}
	path = filepath.Join(dir, checkpoint.CheckpointFile)
	if text, err = info.readFile(dir, checkpoint.CheckpointFile); err != nil {
		return nil, nil, err
	}
	f, err := checkpoint.Parse(path, text)
	if err != nil {
		return nil, nil, err
	}
	r := &Model{Model: info.Model, Module: m, Config: cfg, Params: map[string][]float32{}, Split: split}
	if err := r.load(f, info, dir); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, info, nil
}

func (r *Model) load(f *checkpoint.File, info *Info, dir string) (err error) {
	if f.Config != r.Config.Hash() || f.Module != checkpoint.Fingerprint(r.Module.String()) || f.Data != info.Data.Checksum {
		return fmt.Errorf("the checkpoint does not belong to %s, %s and %s beside it", checkpoint.ConfigFile, checkpoint.ModuleFile, checkpoint.InfoFile)
	}
	for _, p := range r.Module.Params {
		shape, err := p.Type.Shape(nil)
		if err != nil {
			return fmt.Errorf("parameter $%s has the type %s; parameters need fixed sizes", p.Name, p.Type)
		}
		if r.Params[p.Name], err = f.BestParam(p.Name, shape); err != nil {
			return err
		}
	}
	best, err := f.Best(info.Data.Nodes)
	if err != nil {
		return err
	}
	if best != nil {
		e := r.Config.Model.Edges
		r.Refined = &graph.Refined{Raw: r.Config.Candidates.Structure == "raw", Candidates: best.Candidates, Probability: best.Probability, Lo: best.Lo, Hi: best.Hi, Mode: e.Mode, Threshold: e.Threshold}
		if r.Refined.Raw {
			r.Refined.Threshold = 0
		}
	}
	if info.Inductive {
		return nil
	}
	text, err := info.readFile(dir, checkpoint.StructFile)
	if err != nil {
		return err
	}
	s, err := safetensors.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", checkpoint.StructFile, err)
	}
	r.StructWidth = r.Config.DeepWalk.Width
	r.Struct, err = safetensors.Get[float32](s, "x_struct", info.Data.Nodes, r.StructWidth)
	return err
}

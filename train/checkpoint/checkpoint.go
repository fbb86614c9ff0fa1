// Package checkpoint has what a run leaves in its directory: the checkpoint that it goes
// on from, metrics.jsonl, and the checksums and the lock that keep them whole. It knows
// nothing of how a run trains.
package checkpoint

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/internal/seal"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train/optim"
)

// version is what is written: since version 2 with a checksum of the file and one of the
// metrics before it. Version 1 is read too.
const version = 2

// State is how far a run has come, the part of a checkpoint that is not tensors: the
// metadata entry "state". It holds no times, so that equal runs have equal checkpoints.
type State struct {
	Version    int            `json:"version"`
	Module     string         `json:"module"` // [Fingerprint] of the program
	Config     string         `json:"config"` // hash of the configuration
	Data       string         `json:"data"`   // checksum of the data set
	Phase      string         `json:"phase"`
	Pretrained int            `json:"pretrained"` // contrastive steps done
	Epoch      int            `json:"epoch"`      // epochs done
	Steps      map[string]int `json:"steps"`      // of each optimizer group
	Lines      int            `json:"metrics_lines"`
	Metrics    string         `json:"metrics_checksum,omitempty"` // of these lines but for their times
	ValAcc     *float64       `json:"val_acc"`                    // of the last evaluation in percent, nil before the first
	BestEpoch  int            `json:"best_epoch"`                 // the kept one, from 1; 0 before the first evaluation
	BestAcc    float64        `json:"best_val_acc"`
	BestLoss   float64        `json:"best_val_loss"`
	// Round counts the rounds of self-training begun, the last at epoch RoundFrom, and
	// SelfTrained are the nodes that it has added to the training nodes, with their labels.
	Round       int        `json:"round,omitempty"`
	RoundFrom   int        `json:"round_from,omitempty"`
	SelfTrained [][2]int32 `json:"self_trained,omitempty"`
	// TestCurve is the accuracy on the test graphs at each evaluation, in percent: what
	// GIN's protocol is computed from. Nothing is chosen by it.
	TestCurve []float64 `json:"test_curve,omitempty"`
	Selected  float64   `json:"best_selected"` // what train.select compares, higher being better
	// Due is the step whose evaluation was interrupted, to be made again; nil where none was.
	Due *Record `json:"due,omitempty"`
}

// Step is the number of the next step of the run, which its random streams are split by.
func (s *State) Step() int { return s.Pretrained + s.Epoch }

// Edges are candidate edges with their probabilities.
type Edges struct {
	Candidates  *graph.Candidates
	Probability []float32
	Lo, Hi      float32 // bounds of the cosine that they were normalised with
}

// Checkpoint is everything that a run goes on from.
type Checkpoint struct {
	State
	Params     *optim.Set
	Candidates *graph.Candidates // nil where there are none
	Best       *Edges            // of the kept epoch, nil where nothing is refined
	// Carried is what contrastive steps hand on, by name.
	Carried map[string]*runtime.Buffer
}

// Fingerprint identifies a program by its text.
func Fingerprint(text string) string {
	h := fnv.New128a()
	io.WriteString(h, text)
	return hex.EncodeToString(h.Sum(nil))
}

// kinds begin the names of what a checkpoint has of each parameter, [optim.Param.Buffers].
var kinds = [4]string{"param/", "adam_m/", "adam_v/", "best/"}

// Write writes a checkpoint of a run with such metrics, all lines of which are on disk
// before it is.
func (c *Checkpoint) Write(path string, metrics *Log) error {
	if err := metrics.sync(); err != nil {
		return err
	}
	c.Version, c.Steps, c.Lines, c.Metrics = version, c.Params.Steps(), metrics.lines, seal.Text(metrics.sum)
	text, err := json.Marshal(&c.State)
	if err != nil {
		return err
	}
	f := &safetensors.File{Metadata: map[string]string{"state": string(text)}}
	add := func(name string, data any, shape ...int) {
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, Shape: shape, Data: data})
	}
	for _, p := range c.Params.Params {
		for i, b := range p.Buffers() {
			add(kinds[i]+p.Name, b.F32, b.Dims...)
		}
	}
	// Of candidates the edges [C,2], and whether they exist in the raw graph.
	addCandidates := func(prefix string, c *graph.Candidates) {
		ends, existing := make([]int32, 0, 2*len(c.Edges)), make([]uint8, len(c.Edges))
		for i, e := range c.Edges {
			ends = append(ends, e[0], e[1])
			if c.Existing[i] {
				existing[i] = 1
			}
		}
		add(prefix+"edges", ends, len(c.Edges), 2)
		add(prefix+"existing", existing, len(c.Edges))
	}
	if c.Candidates != nil {
		addCandidates("candidates/", c.Candidates)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Carried)) {
		b := c.Carried[name]
		add(carried+name, b.F32, b.Dims...)
	}
	if k := c.Best; k != nil {
		addCandidates("best_candidates/", k.Candidates)
		add("best_candidates/probability", k.Probability, len(k.Probability))
		add("best_candidates/bounds", []float32{k.Lo, k.Hi}, 2)
	}
	return atomicfile.Write(path, f.Write)
}

// carried begins the names of what contrastive steps hand on.
const carried = "carried/"

func (f *File) candidates(prefix string, n int) (*graph.Candidates, error) {
	if f.tensors.Lookup(prefix+"edges") == nil {
		return nil, nil
	}
	ends, err := safetensors.Get[int32](f.tensors, prefix+"edges", -1, 2)
	if err != nil {
		return nil, err
	}
	existing, err := safetensors.Get[uint8](f.tensors, prefix+"existing", len(ends)/2)
	if err != nil {
		return nil, err
	}
	c := &graph.Candidates{N: n, Edges: make([][2]int32, len(existing)), Existing: make([]bool, len(existing))}
	for i := range existing {
		c.Edges[i] = [2]int32{ends[2*i], ends[2*i+1]}
		c.Existing[i] = existing[i] == 1
	}
	if err := c.Graph().Validate(); err != nil {
		return nil, fmt.Errorf("%sedges: %w", prefix, err)
	}
	return c, nil
}

// File is a checkpoint that was read.
type File struct {
	State
	tensors *safetensors.File
}

// ReadFile reads a checkpoint.
func ReadFile(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Parse reads the text of a checkpoint, which came from path.
func Parse(path string, text []byte) (*File, error) {
	t, err := safetensors.Parse(text)
	f := &File{tensors: t}
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// check reads the part that is not tensors.
func (f *File) check() error {
	c := &f.State
	if err := json.Unmarshal([]byte(f.tensors.Metadata["state"]), c); err != nil {
		return fmt.Errorf("this is no checkpoint of gsrc (metadata entry \"state\": %w)", err)
	}
	if c.Version < 1 || c.Version > version {
		return fmt.Errorf("the checkpoint has version %d, this program reads versions 1 to %d", c.Version, version)
	}
	if c.Version > 1 && (!f.tensors.Sealed || c.Metrics == "") {
		return ErrNoChecksum
	}
	if c.Pretrained < 0 || c.Epoch < 0 || c.Lines < 0 || c.BestEpoch < 0 || c.BestEpoch > c.Epoch {
		return errors.New("the checkpoint's counters are out of range")
	}
	return nil
}

// Restore copies the parameters, with all that a run keeps of them, into those of the
// same module.
func (f *File) Restore(set *optim.Set) error {
	for _, p := range set.Params {
		for i, b := range p.Buffers() {
			v, err := safetensors.Get[float32](f.tensors, kinds[i]+p.Name, b.Dims...)
			if err != nil {
				return err
			}
			copy(b.F32, v)
		}
	}
	for name, g := range set.Groups {
		g.Steps = f.Steps[name]
	}
	return nil
}

// BestParam returns a parameter of the given shape at the kept epoch.
func (f *File) BestParam(name string, shape []int) ([]float32, error) {
	return safetensors.Get[float32](f.tensors, "best/"+name, shape...)
}

// Carried returns what steps hand on by a name, nil if there is none.
func (f *File) Carried(name string) (*runtime.Buffer, error) {
	t := f.tensors.Lookup(carried + name)
	if t == nil {
		return nil, nil
	}
	v, err := safetensors.Get[float32](f.tensors, carried+name, t.Shape...)
	if err != nil {
		return nil, err
	}
	return runtime.F32(v, t.Shape...), nil
}

// Candidates returns the candidate edges between that many nodes, nil if there are none.
func (f *File) Candidates(nodes int) (*graph.Candidates, error) {
	return f.candidates("candidates/", nodes)
}

// Best returns the edges of the kept epoch, nil if there are none.
func (f *File) Best(nodes int) (*Edges, error) {
	c, err := f.candidates("best_candidates/", nodes)
	if c == nil || err != nil {
		return nil, err
	}
	p, err := safetensors.Get[float32](f.tensors, "best_candidates/probability", len(c.Edges))
	if err != nil {
		return nil, err
	}
	bounds, err := safetensors.Get[float32](f.tensors, "best_candidates/bounds", 2)
	if err != nil {
		return nil, err
	}
	return &Edges{Candidates: c, Probability: p, Lo: bounds[0], Hi: bounds[1]}, nil
}

// Seal rewrites the checkpoint in a directory, with the checksums that those of an
// earlier version lack.
func Seal(dir string) error {
	path := filepath.Join(dir, CheckpointFile)
	f, err := ReadFile(path)
	if err != nil {
		return err
	}
	metrics := filepath.Join(dir, MetricsFile)
	text, err := os.ReadFile(metrics)
	if err != nil {
		return err
	}
	_, sum, _, err := f.prefix(text)
	if err != nil {
		return fmt.Errorf("%s: %w", metrics, err)
	}
	f.Version, f.Metrics = version, seal.Text(sum)
	state, err := json.Marshal(&f.State)
	if err != nil {
		return err
	}
	f.tensors.Metadata["state"] = string(state)
	return atomicfile.Write(path, f.tensors.Write)
}

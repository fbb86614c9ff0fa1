package train

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"path/filepath"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/internal/seal"
	"github.com/gsrc-dev/gsrc/runtime"
)

// checkpointVersion is what is written: since version 2 with a checksum of the file and
// one of the metrics before it. Version 1 is read too.
const checkpointVersion = 2

// counters is the part of a checkpoint that is not tensors: the metadata entry
// "state". It holds no times, so that equal runs have equal checkpoints.
type counters struct {
	Version    int            `json:"version"`
	Module     string         `json:"module"` // fingerprint of the program
	Config     string         `json:"config"` // hash of the configuration
	Data       string         `json:"data"`   // checksum of the data set
	Phase      string         `json:"phase"`
	Pretrained int            `json:"pretrained"`
	Epoch      int            `json:"epoch"`
	Steps      map[string]int `json:"steps"` // of each optimizer group
	Lines      int            `json:"metrics_lines"`
	Metrics    string         `json:"metrics_checksum,omitempty"` // of these lines but for their times
	ValAcc     *float64       `json:"val_acc"`                    // of the last evaluation
	BestEpoch  int            `json:"best_epoch"`
	BestAcc    float64        `json:"best_val_acc"`
	BestLoss   float64        `json:"best_val_loss"`
	TestCurve  []float64      `json:"test_curve,omitempty"`
	Selected   float64        `json:"best_selected"` // what train.select compares
}

// fingerprint identifies a program by its text.
func fingerprint(text string) string {
	h := fnv.New128a()
	io.WriteString(h, text)
	return hex.EncodeToString(h.Sum(nil))
}

func (t *trainer) path(name string) string { return filepath.Join(t.opts.Dir, name) }

// checkpoint writes everything that is needed to go on from here.
func (t *trainer) checkpoint() error {
	if t.opts.Dir == "" {
		return nil
	}
	if err := t.fetchState(); err != nil {
		return err
	}
	// The lines that the checkpoint counts must not be lost.
	if err := t.metrics.sync(); err != nil {
		return err
	}
	c := counters{Version: checkpointVersion, Module: fingerprint(t.module.String()), Config: t.cfg.Hash(), Data: t.data.checksum,
		Phase: t.state.Phase, Pretrained: t.state.Pretrained, Epoch: t.state.Epoch, Steps: t.optim.Steps(), Lines: t.metrics.lines, Metrics: seal.Text(t.metrics.sum),
		BestEpoch: t.best.Epoch, BestAcc: t.best.ValAcc, BestLoss: t.best.ValLoss, Selected: t.best.selected, TestCurve: t.state.TestCurve}
	if v := t.state.valAcc; !math.IsNaN(v) {
		c.ValAcc = &v
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f := &safetensors.File{Metadata: map[string]string{"state": string(text)}}
	for _, p := range t.optim.Params {
		for _, x := range []struct {
			kind string
			data *runtime.Buffer
		}{{"param/", p.Value}, {"adam_m/", p.M}, {"adam_v/", p.V}, {"best/", p.Best}} {
			f.Tensors = append(f.Tensors, safetensors.Tensor{Name: x.kind + p.Name, Shape: x.data.Dims, Data: x.data.F32})
		}
	}
	if err := t.fetchEdges(); err != nil {
		return err
	}
	if t.edges != nil && t.edges.cand != nil {
		f.Tensors = append(f.Tensors, candidateTensors("candidates/", t.edges.cand)...)
	}
	if k := t.best.edges; k != nil {
		f.Tensors = append(f.Tensors, candidateTensors("best_candidates/", k.cand)...)
		f.Tensors = append(f.Tensors,
			safetensors.Tensor{Name: "best_candidates/probability", Shape: []int{len(k.p)}, Data: k.p},
			safetensors.Tensor{Name: "best_candidates/bounds", Shape: []int{2}, Data: []float32{k.lo, k.hi}})
	}
	return atomicfile.Write(t.path(checkpointFile), f.Write)
}

// candidateTensors are the edges [C,2] and whether they exist in the raw graph.
func candidateTensors(prefix string, c *graph.Candidates) []safetensors.Tensor {
	ends := make([]int32, 0, 2*len(c.Edges))
	existing := make([]uint8, len(c.Edges))
	for i, e := range c.Edges {
		ends = append(ends, e[0], e[1])
		if c.Existing[i] {
			existing[i] = 1
		}
	}
	return []safetensors.Tensor{
		{Name: prefix + "edges", Shape: []int{len(c.Edges), 2}, Data: ends},
		{Name: prefix + "existing", Shape: []int{len(c.Edges)}, Data: existing},
	}
}

func readCandidates(f *safetensors.File, prefix string, n int) (*graph.Candidates, error) {
	ends, err := safetensors.Get[int32](f, prefix+"edges", -1, 2)
	if err != nil {
		return nil, err
	}
	existing, err := safetensors.Get[uint8](f, prefix+"existing", len(ends)/2)
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

// readCounters reads the part of a checkpoint that is not tensors.
func readCounters(f *safetensors.File) (counters, error) {
	var c counters
	if err := json.Unmarshal([]byte(f.Metadata["state"]), &c); err != nil {
		return c, fmt.Errorf("this is no checkpoint of gsrc (metadata entry \"state\": %w)", err)
	}
	if c.Version < 1 || c.Version > checkpointVersion {
		return c, fmt.Errorf("the checkpoint has version %d, this program reads versions 1 to %d", c.Version, checkpointVersion)
	}
	if c.Version > 1 && (!f.Sealed || c.Metrics == "") {
		return c, errNoChecksum
	}
	if c.Pretrained < 0 || c.Epoch < 0 || c.Lines < 0 || c.BestEpoch < 0 || c.BestEpoch > c.Epoch {
		return c, errors.New("the checkpoint's counters are out of range")
	}
	return c, nil
}

// errNoChecksum is the error of files that are written with a checksum and have none.
var errNoChecksum = errors.New("its checksum is gone: it is damaged, or was changed by hand")

// restore makes the run's state that of a checkpoint, and returns the part of it that
// is not tensors.
func (t *trainer) restore(path string) (counters, error) {
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return counters{}, err
	}
	c, err := readCounters(f)
	if err == nil {
		err = t.matches(c)
	}
	if err == nil {
		err = t.restoreTensors(f, c)
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	t.state = state{Phase: c.Phase, Pretrained: c.Pretrained, Epoch: c.Epoch, TestCurve: c.TestCurve, valAcc: math.NaN()}
	if c.ValAcc != nil {
		t.state.valAcc = *c.ValAcc
	}
	for name, g := range t.optim.Groups {
		g.Steps = c.Steps[name]
	}
	t.best.Epoch, t.best.ValAcc, t.best.ValLoss, t.best.selected = c.BestEpoch, c.BestAcc, c.BestLoss, c.Selected
	return c, nil
}

// matches refuses a checkpoint of another run.
func (t *trainer) matches(c counters) error {
	for _, x := range []struct{ what, have, want string }{
		{"data set", c.Data, t.data.checksum},
		{"configuration", c.Config, t.cfg.Hash()},
		{"program", c.Module, fingerprint(t.module.String())},
	} {
		if x.have != x.want {
			return fmt.Errorf("the run was made with another %s, so it cannot be resumed with this one; start anew with --force", x.what)
		}
	}
	return nil
}

func (t *trainer) restoreTensors(f *safetensors.File, c counters) error {
	for _, p := range t.optim.Params {
		for _, x := range []struct {
			kind string
			data *runtime.Buffer
		}{{"param/", p.Value}, {"adam_m/", p.M}, {"adam_v/", p.V}, {"best/", p.Best}} {
			v, err := safetensors.Get[float32](f, x.kind+p.Name, x.data.Dims...)
			if err != nil {
				return err
			}
			copy(x.data.F32, v)
		}
	}
	n := t.data.nodes
	if f.Lookup("candidates/edges") != nil {
		cand, err := readCandidates(f, "candidates/", n)
		if err != nil {
			return err
		}
		t.edges = &edges{}
		if err := t.setCandidates(cand); err != nil {
			return err
		}
	}
	if f.Lookup("best_candidates/edges") != nil {
		cand, err := readCandidates(f, "best_candidates/", n)
		if err != nil {
			return err
		}
		k := &keptEdges{cand: cand}
		if k.p, err = safetensors.Get[float32](f, "best_candidates/probability", len(cand.Edges)); err != nil {
			return err
		}
		bounds, err := safetensors.Get[float32](f, "best_candidates/bounds", 2)
		if err != nil {
			return err
		}
		k.lo, k.hi = bounds[0], bounds[1]
		t.best.edges = k
	}
	return nil
}

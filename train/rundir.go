package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/seal"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// infoVersion is the schema of run.json that is written: since version 2 it has a
// checksum and lists other files. Version 1 is read too.
const infoVersion = 2

// Info is run.json: what was trained on what, and how it went.
type Info struct {
	SchemaVersion int    `json:"schema_version"`
	Status        string `json:"status"` // running or done
	Version       string `json:"version,omitempty"`
	Model         string `json:"model"`
	Seed          int    `json:"seed"`
	Split         string `json:"split"`
	Config        string `json:"config_hash"`
	Baselines     string `json:"baselines,omitempty"` // Options.Baselines
	Data          About  `json:"data"`
	// Inductive is false where the model reads structural attributes of the
	// training graph and therefore works on no other.
	Inductive bool    `json:"inductive"`
	Result    *Result `json:"result"`
	// Files lists other files of the directory: at first module.gsr and split.json, of
	// a finished run all but config.toml, which Config pins, and metrics.jsonl, of which
	// the checkpoint has the checksum, with size and CRC-32C. Absent in runs of an earlier version.
	Files map[string]seal.File `json:"files,omitempty"`
	// Checksum of run.json itself, with its digits as zeros.
	Checksum string `json:"checksum,omitempty"`
}

// MarshalJSON writes the result as [Result.JSON] has it.
func (i Info) MarshalJSON() ([]byte, error) {
	type plain Info
	result := i.Result.JSON()
	if result == any(i.Result) {
		return json.Marshal(plain(i))
	}
	return json.Marshal(struct {
		plain
		Result any `json:"result"`
	}{plain(i), result})
}

// BaseChecksum is that of the data before edges were changed in reading.
func (i *Info) BaseChecksum() string {
	return data.BaseChecksum(i.Data.Checksum, i.Data.Corruption, i.Data.Rewired)
}

// Unchecked says in a line what could not be checked of a run of an earlier version;
// it is empty where all was.
func (i *Info) Unchecked() string {
	if i.SchemaVersion >= infoVersion {
		return ""
	}
	return "the run is of an earlier version, without checksums: damage to its files cannot be found (gsrc verify --seal adds checksums)"
}

// CheckFile reads a file of the run and holds it against run.json. It is an error if
// the file is not what run.json says; one that run.json does not list is not read.
func (i *Info) CheckFile(dir, name string) error {
	want, ok := i.Files[name]
	if !ok {
		return nil
	}
	path := filepath.Join(dir, name)
	have, err := seal.OfPath(path)
	if err == nil {
		err = want.Check(have)
	}
	return checkpoint.Damage(path, err)
}

// readFile reads a file of the run, which must be what run.json says of it if it does.
func (i *Info) readFile(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	want, ok := i.Files[name]
	if !ok {
		return os.ReadFile(path)
	}
	data, err := want.ReadFile(path)
	return data, checkpoint.Damage(path, err)
}

// ReadInfo reads the run.json of a run directory.
func ReadInfo(dir string) (*Info, error) {
	if err := seal.Folder(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, checkpoint.InfoFile)
	text, err := seal.Read(path)
	if several, _ := filepath.Glob(filepath.Join(dir, "run-*", checkpoint.InfoFile)); errors.Is(err, fs.ErrNotExist) && len(several) > 0 {
		return nil, fmt.Errorf("%s holds %d runs; name one of them, such as %s", dir, len(several), filepath.Dir(several[0]))
	}
	if _, there := os.Stat(filepath.Join(dir, "manifest.json")); there == nil && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is an export; this takes the run directory that it was built from", dir)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.onnx")); errors.Is(err, fs.ErrNotExist) && len(files) > 0 {
		return nil, fmt.Errorf("%s is neither an export nor a run directory: it has %s, but no manifest.json, and no %s; build the export again", dir, filepath.Base(files[0]), checkpoint.InfoFile)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no run directory: it has no %s (a run that was killed before it wrote that is started again, without --force)", dir, checkpoint.InfoFile)
	}
	if err != nil {
		return nil, err
	}
	sealed, err := seal.Check(nil, text, nil)
	if err != nil {
		return nil, checkpoint.Damage(path, err)
	}
	var info Info
	if err := json.Unmarshal(text, &info); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch v := info.SchemaVersion; {
	case v < 1 || v > infoVersion:
		return nil, fmt.Errorf("%s has schema version %d, this gsrc reads 1 to %d", path, v, infoVersion)
	case v > 1 && !sealed:
		return nil, checkpoint.Damage(path, checkpoint.ErrNoChecksum)
	}
	return &info, nil
}

func (t *trainer) describeRun(res *Result) *Info {
	i := &Info{SchemaVersion: infoVersion, Checksum: seal.Blank, Files: map[string]seal.File{}, Status: "running", Version: t.opts.Version, Model: t.job.Model, Seed: t.cfg.Train.Seed, Split: t.splitName, Baselines: t.opts.Baselines,
		Config: t.cfg.Hash(), Inductive: !t.readsStruct(), Result: res, Data: t.info.About}
	if res != nil {
		i.Status = "done"
	}
	i.Data.ClassNames = append([]string{}, i.Data.ClassNames...)
	if t.edges != nil {
		i.Data.WeightUnit = t.edges.unit
	}
	return i
}

// readsStruct reports whether the trained model has structural attributes.
func (t *trainer) readsStruct() bool {
	if t.cfg.DeepWalk.Width == 0 || t.cfg.Candidates.Structure == "raw" {
		return false
	}
	f := t.module.Func("encode")
	return f != nil && f.Arg("x_struct") != nil
}

// open prepares the run directory and the state: new, or that of the last
// checkpoint. The directory is locked until close.
func (t *trainer) open() error {
	if t.opts.Dir == "" {
		if t.opts.Resume {
			return errors.New("train: there is no run directory to resume")
		}
		return nil
	}
	dir, begun, err := checkpoint.Open(t.opts.Dir, t.opts.Resume, t.opts.Force)
	if err != nil {
		return err
	}
	t.dir = dir
	t.state.Module, t.state.Config, t.state.Data = checkpoint.Fingerprint(t.module.String()), t.cfg.Hash(), t.info.Checksum
	if begun {
		return t.resume()
	}
	if err := t.describe(nil); err != nil {
		return err
	}
	return t.checkpoint()
}

// describe writes the files that say what the run is, run.json last.
func (t *trainer) describe(res *Result) error {
	if err := t.cfg.Write(t.dir.Path(checkpoint.ConfigFile)); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(t.dir.Path(checkpoint.ModuleFile), []byte(t.module.String())); err != nil {
		return err
	}
	if err := t.writeSplit(); err != nil {
		return err
	}
	info := t.describeRun(res)
	listed := []string{checkpoint.ModuleFile, checkpoint.SplitFile}
	if res != nil {
		listed = append(listed, checkpoint.CheckpointFile, checkpoint.WeightsFile, checkpoint.EdgesFile, checkpoint.StructFile, checkpoint.AutoFile)
	}
	return info.write(t.opts.Dir, listed)
}

// write writes run.json, with the checksums of those of the files that are there.
func (i *Info) write(dir string, listed []string) error {
	for _, name := range listed {
		f, err := seal.OfPath(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		default:
			i.Files[name] = f
		}
	}
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	seal.Stamp(text)
	return atomicfile.WriteBytes(filepath.Join(dir, checkpoint.InfoFile), text)
}

// runSplit is split.json: the nodes that a run learns from, chooses by and is
// judged on, by their numbers in the data, from 0.
type runSplit struct {
	SchemaVersion int     `json:"schema_version"`
	Split         string  `json:"split"` // as in run.json
	Seed          int     `json:"seed"`
	Train         []int32 `json:"train"`
	Val           []int32 `json:"val"`
	Test          []int32 `json:"test"`
	Outer         []int32 `json:"outer,omitempty"`
}

// readSplit reads the split.json of a run.
func (i *Info) readSplit(dir string) (data.Split, error) {
	text, err := i.readFile(dir, checkpoint.SplitFile)
	if err != nil {
		return data.Split{}, err
	}
	var s runSplit
	if err := json.Unmarshal(text, &s); err != nil {
		return data.Split{}, fmt.Errorf("%s: %w", filepath.Join(dir, checkpoint.SplitFile), err)
	}
	return data.Split{Train: s.Train, Val: s.Val, Test: s.Test, Outer: s.Outer}, nil
}

func (t *trainer) writeSplit() error {
	text, err := json.Marshal(runSplit{1, t.splitName, t.cfg.Train.Seed, t.split.Train, t.split.Val, t.split.Test, t.split.Outer})
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(t.dir.Path(checkpoint.SplitFile), append(text, '\n'))
}

func (t *trainer) resume() error {
	if err := t.restore(t.dir.Path(checkpoint.CheckpointFile)); err != nil {
		return err
	}
	if err := t.steps.learn(t.state.SelfTrained); err != nil {
		return err
	}
	last, err := t.dir.Resume(&t.state)
	if err != nil {
		return err
	}
	if last != nil {
		t.before = time.Duration(last.Time.WallS * float64(time.Second))
	}
	t.resumed = true
	return nil
}

// checkpoint writes everything that is needed to go on from here.
func (t *trainer) checkpoint() error {
	if t.dir == nil {
		return nil
	}
	if err := t.optim.ToHost(t.device); err != nil {
		return err
	}
	c := checkpoint.Checkpoint{State: t.state, Params: t.optim, Best: t.best}
	if t.edges != nil {
		if err := t.steps.(refiner).fetch(); err != nil {
			return err
		}
		c.Candidates = t.edges.cand
		if t.state.Pretrained < t.cfg.Train.PretrainSteps || t.prog.stepsGraph() || t.prog.keepsGraph() {
			c.Carried = t.edges.carried
		}
		if p := t.edges.p; p != nil && (t.prog.estimates() || c.Carried != nil && t.prog.stepsGraph()) {
			c.Carried = maps.Clone(c.Carried)
			if c.Carried == nil {
				c.Carried = map[string]*runtime.Buffer{}
			}
			c.Carried["p"] = runtime.F32(p, len(p))
		}
	}
	return c.Write(t.dir.Path(checkpoint.CheckpointFile), &t.dir.Log)
}

// restore makes the run's state that of a checkpoint.
func (t *trainer) restore(path string) error {
	f, err := checkpoint.ReadFile(path)
	if err != nil {
		return err
	}
	if err = t.matches(&f.State); err == nil {
		err = t.restoreTensors(f)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	t.state = f.State
	return nil
}

// matches refuses a checkpoint of another run.
func (t *trainer) matches(c *checkpoint.State) error {
	for _, x := range []struct{ what, have, want string }{
		{"data set", c.Data, t.state.Data},
		{"configuration", c.Config, t.state.Config},
		{"program", c.Module, t.state.Module},
	} {
		if x.have != x.want {
			return fmt.Errorf("the run was made with another %s, so it cannot be resumed with this one; start anew with --force", x.what)
		}
	}
	return nil
}

func (t *trainer) restoreTensors(f *checkpoint.File) error {
	if err := f.Restore(t.optim); err != nil {
		return err
	}
	cand, err := f.Candidates(t.info.Nodes)
	if err != nil {
		return err
	}
	if cand != nil && t.edges != nil {
		if err := t.steps.(refiner).set(cand); err != nil {
			return err
		}
		if err := restoreCarried(t, f); err != nil {
			return err
		}
	}
	t.best, err = f.Best(t.info.Nodes)
	return err
}

// made begins the line of a step, by the function that made it, which another may take the place of
// before the line is written.
func made(t *trainer, f *function) *checkpoint.Record {
	r := &checkpoint.Record{Function: f.Name(), Terms: map[string]float32{}, LR: map[string]float64{}}
	if t.dir == nil {
		return r
	}
	for _, x := range f.terms {
		r.Terms[x.name] = x.value
	}
	for _, u := range f.updates {
		r.LR[u.group.Name] = u.group.LR
	}
	return r
}

// record writes the line of the step that has just been made. s is nil where
// nothing was evaluated.
func (t *trainer) record(r *checkpoint.Record, s *score) error {
	if t.dir == nil {
		return nil
	}
	r.Phase, r.Step, r.Epoch = t.state.Phase, t.state.Step(), t.state.Epoch
	r.Time = checkpoint.RecordTime{WallS: math.Round(t.elapsed().Seconds()*1e4) / 1e4}
	if s != nil {
		r.TrainAcc, r.ValAcc, r.ValLoss = known(s.trainAcc), &s.valAcc, &s.valLoss
		if by := t.cfg.Train.Select; by == "macro_f1" || by == "auc" {
			r.ValSelected = &s.selected
		}
	}
	if t.edges != nil {
		r.Candidates = t.steps.(refiner).count()
	}
	return t.dir.Log.Add(r)
}

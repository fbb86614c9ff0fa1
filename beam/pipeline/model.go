package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/run"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// stage is a function that was cut, as workers are given it.
type stage struct {
	Text    string // of the module with the functions of its parts
	Parts   []passes.Part
	Results map[string]string
	module  *ir.Module // of the text, in a worker
}

// keep returns the values that are read after part i, or are results.
func (s *stage) keep(i int) []string {
	list := slices.Collect(maps.Values(s.Results))
	for _, p := range s.Parts[i+1:] {
		list = append(list, p.Own...)
		list = append(list, p.Sources...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func newStage(p *passes.Parts) *stage {
	return &stage{Text: p.Module.String(), Parts: p.List, Results: p.Results}
}

// blob packs stages by name, with the parameters that they read, for workers.
func blob(d *run.Deployed, stages map[string]*stage) ([]byte, error) {
	t := newTable()
	for name, s := range stages {
		m, err := ir.Parse(name, s.Text)
		if err != nil {
			return nil, err
		}
		for _, p := range m.Params {
			shape, err := p.Type.Shape(nil)
			if err != nil {
				return nil, err
			}
			t.put(p.Name, d.Params[p.Name], shape...)
		}
	}
	for name, x := range map[string]any{"stages": stages, "constants": d.Constants} {
		text, err := json.Marshal(x)
		if err != nil {
			return nil, err
		}
		t.Metadata[name] = string(text)
	}
	slices.SortFunc(t.Tensors, func(a, b safetensors.Tensor) int { return strings.Compare(a.Name, b.Name) })
	return t.bytes()
}

// model is a model in a worker. It runs one part at a time, with all processors.
type model struct {
	sync.Mutex
	params    *table
	constants map[string]float32
	stages    map[string]*stage
	functions map[string]*runtime.Function
	pool      *kernels.Pool
}

// ModelFile is where workers find the model: in the folder of the output, while the pipeline
// runs.
type ModelFile struct {
	Path string
	Sum  uint32 // CRC-32 of its bytes
}

const modelName = "model.safetensors" + unfinished

// opened are the models that this process has opened.
var opened = struct {
	sync.Mutex
	open map[ModelFile]*model
}{open: map[ModelFile]*model{}}

// use has the model compute on a partition and what was sent to it, one at a time. Others may use the
// model before the partition is emitted: who reads it next may do so at once.
func (f ModelFile) use(c *call, s *state, sent []*table, compute func(*model, *state, []*table) error) error {
	m, err := f.open(c.ctx)
	if err != nil {
		return err
	}
	m.Lock()
	defer m.Unlock()
	return compute(m, s, sent)
}

// open returns the model, which is read once.
func (f ModelFile) open(ctx context.Context) (*model, error) {
	opened.Lock()
	defer opened.Unlock()
	if m := opened.open[f]; m != nil {
		return m, nil
	}
	b, err := readFile(ctx, f.Path)
	if err != nil {
		return nil, fmt.Errorf("the model: %w", err)
	}
	if crc32.ChecksumIEEE(b) != f.Sum {
		return nil, fmt.Errorf("%s is not the model of this pipeline; another one writes to the same folder", f.Path)
	}
	m, err := parseModel(b)
	if err == nil {
		opened.open[f] = m
	}
	return m, err
}

func parseModel(b []byte) (*model, error) {
	t, err := parseTable(b)
	if err != nil {
		return nil, err
	}
	m := &model{params: t, functions: map[string]*runtime.Function{}, pool: kernels.NewPool(0)}
	err = errors.Join(json.Unmarshal([]byte(t.Metadata["stages"]), &m.stages), json.Unmarshal([]byte(t.Metadata["constants"]), &m.constants))
	for name, s := range m.stages {
		if err == nil {
			s.module, err = ir.Parse(name, s.Text)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the model: %w", err)
	}
	return m, nil
}

// function returns a function of a stage with its parameters bound.
func (m *model) function(stage, name string) (*runtime.Function, error) {
	if f := m.functions[name]; f != nil {
		return f, nil
	}
	module := m.stages[stage].module
	f, err := runtime.NewFunction(module, name, runtime.Options{Pool: m.pool})
	if err != nil {
		return nil, err
	}
	for _, p := range module.Params {
		x := m.params.Lookup(p.Name)
		if x == nil {
			return nil, fmt.Errorf("the model has no parameter %s", p.Name)
		}
		if err := f.Bind(p.Name, runtime.F32(x.Data.([]float32), x.Shape...)); err != nil {
			return nil, err
		}
	}
	m.functions[name] = f
	return f, nil
}

// run computes a function, given its arguments but for the constants, and calls each with every
// result, whose elements are valid within the call. The lock must be held.
func (m *model) run(stage, name string, args map[string]*runtime.Buffer, each func(name string, shape []int, data []float32)) error {
	f, err := m.function(stage, name)
	if err != nil {
		return err
	}
	for _, a := range f.Main().Func().Args {
		b := args[a.Name]
		if c, ok := m.constants[a.Name]; ok {
			b = runtime.Scalar(c)
		}
		if b == nil {
			return fmt.Errorf("@%s reads %%%s, which is not there", name, a.Name)
		}
		if err := f.Bind(a.Name, b); err != nil {
			return err
		}
	}
	if err := f.Run(0); err != nil {
		return err
	}
	for _, name := range f.Outputs() {
		b := f.Output(name)
		each(name, b.Dims, b.F32)
	}
	return nil
}

// block makes the structure that parts run on: rows are targets, the first of the sources, and
// col numbers sources.
func block(sources int, ptr, col []int32) (*runtime.Buffer, error) {
	in := &kernels.CSR{Rows: len(ptr) - 1, Cols: sources, RowPtr: ptr, Col: col}
	if len(ptr) == 0 || int(ptr[len(ptr)-1]) != len(col) {
		return nil, errors.New("a partition's entries do not fit its rows")
	}
	return runtime.Block(&graph.Structure{N: in.Rows, E: len(col), In: in, Out: kernels.Transpose(in)}), nil
}

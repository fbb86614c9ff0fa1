//go:build cgo

package ort

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	onnxruntime "github.com/yalue/onnxruntime_go"
)

const haveCgo = true

// environment is the process's one onnxruntime: the binding keeps it in global
// state, so it is loaded once and stays until the process ends.
var environment struct {
	sync.Mutex
	loaded   Library
	ready    bool
	fellBack sync.Once
}

// load opens the library, once per process, and returns the version it reports.
func load(lib Library) (string, error) {
	environment.Lock()
	defer environment.Unlock()
	if environment.ready {
		if lib.Path != environment.loaded.Path {
			return "", fmt.Errorf("this process has loaded onnxruntime from %s and cannot load %s too", environment.loaded.Path, lib.Path)
		}
		return onnxruntime.GetVersion(), nil
	}
	onnxruntime.SetSharedLibraryPath(lib.Path)
	// What fails comes back as an error; onnxruntime would print it as well.
	if err := onnxruntime.InitializeEnvironment(onnxruntime.WithLogLevelFatal()); err != nil {
		return "", explainLoad(lib, err)
	}
	// Official Windows builds report usage unless told not to.
	if err := onnxruntime.DisableTelemetry(); err != nil {
		return "", err
	}
	environment.loaded, environment.ready = lib, true
	return onnxruntime.GetVersion(), nil
}

// explainLoad turns the loader's words into what a person can do.
func explainLoad(lib Library, err error) error {
	from := fmt.Sprintf("%s (%s)", lib.Path, lib.Found)
	msg := err.Error()
	switch {
	case strings.Contains(msg, "ORT API base"):
		return fmt.Errorf("the onnxruntime library %s is too old: gsrc needs %d.%d or later. Unset %s, or set it to a newer library; `gsrc doctor` fetches onnxruntime %s: %w",
			from, minMajor, minMinor, EnvVar, Version, err)
	case strings.Contains(msg, "OrtGetApiBase"):
		return fmt.Errorf("%s is a shared library, but not onnxruntime: set %s to libonnxruntime: %w", from, EnvVar, err)
	case strings.Contains(msg, "libstdc++"), strings.Contains(msg, "GLIBC"):
		return fmt.Errorf("the onnxruntime library %s does not find the C++ runtime it needs; install libstdc++6, or on a musl system the distribution's own onnxruntime and set %s to it: %w", from, EnvVar, err)
	}
	return fmt.Errorf("cannot load the onnxruntime library %s: %w", from, err)
}

// Session is a model loaded in onnxruntime. It may be used by many goroutines
// at once.
type Session struct {
	mu       sync.RWMutex // read: running; write: closing
	session  *onnxruntime.DynamicAdvancedSession
	inputs   []IO
	outputs  []IO
	metadata map[string]string
	provider Provider
}

// Open loads the model file at path.
func Open(path string, o Options) (*Session, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, fmt.Errorf("%s: %w", path, errEmpty)
	}
	s, err := open(o, source{
		describe: func() (in, out []IO, err error) {
			if info.Size() <= describedInMemory {
				if model, err := os.ReadFile(path); err == nil {
					if in, out, ok := signature(model); ok {
						return in, out, nil
					}
				}
			}
			return converted(onnxruntime.GetInputOutputInfo(path))
		},
		session: func(in, out []string, options *onnxruntime.SessionOptions) (*onnxruntime.DynamicAdvancedSession, error) {
			return onnxruntime.NewDynamicAdvancedSession(path, in, out, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// describedInMemory is up to how many bytes a model file is read to list its inputs and
// outputs; larger ones, with their weights inside, would take their size in memory.
const describedInMemory = 64 << 20

// converted is what the binding says of inputs and outputs.
func converted(in, out []onnxruntime.InputOutputInfo, err error) ([]IO, []IO, error) {
	return convertInfo(in), convertInfo(out), err
}

var errEmpty = errors.New("the model is empty")

// source is a model, in a file or in memory.
type source struct {
	// describe lists inputs and outputs.
	describe func() (in, out []IO, err error)
	session  func(in, out []string, o *onnxruntime.SessionOptions) (*onnxruntime.DynamicAdvancedSession, error)
}

// OpenBytes loads a model from memory; the bytes are not needed afterwards. Weights
// in other files are found from a file alone, see [Open].
func OpenBytes(model []byte, o Options) (*Session, error) {
	if len(model) == 0 {
		return nil, errEmpty
	}
	return open(o, source{
		describe: func() (in, out []IO, err error) {
			if in, out, ok := signature(model); ok {
				return in, out, nil
			}
			return converted(onnxruntime.GetInputOutputInfoWithONNXData(model))
		},
		session: func(in, out []string, options *onnxruntime.SessionOptions) (*onnxruntime.DynamicAdvancedSession, error) {
			return onnxruntime.NewDynamicAdvancedSessionWithONNXData(model, in, out, options)
		},
	})
}

func open(o Options, model source) (*Session, error) {
	provider, err := ParseProvider(string(o.Provider))
	if err != nil {
		return nil, err
	}
	if err := o.check(provider); err != nil {
		return nil, err
	}
	if err := loadFor(o); err != nil {
		return nil, err
	}
	options, used, err := sessionOptions(provider, o)
	if err != nil {
		return nil, err
	}
	defer options.Destroy()
	inputs, outputs, err := model.describe()
	if err != nil {
		return nil, fmt.Errorf("onnxruntime refuses the model: %w", err)
	}
	s := &Session{inputs: inputs, outputs: outputs, provider: used}
	s.session, err = model.session(names(inputs), names(outputs), options)
	if err != nil && provider == Auto && used == CUDA {
		// The provider was there, and did not come to work: a GPU whose memory is
		// taken, say.
		cuda := err
		cpu, _, err := sessionOptions(CPU, o)
		if err != nil {
			return nil, err
		}
		defer cpu.Destroy()
		if s.session, err = model.session(names(inputs), names(outputs), cpu); err != nil {
			return nil, fmt.Errorf("onnxruntime refuses the model: %w", err)
		}
		s.provider = CPU
		if o.Log != nil {
			o.Log("CUDA fails for onnxruntime, using the CPU: %s", withoutSourcePlace(cuda))
		}
	} else if err != nil {
		return nil, fmt.Errorf("onnxruntime refuses the model: %w", err)
	}
	if s.metadata, err = readMetadata(s.session); err != nil {
		s.session.Destroy()
		return nil, err
	}
	return s, nil
}

// loadFor makes sure that a library is loaded: the one named in the options, or
// else the one in use already, or else what Locate finds.
func loadFor(o Options) error {
	if o.Library != nil {
		_, err := load(*o.Library)
		return err
	}
	environment.Lock()
	ready := environment.ready
	environment.Unlock()
	if ready {
		return nil
	}
	lib, err := Locate(context.Background())
	if err != nil {
		return err
	}
	_, err = load(lib)
	return err
}

var optimizationLevels = map[Optimization]onnxruntime.GraphOptimizationLevel{
	"": onnxruntime.GraphOptimizationLevelEnableAll, OptimizeNone: onnxruntime.GraphOptimizationLevelDisableAll,
	OptimizeBasic: onnxruntime.GraphOptimizationLevelEnableBasic, OptimizeExtended: onnxruntime.GraphOptimizationLevelEnableExtended,
	OptimizeAll: onnxruntime.GraphOptimizationLevelEnableAll,
}

// sessionOptions returns the options and the provider that they really give.
func sessionOptions(p Provider, o Options) (*onnxruntime.SessionOptions, Provider, error) {
	options, err := onnxruntime.NewSessionOptions()
	if err != nil {
		return nil, "", err
	}
	fail := func(err error) (*onnxruntime.SessionOptions, Provider, error) {
		options.Destroy()
		return nil, "", err
	}
	set := []error{options.SetInterOpNumThreads(1)}
	if o.Threads > 0 {
		set = append(set, options.SetIntraOpNumThreads(o.Threads))
	}
	if o.Release {
		keepLittle()
		// Patterns of memory are planned for the arena, and kept for every shape.
		set = append(set, options.SetCpuMemArena(false), options.SetMemPattern(false))
	}
	if o.Yield {
		set = append(set, options.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"))
	}
	if err := errors.Join(set...); err != nil {
		return fail(err)
	}
	level, ok := optimizationLevels[o.Optimization]
	if !ok {
		return fail(fmt.Errorf("unknown optimisation %q: choose none, basic, extended or all", o.Optimization))
	}
	if err := options.SetGraphOptimizationLevel(level); err != nil {
		return fail(err)
	}
	if p == CPU {
		return options, CPU, nil
	}
	err = addCUDA(options, o)
	switch {
	case err == nil:
		return options, CUDA, nil
	case p == CUDA:
		return fail(explainCUDA(err))
	}
	environment.fellBack.Do(func() {
		if o.Log != nil && hasGPU() {
			o.Log("no CUDA for onnxruntime here, using the CPU (--provider cuda says what is missing)")
		}
	})
	return options, CPU, nil
}

// hasGPU reports whether NVIDIA's driver is there: where it is not, nobody expects a GPU. It
// is a variable for tests.
var hasGPU = func() bool {
	path := "/dev/nvidiactl"
	if runtime.GOOS == "windows" {
		path = filepath.Join(os.Getenv("SystemRoot"), "System32", "nvcuda.dll")
	}
	_, err := os.Stat(path)
	return err == nil
}

// addCUDA asks for the CUDA provider. It is a variable for tests without a GPU.
var addCUDA = func(options *onnxruntime.SessionOptions, o Options) error {
	cuda, err := onnxruntime.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer cuda.Destroy()
	if err := cuda.Update(o.cuda()); err != nil {
		return err
	}
	return options.AppendExecutionProviderCUDA(cuda)
}

func explainCUDA(err error) error {
	environment.Lock()
	path := environment.loaded.Path
	environment.Unlock()
	hint := "check that the NVIDIA driver, the CUDA libraries and cuDNN 9 that this build wants can be found (LD_LIBRARY_PATH)"
	name := "libonnxruntime_providers_cuda.so"
	if runtime.GOOS == "windows" {
		name = "onnxruntime_providers_cuda.dll"
	}
	if _, statErr := os.Stat(filepath.Join(filepath.Dir(path), name)); statErr != nil {
		hint = fmt.Sprintf("%s is a build for the CPU (there is no %s beside it); take the GPU build, for example from the Python package onnxruntime-gpu, and set %s to its library",
			path, name, EnvVar)
	}
	return fmt.Errorf("CUDA cannot be used: %s; %s", withoutSourcePlace(err), hint)
}

// withoutSourcePlace drops the file, line and function of onnxruntime's source
// that stand before its messages, and those of CUDA's failures, which stand after.
func withoutSourcePlace(err error) string {
	msg := err.Error()
	if _, after, ok := strings.Cut(msg, "[ONNXRuntimeError] : "); ok {
		msg = after
	}
	msg, _, _ = strings.Cut(msg, " ; GPU=")
	return msg
}

// probeCUDA reports why the CUDA provider cannot be used.
func probeCUDA() error {
	options, err := onnxruntime.NewSessionOptions()
	if err != nil {
		return err
	}
	defer options.Destroy()
	if err := addCUDA(options, Options{}); err != nil {
		return explainCUDA(err)
	}
	return nil
}

func convertInfo(infos []onnxruntime.InputOutputInfo) []IO {
	list := make([]IO, len(infos))
	for i, info := range infos {
		list[i] = IO{Name: info.Name, Dims: slices.Clone([]int64(info.Dimensions))}
		if info.OrtValueType == onnxruntime.ONNXTypeTensor {
			list[i].DType = elementTypes[uint64(info.DataType)]
		}
	}
	return list
}

func names(list []IO) []string {
	out := make([]string, len(list))
	for i, io := range list {
		out[i] = io.Name
	}
	return out
}

func readMetadata(s *onnxruntime.DynamicAdvancedSession) (map[string]string, error) {
	md, err := s.GetModelMetadata()
	if err != nil {
		return nil, err
	}
	defer md.Destroy()
	keys, err := md.GetCustomMetadataMapKeys()
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(keys))
	for _, k := range keys {
		v, ok, err := md.LookupCustomMetadataMap(k)
		if err != nil {
			return nil, err
		}
		if ok {
			out[k] = v
		}
	}
	return out, nil
}

// Inputs describes the model's inputs, in the model's order.
func (s *Session) Inputs() []IO { return cloneIO(s.inputs) }

// Outputs describes the model's outputs, in the model's order.
func (s *Session) Outputs() []IO { return cloneIO(s.outputs) }

func cloneIO(list []IO) []IO {
	list = slices.Clone(list)
	for i := range list {
		list[i].Dims = slices.Clone(list[i].Dims)
	}
	return list
}

// Metadata returns a copy of the model's metadata_props.
func (s *Session) Metadata() map[string]string { return maps.Clone(s.metadata) }

// Provider tells where the session runs: CPU or CUDA.
func (s *Session) Provider() Provider { return s.provider }

// Run feeds every input by name and returns every output. The inputs' data must
// not change while it runs; the outputs' data belong to the caller.
func (s *Session) Run(inputs map[string]Tensor) (map[string]Tensor, error) {
	return s.RunContext(context.Background(), inputs)
}

// RunContext is Run that ends early when ctx does: onnxruntime stops after the operator
// that it is at, and the error is that of ctx.
func (s *Session) RunContext(ctx context.Context, inputs map[string]Tensor) (map[string]Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.session == nil {
		return nil, ErrClosed
	}
	if err := s.checkInputs(inputs); err != nil {
		return nil, err
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	in := make([]onnxruntime.Value, 0, len(s.inputs))
	defer func() { destroy(in) }()
	for _, io := range s.inputs {
		v, err := toValue(inputs[io.Name], &pinner)
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", io.Name, err)
		}
		in = append(in, v)
	}
	out := make([]onnxruntime.Value, len(s.outputs))
	defer func() { destroy(out) }()
	for i, io := range s.outputs {
		v, err := scalarOutput(io)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	if err := s.run(ctx, in, out); err != nil {
		return nil, err
	}
	results := make(map[string]Tensor, len(out))
	for i, v := range out {
		t, err := fromValue(v)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", s.outputs[i].Name, err)
		}
		results[s.outputs[i].Name] = t
	}
	return results, nil
}

// run runs the session, and has it terminated when ctx ends.
func (s *Session) run(ctx context.Context, in, out []onnxruntime.Value) error {
	options, err := onnxruntime.NewRunOptions()
	if err != nil {
		return err
	}
	defer options.Destroy()
	terminated := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(terminated)
		options.Terminate()
	})
	err = s.session.RunWithOptions(in, out, options)
	if !stop() { // before the options are destroyed
		<-terminated
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &RunError{err}
}

func (s *Session) checkInputs(inputs map[string]Tensor) error {
	want := names(s.inputs)
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if !slices.Contains(want, name) {
			return fmt.Errorf("the model has no input %q; its inputs are %s", name, strings.Join(want, ", "))
		}
	}
	for _, io := range s.inputs {
		t, ok := inputs[io.Name]
		if !ok {
			return fmt.Errorf("input %q is missing; the model's inputs are %s", io.Name, strings.Join(want, ", "))
		}
		if err := io.accepts(t); err != nil {
			return fmt.Errorf("input %s: %w", io.Name, err)
		}
	}
	return nil
}

// toValue wraps a tensor without copying; the pinner holds its memory in place
// for as long as onnxruntime has the address.
func toValue(t Tensor, pinner *runtime.Pinner) (onnxruntime.Value, error) {
	switch t.DType {
	case Float32:
		return newValue(t.Shape, t.F32, pinner)
	case Int64:
		return newValue(t.Shape, t.I64, pinner)
	case Bool:
		return newValue(t.Shape, t.Bool, pinner)
	case Float64:
		return newValue(t.Shape, t.F64, pinner)
	case String:
		v, err := onnxruntime.NewStringTensor(onnxruntime.Shape(t.Shape))
		if err != nil {
			return nil, err
		}
		if err := v.SetContents(t.Str); err != nil {
			v.Destroy()
			return nil, err
		}
		return v, nil
	}
	return nil, fmt.Errorf("a tensor of %v cannot be passed on", t.DType)
}

func newValue[T float32 | float64 | int64 | bool](shape []int64, data []T, pinner *runtime.Pinner) (onnxruntime.Value, error) {
	if len(shape) == 0 {
		return onnxruntime.NewScalar(data[0])
	}
	if len(data) > 0 {
		pinner.Pin(&data[0])
	}
	return onnxruntime.NewTensor(onnxruntime.Shape(shape), data)
}

// scalarOutput allocates outputs of rank 0, which the binding cannot do by
// itself; nil leaves the allocation to onnxruntime.
func scalarOutput(io IO) (onnxruntime.Value, error) {
	if len(io.Dims) > 0 {
		return nil, nil
	}
	switch io.DType {
	case Float32:
		return onnxruntime.NewEmptyScalar[float32]()
	case Int64:
		return onnxruntime.NewEmptyScalar[int64]()
	case Bool:
		return onnxruntime.NewEmptyScalar[bool]()
	}
	return nil, nil
}

func fromValue(v onnxruntime.Value) (Tensor, error) {
	switch v := v.(type) {
	case *onnxruntime.Tensor[float32]:
		return Float32s(v.GetData(), v.GetShape()...), nil
	case *onnxruntime.Tensor[int64]:
		return Int64s(v.GetData(), v.GetShape()...), nil
	case *onnxruntime.Tensor[bool]:
		return Bools(v.GetData(), v.GetShape()...), nil
	case *onnxruntime.Scalar[float32]:
		return Float32s([]float32{v.GetData()}), nil
	case *onnxruntime.Scalar[int64]:
		return Int64s([]int64{v.GetData()}), nil
	case *onnxruntime.Scalar[bool]:
		return Bools([]bool{v.GetData()}), nil
	}
	return Tensor{}, fmt.Errorf("values of %T are not supported", v)
}

func destroy(values []onnxruntime.Value) {
	for _, v := range values {
		if v != nil {
			v.Destroy()
		}
	}
}

// Close frees the session, after the runs in progress have ended.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return nil
	}
	err := s.session.Destroy()
	s.session = nil
	return err
}

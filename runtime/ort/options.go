package ort

import (
	"errors"
	"fmt"
	"strconv"
)

// Provider selects where a model runs.
type Provider string

const (
	// Auto takes CUDA where it works and the CPU elsewhere.
	Auto Provider = "auto"
	CPU  Provider = "cpu"
	CUDA Provider = "cuda"
)

// ParseProvider reads a provider's name; the empty string is Auto.
func ParseProvider(s string) (Provider, error) {
	switch p := Provider(s); p {
	case "":
		return Auto, nil
	case Auto, CPU, CUDA:
		return p, nil
	}
	return "", fmt.Errorf("unknown provider %q: choose auto, cpu or cuda", s)
}

// Optimization is how far onnxruntime rewrites a graph before it runs it.
type Optimization string

// The levels; the empty string is OptimizeAll.
const (
	OptimizeNone     Optimization = "none"
	OptimizeBasic    Optimization = "basic"
	OptimizeExtended Optimization = "extended"
	OptimizeAll      Optimization = "all"
)

// Options say how a session runs.
type Options struct {
	// Provider is Auto if empty.
	Provider Provider
	// Device is the number of the GPU, and MemoryLimit how many bytes of its memory the
	// session may take for tensors, 0 for no limit. Both are for CUDA.
	Device      int
	MemoryLimit int64
	// Threads within an operator; 0 leaves it to onnxruntime (one per core).
	Threads int
	// Optimization of the graph; OptimizeAll if empty.
	Optimization Optimization
	// Yield has threads that wait for work sleep at once. Otherwise they spin for a
	// while, which is faster where a process does nothing else.
	Yield bool
	// Release gives memory back to the system when a run ends. Otherwise a session keeps
	// as much as its largest run took, for the next.
	Release bool
	// Library to load; nil means what Locate finds. A process loads one library:
	// the first session decides.
	Library *Library
	// Log gets a line where Auto falls back to the CPU although there are signs
	// of a GPU, once per process. Nil drops it.
	Log func(format string, args ...any)
}

// CheckThreads refuses a negative number of threads.
func CheckThreads(n int) error {
	if n < 0 {
		return fmt.Errorf("%d threads asked for: give 0 (one per core) or more", n)
	}
	return nil
}

// check tells what is wrong with options.
func (o *Options) check(p Provider) error {
	if err := CheckThreads(o.Threads); err != nil {
		return err
	}
	switch {
	case o.Device < 0:
		return fmt.Errorf("there is no GPU number %d: they are numbered from 0", o.Device)
	case o.MemoryLimit < 0:
		return fmt.Errorf("a limit of %d bytes of the GPU's memory is none", o.MemoryLimit)
	case p == CPU && (o.Device != 0 || o.MemoryLimit != 0):
		return errors.New("a GPU's number and memory are for the provider cuda, not for cpu")
	}
	return nil
}

// cuda are the options of the CUDA provider. TF32 is switched off: its 10-bit mantissa
// would break the promise that every runtime agrees within 1e-4.
func (o *Options) cuda() map[string]string {
	m := map[string]string{"use_tf32": "0", "device_id": strconv.Itoa(o.Device)}
	if o.MemoryLimit > 0 {
		m["gpu_mem_limit"] = strconv.FormatInt(o.MemoryLimit, 10)
	}
	return m
}

// ErrNoCgo is returned where a session is asked of a program built without cgo.
var ErrNoCgo = errors.New("this gsrc was built without cgo, which onnxruntime sessions need: build it with CGO_ENABLED=1 and a C compiler, or run the model elsewhere")

// RunError is what onnxruntime says when a model that was given inputs of the right
// names, types and ranks fails.
type RunError struct{ Err error }

func (e *RunError) Error() string { return "onnxruntime: " + e.Err.Error() }

func (e *RunError) Unwrap() error { return e.Err }

// ErrClosed is returned by a session after Close.
var ErrClosed = errors.New("the onnxruntime session is closed")

// Facts is what `gsrc doctor` shows of onnxruntime.
type Facts struct {
	// Platform is GOOS/GOARCH.
	Platform string
	// Cgo tells whether this program can open sessions at all.
	Cgo bool
	// Wanted is the release that gsrc is tested with and fetches.
	Wanted string
	// Library in use; its Path is empty if none was found.
	Library Library
	// SHA256 of the library; Pinned names the pinned source it equals, or is
	// empty for a library from elsewhere.
	SHA256, Pinned string
	// Loaded is the version that the library reports once opened.
	Loaded string
	// Providers that sessions can use, and why not for the others.
	Providers []ProviderFact
	// Problem says what is wrong and what to do, empty if all is well.
	Problem string
}

// ProviderFact says whether a provider works.
type ProviderFact struct {
	Provider Provider
	Works    bool
	Reason   string // why it does not
}

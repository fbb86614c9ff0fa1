package driver

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Variable names the environment variable whose value, a path, is opened in place
// of the system's driver library.
const Variable = "GSRC_CUDA_DRIVER"

// A proc is a function of a library.
type proc struct {
	name string
	addr uintptr
}

// call calls a function whose result is a CUresult or another code that is 0 for
// success. Pointers among the arguments are converted in the call itself.
//
//go:uintptrescapes
func (p *proc) call(args ...uintptr) Code {
	r, _, _ := purego.SyscallN(p.addr, args...)
	return Code(int32(r))
}

// driverFunctions are those that the binding uses. Those whose interface changed over time are
// bound by the name of one version, whatever later drivers bring.
const driverFunctions = `
	cuInit cuDriverGetVersion cuGetErrorName cuGetErrorString cuDeviceGetCount cuDeviceGet cuDeviceGetName
	cuDeviceTotalMem_v2 cuDeviceGetAttribute cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent
	cuCtxSynchronize cuMemAlloc_v2 cuMemFree_v2 cuMemGetInfo_v2 cuMemHostAlloc cuMemFreeHost cuMemcpyHtoDAsync_v2
	cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemsetD8Async cuModuleLoadDataEx cuModuleUnload
	cuModuleGetFunction cuLaunchKernel cuStreamCreate cuStreamDestroy_v2 cuStreamSynchronize cuEventCreate
	cuEventDestroy_v2 cuEventRecord cuEventSynchronize cuEventElapsedTime cuStreamBeginCapture_v2
	cuStreamEndCapture cuGraphInstantiateWithFlags cuGraphLaunch cuGraphExecDestroy cuGraphDestroy cuGraphGetNodes`

// functionSince is which release of CUDA brought a function, of those that are not old.
var functionSince = map[string]string{
	"cuDevicePrimaryCtxRetain":     "7.0",
	"cuDevicePrimaryCtxRelease_v2": "11.0",
	"cuStreamBeginCapture_v2":      "10.1",
	"cuStreamEndCapture":           "10.0",
	"cuGraphInstantiateWithFlags":  "11.4",
	"cuGraphLaunch":                "10.0",
	"cuGraphExecDestroy":           "10.0",
	"cuGraphDestroy":               "10.0",
	"cuGraphGetNodes":              "10.0",
}

// procs are functions of a library by name.
type procs map[string]*proc

// bind finds the named functions, in their order up to one that is missing, which it returns.
func (p procs) bind(library uintptr, names string) (missing string) {
	for name := range strings.FieldsSeq(names) {
		addr, err := symbolAddress(library, name)
		if err != nil || addr == 0 {
			return name
		}
		p[name] = &proc{name, addr}
	}
	return ""
}

// OldestVersion is the release of CUDA that a driver must support.
const OldestVersion = Version(12000)

// Version is a release of CUDA as the driver counts it, 12040 for 12.4.
type Version int

func (v Version) String() string { return fmt.Sprintf("%d.%d", int(v)/1000, int(v)%1000/10) }

// Driver is the opened driver library.
type Driver struct {
	path    string
	version Version
	devices []Device
	fn      procs
}

// candidates are the names that a driver's library is looked for under, and what
// was asked for by a path.
func candidates(path string) ([]string, string) {
	if path != "" {
		return []string{path}, ""
	}
	if p := os.Getenv(Variable); p != "" {
		return []string{p}, " (from " + Variable + ")"
	}
	switch runtime.GOOS {
	case "linux":
		return []string{
			"libcuda.so.1",
			"/usr/lib/wsl/lib/libcuda.so.1",                  // Windows' subsystem for Linux
			"/usr/local/nvidia/lib64/libcuda.so.1",           // where Kubernetes mounts it
			"/run/opengl-driver/lib/libcuda.so.1",            // NixOS
			"/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1", // Jetson
		}, ""
	case "windows":
		return []string{"nvcuda.dll"}, ""
	}
	return nil, ""
}

// Open opens the driver's library at path. An empty path means what the environment
// variable GSRC_CUDA_DRIVER names, or else the system's: libcuda.so.1 on Linux,
// nvcuda.dll on Windows. The error is [ErrNoDriver] where there is none, and says
// what was tried; [ErrNoDevice] where there is a driver and no GPU.
func Open(path string) (*Driver, error) {
	names, from := candidates(path)
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: NVIDIA has none for %s", ErrNoDriver, runtime.GOOS)
	}
	var why string
	for _, name := range names {
		library, err := openLibrary(name)
		if err == nil {
			return bind(name, library)
		}
		// Of one that is there and cannot be loaded the reason counts.
		if text := strings.TrimSpace(err.Error()); why == "" && !strings.Contains(text, "No such file") {
			why = text
		}
	}
	switch {
	case why != "":
		return nil, fmt.Errorf("%w: %s cannot be opened%s: %s", ErrNoDriver, names[0], from, why)
	case path == "" && from == "":
		return nil, fmt.Errorf("%w: %s was not found; install NVIDIA's driver, or name its library by %s", ErrNoDriver, names[0], Variable)
	}
	return nil, fmt.Errorf("%w: %s%s: there is no such file", ErrNoDriver, names[0], from)
}

func bind(path string, library uintptr) (*Driver, error) {
	d := &Driver{path: path, fn: procs{}}
	if name := d.fn.bind(library, driverFunctions); name != "" {
		since := ""
		if v := functionSince[name]; v != "" {
			since = ", there since CUDA " + v
		}
		return nil, fmt.Errorf("%w: %s has no function %s%s; gsrc needs a driver for CUDA %s or later (525 or later)%s",
			ErrNoDriver, path, name, since, OldestVersion, d.versionNote())
	}
	err := d.do("cuInit", 0)
	var v int32
	if err == nil {
		err = d.do("cuDriverGetVersion", uintptr(unsafe.Pointer(&v)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d.version = Version(v)
	if d.version < OldestVersion {
		return nil, fmt.Errorf("%w: %s is for CUDA %s, and gsrc needs a driver for %s or later (525 or later)", ErrNoDriver, path, d.version, OldestVersion)
	}
	return d, d.list()
}

// versionNote is what a driver says of its version where a function is missing.
func (d *Driver) versionNote() string {
	var v int32
	if p := d.fn["cuDriverGetVersion"]; p == nil || p.call(uintptr(unsafe.Pointer(&v))) != 0 {
		return ""
	}
	return ", and this one is for " + Version(v).String()
}

// Path returns the name that the library was opened by.
func (d *Driver) Path() string { return d.path }

// Version returns the newest release of CUDA that the driver supports.
func (d *Driver) Version() Version { return d.version }

// Devices returns the GPUs, in the driver's order, which CUDA_VISIBLE_DEVICES
// changes. There is at least one.
func (d *Driver) Devices() []Device { return d.devices }

// fail makes an error of a code that a function of the driver returned.
func (d *Driver) fail(p *proc, c Code) *Error {
	e := &Error{Call: p.name, Code: c}
	e.Name, e.Text = d.text(d.fn["cuGetErrorName"], c), d.text(d.fn["cuGetErrorString"], c)
	return e
}

func (d *Driver) text(p *proc, c Code) string {
	var s *byte
	if p == nil || p.call(uintptr(c), uintptr(unsafe.Pointer(&s))) != 0 {
		return ""
	}
	return cString(s)
}

// do calls a function that needs no context, or makes one current.
//
//go:uintptrescapes
func (d *Driver) do(name string, args ...uintptr) error {
	p := d.fn[name]
	if c := p.call(args...); c != 0 {
		return d.fail(p, c)
	}
	return nil
}

// cString copies a text of C, which ends before a zero byte.
func cString(s *byte) string {
	if s == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(s), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(s, n))
}

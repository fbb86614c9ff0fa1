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

// procs are the functions that the binding uses. Those whose interface changed over
// time are bound by the name of one version, whatever later drivers bring.
type procs struct {
	init, driverGetVersion, getErrorName, getErrorString,
	deviceGetCount, deviceGet, deviceGetName, deviceTotalMem, deviceGetAttribute,
	primaryCtxRetain, primaryCtxRelease, ctxSetCurrent, ctxSynchronize,
	memAlloc, memFree, memGetInfo, memHostAlloc, memFreeHost,
	memcpyHtoDAsync, memcpyDtoHAsync, memcpyDtoDAsync, memsetD8Async,
	moduleLoadDataEx, moduleUnload, moduleGetFunction, launchKernel,
	streamCreate, streamDestroy, streamSynchronize,
	eventCreate, eventDestroy, eventRecord, eventSynchronize, eventElapsedTime,
	streamBeginCapture, streamEndCapture, graphInstantiate, graphLaunch,
	graphExecDestroy, graphDestroy, graphGetNodes proc
}

// binding says where a function goes and which release of CUDA brought it.
type binding struct {
	to    *proc
	name  string
	since string
}

func (p *procs) bindings() []binding {
	return []binding{
		{&p.init, "cuInit", ""},
		{&p.driverGetVersion, "cuDriverGetVersion", ""},
		{&p.getErrorName, "cuGetErrorName", ""},
		{&p.getErrorString, "cuGetErrorString", ""},
		{&p.deviceGetCount, "cuDeviceGetCount", ""},
		{&p.deviceGet, "cuDeviceGet", ""},
		{&p.deviceGetName, "cuDeviceGetName", ""},
		{&p.deviceTotalMem, "cuDeviceTotalMem_v2", ""},
		{&p.deviceGetAttribute, "cuDeviceGetAttribute", ""},
		{&p.primaryCtxRetain, "cuDevicePrimaryCtxRetain", "7.0"},
		{&p.primaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", "11.0"},
		{&p.ctxSetCurrent, "cuCtxSetCurrent", ""},
		{&p.ctxSynchronize, "cuCtxSynchronize", ""},
		{&p.memAlloc, "cuMemAlloc_v2", ""},
		{&p.memFree, "cuMemFree_v2", ""},
		{&p.memGetInfo, "cuMemGetInfo_v2", ""},
		{&p.memHostAlloc, "cuMemHostAlloc", ""},
		{&p.memFreeHost, "cuMemFreeHost", ""},
		{&p.memcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", ""},
		{&p.memcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", ""},
		{&p.memcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", ""},
		{&p.memsetD8Async, "cuMemsetD8Async", ""},
		{&p.moduleLoadDataEx, "cuModuleLoadDataEx", ""},
		{&p.moduleUnload, "cuModuleUnload", ""},
		{&p.moduleGetFunction, "cuModuleGetFunction", ""},
		{&p.launchKernel, "cuLaunchKernel", ""},
		{&p.streamCreate, "cuStreamCreate", ""},
		{&p.streamDestroy, "cuStreamDestroy_v2", ""},
		{&p.streamSynchronize, "cuStreamSynchronize", ""},
		{&p.eventCreate, "cuEventCreate", ""},
		{&p.eventDestroy, "cuEventDestroy_v2", ""},
		{&p.eventRecord, "cuEventRecord", ""},
		{&p.eventSynchronize, "cuEventSynchronize", ""},
		{&p.eventElapsedTime, "cuEventElapsedTime", ""},
		{&p.streamBeginCapture, "cuStreamBeginCapture_v2", "10.1"},
		{&p.streamEndCapture, "cuStreamEndCapture", "10.0"},
		{&p.graphInstantiate, "cuGraphInstantiateWithFlags", "11.4"},
		{&p.graphLaunch, "cuGraphLaunch", "10.0"},
		{&p.graphExecDestroy, "cuGraphExecDestroy", "10.0"},
		{&p.graphDestroy, "cuGraphDestroy", "10.0"},
		{&p.graphGetNodes, "cuGraphGetNodes", "10.0"},
	}
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
	d := &Driver{path: path}
	for _, b := range d.fn.bindings() {
		addr, err := symbolAddress(library, b.name)
		if err != nil || addr == 0 {
			since := ""
			if b.since != "" {
				since = ", there since CUDA " + b.since
			}
			return nil, fmt.Errorf("%w: %s has no function %s%s; gsrc needs a driver for CUDA %s or later (525 or later)%s",
				ErrNoDriver, path, b.name, since, OldestVersion, d.versionNote())
		}
		*b.to = proc{b.name, addr}
	}
	if c := d.fn.init.call(0); c != 0 {
		return nil, fmt.Errorf("%s: %w", path, d.fail(&d.fn.init, c))
	}
	var v int32
	if c := d.fn.driverGetVersion.call(uintptr(unsafe.Pointer(&v))); c != 0 {
		return nil, fmt.Errorf("%s: %w", path, d.fail(&d.fn.driverGetVersion, c))
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
	if d.fn.driverGetVersion.addr == 0 || d.fn.driverGetVersion.call(uintptr(unsafe.Pointer(&v))) != 0 {
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
	e.Name, e.Text = d.text(&d.fn.getErrorName, c), d.text(&d.fn.getErrorString, c)
	return e
}

func (d *Driver) text(p *proc, c Code) string {
	var s *byte
	if p.addr == 0 || p.call(uintptr(c), uintptr(unsafe.Pointer(&s))) != 0 {
		return ""
	}
	return cString(s)
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

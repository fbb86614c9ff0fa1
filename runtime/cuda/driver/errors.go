package driver

import (
	"errors"
	"fmt"
)

// What errors.Is compares the errors of this package with.
var (
	// ErrNoDriver: the driver's library is missing or too old.
	ErrNoDriver = errors.New("no usable NVIDIA driver")
	// ErrNoDevice: there is a driver, and no GPU that it lets this process use.
	ErrNoDevice = errors.New("no usable NVIDIA GPU")
	// ErrOutOfMemory: the device, or the host where page-locked memory was asked
	// for, has no room.
	ErrOutOfMemory = errors.New("out of memory on the GPU")
	// ErrLaunch: a kernel could not be started, or failed while it ran.
	ErrLaunch = errors.New("a kernel failed on the GPU")
	// ErrDeviceLost: the device is gone or broken.
	ErrDeviceLost = errors.New("the GPU was lost")
	// ErrModule: the driver does not take the PTX.
	ErrModule = errors.New("the driver refuses the kernels")
	// ErrCapture: a call that a stream being captured does not allow.
	ErrCapture = errors.New("a graph could not be captured")
	// ErrClosed: something was used after its Close.
	ErrClosed = errors.New("used after it was closed")
)

// Code is a result of the driver, a CUresult of cuda.h; 0 is success.
type Code int32

// The codes that gsrc treats in a way of their own.
const (
	CodeInvalidValue      Code = 1
	CodeOutOfMemory       Code = 2
	CodeDeviceUnavailable Code = 46
	CodeNoDevice          Code = 100
	CodeInvalidPTX        Code = 218
	CodeContextDestroyed  Code = 709
	CodeLaunchFailed      Code = 719
)

// Error is a call that the driver refused, or failed to do.
type Error struct {
	Call   string // the driver's function
	Code   Code
	Name   string // of the code, such as CUDA_ERROR_OUT_OF_MEMORY
	Text   string // the driver's words for it
	Detail string // what was asked for, or the log of the driver's compiler
}

// A class is what a code means to who has to act on it.
type class struct {
	kind error
	hint string
}

const (
	hintPoisoned = "this process cannot use the GPU any more: start it again, with --resume where it was training"
	hintVisible  = "look at nvidia-smi and at CUDA_VISIBLE_DEVICES"
)

// classOf tells what a code means; the zero class is a code without a meaning of its own.
func classOf(c Code) class {
	switch c {
	case 2:
		return class{ErrOutOfMemory, ""}
	case 3, 34, 803, 804:
		return class{ErrNoDriver, "the driver's library does not fit the driver that runs: install one version of both, and restart the machine after an update"}
	case 100, 101, 102:
		return class{ErrNoDevice, hintVisible}
	case 805, 806, 807, 808, 809, 810:
		return class{ErrNoDevice, "the GPU is shared by MPS, whose server gave no place: look at its log"}
	case 46, 214, 220, 721, 802, 999:
		return class{ErrDeviceLost, "look at nvidia-smi and the system's log (dmesg | grep -i xid); " + hintPoisoned}
	case 4, 709:
		return class{ErrClosed, ""}
	case 200, 209, 218, 222, 300:
		return class{ErrModule, "the kernels are PTX for compute capability 7.0 and up: a newer driver or GPU may be needed"}
	case 221, 223:
		return class{ErrModule, "the driver cannot compile PTX here: install all of its libraries (libnvidia-ptxjitcompiler) and unset CUDA_DISABLE_PTX_JIT"}
	case 701:
		return class{ErrLaunch, "the launch wants more threads, registers or shared memory than the GPU has"}
	case 702:
		return class{ErrLaunch, "the kernel ran longer than a GPU with a display allows; " + hintPoisoned}
	case 700, 710, 714, 715, 716, 717, 718, 719:
		return class{ErrLaunch, "a kernel queued before may be the one that failed, which CUDA_LAUNCH_BLOCKING=1 would tell; " + hintPoisoned}
	case 900, 901, 902, 903, 904, 905, 906, 907, 908:
		return class{ErrCapture, ""}
	}
	return class{}
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: error %d", e.Call, e.Code)
	if e.Name != "" {
		s = fmt.Sprintf("%s: %s (%s, %d)", e.Call, e.Text, e.Name, e.Code)
	}
	k := classOf(e.Code)
	if k.kind != nil {
		s = k.kind.Error() + ": " + s
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if k.hint != "" {
		s += "; " + k.hint
	}
	return s
}

// Unwrap returns one of the errors above, or nil for a code that none stands for.
func (e *Error) Unwrap() error { return classOf(e.Code).kind }

// Fatal tells whether the device takes no more work from this process.
func (e *Error) Fatal() bool {
	return e.Code != 701 && (e.Unwrap() == ErrLaunch || e.Unwrap() == ErrDeviceLost)
}

package cuda

import (
	"errors"

	"github.com/gsrc-dev/gsrc/runtime"
)

// Planner is a GPU as far as predictions go: it knows what there are kernels for and
// what workspace they need, and has no memory to run anything in. See
// [runtime.PredictMemory].
var Planner runtime.Device = &Device{DeviceBuffers: runtime.NewDeviceBuffers(noMemory{}), name: "cuda"}

var errNoMemory = errors.New("nothing runs on a device that only plans")

type noMemory struct{}

func (noMemory) Alloc(int) (uintptr, error)       { return 0, errNoMemory }
func (noMemory) Free(uintptr) error               { return errNoMemory }
func (noMemory) Upload(uintptr, []byte) error     { return errNoMemory }
func (noMemory) Download([]byte, uintptr) error   { return errNoMemory }
func (noMemory) Copy(uintptr, uintptr, int) error { return errNoMemory }

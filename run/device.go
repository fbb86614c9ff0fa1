package run

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/cuda"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
)

// Device is where programs run, taken into use.
type Device struct {
	runtime.Device // nil for the CPU
	// Line says what it is and why; empty for the CPU where that was asked for.
	Line string

	GPU *cuda.Device // nil for the CPU
}

// OpenDevice takes a device into use by its name: cpu; cuda, the first GPU, or
// cuda:1 and so on; auto, the first GPU where there is a driver and a GPU, and else
// the CPU. An empty name is cpu. tf32 lets a GPU's matrix products round to TF32.
func OpenDevice(name string, tf32 bool) (*Device, error) {
	if name == "" || name == "cpu" {
		return &Device{}, nil
	}
	ordinal, err := ordinalOf(name)
	if err != nil {
		return nil, err
	}
	gpu, err := cuda.Open(cuda.Options{TF32: tf32, Ordinal: ordinal})
	switch {
	case err == nil:
		return &Device{Device: gpu, Line: fmt.Sprintf("running on %s, matrix products by %s", gpu.Name(), gpu.Products()), GPU: gpu}, nil
	case name == "auto" && (errors.Is(err, driver.ErrNoDriver) || errors.Is(err, driver.ErrNoDevice)):
		return &Device{Line: fmt.Sprintf("running on the cpu: %v", err)}, nil
	}
	return nil, fmt.Errorf("cannot run on %s: %w; --device cpu runs without a GPU", name, err)
}

// CheckDevice refuses a name that is of no device, whether or not there is one.
func CheckDevice(name string) error {
	if name == "" || name == "cpu" {
		return nil
	}
	_, err := ordinalOf(name)
	return err
}

// ordinalOf reads the number of a GPU out of a device's name.
func ordinalOf(name string) (int, error) {
	if name == "cuda" || name == "auto" {
		return 0, nil
	}
	number, numbered := strings.CutPrefix(name, "cuda:")
	n, err := strconv.Atoi(number)
	if !numbered || err != nil || n < 0 {
		return 0, fmt.Errorf("there is no device %q: name cpu, cuda, cuda:1 and so on, or auto", name)
	}
	return n, nil
}

// Close gives the device back.
func (d *Device) Close() error {
	if d.GPU == nil {
		return nil
	}
	return d.GPU.Close()
}

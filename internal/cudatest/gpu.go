package cudatest

import (
	"errors"
	"os"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/mockdriver"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
)

// GPUVariable names the environment variable that, if set, has tests take the
// machine's GPU in place of the mock driver: make gpu-check sets it.
const GPUVariable = "GSRC_GPU"

// Either makes the mock driver the machine's driver, as [MockDriver] does, or with
// GPUVariable leaves the real one in place, for which it returns nil. The test is
// skipped where that finds no GPU.
func Either(tb testing.TB) *mockdriver.Library {
	tb.Helper()
	if os.Getenv(GPUVariable) == "" {
		return MockDriver(tb)
	}
	d, err := driver.Open("")
	if errors.Is(err, driver.ErrNoDriver) || errors.Is(err, driver.ErrNoDevice) {
		tb.Skipf("there is no GPU here: %v", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Logf("on %s, compute capability %s", d.Devices()[0].Name, d.Devices()[0].Capability())
	return nil
}

package driver

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestOpenNamesWhatIsMissing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "libcuda.so.1")
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{missing, text} {
		t.Setenv(Variable, "")
		if _, err := Open(path); !errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), Variable) {
			t.Errorf("Open(%s): %v", path, err)
		}
		t.Setenv(Variable, path)
		if _, err := Open(""); !errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), Variable) {
			t.Errorf("Open by %s: %v", Variable, err)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for _, x := range []struct {
		code  Code
		kind  error
		fatal bool
		want  string
	}{
		{CodeOutOfMemory, ErrOutOfMemory, false, "1 B asked for"},
		{CodeNoDevice, ErrNoDevice, false, "CUDA_VISIBLE_DEVICES"},
		{CodeDeviceUnavailable, ErrDeviceLost, true, "--resume"},
		{CodeLaunchFailed, ErrLaunch, true, "--resume"},
		{701, ErrLaunch, false, "shared memory"},
		{CodeInvalidPTX, ErrModule, false, "compute capability"},
		{900, ErrCapture, false, "captured"},
		{CodeInvalidValue, nil, false, "cuCall"},
	} {
		e := &Error{Call: "cuCall", Code: x.code, Name: "CUDA_X", Text: "text", Detail: "1 B asked for"}
		if x.kind != nil && !errors.Is(e, x.kind) || x.kind == nil && e.Unwrap() != nil || e.Fatal() != x.fatal || !strings.Contains(e.Error(), x.want) {
			t.Errorf("code %d: %v, fatal %v", x.code, e, e.Fatal())
		}
	}
}

func TestOpenWithoutDriver(t *testing.T) {
	t.Setenv(Variable, "")
	_, err := Open("")
	if err == nil || errors.Is(err, ErrNoDevice) {
		t.Skip("this machine has NVIDIA's driver")
	}
	if !errors.Is(err, ErrNoDriver) || runtime.GOOS == "linux" && !strings.Contains(err.Error(), "libcuda.so.1 was not found; install NVIDIA's driver") {
		t.Error(err)
	}
}

// A machine without the driver pays this at the start of a command that looks for a GPU.
func BenchmarkOpenWithoutDriver(b *testing.B) {
	b.Setenv(Variable, "")
	if _, err := Open(""); err == nil {
		b.Skip("this machine has NVIDIA's driver")
	}
	for b.Loop() {
		if _, err := Open(""); err == nil {
			b.Fatal("opened")
		}
	}
}

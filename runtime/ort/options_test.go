package ort

import (
	"reflect"
	"strings"
	"testing"
)

// The options of CUDA say what they should where there is no GPU, too.
func TestCUDAOptions(t *testing.T) {
	for _, x := range []struct {
		o    Options
		want map[string]string
	}{
		{Options{}, map[string]string{"use_tf32": "0", "device_id": "0"}},
		{Options{Device: 2, MemoryLimit: 3 << 30}, map[string]string{"use_tf32": "0", "device_id": "2", "gpu_mem_limit": "3221225472"}},
	} {
		if err := x.o.check(CUDA); err != nil {
			t.Error(err)
		}
		if got := x.o.cuda(); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%+v gives %v, want %v", x.o, got, x.want)
		}
	}
	for want, o := range map[string]Options{"GPU number -1": {Device: -1}, "limit of -5": {MemoryLimit: -5}, "not for cpu": {Device: 1}, "-1 threads": {Threads: -1}} {
		if err := o.check(CPU); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

func TestParsePlacement(t *testing.T) {
	got, err := parsePlacement([]byte(`[
{"cat":"Session","name":"session_initialization","args":{}},
{"cat":"Node","name":"a_fence_before","args":{"op_name":"MatMul"}},
{"cat":"Node","name":"a_kernel_time","args":{"op_name":"MatMul","provider":"CUDAExecutionProvider","node_index":"0"}},
{"cat":"Node","name":"b_kernel_time","args":{"op_name":"NonZero","provider":"CPUExecutionProvider"}},
{"cat":"Node","name":"a_kernel_time","args":{"op_name":"MatMul","provider":"CUDAExecutionProvider"}}]`))
	if want := []Placed{{"a", "MatMul", "CUDAExecutionProvider"}, {"b", "NonZero", "CPUExecutionProvider"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if got[0].OnCPU() || !got[1].OnCPU() {
		t.Error("the CPU is not told from the GPU")
	}
	if _, err := parsePlacement([]byte(`[{"cat":`)); err == nil {
		t.Error("half a profile is read")
	}
}

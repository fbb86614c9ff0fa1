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

package export

import (
	"errors"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// A session with bound inputs gives what it gives unbound, run after run, and the
// profile tells where each node ran.
func TestBind(t *testing.T) {
	d, o := openDist(t, "ecl-gsr/struct=3/l1", nil)
	options := ort.Options{Provider: ort.CPU, Threads: 1, Library: o.Library}
	if err := d.Warm(); err != nil {
		t.Fatal(err)
	}
	for role, info := range d.Manifest.Models {
		in, err := d.Manifest.TestTensors(info.TestData, "input", info.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Manifest.Session(role, options)
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Bind(in)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for _, out := range info.Outputs { // what is left from the run before is not an answer
				clear(b.Outputs()[out.Name].F32)
			}
			got, err := b.Run()
			if err != nil {
				t.Fatal(err)
			}
			for _, out := range info.Outputs {
				if !slices.Equal(got[out.Name].F32, want[out.Name].F32) || !slices.Equal(got[out.Name].Shape, want[out.Name].Shape) {
					t.Errorf("%s of the %s differs when bound", out.Name, role)
				}
			}
		}
		for range 2 {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := b.Run(); !errors.Is(err, ort.ErrClosed) {
			t.Errorf("a closed binding runs: %v", err)
		}
	}
}

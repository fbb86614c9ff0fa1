package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
)

// A trace has one event for each operation of the first runs of a function, with
// its shapes and its step, and nothing of later runs.
func TestTrace(t *testing.T) {
	m := ir.NewModule("t")
	b := m.NewFunc("f")
	x := b.Arg("x", ir.T(ir.F32, "N", "3"))
	b.Return("y", b.One("exp", nil, b.One("matmul", ir.Attrs{"tb": true}, x, x)))
	trace := NewTrace(2)
	f, err := NewFunction(m, "f", Options{Trace: trace})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Bind("x", F32([]float32{1, 2, 3, 4, 5, 6}, 2, 3)); err != nil {
		t.Fatal(err)
	}
	for step := range uint64(5) {
		if err := f.Run(7 + step); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := trace.Write(&out); err != nil {
		t.Fatal(err)
	}
	var file struct {
		TraceEvents []struct {
			Name, Ph string
			Ts, Dur  float64
			Pid, Tid int
			Args     map[string]any
		}
	}
	if err := json.Unmarshal(out.Bytes(), &file); err != nil {
		t.Fatalf("%v in\n%s", err, &out)
	}
	var got []string
	end := 0.0
	for _, e := range file.TraceEvents {
		if e.Ph != "X" {
			got = append(got, fmt.Sprint(e.Ph, " ", e.Name, " ", e.Args["name"]))
			continue
		}
		got = append(got, fmt.Sprint(e.Name, " ", e.Args["step"], " ", e.Args["shapes"]))
		if e.Ts < end || e.Dur < 0 {
			t.Errorf("%s begins at %v µs and takes %v, but what came before ends at %v", e.Name, e.Ts, e.Dur, end)
		}
		end = e.Ts + e.Dur
	}
	product, exp := "f32[2,3], f32[2,3] → f32[2,2]", "f32[2,2] → f32[2,2]"
	want := []string{"M process_name gsrc", "M thread_name @f",
		"matmul 7 " + product, "exp 7 " + exp, "matmul 8 " + product, "exp 8 " + exp}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("events\n%q, want\n%q", got, want)
	}
}

// The profile says how large values were.
func TestProfileHasExtents(t *testing.T) {
	m := ir.NewModule("t")
	b := m.NewFunc("f")
	x := b.Arg("x", ir.Type{DType: ir.F32, Layout: ir.CSR, Dims: ir.T(ir.F32, "N", "3").Dims})
	b.Return("y", b.One("matmul", nil, x, b.Arg("w", ir.T(ir.F32, "3", "4"))))
	f, err := NewFunction(m, "f", Options{Profile: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sparse, err := Sparse(2, 3, []int32{0, 1, 2}, []int32{2, 0}, []float32{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*Buffer{"x": sparse, "w": Zeros(3, 4)} {
		if err := f.Bind(name, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Run(0); err != nil {
		t.Fatal(err)
	}
	p := f.Main().Profile()
	if len(p) != 1 {
		t.Fatalf("%d operations ran, want 1", len(p))
	}
	if got := fmt.Sprint(p[0].In, p[0].Out); got != "[{[2 3] 2} {[3 4] 12}] [{[2 4] 8}]" {
		t.Errorf("extents %s", got)
	}
}

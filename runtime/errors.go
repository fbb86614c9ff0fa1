package runtime

import (
	"fmt"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
)

// OpError is a failure of one operation of a running program.
type OpError struct {
	Func   string // name of the function
	Op     *ir.Op
	Shapes string // types of the operands and results with their sizes
	Err    error
}

func (e *OpError) Error() string {
	line := ""
	if p := e.Op.Place; p != nil {
		line = fmt.Sprintf(" (line %d)", p.Line)
	}
	return fmt.Sprintf("@%s%s: %s: with %s: %v", e.Func, line, e.Op, e.Shapes, e.Err)
}

func (e *OpError) Unwrap() error { return e.Err }

func opError(f *ir.Func, k *Call, err error) *OpError {
	return &OpError{Func: f.Name, Op: k.Op, Shapes: "(" + shapes(k.In) + ") -> (" + shapes(k.Out) + ")", Err: err}
}

// shapes writes the types of values with their sizes: "f32[2708,128], f32[128,128]".
func shapes(bs []*Buffer) string {
	s := make([]string, len(bs))
	for i, b := range bs {
		s[i] = b.typeString()
	}
	return strings.Join(s, ", ")
}

// kernelFailed is the error of a kernel's panic, which kernels raise for slices that do not
// fit. A fault in a mapped file is one too, which whoever mapped it has to find in the error.
func kernelFailed(r any) error {
	if err, ok := r.(error); ok {
		return fmt.Errorf("kernel failed: %w", err)
	}
	return fmt.Errorf("kernel failed: %v", r)
}

// checkFinite reports the first NaN or infinity among results.
func checkFinite(d Device, k *Call) error {
	for i, b := range k.Out {
		if !k.Wanted(i) {
			continue
		}
		b, err := d.Export(b)
		if err != nil {
			return err
		}
		data := b.F32
		if b.Sparse != nil {
			data = b.Sparse.Values
		}
		for j, v := range data {
			if v-v != 0 {
				return fmt.Errorf("result %%%s is %v at element %d", k.Op.Results[i].Name, v, j)
			}
		}
	}
	return nil
}

// MemoryError says that a device has no room.
type MemoryError struct {
	Device string
	Asked  int // bytes that could not be had
	Held   int // bytes that the program has there already
	Err    error
}

func (e *MemoryError) Error() string {
	mib := func(n int) float64 { return float64(n) / (1 << 20) }
	return fmt.Sprintf("%s has no room for %.1f MiB more beside the %.1f MiB that the program holds there: %v", e.Device, mib(e.Asked), mib(e.Held), e.Err)
}

func (e *MemoryError) Unwrap() error { return e.Err }

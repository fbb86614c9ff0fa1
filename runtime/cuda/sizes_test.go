package cuda

import (
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/optest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// idle is a queue that nothing may be put on.
type idle struct{ t *testing.T }

func (q idle) Launch(kernel string, _, _ [3]uint32, _ uint32, _ ...uint64) error {
	q.t.Errorf("%s is launched", kernel)
	return nil
}

func (q idle) Copy(uintptr, uintptr, int) error { q.t.Error("a copy is queued"); return nil }

func (q idle) MatMul(MatMul) error { q.t.Error("a product is queued"); return nil }

func (q idle) Step() uintptr               { return 0 }
func (q idle) Fault(*ir.Op) (uintptr, int) { return 0, 0 }

// onCPU reports whether an operation of a case runs on the CPU only, which must then
// be what is said of it.
func onCPU(t *testing.T, m *ir.Module) bool {
	t.Helper()
	for _, op := range m.Func("f").Body {
		if why := onlyOnCPU(op); why != "" {
			if _, err := Lookup(op); err == nil || !strings.Contains(err.Error(), op.Name()+" has no CUDA kernel: "+why) {
				t.Errorf("%s: %v", op, err)
			}
			return true
		}
	}
	return false
}

// A tensor of 2³¹ elements, any operand or result, is refused before anything is
// queued, but for the operands whose kernels count further.
func TestTooManyElements(t *testing.T) {
	refused := map[string]bool{}
	for name, cases := range optest.Cases {
		for _, c := range cases {
			m, err := ir.Parse(name, c.Source(name))
			if err != nil {
				t.Fatal(err)
			}
			if onCPU(t, m) {
				continue
			}
			body := m.Func("f").Body
			op := body[slices.IndexFunc(body, func(op *ir.Op) bool { return op.Name() == name })]
			kernel, err := Lookup(op)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range slices.Concat(op.Operands, op.Results) {
				if at, ok := int64Indexed[name]; v == nil || v.Type.Layout != ir.Dense || v.Type.Rank() == 0 || ok && at == i {
					continue
				}
				k := &runtime.Call{Op: op}
				for j, w := range slices.Concat(op.Operands, op.Results) {
					var b *runtime.Buffer
					if w != nil {
						b = &runtime.Buffer{DType: w.Type.DType, Dims: slices.Repeat([]int{1}, w.Type.Rank())}
						switch {
						case w.Type.IsGraph():
							b.Graph = &graph.Structure{}
						case w.Type.Layout == ir.CSR:
							b.Sparse = &runtime.SparseMatrix{}
						case j == i && len(b.Dims) == 1:
							b.Dims[0] = 1 << 31
						case j == i:
							b.Dims[0], b.Dims[1] = 1<<21, 1<<10
						}
					}
					if j < len(op.Operands) {
						k.In = append(k.In, b)
					} else {
						k.Out = append(k.Out, b)
					}
				}
				if err := kernel(idle{t}, k); err == nil || !strings.Contains(err.Error(), "has 2147483648 elements") || !strings.Contains(err.Error(), "smaller batches") {
					t.Errorf("%s with 2³¹ elements in tensor %d: %v", name, i, err)
				}
				refused[name] = true
			}
		}
	}
	for _, name := range []string{"softmax", "l1_normalize", "l2_normalize_grad", "cross_entropy_grad", "edge_gather", "edge_softmax", "sddmm", "spmax", "columns", "pair_dot", "solve_upper"} {
		if !refused[name] {
			t.Errorf("%s was not tried", name)
		}
	}
}

// What follows a step refuses such tensors too, before anything is queued.
func TestTooManyElementsToReport(t *testing.T) {
	large := &runtime.Buffer{DType: ir.F32, Dims: []int{1 << 21, 1 << 10}}
	d := &Device{} // that would fail at anything
	if _, err := d.Finite(nil, nil, []*runtime.Buffer{large}); err == nil || !strings.Contains(err.Error(), "has 2147483648 elements") {
		t.Errorf("Finite: %v", err)
	}
	if err := d.EMAUpdate(large, large, 0.1); err == nil || !strings.Contains(err.Error(), "has 2147483648 elements") {
		t.Errorf("Follow: %v", err)
	}
}

// A product's inner dimension is divided into parts that cover it, none of them empty,
// for no more blocks than fill a device; short ones and those of many tiles are not.
func TestInnerParts(t *testing.T) {
	for _, m := range []int{1, 64, 65, 512, 5000} {
		for _, n := range []int{1, 3, 128, 1433} {
			for _, k := range []int{0, 1, 100, 255, 256, 257, 1433, 34493, 1 << 22} {
				per, parts := innerParts(m, n, k)
				tiles := (m + 63) / 64 * ((n + 63) / 64)
				if per%16 != 0 || parts*per < k || parts > 1 && ((parts-1)*per >= k || parts*tiles > 256 || per < 128) {
					t.Errorf("[%d,%d] · [%d,%d]: %d parts of %d", m, k, k, n, parts, per)
				}
				if want := k >= 256 && tiles <= 128; want != (parts > 1) {
					t.Errorf("[%d,%d] · [%d,%d] has %d tiles and %d parts", m, k, k, n, tiles, parts)
				}
			}
		}
	}
}

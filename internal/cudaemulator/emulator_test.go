//go:build darwin || linux

package cudaemulator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func open(t *testing.T) *Emulator {
	t.Helper()
	library, err := Build(t.TempDir(), "testdata/wrong.cu")
	if errors.Is(err, ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(library)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestFaultsAreFound(t *testing.T) {
	e := open(t)
	x := make([]float32, 64)
	at := uintptr(unsafe.Pointer(&x[0]))
	e.Register(at, 4*len(x))
	one := func(n uint32) [3]uint32 { return [3]uint32{n, 1, 1} }
	for _, c := range []struct {
		kernel string
		args   []uint64
		want   string
	}{
		{"test_outside", []uint64{uint64(at), 64}, "0 bytes behind a range of 256 bytes"},
		{"test_outside", []uint64{uint64(at) - 4096, 1}, "outside of all memory"},
		{"test_misaligned", []uint64{uint64(at)}, "no multiple of 8"},
		{"test_shared_outside", []uint64{uint64(at)}, "of the shared array tile, which has 64 elements"},
		{"test_left", []uint64{uint64(at)}, "waits for threads"},
		{"test_missing", nil, "there is no kernel test_missing"},
		{"test_outside", []uint64{uint64(at)}, "has 2 parameters, got 1"},
	} {
		for seed := range uint64(3) {
			e.Seed(seed)
			err := e.Launch(c.kernel, one(2), one(32), 0, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, seed %d: error %v, want %q in it", c.kernel, seed, err, c.want)
			}
		}
	}
	if err := e.Launch("test_warp", one(1), one(2000), 0, uint64(at)); err == nil {
		t.Error("a block of 2000 threads was launched")
	}
	if err := e.Launch("test_warp", one(1), one(64), 0, uint64(at)); err != nil {
		t.Fatalf("after the faults: %v", err)
	}
	if x[0] != 496 || x[31] != 496 || x[32] != 1520 {
		t.Errorf("warp sums %v", x)
	}
	e.Unregister(at)
	if err := e.Launch("test_warp", one(1), one(64), 0, uint64(at)); err == nil {
		t.Error("memory that was taken back was written")
	}
}

// Orders that a device does not promise change with the seed; those that it does
// promise hold.
func TestRacesShow(t *testing.T) {
	e := open(t)
	x := make([]float32, 64)
	at := uintptr(unsafe.Pointer(&x[0]))
	e.Register(at, 4*len(x))
	for _, c := range []struct {
		kernel string
		blocks uint32
		args   []uint64
		races  bool
	}{
		{"test_race", 1, []uint64{uint64(at), 64}, true},
		{"test_ordered", 1, []uint64{uint64(at), 64}, false},
		{"test_blocks", 50, []uint64{uint64(at)}, true},
		{"test_warp_race", 1, []uint64{uint64(at)}, true},
		{"test_warp_ordered", 1, []uint64{uint64(at)}, false},
	} {
		var first []float32
		differ := false
		for seed := range uint64(4) {
			e.Seed(seed)
			if err := e.Launch(c.kernel, [3]uint32{c.blocks, 1, 1}, [3]uint32{64, 1, 1}, 0, c.args...); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = slices.Clone(x)
			}
			differ = differ || !slices.Equal(first, x)
		}
		if differ != c.races {
			t.Errorf("%s: seeds differ: %v, want %v", c.kernel, differ, c.races)
		}
	}
}

func TestLowerAndBallot(t *testing.T) {
	e := open(t)
	x := []int32{1 << 30, 0}
	at := uintptr(unsafe.Pointer(&x[0]))
	e.Register(at, 8)
	if err := e.Launch("test_lower", [3]uint32{50, 1, 1}, [3]uint32{64, 1, 1}, 0, uint64(at)); err != nil {
		t.Fatal(err)
	}
	if x[0] != 100 || uint32(x[1]) != 0xaaaaaaaa {
		t.Errorf("the smallest is %d and the votes %x, want 100 and aaaaaaaa", x[0], uint32(x[1]))
	}
	if err := e.Launch("test_lower", [3]uint32{1, 1, 1}, [3]uint32{40, 1, 1}, 0, uint64(at)); err == nil {
		t.Error("a block of 40 threads voted")
	}
}

// What is no instruction that the emulator knows is named.
func TestUnknownPTX(t *testing.T) {
	const module = ".visible .entry f(\n\t.param .u32 f_param_0\n)\n.maxntid 256, 1, 1\n{\n\t.reg .b32 \t%%r<3>;\n\tld.param.u32 \t%%r1, [f_param_0];\n\t%s \t%%r2, %%r1, %%r1;\n\tret;\n\n}\n"
	if c, err := fromPTX(fmt.Sprintf(module, "mul.lo.s32")); err != nil || !strings.Contains(c, "r_[2] = (unsigned)((unsigned)r_[1] * (unsigned)r_[1]);") {
		t.Errorf("%v:\n%s", err, c)
	}
	if _, err := fromPTX(fmt.Sprintf(module, "lop3.b32")); err == nil || !strings.Contains(err.Error(), `f: the emulator does not know "lop3.b32`) {
		t.Error(err)
	}
	if _, err := fromPTX(""); err == nil {
		t.Error("no kernel is no error")
	}
}

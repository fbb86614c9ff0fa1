package safetensors

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func example() *File {
	big := make([]float32, 40000)
	for i := range big {
		big[i] = float32(i) / 7
	}
	return &File{
		Metadata: map[string]string{"step": "12", "model": `g"c\n`},
		Tensors: []Tensor{
			{Name: "w", Shape: []int{2, 3}, Data: []float32{1, -2, float32(math.Inf(1)), 0, 5e-42, 6}},
			{Name: "scalar", Shape: []int{}, Data: []int64{-7}},
			{Name: "edges", Shape: []int{1, 2}, Data: []int32{3, math.MinInt32}},
			{Name: "none", Shape: []int{0, 5}, Data: []float32{}},
			{Name: "flags", Shape: []int{3}, Data: []uint8{0, 1, 255}},
			{Name: "big", Shape: []int{200, 200}, Data: big},
		},
	}
}

func bytesOf(t *testing.T, f *File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	want := example()
	text := bytesOf(t, want)
	if !bytes.Equal(text, bytesOf(t, example())) {
		t.Error("two writes of the same contents differ")
	}
	if n := binary.LittleEndian.Uint64(text); n%8 != 0 {
		t.Errorf("the header has %d bytes, so the data is not aligned", n)
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want.Sealed = true
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read back %d tensors, %v, sealed %v", len(got.Tensors), got.Metadata, got.Sealed)
	}
	if w, err := Get[float32](got, "w", 2, -1); err != nil || w[1] != -2 {
		t.Errorf("w is %v (%v)", w, err)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{second(Get[float32](got, "absent")), `no tensor "absent"`},
		{second(Get[int64](got, "w", 2, 3)), "holds []float32, want []int64"},
		{second(Get[float32](got, "w", 3, 2)), "has the shape [2 3], want [3 2]"},
		{second(Get[float32](got, "w", 6)), "has the shape [2 3], want [6]"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", c.err, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Whatever bit of a file is turned, it is refused, or is none with a checksum any more.
func TestEveryTurnedBitIsFound(t *testing.T) {
	f := example()
	f.Tensors = f.Tensors[:5]
	good := bytesOf(t, f)
	if !bytes.Contains(good, []byte(`{"__metadata__":{"checksum":"crc32c:`)) {
		t.Fatalf("the header begins with %q", good[8:60])
	}
	unsealed := 0
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			got, err := Parse(bad)
			if err != nil {
				continue
			}
			if got.Sealed {
				t.Fatalf("bit %d of byte %d is turned, and the file is read", bit, i)
			}
			unsealed++
		}
	}
	if unsealed > 8*len(`"checksum":"crc32c:00000000"`) {
		t.Errorf("%d files had no checksum any more", unsealed)
	}
}

func TestWriteErrors(t *testing.T) {
	for want, f := range map[string]*File{
		"taken twice":         {Tensors: []Tensor{{Name: "a", Data: []float32{1}}, {Name: "a", Data: []float32{1}}}},
		"reserved":            {Tensors: []Tensor{{Name: "__metadata__", Data: []float32{1}}}},
		"has 1 elements":      {Tensors: []Tensor{{Name: "a", Shape: []int{2}, Data: []float32{1}}}},
		"float64 are not sup": {Tensors: []Tensor{{Name: "a", Data: []float64{1}}}},
	} {
		if err := f.Write(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// file assembles a file from a header and data.
func file(header, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestHostileFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "cut off"},
		{"short", []byte{1, 2, 3}, "cut off"},
		{"header beyond the end", file("{}", "")[:9], "cut off"},
		{"huge header", binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "no safetensors file"},
		{"no JSON", file("hello", ""), "not a JSON object"},
		{"list", file("[]", ""), "not a JSON object"},
		{"cut JSON", file(`{"a":{"dtype":"F32"`, ""), "header"},
		{"trailing JSON", file(`{} {}`, ""), "bytes follow"},
		{"twice", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, "x"), "stands twice"},
		{"unknown field", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"code":"x"}}`, "x"), "unknown field"},
		{"unknown type", file(`{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}`, "xx"), `"F16" are not supported`},
		{"overlap", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, "xxx"), "ends at 2"},
		{"gap", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, "xx"), "ends at 0"},
		{"beyond the end", file(`{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}`, "xx"), "bytes 0 to 9 of 2"},
		{"negative offset", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,-1]}}`, ""), "bytes 0 to -1"},
		{"wrong size", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, "xxxx"), "the data has 4 bytes"},
		{"negative shape", file(`{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}}`, ""), "out of range"},
		{"overflowing shape", file(`{"a":{"dtype":"U8","shape":[2147483647,2147483647,2147483647,2147483647,4],"data_offsets":[0,0]}}`, ""), "out of range"},
		{"huge shape", file(`{"a":{"dtype":"I64","shape":[2147483647,2147483647],"data_offsets":[0,8]}}`, "xxxxxxxx"), "the data has 8 bytes"},
		{"left over", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, "xx"), "belong to no tensor"},
		{"metadata of numbers", file(`{"__metadata__":{"a":1}}`, ""), "__metadata__"},
	} {
		if _, err := Parse(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	var b bytes.Buffer
	if err := example().Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes()[:600])
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, "xxxx"))
	f.Add(file(`{"__metadata__":{"a":"b"},"a":{"dtype":"U8","shape":[0,3],"data_offsets":[0,0]}}`, ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Parse(data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := got.Write(&b); err != nil {
			t.Fatalf("cannot write what was read: %v", err)
		}
		again, err := Parse(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var c bytes.Buffer
		if err := again.Write(&c); err != nil || !bytes.Equal(b.Bytes(), c.Bytes()) {
			t.Fatalf("contents change from one writing to the next (%v)", err)
		}
	})
}

// A header whose length reads like the first bytes of a pickle is a header.
func TestHeadersOfEveryLength(t *testing.T) {
	for n := range 1500 {
		f := File{Metadata: map[string]string{"a": strings.Repeat("x", n)}}
		var b bytes.Buffer
		if err := f.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(b.Bytes()); err != nil {
			t.Fatalf("%d characters of metadata: %v", n, err)
		}
	}
}

// Package safetensors reads and writes the safetensors format: named tensors
// behind a JSON header, with nothing in a file that could be executed.
//
// A file is eight bytes with the header's length (little-endian), the header,
// and the data. The header is a JSON object from tensor name to
// {"dtype", "shape", "data_offsets": [begin, end)}, offsets counting from the end
// of the header, and may have an object "__metadata__" of texts. The tensors
// cover the data without gaps or overlaps. (https://huggingface.co/docs/safetensors)
//
// Of the format's element types the package knows F32, I64, I32 and U8, the ones
// that gsrc writes.
//
// Files are written with a checksum of all their bytes, CRC-32C, as the entry
// "checksum" of "__metadata__", which other readers pass over. It is taken with its
// digits as zeros. Files that have one are held against it when they are read.
package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/seal"
)

// maxHeader bounds the header that is read. The reference implementation allows
// 100 MB; a header of gsrc's is a few kilobytes.
const maxHeader = 16 << 20

// metadataKey is the header's key that is not a tensor.
const metadataKey = "__metadata__"

// checksumKey is the entry of the metadata with the checksum. Callers do not see it.
const checksumKey = "checksum"

// Tensor is a named array in row-major order.
type Tensor struct {
	Name  string
	Shape []int
	Data  any // []float32, []int64, []int32 or []uint8, with as many elements as Shape says
}

// File is the contents of a safetensors file.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor // in the order of their data
	// Sealed tells that the file was read, and had a checksum, which held.
	Sealed bool
}

// entry is a tensor in the header.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// element is what a tensor holds.
type element interface {
	float32 | int64 | int32 | uint8
}

// dtype returns the format's name of the element type and the number of elements.
func dtype(data any) (name string, n int, err error) {
	switch d := data.(type) {
	case []float32:
		return "F32", len(d), nil
	case []int64:
		return "I64", len(d), nil
	case []int32:
		return "I32", len(d), nil
	case []uint8:
		return "U8", len(d), nil
	}
	return "", 0, fmt.Errorf("elements of type %T are not supported", data)
}

// Write writes the file. The same contents give the same bytes.
func (f *File) Write(w io.Writer) error {
	var h bytes.Buffer
	metadata := maps.Clone(f.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[checksumKey] = seal.Blank
	text, err := json.Marshal(metadata) // sorts the keys
	if err != nil {
		return err
	}
	fmt.Fprintf(&h, "{%q:%s", metadataKey, text)
	seen := map[string]bool{metadataKey: true}
	at := int64(0)
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if seen[t.Name] {
			return fmt.Errorf("safetensors: the name %q is taken twice, or reserved", t.Name)
		}
		seen[t.Name] = true
		name, n, err := dtype(t.Data)
		if err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
		}
		e := entry{DType: name, Shape: []int64{}, Offsets: [2]int64{at, at + int64(binary.Size(t.Data))}}
		want := 1
		for _, d := range t.Shape {
			e.Shape = append(e.Shape, int64(d))
			want *= d
		}
		if want != n {
			return fmt.Errorf("safetensors: tensor %q has %d elements, its shape %v says %d", t.Name, n, t.Shape, want)
		}
		at = e.Offsets[1]
		key, err := json.Marshal(t.Name)
		if err != nil {
			return err
		}
		val, err := json.Marshal(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(&h, ",%s:%s", key, val)
	}
	h.WriteByte('}')
	for h.Len()%8 != 0 { // so that the data is aligned
		h.WriteByte(' ')
	}
	head := append(binary.LittleEndian.AppendUint64(nil, uint64(h.Len())), h.Bytes()...)
	whole := func(w io.Writer) error {
		_, err := w.Write(head)
		for i := 0; err == nil && i < len(f.Tensors); i++ {
			err = writeData(w, f.Tensors[i].Data)
		}
		return err
	}
	sum := seal.New()
	if err := whole(sum); err != nil {
		return err
	}
	seal.Put(head, sum.Sum32())
	return whole(w)
}

func writeData(w io.Writer, data any) error {
	switch d := data.(type) {
	case []float32:
		return writeElements(w, d)
	case []int64:
		return writeElements(w, d)
	case []int32:
		return writeElements(w, d)
	}
	_, err := w.Write(data.([]uint8))
	return err
}

// writeElements writes elements little-endian, in pieces, so that a large tensor
// needs no second copy.
func writeElements[T element](w io.Writer, data []T) error {
	var buf []byte
	for piece := range slices.Chunk(data, 1<<14) {
		var err error
		if buf, err = binary.Append(buf[:0], binary.LittleEndian, piece); err == nil {
			_, err = w.Write(buf)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadFile reads the file at path.
func ReadFile(path string) (*File, error) {
	data, err := budget.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Parse reads a file's contents and checks all of it: lengths, names, types, that
// the tensors cover the data exactly, and the checksum if it has one. It allocates no more than a small
// multiple of what it is given.
func Parse(data []byte) (*File, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("safetensors: %d bytes are too few for a file; it seems to be cut off", len(data))
	}
	if bytes.HasPrefix(data, []byte("PK\x03\x04")) || data[0] == 0x80 && data[1] >= 2 && data[1] <= 5 && !bytes.HasPrefix(data[2:], []byte("\x00\x00\x00\x00\x00\x00{")) {
		return nil, errors.New(`safetensors: this is a file of torch.save (.pt), a pickle, or an archive; write the tensors from Python: safetensors.torch.save_file({k: v.contiguous() for k, v in torch.load("model.pt", weights_only=True).items()}, "model.safetensors")`)
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader {
		return nil, fmt.Errorf("safetensors: the header is said to be %d bytes, more than the %d allowed; this is no safetensors file", n, maxHeader)
	}
	if n > uint64(len(data)-8) {
		return nil, fmt.Errorf("safetensors: the header is said to be %d bytes, but only %d follow; the file seems to be cut off", n, len(data)-8)
	}
	header, body := data[8:8+n], data[8+n:]
	f := &File{}
	var err error
	if f.Sealed, err = seal.Check(data[:8], header, body); err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	entries, err := f.header(header)
	if err != nil {
		return nil, fmt.Errorf("safetensors: header: %w", err)
	}
	if f.Sealed {
		if delete(f.Metadata, checksumKey); len(f.Metadata) == 0 {
			f.Metadata = nil
		}
	}
	slices.SortStableFunc(entries, func(a, b named) int { return slices.Compare(a.Offsets[:], b.Offsets[:]) })
	at := int64(0)
	for _, e := range entries {
		if e.Offsets[0] != at || e.Offsets[1] < at || e.Offsets[1] > int64(len(body)) {
			return nil, fmt.Errorf("safetensors: tensor %q lies at bytes %d to %d of %d; the one before it ends at %d", e.name, e.Offsets[0], e.Offsets[1], len(body), at)
		}
		t, err := e.tensor(body[e.Offsets[0]:e.Offsets[1]])
		if err != nil {
			return nil, fmt.Errorf("safetensors: tensor %q: %w", e.name, err)
		}
		f.Tensors = append(f.Tensors, t)
		at = e.Offsets[1]
	}
	if at != int64(len(body)) {
		return nil, fmt.Errorf("safetensors: %d bytes of data belong to no tensor", int64(len(body))-at)
	}
	return f, nil
}

type named struct {
	name string
	entry
}

// header reads the JSON header key by key, so that a name that stands twice is
// noticed.
func (f *File) header(text []byte) ([]named, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var entries []named
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := t.(string)
		if !ok {
			return nil, fmt.Errorf("a key is %v, not a text", t)
		}
		if seen[name] {
			return nil, fmt.Errorf("%q stands twice", name)
		}
		seen[name] = true
		if name == metadataKey {
			if err := d.Decode(&f.Metadata); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		e := named{name: name}
		if err := d.Decode(&e.entry); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		entries = append(entries, e)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if rest := bytes.TrimSpace(text[d.InputOffset():]); len(rest) != 0 {
		return nil, fmt.Errorf("%d bytes follow the JSON object", len(rest))
	}
	return entries, nil
}

func (e *named) tensor(data []byte) (Tensor, error) {
	t := Tensor{Name: e.name, Shape: []int{}}
	var err error
	switch e.DType {
	case "F32":
		t.Data, err = decode[float32](e, data)
	case "I64":
		t.Data, err = decode[int64](e, data)
	case "I32":
		t.Data, err = decode[int32](e, data)
	case "U8":
		t.Data, err = decode[uint8](e, data)
	default:
		err = fmt.Errorf("elements of type %q are not supported; F32, I64, I32 and U8 are", e.DType)
	}
	for _, d := range e.Shape {
		t.Shape = append(t.Shape, int(d))
	}
	return t, err
}

func decode[T element](e *named, data []byte) ([]T, error) {
	n := int64(1)
	for _, d := range e.Shape {
		if d < 0 || d > math.MaxInt32 || n > math.MaxInt32*8 {
			return nil, fmt.Errorf("shape %v is out of range", e.Shape)
		}
		n *= d
	}
	size := int64(binary.Size(T(0)))
	if n > int64(len(data)) || n*size != int64(len(data)) {
		return nil, fmt.Errorf("shape %v of %s is %d elements of %d bytes, the data has %d bytes", e.Shape, e.DType, n, size, len(data))
	}
	x := make([]T, n)
	_, err := binary.Decode(data, binary.LittleEndian, x)
	return x, err
}

// Lookup returns the tensor of a name, or nil.
func (f *File) Lookup(name string) *Tensor {
	if i := slices.IndexFunc(f.Tensors, func(t Tensor) bool { return t.Name == name }); i >= 0 {
		return &f.Tensors[i]
	}
	return nil
}

// Get returns the elements of the tensor of a name. It is an error if there is
// none, or if it has another element type or shape; a negative dimension fits
// any size.
func Get[T element](f *File, name string, shape ...int) ([]T, error) {
	t := f.Lookup(name)
	if t == nil {
		return nil, fmt.Errorf("safetensors: there is no tensor %q", name)
	}
	x, ok := t.Data.([]T)
	if !ok {
		return nil, fmt.Errorf("safetensors: tensor %q holds %T, want %T", name, t.Data, x)
	}
	fits := len(shape) == len(t.Shape)
	for i := 0; fits && i < len(shape); i++ {
		fits = shape[i] < 0 || shape[i] == t.Shape[i]
	}
	if !fits {
		return nil, fmt.Errorf("safetensors: tensor %q has the shape %v, want %v", name, t.Shape, shape)
	}
	return x, nil
}

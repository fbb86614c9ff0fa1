package serve

import (
	"encoding/binary"
	"math"
)

// setBytes reads elements in binary form: little-endian, and of text the length as
// uint32 before each.
func (t *Tensor) setBytes(data []byte) error {
	size := 0
	switch t.Datatype {
	case FP32:
		size = 4
	case INT64:
		size = 8
	case BYTES:
		for len(data) > 0 {
			if len(data) < 4 {
				return invalid("the binary data of the input %.60q end within the length of a text", t.Name)
			}
			n := binary.LittleEndian.Uint32(data)
			data = data[4:]
			if uint64(n) > uint64(len(data)) {
				return invalid("the binary data of the input %.60q end within a text", t.Name)
			}
			t.Text, data = append(t.Text, string(data[:n])), data[n:]
		}
		return nil
	default:
		return t.check() // which says what is wrong with the data type
	}
	if len(data)%size != 0 {
		return invalid("the input %.60q has %d bytes, and an element of %s has %d", t.Name, len(data), t.Datatype, size)
	}
	n := len(data) / size
	if t.Datatype == FP32 {
		t.F32 = make([]float32, n)
		for i := range t.F32 {
			t.F32[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		return nil
	}
	t.I64 = make([]int64, n)
	for i := range t.I64 {
		t.I64[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return nil
}

// binaryBytes counts the bytes of the binary form.
func (t *Tensor) binaryBytes() int {
	n := 4*len(t.F32) + 8*len(t.I64)
	for _, v := range t.Text {
		n += 4 + len(v)
	}
	return n
}

// appendBytes adds the elements in binary form.
func (t *Tensor) appendBytes(b []byte) []byte {
	for _, v := range t.F32 {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	for _, v := range t.I64 {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range t.Text {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return b
}

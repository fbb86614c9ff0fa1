//go:build cgo

package ort

import (
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// signature reads the inputs and outputs of a model from its file. onnxruntime's binding
// opens a session of its own for that, which takes as long as the one that runs. ok is
// false where a model has others than tensors of declared rank, or does not parse: then
// onnxruntime is asked. Numbers are those of fields in onnx.proto.
func signature(model []byte) (in, out []IO, ok bool) {
	graphs := 0
	constant := map[string]bool{} // inputs with a value in the file, which nobody feeds
	ok = eachField(model, func(n protowire.Number, graph []byte, _ uint64) bool {
		if n != 7 {
			return true
		}
		graphs++
		return eachField(graph, func(n protowire.Number, value []byte, _ uint64) bool {
			switch n {
			case 5: // initializer
				name, ok := stringField(value, 8)
				constant[name] = true
				return ok
			case 11, 12:
				v, ok := valueInfo(value)
				if n == 11 {
					in = append(in, v)
				} else {
					out = append(out, v)
				}
				return ok
			}
			return n != 15 // sparse initializers
		})
	})
	in = slices.DeleteFunc(in, func(v IO) bool { return constant[v.Name] })
	return in, out, ok && graphs == 1
}

// valueInfo reads a ValueInfoProto of a tensor.
func valueInfo(b []byte) (v IO, ok bool) {
	v.Dims = []int64{}
	ranked := false
	ok = eachField(b, func(n protowire.Number, value []byte, _ uint64) bool {
		switch n {
		case 1:
			v.Name = string(value)
		case 2: // type
			return eachField(value, func(n protowire.Number, tensor []byte, _ uint64) bool {
				return n == 6 || n == 1 && eachField(tensor, func(n protowire.Number, shape []byte, elements uint64) bool {
					switch n {
					case 1:
						v.DType = elementTypes[elements]
					case 2:
						ranked = true
						return eachField(shape, func(n protowire.Number, dim []byte, _ uint64) bool {
							size := int64(-1)
							ok := n == 1 && eachField(dim, func(n protowire.Number, _ []byte, value uint64) bool {
								if n == 1 {
									size = int64(min(value, math.MaxInt64))
								}
								return true
							})
							v.Dims = append(v.Dims, size)
							return ok
						})
					}
					return true
				})
			})
		}
		return true
	})
	return v, ok && ranked && v.Name != ""
}

// elementTypes are those of TensorProto that tensors of this package have, by their numbers,
// which are onnxruntime's too; others are 0.
var elementTypes = map[uint64]DType{1: Float32, 7: Int64, 8: String, 9: Bool, 11: Float64}

// stringField returns a field of a message.
func stringField(b []byte, field protowire.Number) (s string, ok bool) {
	ok = eachField(b, func(n protowire.Number, value []byte, _ uint64) bool {
		if n == field {
			s = string(value)
		}
		return true
	})
	return s, ok
}

// eachField calls f for the fields of a message until it returns false: with the bytes of
// one that has a length, and the number of an integer. It is false if f was or the message
// is damaged.
func eachField(b []byte, f func(n protowire.Number, value []byte, number uint64) bool) bool {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return false
		}
		b = b[size:]
		var value []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			value, size = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(b)
		default:
			size = protowire.ConsumeFieldValue(n, kind, b)
		}
		if size < 0 || !f(n, value, number) {
			return false
		}
		b = b[size:]
	}
	return true
}

// Package parquetcell says what the values of Parquet's columns are, so that every reader of tables takes them alike.
package parquetcell

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/gsrc-dev/gsrc/internal/half"
)

// Check returns an error where the values of a column are not what is stored, as decimals and times are not.
func Check(name string, t parquet.Type) error {
	if l := t.LogicalType(); l != nil && l.UTF8 == nil && l.Enum == nil && l.Integer == nil && l.Float16 == nil {
		return fmt.Errorf("the column %q is of type %s, which is not read: write numbers or texts", name, l)
	}
	return nil
}

// Unsigned reports whether a column is of integers without a sign, which its values do not say.
func Unsigned(t parquet.Type) bool {
	logical := t.LogicalType()
	return logical != nil && logical.Integer != nil && !logical.Integer.IsSigned
}

// Text is a value as CSV has it, in digits that give a number back. One of fixed length is of float16.
func Text(v parquet.Value, unsigned bool) string {
	switch kind := v.Kind(); {
	case kind == parquet.Boolean && v.Boolean():
		return "1"
	case kind == parquet.Boolean:
		return "0"
	case kind == parquet.FixedLenByteArray:
		return strconv.FormatFloat(float64(half.To(binary.LittleEndian.Uint16(v.ByteArray()))), 'g', -1, 32)
	case kind == parquet.Int32 && unsigned:
		return strconv.FormatUint(uint64(v.Uint32()), 10)
	case kind == parquet.Int64 && unsigned:
		return strconv.FormatUint(v.Uint64(), 10)
	case kind == parquet.Int32: // Int64 does not extend its sign
		return strconv.Itoa(int(v.Int32()))
	case kind == parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10)
	case kind == parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32)
	case kind == parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	}
	return string(v.ByteArray())
}

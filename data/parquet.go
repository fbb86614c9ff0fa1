package data

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

// tableFile reads edges.csv or nodes.csv of a folder, or the Parquet file of that name
// with the same columns, as the CSV file that it stands for. path names the file that
// was read; there is none where it is empty.
func (l *loader) tableFile(dir string, names []string, name string) (path string, text []byte, err error) {
	base := strings.TrimSuffix(name, ".csv")
	hasText, hasParquet := slices.Contains(names, name), slices.Contains(names, base+".parquet")
	switch {
	case hasText && hasParquet:
		return "", nil, badFile(dir, "has both %s and %s.parquet", name, base).hint("keep one of them")
	case hasParquet:
		path = filepath.Join(dir, base+".parquet")
		b, err := l.file(path)
		if err != nil {
			return "", nil, err
		}
		defer l.done(b)
		text, err = parquetText(b, l.mem)
		var exceeded *budget.ExceededError
		if errors.As(err, &exceeded) {
			return "", nil, fileFault(path, err)
		}
		if err != nil {
			return "", nil, badFile(path, "not a table that can be read: %v", err).hint("columns are numbers, booleans or text, without nesting")
		}
		return path, text, nil
	case hasText:
		path = filepath.Join(dir, name)
		text, err = l.file(path)
		return path, text, err
	}
	return "", nil, nil
}

// parquetText writes a Parquet table as CSV with a header, in memory of mem. Every number
// is written in digits that give it back.
func parquetText(b []byte, mem *budget.Reservation) (text []byte, err error) {
	defer func() { // what the library makes of a damaged file
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	rows, reading, err := checkParquet(b, mem)
	if err != nil {
		return nil, err
	}
	if err := mem.Grow(reading); err != nil {
		return nil, err
	}
	defer mem.Shrink(reading)
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	var header []string
	for _, field := range f.Schema().Fields() {
		if !field.Leaf() || field.Repeated() {
			return nil, fmt.Errorf("the column %q is nested", field.Name())
		}
		if logical := field.Type().LogicalType(); logical != nil && logical.UTF8 == nil && logical.Integer == nil && logical.Enum == nil {
			return nil, fmt.Errorf("the column %q is of type %s", field.Name(), logical)
		}
		header = append(header, field.Name())
	}
	// A cell takes a byte at least; a row, as a node or an edge, several times that.
	if err := taking(mem, budget.Mul(rows, int64(len(header))+32), func() error { return nil }); err != nil {
		return nil, err
	}
	var line bytes.Buffer
	w := csv.NewWriter(&line)
	write := func(cells []string, size int64) error {
		return taking(mem, 4*size, func() error {
			line.Reset()
			if err := w.Write(cells); err != nil {
				return err
			}
			if w.Flush(); w.Error() != nil {
				return w.Error()
			}
			if text, err = room(mem, text, line.Len()); err == nil {
				text = append(text, line.Bytes()...)
			}
			return err
		})
	}
	if err := write(header, int64(len(b))); err != nil {
		return nil, err
	}
	cells := make([]string, len(header))
	buffer := make([]parquet.Row, max(1, 256/len(header)))
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		for {
			n, end := rows.ReadRows(buffer)
			for _, row := range buffer[:n] {
				if len(row) != len(header) {
					return nil, fmt.Errorf("a row has %d values for %d columns", len(row), len(header))
				}
				size := int64(32 * len(header))
				for _, v := range row {
					if v.Kind() == parquet.ByteArray {
						size += int64(len(v.ByteArray()))
					}
				}
				if err := taking(mem, size, func() error {
					for _, v := range row {
						if cells[v.Column()], err = cell(v); err != nil {
							return err
						}
					}
					return write(cells, size)
				}); err != nil {
					return nil, err
				}
			}
			if errors.Is(end, io.EOF) {
				break
			}
			if end != nil {
				return nil, end
			}
		}
		if err := rows.Close(); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// cell is a value as CSV has it; what is missing is empty.
func cell(v parquet.Value) (string, error) {
	switch {
	case v.IsNull():
		return "", nil
	case v.Kind() == parquet.Boolean:
		if v.Boolean() {
			return "1", nil
		}
		return "0", nil
	case v.Kind() == parquet.Int32:
		return strconv.Itoa(int(v.Int32())), nil
	case v.Kind() == parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10), nil
	case v.Kind() == parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32), nil
	case v.Kind() == parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64), nil
	case v.Kind() == parquet.ByteArray:
		return string(v.ByteArray()), nil
	}
	return "", fmt.Errorf("values of type %s are not read", v.Kind())
}

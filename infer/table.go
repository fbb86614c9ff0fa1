package infer

import (
	"archive/zip"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/sbinet/npyio"
)

// column is a column of a table that is written to a file. One of the functions is set,
// which gives its values by row.
type column struct {
	name   string
	text   func(row int) string
	number func(row int) int64
	float  func(row int) float32
}

// rowsAtOnce is how many rows are written between two words on progress.
const rowsAtOnce = 1 << 10

// eachRow calls write with rows 0 to n-1, some at a time.
func eachRow(n int, progress func(done, total int), write func(first, end int) error) error {
	for first := 0; first < n; first += rowsAtOnce {
		end := min(n, first+rowsAtOnce)
		if err := write(first, end); err != nil {
			return err
		}
		if progress != nil {
			progress(end, n)
		}
	}
	return nil
}

// writeCSV writes a header and n rows.
func writeCSV(w io.Writer, n int, columns []column, progress func(done, total int)) error {
	c := csv.NewWriter(w)
	row := make([]string, len(columns))
	for i := range columns {
		row[i] = columns[i].name
	}
	if err := c.Write(row); err != nil {
		return err
	}
	err := eachRow(n, progress, func(first, end int) error {
		for r := first; r < end; r++ {
			for i := range columns {
				switch x := &columns[i]; {
				case x.text != nil:
					row[i] = x.text(r)
				case x.number != nil:
					row[i] = strconv.FormatInt(x.number(r), 10)
				default:
					row[i] = strconv.FormatFloat(float64(x.float(r)), 'g', -1, 32)
				}
			}
			if err := c.Write(row); err != nil {
				return err
			}
		}
		return nil
	})
	c.Flush()
	if err != nil {
		return err
	}
	return c.Error()
}

// orderedGroup is a Parquet group whose columns stand in an order of their own.
type orderedGroup struct {
	parquet.Group
	fields []parquet.Field
}

func (g orderedGroup) Fields() []parquet.Field { return g.fields }

// rowGroupValues is about how many values a row group has.
const rowGroupValues = 4 << 20

// writeParquet writes n rows. Columns with the name in dict are dictionary-encoded.
func writeParquet(w io.Writer, n int, columns []column, dict string, progress func(done, total int)) error {
	g := orderedGroup{Group: parquet.Group{}}
	for i := range columns {
		x := &columns[i]
		switch {
		case x.text != nil && x.name == dict:
			g.Group[x.name] = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		case x.text != nil:
			g.Group[x.name] = parquet.String()
		case x.number != nil:
			g.Group[x.name] = parquet.Leaf(parquet.Int64Type)
		default:
			g.Group[x.name] = parquet.Leaf(parquet.FloatType)
		}
	}
	sorted := g.Group.Fields()
	for i := range columns {
		g.fields = append(g.fields, sorted[slices.IndexFunc(sorted, func(f parquet.Field) bool { return f.Name() == columns[i].name })])
	}
	p := parquet.NewWriter(w, parquet.NewSchema("table", g), parquet.Compression(&parquet.Snappy),
		parquet.MaxRowsPerRowGroup(int64(max(rowsAtOnce, rowGroupValues/max(1, len(columns)))))) // which is held in memory
	rows := make([]parquet.Row, 0, rowsAtOnce)
	err := eachRow(n, progress, func(first, end int) error {
		rows = rows[:0]
		for r := first; r < end; r++ {
			row := make(parquet.Row, len(columns))
			for i := range columns {
				var v parquet.Value
				switch x := &columns[i]; {
				case x.text != nil:
					v = parquet.ByteArrayValue([]byte(x.text(r)))
				case x.number != nil:
					v = parquet.Int64Value(x.number(r))
				default:
					v = parquet.FloatValue(x.float(r))
				}
				row[i] = v.Level(0, 0, i)
			}
			rows = append(rows, row)
		}
		_, err := p.WriteRows(rows)
		return err
	})
	if err != nil {
		return err
	}
	return p.Close()
}

// array is an array of an .npz file: a slice that npyio writes, or what write does.
type array struct {
	name  string
	value any
	write func(w io.Writer) error
}

// arrayOf collects n rows of a column.
func (c *column) arrayOf(n int) array {
	a := array{name: c.name}
	switch {
	case c.text != nil:
		a.value = collect(n, c.text)
	case c.number != nil:
		a.value = collect(n, c.number)
	default:
		a.value = collect(n, c.float)
	}
	return a
}

func collect[T any](n int, f func(int) T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = f(i)
	}
	return all
}

func writeNPZ(w io.Writer, arrays []array) error {
	z := zip.NewWriter(w)
	for _, a := range arrays {
		f, err := z.Create(a.name + ".npy")
		if err != nil {
			return err
		}
		if a.write == nil {
			a.write = func(w io.Writer) error { return npyio.Write(w, a.value) }
		}
		if err := a.write(f); err != nil {
			return err
		}
	}
	return z.Close()
}

// writeMatrix writes a .npy file of float32 [n, cols], for which npyio has no form, row
// after row.
func writeMatrix(w io.Writer, n, cols int, row func(i int) []float32, progress func(done, total int)) error {
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", n, cols)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	start := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	if _, err := w.Write(append(start, header...)); err != nil {
		return err
	}
	var b []byte
	return eachRow(n, progress, func(first, end int) error {
		b = b[:0]
		for i := first; i < end; i++ {
			for _, v := range row(i) {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
		}
		_, err := w.Write(b)
		return err
	})
}

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

	"github.com/gsrc-dev/gsrc/internal/lists"
)

// column is a column of a table that is written to a file: of texts, numbers or floats. Its values
// are given by row.
type column struct {
	name  string
	node  parquet.Node // its type in a Parquet file
	value func(row int) parquet.Value
	cell  func(row int) string // of a CSV file
	array func(rows int) any   // for npyio
}

func texts(name string, f func(row int) string) column {
	return column{name, parquet.String(), func(i int) parquet.Value { return parquet.ByteArrayValue([]byte(f(i))) }, f, func(n int) any { return lists.Of(n, f) }}
}

func numbers(name string, f func(row int) int64) column {
	return column{name, parquet.Leaf(parquet.Int64Type), func(i int) parquet.Value { return parquet.Int64Value(f(i)) },
		func(i int) string { return strconv.FormatInt(f(i), 10) }, func(n int) any { return lists.Of(n, f) }}
}

func floats(name string, f func(row int) float32) column {
	return column{name, parquet.Leaf(parquet.FloatType), func(i int) parquet.Value { return parquet.FloatValue(f(i)) },
		func(i int) string { return strconv.FormatFloat(float64(f(i)), 'g', -1, 32) }, func(n int) any { return lists.Of(n, f) }}
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
	row := lists.Map(columns, func(x column) string { return x.name })
	if err := c.Write(row); err != nil {
		return err
	}
	err := eachRow(n, progress, func(first, end int) error {
		for r := first; r < end; r++ {
			for i := range columns {
				row[i] = columns[i].cell(r)
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
	for _, x := range columns {
		if x.name == dict {
			x.node = parquet.Encoded(x.node, &parquet.RLEDictionary)
		}
		g.Group[x.name] = x.node
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
				row[i] = columns[i].value(r).Level(0, 0, i)
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
func (c *column) arrayOf(n int) array { return array{name: c.name, value: c.array(n)} }

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

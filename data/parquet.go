package data

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/parquetcell"
)

// tableFile is a CSV file, unpacked, or a Parquet file that stands for one, held in memory.
type tableFile struct {
	path    string // empty: there is no such file
	bytes   []byte
	parquet bool
}

// parquetRows reads the rows of a Parquet table one after another, the names of its
// columns first, in memory of mem.
type parquetRows struct {
	header []string
	unread []string // of each column why it is not read; empty where it is
	count  int64
	groups []parquet.RowGroup
	rows   parquet.Rows  // of the first of groups; nil before its first row
	buffer []parquet.Row // rows that have been read
	left   []parquet.Row // of them, those that have not been given out
	cells  []string
	at     []int                        // of each column in rows, where it stands among all
	write  []func(parquet.Value) string // a value of each column as CSV has it
	line   int                          // of a CSV file with these rows

	mem     *budget.Reservation
	reading int64 // what the library takes of it
	row     int64 // what the row that was given out takes
}

func openParquet(b []byte, mem *budget.Reservation) (_ *parquetRows, err error) {
	p := &parquetRows{mem: mem}
	defer damagedParquet(&err)
	t, err := checkParquet(b, mem)
	if err != nil {
		return nil, err
	}
	p.count, p.reading = t.rows, t.bytes
	if err := mem.Grow(p.reading); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			mem.Shrink(p.reading)
		}
	}()
	f, err := parquet.OpenFile(t.file, t.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	fields := f.Schema().Fields()
	for i, c := range t.columns {
		p.header, p.unread = append(p.header, c.name), append(p.unread, c.unread)
		if c.at < 0 {
			continue
		}
		field := fields[c.at]
		unsigned := parquetcell.Unsigned(field.Type())
		write := func(v parquet.Value) string { return parquetcell.Text(v, unsigned) }
		logical, kind := field.Type().LogicalType(), field.Type().Kind()
		switch {
		case logical != nil && logical.Date != nil && kind == parquet.Int32:
			write = func(v parquet.Value) string { return time.Unix(86400*int64(v.Int32()), 0).UTC().Format(time.DateOnly) }
		case logical != nil && logical.Timestamp != nil && kind == parquet.Int64 && logical.Timestamp.Unit.Millis != nil:
			write = stamp(time.UnixMilli)
		case logical != nil && logical.Timestamp != nil && kind == parquet.Int64 && logical.Timestamp.Unit.Micros != nil:
			write = stamp(time.UnixMicro)
		case logical != nil && logical.Timestamp != nil && kind == parquet.Int64 && logical.Timestamp.Unit.Nanos != nil:
			write = stamp(func(n int64) time.Time { return time.Unix(0, n) })
		default:
			if err := parquetcell.Check(c.name, field.Type()); err != nil {
				p.unread[i] = err.Error()
			}
		}
		p.write, p.at = append(p.write, write), append(p.at, i)
	}
	// A cell takes a byte at least; a row, as a node or an edge, several times that.
	least := budget.Mul(p.count, int64(len(p.header))+32)
	if err := mem.Grow(least); err != nil {
		return nil, err
	}
	mem.Shrink(least)
	p.groups, p.cells, p.buffer = f.RowGroups(), make([]string, len(p.header)), make([]parquet.Row, max(1, 256/len(p.header)))
	return p, nil
}

// damagedParquet makes an error of what the library makes of a damaged file.
func damagedParquet(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the file is damaged: %v", p)
	}
}

// Read returns the next row, valid until the one after it; io.EOF behind the last. Every
// number is written in digits that give it back.
func (p *parquetRows) Read() (cells []string, err error) {
	defer damagedParquet(&err)
	if p.line++; p.line == 1 {
		return p.header, nil
	}
	p.mem.Shrink(p.row)
	p.row = 0
	for len(p.left) == 0 {
		if len(p.groups) == 0 {
			return nil, io.EOF
		}
		if p.rows == nil {
			p.rows = p.groups[0].Rows()
		}
		n, err := p.rows.ReadRows(p.buffer)
		if p.left = p.buffer[:n]; errors.Is(err, io.EOF) {
			err = p.rows.Close()
			p.rows, p.groups = nil, p.groups[1:]
		}
		if err != nil {
			return nil, err
		}
	}
	row := p.left[0]
	p.left = p.left[1:]
	if len(row) != len(p.at) {
		return nil, fmt.Errorf("a row has %d values for %d columns", len(row), len(p.at))
	}
	size := int64(32 * len(row))
	for _, v := range row {
		if v.Kind() == parquet.ByteArray {
			size += int64(len(v.ByteArray()))
		}
	}
	if err := p.mem.Grow(size); err != nil {
		return nil, err
	}
	p.row = size
	for _, v := range row {
		i := p.at[v.Column()]
		p.cells[i] = "" // what is missing
		if !v.IsNull() && p.unread[i] == "" {
			p.cells[i] = p.write[v.Column()](v)
		}
	}
	return p.cells, nil
}

// FieldPos tells which line of a CSV file the row would be.
func (p *parquetRows) FieldPos(int) (line, column int) { return p.line, 0 }

func (p *parquetRows) close() {
	if p.rows != nil {
		p.rows.Close()
	}
	p.mem.Shrink(p.reading + p.row)
}

// stamp returns what writes a time, in UTC, that is counted as of wants it.
func stamp(of func(int64) time.Time) func(parquet.Value) string {
	return func(v parquet.Value) string { return of(v.Int64()).UTC().Format(time.RFC3339Nano) }
}

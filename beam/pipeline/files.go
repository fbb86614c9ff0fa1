package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	"github.com/parquet-go/parquet-go"

	"github.com/gsrc-dev/gsrc/internal/half"
	"github.com/gsrc-dev/gsrc/internal/parquetcell"
)

// FeaturesColumn is the column of the nodes' files with all features of a node, a list of floats.
// Files without it have a column of numbers for each.
const FeaturesColumn = "x"

// Names of the other columns that are read, and of those of nodes that are no features.
const (
	idColumn     = "id"
	sourceColumn = "source"
	targetColumn = "target"
)

var noFeatures = []string{idColumn, "label", "split"}

// Chunk is some rows of a file.
type Chunk struct {
	Path       string
	Row, Count int64 // in the file
	Number     int64 // of its first row, in all files of its kind
	Index      int64 // of the chunk, in all of them
}

// directedKey is that of the metadata of edges' files by which [WriteShards] says whether they have a direction.
const directedKey = "gsrc.directed"

// chunks divides the files that match a pattern, in the order of their names. check may refuse one.
func chunks(ctx context.Context, pattern string, most int64, check func(*parquetFile) error) (list []Chunk, rows int64, err error) {
	fs, err := filesystem.New(ctx, pattern)
	if err != nil {
		return nil, 0, err
	}
	defer fs.Close()
	paths, err := fs.List(ctx, pattern)
	if err != nil {
		return nil, 0, err
	}
	if len(paths) == 0 {
		return nil, 0, fmt.Errorf("no file is called %s", pattern)
	}
	slices.Sort(paths)
	if err := gap(paths); err != nil {
		return nil, 0, err
	}
	for _, path := range paths {
		f, err := openParquet(ctx, path)
		if err != nil {
			return nil, 0, err
		}
		n, err := f.NumRows(), check(f)
		f.Close()
		if err != nil {
			return nil, 0, err
		}
		for at := int64(0); at < n; at += most {
			list = append(list, Chunk{path, at, min(most, n-at), rows + at, int64(len(list))})
		}
		rows += n
	}
	return list, rows, nil
}

// ofShards finds the numbers in the name of a file that is one of several.
var ofShards = regexp.MustCompile(`-(\d+)-of-(\d+)[^/]*$`)

// gap returns an error where files lack one of those that are numbered together, from 0 or from 1. What
// stands behind the numbers may differ.
func gap(paths []string) error {
	type numbered struct{ prefix, of string }
	there := map[numbered][]int{}
	for _, path := range paths {
		if m := ofShards.FindStringSubmatchIndex(path); m != nil {
			of := numbered{path[:m[2]], path[m[4]:m[5]]}
			i, _ := strconv.Atoi(path[m[2]:m[3]])
			there[of] = append(there[of], i)
		}
	}
	for _, path := range paths {
		m := ofShards.FindStringSubmatchIndex(path)
		if m == nil {
			continue
		}
		numbers := there[numbered{path[:m[2]], path[m[4]:m[5]]}]
		n, _ := strconv.Atoi(path[m[4]:m[5]])
		first := 0
		if slices.Contains(numbers, n) && !slices.Contains(numbers, 0) {
			first = 1
		}
		for i := first; i < first+n; i++ {
			if !slices.Contains(numbers, i) {
				return fmt.Errorf("%s%0*d-of-%s is missing: %s is one of %d files", path[:m[2]], m[3]-m[2], i, path[m[4]:m[5]], path, n)
			}
		}
	}
	return nil
}

// readFile reads a file of any file system.
func readFile(ctx context.Context, path string) ([]byte, error) {
	fs, err := filesystem.New(ctx, path)
	if err != nil {
		return nil, err
	}
	defer fs.Close()
	return filesystem.Read(ctx, fs, path)
}

type parquetFile struct {
	*parquet.File
	io.Closer
	path  string
	uint  []bool  // by column: integers have no sign
	half  []bool  // likewise: it is of float16
	wrong []error // likewise: why it cannot be read
}

// openParquet opens a file, which is read into memory where it is not local.
func openParquet(ctx context.Context, path string) (_ *parquetFile, err error) {
	defer damaged(path, &err)
	f := &parquetFile{path: path}
	var from io.ReaderAt
	var size int64
	if local(path) {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		if err != nil {
			file.Close()
			return nil, err
		}
		from, size, f.Closer = file, info.Size(), file
	} else {
		b, err := readFile(ctx, path)
		if err != nil {
			return nil, err
		}
		from, size, f.Closer = bytes.NewReader(b), int64(len(b)), io.NopCloser(nil)
	}
	f.File, err = parquet.OpenFile(from, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		f.Close()
		return nil, err
	}
	for _, e := range f.Metadata().Schema {
		if e.Type != nil { // a leaf
			f.half = append(f.half, e.LogicalType != nil && e.LogicalType.Float16 != nil)
		}
	}
	for _, path := range f.Schema().Columns() {
		leaf, _ := f.Schema().Lookup(path...)
		f.uint = append(f.uint, parquetcell.Unsigned(leaf.Node.Type()))
		f.wrong = append(f.wrong, parquetcell.Check(path[0], leaf.Node.Type()))
	}
	return f, nil
}

// damaged names the file in an error, also in one that the library makes a panic of.
func damaged(path string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: the file is damaged: %v", path, p)
	} else if *err != nil && !strings.Contains((*err).Error(), path) {
		*err = fmt.Errorf("%s: %w", path, *err)
	}
}

// leaves returns the numbers of columns by name. A list has the name of what it is a list of.
func (f *parquetFile) leaves() map[string]int {
	at := map[string]int{}
	for i, path := range f.Schema().Columns() {
		at[path[0]] = i
	}
	return at
}

// rows calls visit with the rows of a chunk, numbered from 0, whose values are valid within it.
func (f *parquetFile) rows(c Chunk, visit func(i int, row parquet.Row) error) (err error) {
	defer damaged(f.path, &err)
	buffer := make([]parquet.Row, 64)
	skip, i := c.Row, 0
	for _, g := range f.RowGroups() {
		if skip >= g.NumRows() {
			skip -= g.NumRows()
			continue
		}
		rows := g.Rows()
		err := rows.SeekToRow(skip)
		skip = 0
		for err == nil && int64(i) < c.Count {
			var n int
			n, err = rows.ReadRows(buffer[:min(int64(len(buffer)), c.Count-int64(i))])
			for _, row := range buffer[:n] {
				if e := visit(i, row); e != nil {
					return errors.Join(fmt.Errorf("%s, row %d: %w", f.path, c.Row+int64(i)+1, e), rows.Close())
				}
				i++
			}
		}
		if e := rows.Close(); err == nil || errors.Is(err, io.EOF) {
			err = e
		}
		if err != nil {
			return err
		}
		if int64(i) == c.Count {
			return nil
		}
	}
	return fmt.Errorf("%s has fewer rows than when the pipeline was made", f.path)
}

// text is an id as the data write it.
func (f *parquetFile) text(v parquet.Value) (string, error) {
	switch {
	case v.IsNull():
	case v.Kind() == parquet.ByteArray, v.Kind() == parquet.Int32, v.Kind() == parquet.Int64:
		return parquetcell.Text(v, f.uint[v.Column()]), nil
	}
	return "", errors.New("the id is missing, or neither a text nor an integer")
}

// number is a feature as models read it, which has to be finite.
func (f *parquetFile) number(v parquet.Value) (float32, error) {
	x, err := f.float(v)
	if err == nil && (math.IsNaN(float64(x)) || math.IsInf(float64(x), 0)) {
		err = fmt.Errorf("a feature is %v in 32 bits, not a finite number", x)
	}
	return x, err
}

func (f *parquetFile) float(v parquet.Value) (float32, error) {
	switch kind := v.Kind(); {
	case kind == parquet.Float:
		return v.Float(), nil
	case kind == parquet.Double:
		return float32(v.Double()), nil
	case kind == parquet.Int32 && f.uint[v.Column()]:
		return float32(v.Uint32()), nil
	case kind == parquet.Int64 && f.uint[v.Column()]:
		return float32(v.Uint64()), nil
	case kind == parquet.Int32: // Int64 does not extend its sign
		return float32(v.Int32()), nil
	case kind == parquet.Int64:
		return float32(v.Int64()), nil
	case kind == parquet.Boolean:
		if v.Boolean() {
			return 1, nil
		}
		return 0, nil
	case kind == parquet.FixedLenByteArray && f.half[v.Column()] && len(v.ByteArray()) == 2:
		return half.To(binary.LittleEndian.Uint16(v.ByteArray())), nil
	case v.IsNull():
		return 0, errors.New("a feature is missing")
	}
	return 0, fmt.Errorf("a feature is of type %s, which is no number", v.Kind())
}

// listed reports whether features are in a list, and not a column called as it is.
func (f *parquetFile) listed() bool {
	return slices.ContainsFunc(f.Schema().Columns(), func(path []string) bool {
		leaf, ok := f.Schema().Lookup(path...)
		return ok && path[0] == FeaturesColumn && leaf.MaxRepetitionLevel > 0
	})
}

// featureColumns returns the columns that are features of a file, in its order; nil where they are in a list.
func featureColumns(ctx context.Context, path string) (names []string, err error) {
	f, err := openParquet(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.listed() {
		return nil, nil
	}
	for _, column := range f.Schema().Columns() {
		if !slices.Contains(noFeatures, column[0]) {
			names = append(names, column[0])
		}
	}
	return names, nil
}

// readNodes reads the ids and the features of a chunk. names are the columns of the features in
// the model's order, or in that of the first file where the model's have no names; nil where these
// are in a list.
func readNodes(ctx context.Context, c Chunk, names []string, width int) (ids []string, x []float32, err error) {
	f, err := openParquet(ctx, c.Path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	leaves := f.leaves()
	id, ok := leaves[idColumn]
	if !ok {
		return nil, nil, fmt.Errorf("%s has no column %s, which names the nodes", c.Path, idColumn)
	}
	list, listed := leaves[FeaturesColumn], f.listed()
	at := map[int]int{} // place of a column's value among the features
	if !listed {
		if names == nil {
			return nil, nil, fmt.Errorf("%s has no list %s of all features, which another file has", c.Path, FeaturesColumn)
		}
		for i, name := range names {
			column, ok := leaves[name]
			if !ok {
				return nil, nil, fmt.Errorf("%s has no column %s, which is a feature of the model or of another file, and no list %s of all features", c.Path, name, FeaturesColumn)
			}
			at[column] = i
		}
		if len(at) != width {
			return nil, nil, fmt.Errorf("%s has %d columns of features, the model reads %d", c.Path, len(at), width)
		}
	}
	for column, err := range f.wrong {
		if _, feature := at[column]; err != nil && (feature || column == id || listed && column == list) {
			return nil, nil, fmt.Errorf("%s: %w", c.Path, err)
		}
	}
	ids, x = make([]string, c.Count), make([]float32, int(c.Count)*width)
	err = f.rows(c, func(i int, row parquet.Row) (err error) {
		out := x[i*width : (i+1)*width]
		count := 0
		for _, v := range row {
			place, feature := at[v.Column()]
			switch {
			case v.Column() == id:
				if ids[i], err = f.text(v); err != nil {
					return err
				}
				continue
			case listed && v.Column() == list:
				place, feature = count, true
				if count++; count > width {
					return fmt.Errorf("there are more than the %d features that the model reads", width)
				}
			}
			if feature {
				if out[place], err = f.number(v); err != nil {
					return err
				}
			}
		}
		if listed && count != width {
			return fmt.Errorf("there are %d features, the model reads %d", count, width)
		}
		return nil
	})
	return ids, x, err
}

// readEdges reads the ends of the edges of a chunk: of each edge its source and its target.
func readEdges(ctx context.Context, c Chunk) (ends []string, err error) {
	f, err := openParquet(ctx, c.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	leaves := f.leaves()
	source, ok1 := leaves[sourceColumn]
	target, ok2 := leaves[targetColumn]
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("%s lacks one of the columns %s and %s, the ids of an edge's ends", c.Path, sourceColumn, targetColumn)
	}
	if err := cmp.Or(f.wrong[source], f.wrong[target]); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	ends = make([]string, 2*c.Count)
	err = f.rows(c, func(i int, row parquet.Row) (err error) {
		for _, v := range row {
			switch v.Column() {
			case source:
				ends[2*i], err = f.text(v)
			case target:
				ends[2*i+1], err = f.text(v)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return ends, err
}

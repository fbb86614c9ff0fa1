package data

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
)

// TruthFile, in a folder that [Dataset.WritePlanted] writes, lists the planted edges and
// the hidden ones: source, target and truth, which is TruthWrong or TruthHidden.
const (
	TruthFile   = "truth.csv"
	TruthWrong  = "wrong"
	TruthHidden = "hidden"
)

var truthHeader = []string{"source", "target", "truth"}

// WritePlanted writes a data set into a new folder as users' own data: edges.csv,
// nodes.csv with labels and the split of a seed, if there is one, features.npz or
// features.npy, and what was planted into it into truth.csv. The folder is there whole
// or not at all.
func (d *Dataset) WritePlanted(dir string, seed uint64, wrong, hidden [][2]int32) error {
	if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
		return fmt.Errorf("%s is not empty; give a new folder", dir)
	}
	var split Split
	if d.Classes > 0 && (d.SplitSpec != nil || len(d.Splits) > 0) {
		var err error
		if split, err = d.SplitFor(seed); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(dir)), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), "."+filepath.Base(dir)+"-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	features := npzFile
	if !d.X.IsSparse() {
		features = npyFile
	}
	for name, write := range map[string]func(io.Writer) error{
		edgesFile: func(w io.Writer) error { return writeRows(w, d.edgeRows()) },
		nodesFile: func(w io.Writer) error { return writeRows(w, d.nodeRows(split)) },
		features:  d.X.write,
		TruthFile: func(w io.Writer) error {
			rows := [][]string{truthHeader}
			for _, list := range []struct {
				edges [][2]int32
				truth string
			}{{wrong, TruthWrong}, {hidden, TruthHidden}} {
				for _, e := range list.edges {
					rows = append(rows, []string{d.NodeID(int(e[0])), d.NodeID(int(e[1])), list.truth})
				}
			}
			return writeRows(w, rows)
		},
	} {
		if err := atomicfile.Write(filepath.Join(temp, name), write); err != nil {
			return err
		}
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Rename(temp, dir)
}

func writeRows(w io.Writer, rows [][]string) error { return csv.NewWriter(w).WriteAll(rows) }

func (d *Dataset) edgeRows() [][]string {
	rows := [][]string{{"source", "target"}}
	if d.Graph.Weights != nil {
		rows[0] = append(rows[0], "weight")
	}
	for i, e := range d.Graph.Edges {
		row := []string{d.NodeID(int(e[0])), d.NodeID(int(e[1]))}
		if d.Graph.Weights != nil {
			row = append(row, strconv.FormatFloat(float64(d.Graph.Weights[i]), 'g', -1, 32))
		}
		rows = append(rows, row)
	}
	return rows
}

func (d *Dataset) nodeRows(split Split) [][]string {
	part := map[int32]string{}
	for i, nodes := range split.parts() {
		for _, v := range *nodes {
			part[v] = partNames[i]
		}
	}
	rows := [][]string{{"id", "label", "split"}}
	if len(part) == 0 {
		rows[0] = rows[0][:2]
	}
	for v, c := range d.Labels {
		label := ""
		switch {
		case c >= 0 && d.ClassNames != nil:
			label = d.ClassNames[c]
		case c >= 0:
			label = fmt.Sprint(c)
		}
		rows = append(rows, []string{d.NodeID(v), label, part[int32(v)]}[:len(rows[0])])
	}
	return rows
}

// write writes features as NumPy reads them: a dense array, or what scipy.sparse.save_npz
// writes of a CSR matrix.
func (f *Features) write(w io.Writer) error {
	if !f.IsSparse() {
		return writeNPY(w, "<f4", f.Dense, f.Rows, f.Cols)
	}
	z := zip.NewWriter(w)
	for _, a := range []struct {
		name, descr string
		values      any
		shape       []int
	}{
		{"indices", "<i4", f.Col, []int{len(f.Col)}},
		{"indptr", "<i4", f.RowPtr, []int{len(f.RowPtr)}},
		{"format", "|S3", []byte("csr"), nil},
		{"shape", "<i8", []int64{int64(f.Rows), int64(f.Cols)}, []int{2}},
		{"data", "<f4", f.Val, []int{len(f.Val)}},
	} {
		part, err := z.Create(a.name + ".npy")
		if err == nil {
			err = writeNPY(part, a.descr, a.values, a.shape...)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}

func writeNPY(w io.Writer, descr string, values any, shape ...int) error {
	sizes := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
	if len(shape) == 1 {
		sizes += ","
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, sizes)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	start := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	if _, err := w.Write(append(start, header...)); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, values)
}

// planted reads what [Dataset.WritePlanted] has listed beside the tables: what is wrong among
// the edges, and what is missing. It is no part of the data, nor of their checksum. Another
// table of that name is not read.
func (l *loader) planted(ds *Dataset, path string, index map[string]int32) (err error) {
	defer within(path, &err)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	claim(l.mem, info.Size())
	defer l.mem.Shrink(info.Size())
	b, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(b, []byte(strings.Join(truthHeader, ",")+"\n")) {
		return err
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		return badFile(path, "%v", err)
	}
	g := ds.Graph
	wrong, hidden := &graph.Graph{}, [2][]int32{}
	for i, row := range rows[1:] {
		u, ok := index[row[0]]
		v, too := index[row[1]]
		switch {
		case !ok || !too || u == v || row[2] != TruthWrong && row[2] != TruthHidden:
			return badFile(path, "row %d is %s, want two nodes and %s or %s", i+2, quote(strings.Join(row, ",")), TruthWrong, TruthHidden)
		case row[2] == TruthHidden:
			hidden[0], hidden[1] = append(hidden[0], u), append(hidden[1], v)
		case g.Directed:
			wrong.Edges = append(wrong.Edges, [2]int32{u, v})
		default:
			wrong.Edges = append(wrong.Edges, [2]int32{min(u, v), max(u, v)})
		}
	}
	slices.SortFunc(wrong.Edges, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, e := range graph.Difference(g, wrong) {
		hidden[0], hidden[1] = append(hidden[0], e[0]), append(hidden[1], e[1])
	}
	truth, _, err := graph.Build(g.N, hidden[0], hidden[1], nil, g.Directed)
	if err != nil {
		return fileFault(path, err)
	}
	ds.Truth = &Truth{Graph: truth}
	return nil
}

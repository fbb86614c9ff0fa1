package data

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/graph"
)

// spill is where a loader puts what it reads when that goes into a graph store: files are
// mapped in the place of being read, and edges sorted on the disk. A nil spill is none.
type spill struct {
	b    *store.Builder
	dir  string // for what is unpacked
	held map[*byte]bool
	free []func() error
}

// maps reports whether bytes are of a mapped file.
func (s *spill) maps(b []byte) bool {
	return s != nil && (cap(b) == 0 || s.held[unsafe.SliceData(b)])
}

func (s *spill) file(path string, n int64) ([]byte, error) {
	b, free, err := store.Map(path, n)
	if err != nil {
		return nil, err
	}
	s.free = append(s.free, free)
	if len(b) > 0 {
		s.held[&b[0]] = true
	}
	return b, nil
}

func (s *spill) unpacked(path string, r io.Reader) ([]byte, error) {
	f, err := os.CreateTemp(s.dir, "unpacked-*")
	if err != nil {
		return nil, err
	}
	s.free = append(s.free, func() error { return os.Remove(f.Name()) })
	n, err := io.Copy(f, r)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, badFile(path, "cannot be unpacked").because(err)
	}
	return s.file(f.Name(), n)
}

func (s *spill) close() {
	for _, free := range s.free {
		_ = free() // they were read only
	}
}

// write is [edgeList.build] into the store.
func (s *spill) write(e *edgeList, n int, directed, symmetric bool, rep *Repairs) (*graph.Graph, error) {
	return s.graph(n, directed, symmetric, rep, func(o *store.Edges, add store.Add) error {
		o.Weighted, o.Merge = e.w != nil, e.merge
		for i, u := range e.src {
			w := float32(1)
			if e.w != nil {
				w = e.w[i]
			}
			if err := add(u, e.dst[i], w); err != nil {
				return err
			}
		}
		return nil
	})
}

// graph writes the edges that list adds into the store, and returns a graph without edges.
func (s *spill) graph(n int, directed, symmetric bool, rep *Repairs, list func(o *store.Edges, add store.Add) error) (*graph.Graph, error) {
	err := s.b.Edges(store.Edges{Nodes: int64(n), Directed: directed, Symmetric: symmetric}, list)
	if err != nil {
		return nil, err
	}
	m := s.b.Merged()
	rep.DuplicateEdges, rep.ReversedEdges, rep.OneWayEdges = int(m.Duplicates), int(m.Reversed), int(m.OneWay)
	rep.WeightConflicts, rep.SelfLoops = int(m.Conflicts), int(m.SelfLoops)
	return &graph.Graph{N: n, Directed: directed}, nil
}

// dense returns the features of a .npy file that is mapped, in its place; nil where they
// have to be read.
func (s *spill) dense(a *array) *Features {
	if s == nil || a.dtype != (dtype{kind: 'f', size: 4}) || a.fortran || len(a.shape) != 2 || len(a.data) == 0 || uintptr(unsafe.Pointer(&a.data[0]))%4 != 0 {
		return nil
	}
	return &Features{Rows: a.shape[0], Cols: a.shape[1], Dense: unsafe.Slice((*float32)(unsafe.Pointer(&a.data[0])), len(a.data)/4)}
}

// fingerprint tells whether the files at a path are those of before, without reading them.
func fingerprint(path string) (string, error) {
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	text := ""
	err = filepath.WalkDir(root, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := d.Info()
		if err == nil {
			text += fmt.Sprintf("%s %d %d\n", f.Name(), f.Size(), f.ModTime().UnixNano())
		}
		return err
	})
	return text, err
}

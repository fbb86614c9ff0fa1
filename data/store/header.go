package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gsrc-dev/gsrc/internal/seal"
)

// Header is store.json.
type Header struct {
	Format  string `json:"format"` // "gsrc graph store"
	Version int    `json:"version"`

	Name     string `json:"name"`
	Nodes    int64  `json:"nodes"`
	Edges    int64  `json:"edges"`   // an undirected one counts once
	Entries  int64  `json:"entries"` // an undirected edge is two
	Directed bool   `json:"directed,omitempty"`
	Features int    `json:"features"`
	Classes  int    `json:"classes"`
	Splits   int    `json:"splits,omitempty"`
	// Merged counts what was changed in the edges.
	Merged Merged `json:"merged"`
	// About is what package data keeps of the data: names of classes, columns, notes.
	About json.RawMessage `json:"about,omitempty"`

	Arrays []Array `json:"arrays"`

	// Checksum is that of this file, in which it stands as zeros.
	Checksum string `json:"checksum"`
}

const format = "gsrc graph store"

// Array describes an array.
type Array struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"`
	// Table is the SHA-256 of NAME.sha256.
	Table string `json:"table"`
}

// elements is how many elements an array has, -1 where the shape is none.
func (a *Array) elements() int64 {
	n := int64(1)
	for _, d := range a.Shape {
		if d < 0 || d > 1<<48 || d > 0 && n > (1<<48)/d {
			return -1
		}
		n *= d
	}
	return n
}

// bytes is the size of NAME.bin.
func (a *Array) bytes() int64 { return a.elements() * sizes[a.Type] }

func (a *Array) file() string  { return a.Name + ".bin" }
func (a *Array) table() string { return a.Name + ".sha256" }

// blocks is how many blocks a file of n bytes has.
func blocks(n int64) int64 { return (n + BlockSize - 1) / BlockSize }

// Merged counts what [Builder.Edges] dropped or merged; see data.Repairs.
type Merged struct {
	Duplicates, Reversed, OneWay, Conflicts, SelfLoops int64
}

// headerMost bounds what is read of store.json: a large schema has some megabytes.
const headerMost = 256 << 20

func readHeader(dir string) (*Header, []byte, error) {
	path := filepath.Join(dir, HeaderFile)
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > headerMost {
		return nil, nil, fmt.Errorf("%s: it is not the header of a graph store", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	h := &Header{}
	sealed, err := seal.Check(nil, text, nil)
	if err == nil && !sealed {
		err = fmt.Errorf("it has no checksum")
	}
	if err == nil {
		err = json.Unmarshal(text, h)
	}
	switch {
	case err != nil:
		return nil, nil, &DamageError{File: path, Block: -1, Why: err.Error()}
	case h.Format != format:
		return nil, nil, fmt.Errorf("%s: it is not the header of a graph store", path)
	case h.Version != Version:
		return nil, nil, fmt.Errorf("%s: the store has version %d, and this program reads %d: convert the data again", path, h.Version, Version)
	}
	return h, text, nil
}

// check verifies that the arrays are those that a store of these sizes has.
func (h *Header) check() error {
	want := map[string]Array{
		"indptr": {Type: Int64, Shape: []int64{h.Nodes + 1}}, "sources": {Type: Int32, Shape: []int64{h.Entries}},
		"edges": {Type: Int32, Shape: []int64{h.Edges, 2}}, "labels": {Type: Int32, Shape: []int64{h.Nodes}},
		"weights": {Type: Float32, Shape: []int64{h.Edges}}, "entry_weights": {Type: Float32, Shape: []int64{h.Entries}},
		"planted": {Type: Uint8, Shape: []int64{h.Edges}}, "x_indptr": {Type: Int64, Shape: []int64{h.Nodes + 1}},
		"ids_indptr": {Type: Int64, Shape: []int64{h.Nodes + 1}}, "x": {Shape: []int64{h.Nodes, int64(h.Features)}},
	}
	entries := h.Edges
	if !h.Directed {
		entries *= 2
	}
	if h.Nodes < 1 || h.Nodes >= 1<<31 || h.Edges < 0 || h.Edges > 1<<40 || h.Entries != entries || h.Features < 0 || h.Features > 1<<24 || h.Splits < 0 || h.Splits > 1<<10 {
		return fmt.Errorf("%d nodes, %d edges, %d entries and %d features are no sizes of a graph", h.Nodes, h.Edges, h.Entries, h.Features)
	}
	have := map[string]bool{}
	for _, a := range h.Arrays {
		if have[a.Name] || a.Name == "" || filepath.Base(a.Name) != a.Name || sizes[a.Type] == 0 || a.elements() < 0 {
			return fmt.Errorf("the array %q of type %q and shape %v is none", a.Name, a.Type, a.Shape)
		}
		have[a.Name] = true
		if w, ok := want[a.Name]; ok {
			if fmt.Sprint(w.Shape) != fmt.Sprint(a.Shape) || w.Type != "" && w.Type != a.Type {
				return fmt.Errorf("the array %s has type %s and shape %v", a.Name, a.Type, a.Shape)
			}
		}
	}
	for _, name := range []string{"indptr", "sources", "edges", "labels"} {
		if !have[name] {
			return fmt.Errorf("the array %s is missing", name)
		}
	}
	if !have["x"] && !(have["x_indptr"] && have["x_col"] && have["x_val"]) {
		return fmt.Errorf("there are no features")
	}
	return nil
}

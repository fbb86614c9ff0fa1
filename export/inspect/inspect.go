// Package inspect reads ONNX files, of gsrc or of another program: what they hold,
// and the memory that a run takes.
package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/lists"
)

// Inspection describes the contents of an ONNX file.
type Inspection struct {
	File     string            `json:"file"`
	Bytes    int64             `json:"bytes"`
	Producer string            `json:"producer"`
	Graph    string            `json:"graph"`
	External []string          `json:"external,omitempty"` // files beside it with weights
	Doc      string            `json:"doc,omitempty"`
	Opsets   map[string]int64  `json:"opsets"` // by domain; "" is ONNX's own
	IR       int64             `json:"ir_version"`
	Inputs   []IODescription   `json:"inputs"`
	Outputs  []IODescription   `json:"outputs"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Operations by type, the most frequent first.
	Operations []OperationCount `json:"operations"`
	// Parameters are the initialisers of floating point and quantised matrices: how
	// many, their elements and bytes. Constants are the others, such as indices.
	Parameters TensorCount `json:"parameters"`
	Constants  TensorCount `json:"constants"`

	dir   string
	model *onnxpb.ModelProto
}

// IODescription is an input or output of a file.
type IODescription struct {
	manifest.IOInfo
	Doc string `json:"doc,omitempty"`
}

// OperationCount counts the nodes of an operation.
type OperationCount struct {
	Type  string `json:"type"`
	Nodes int    `json:"nodes"`
}

// TensorCount counts constant tensors.
type TensorCount struct {
	Tensors  int   `json:"tensors"`
	Elements int64 `json:"elements"`
	Bytes    int64 `json:"bytes"`
}

// elementTypes are ONNX's element types by number: name and bytes.
var elementTypes = map[int32]struct {
	name string
	size int64
}{
	1: {"float32", 4}, 2: {"uint8", 1}, 3: {"int8", 1}, 4: {"uint16", 2}, 5: {"int16", 2}, 6: {"int32", 4}, 7: {"int64", 8}, 8: {"string", 0},
	9: {"bool", 1}, 10: {"float16", 2}, 11: {"float64", 8}, 12: {"uint32", 4}, 13: {"uint64", 8}, 16: {"bfloat16", 2},
}

func typeName(elem int32) string {
	if t, ok := elementTypes[elem]; ok {
		return t.name
	}
	return fmt.Sprintf("type %d", elem)
}

// Read reads an ONNX file, of gsrc or of another program. Weights in other files
// are counted; that they are missing is a *[manifest.FileError].
func Read(path string) (*Inspection, error) {
	m, err := readModel(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	i := &Inspection{File: filepath.Base(path), Bytes: info.Size(), Producer: strings.TrimSpace(m.ProducerName + " " + m.ProducerVersion), Graph: m.Graph.Name, Doc: m.Graph.DocString,
		Opsets: map[string]int64{}, IR: m.IrVersion, Inputs: describeValues(m.Graph.Input), Outputs: describeValues(m.Graph.Output), dir: filepath.Dir(path), model: m}
	if i.External, err = externalFiles(i.dir, m); err != nil {
		return nil, err
	}
	for _, o := range m.OpsetImport {
		i.Opsets[o.GetDomain()] = o.GetVersion()
	}
	if len(m.MetadataProps) > 0 {
		i.Metadata = map[string]string{}
		for _, p := range m.MetadataProps {
			i.Metadata[p.GetKey()] = p.GetValue()
		}
	}
	counts := map[string]int{}
	for _, n := range m.Graph.Node {
		counts[operation(n)]++
	}
	i.Operations = lists.Map(slices.Sorted(maps.Keys(counts)), func(name string) OperationCount { return OperationCount{name, counts[name]} })
	slices.SortStableFunc(i.Operations, func(a, b OperationCount) int { return cmp.Compare(b.Nodes, a.Nodes) })
	for _, t := range m.Graph.Initializer {
		c := &i.Constants
		switch t.GetDataType() {
		case 1, 10, 11, 16:
			c = &i.Parameters
		case 2, 3:
			if len(t.GetDims()) > 1 { // quantised weights; zero points are smaller
				c = &i.Parameters
			}
		}
		n := elements(t.GetDims())
		c.Tensors++
		c.Elements += n
		c.Bytes += n * elementTypes[t.GetDataType()].size
	}
	return i, nil
}

// operation is a node's type, with its domain where that is not ONNX's own.
func operation(n *onnxpb.NodeProto) string {
	if d := n.GetDomain(); d != "" && d != "ai.onnx" {
		return d + "." + n.GetOpType()
	}
	return n.GetOpType()
}

func elements(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= max(d, 0)
	}
	return n
}

func describeValues(values []*onnxpb.ValueInfoProto) []IODescription {
	list := []IODescription{}
	for i, info := range manifest.NewIOInfos(values) {
		info.DType = typeName(values[i].GetType().GetTensorType().GetElemType()) // those of gsrc are two
		list = append(list, IODescription{info, values[i].GetDocString()})
	}
	return list
}

// ReadAll inspects an ONNX file, or every one of a folder, in the order of their names.
// That a model of an export is not what its manifest says is a *[manifest.FileError].
func ReadAll(path string) (list []*Inspection, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	files := []string{path}
	if info.IsDir() {
		if err := checkModels(path); err != nil {
			return nil, err
		}
		if files, err = filepath.Glob(filepath.Join(path, "*.onnx")); err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s holds no .onnx file", path)
		}
		slices.Sort(files)
	}
	for _, f := range files {
		i, err := Read(f)
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	return list, nil
}

// checkModels holds the models in a folder against its manifest, if it has one.
func checkModels(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, manifest.FileName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	m, err := manifest.Read(dir)
	if err != nil {
		return err
	}
	for _, role := range slices.Sorted(maps.Keys(m.Models)) {
		for _, name := range []string{m.Models[role].File, m.Models[role].Data} {
			if name == "" { // no weights apart
				continue
			}
			if _, err := m.CheckFile(name); err != nil {
				return err
			}
		}
	}
	return nil
}

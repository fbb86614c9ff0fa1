// Package manifest reads and writes manifest.json, which describes an export, and holds
// the files of an export against it.
package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/seal"
)

// Version is the version of manifest.json: since version 2 it has a checksum,
// and CRC-32C of every file. Version 1 is read too.
const Version = 2

// The fixed names of an export's manifest and of its folder of test data.
const (
	FileName    = "manifest.json"
	TestDataDir = "test_data_set_0"
)

// Manifest describes an export folder; it is manifest.json.
type Manifest struct {
	SchemaVersion int    `json:"schema_version"`
	Generator     string `json:"generator"`
	Version       string `json:"version"`
	// Model is the name of the trained model.
	Model string `json:"model"`
	// Task is what the classifier does: [TaskNodes] or [TaskGraphs]; empty in
	// exports of a version that knew the first alone.
	Task string `json:"task"`
	// Inductive is false where the model serves no other graph than its training's: where edges have
	// weights of their own, or the encoder reads x_struct, whose basis belongs to that graph.
	Inductive bool          `json:"inductive"`
	Lowering  onnx.Lowering `json:"lowering"`
	// SparseX tells that encoder and classifier take the features in CSR, as
	// x_indptr, x_indices and x_values.
	SparseX bool `json:"sparse_x,omitempty"`
	// Precision of the stored weights; absent where it is float32.
	Precision onnx.Precision `json:"precision,omitempty"`
	// TestAccuracy is what the precision makes of the test split's accuracy; absent
	// where weights are float32, and where there is no test split.
	TestAccuracy *TestAccuracy `json:"test_accuracy,omitempty"`
	// Symmetrize tells that the models make the graph undirected inside: edge_index
	// may list edges in one direction.
	Symmetrize bool `json:"symmetrize,omitempty"`
	// EdgeWeight tells whether the classifier takes edge weights.
	EdgeWeight bool `json:"edge_weight"`
	// RawWeight is what every edge weighs where the classifier is given no weights; absent where
	// that is 1.
	RawWeight float32 `json:"raw_weight,omitempty"`
	// WeightTransform is what was done to the weights that edges have in the data before the models
	// read them, such as log1p; absent where nothing was, and where no model reads them.
	WeightTransform string `json:"weight_transform,omitempty"`

	Opset       int                `json:"opset"`
	IRVersion   int                `json:"ir_version"`
	NumFeatures int                `json:"num_features"`
	Classes     []string           `json:"classes"`
	Dataset     string             `json:"dataset"`
	ConfigHash  string             `json:"config_hash"`
	Metrics     map[string]float64 `json:"metrics"`
	// Temperature is what logits are divided by where probabilities are made of them, to
	// calibrate these; absent where they are not.
	Temperature float64 `json:"temperature,omitempty"`
	// Columns say how the columns of x are made of those of a table, by their names;
	// absent where the training data had no names for them.
	Columns *schema.Schema `json:"columns,omitempty"`
	// Bounds of the edge probabilities' min–max normalisation, frozen in the
	// scorer; absent without one.
	Bounds *Bounds `json:"bounds,omitempty"`
	// Models lists the ONNX files by role: encoder, scorer, classifier.
	Models map[string]ModelInfo `json:"models"`
	// Files holds every other file of the folder, by name.
	Files map[string]FileInfo `json:"files"`
	// Verified is false where the export was written without a parity check.
	Verified bool `json:"verified"`
	// Checksum is the CRC-32C of manifest.json itself, with its digits as zeros; absent
	// in exports of an earlier version.
	Checksum string `json:"checksum,omitempty"`

	// Dir is the folder that it was read from.
	Dir string `json:"-"`
}

// Unchecked says in a line what cannot be checked of an export of an earlier version;
// it is empty where all can.
func (m *Manifest) Unchecked() string {
	if m.SchemaVersion >= Version {
		return ""
	}
	return "the export is of an earlier version, whose manifest.json has no checksum: damage to that file is found only where it contradicts the others (gsrc verify --seal adds checksums)"
}

// JudgesByEvidence tells that the scorer takes a graph and judges its edges, too.
func (m *Manifest) JudgesByEvidence() bool {
	return slices.ContainsFunc(m.Models["scorer"].Outputs, func(o IOInfo) bool { return o.Name == "edge_probability" })
}

// ReadsLabels tells that the classifier takes known labels.
func (m *Manifest) ReadsLabels() bool {
	return slices.ContainsFunc(m.Models["classifier"].Inputs, func(in IOInfo) bool { return in.Name == onnx.InputKnownLabels })
}

// Marshal gives manifest.json, with its checksum.
func (m *Manifest) Marshal() ([]byte, error) {
	m.Checksum = seal.Blank
	text, err := atomicfile.JSON(m)
	if err != nil {
		return nil, err
	}
	m.Checksum = seal.Stamp(text)
	return text, nil
}

// TestAccuracy is the share of the test split that is classified right, per cent.
type TestAccuracy struct {
	Rows     int     `json:"rows"`     // nodes, or graphs, of the test split in the sample
	Trained  float64 `json:"trained"`  // by the forward pass with the weights as trained
	Exported float64 `json:"exported"` // by the exported file
}

// Bounds are the least and greatest cosine that edge probabilities are
// normalised with (Eq 18).
type Bounds struct {
	Lo float32 `json:"lo"`
	Hi float32 `json:"hi"`
}

// ModelInfo describes one ONNX file.
type ModelInfo struct {
	File string `json:"file"`
	// Data is the file with the large weights, which must stand beside File; absent
	// where File has them all.
	Data    string   `json:"data,omitempty"`
	Inputs  []IOInfo `json:"inputs"`
	Outputs []IOInfo `json:"outputs"`
	// Hops is how many edges away from a node the features lie that its outputs
	// depend on; absent where they depend on the whole graph, where the model makes the
	// graph undirected, and in exports of a version that did not tell.
	Hops *int `json:"hops,omitempty"`
	// Stages divide the model; absent where outputs depend on the whole graph, in the dense
	// form, and where a value has no tensor of its own.
	Stages *onnx.Stages `json:"stages,omitempty"`
	// TestData is the folder with input_*.pb and output_*.pb.
	TestData string `json:"test_data"`
	// Tolerance bounds the difference from the test data's outputs; absent where it
	// is 1e-5 + 1e-4·max|b|.
	Tolerance *onnx.Tolerance `json:"tolerance,omitempty"`
	// TestCases are further test data, where the export was built with them.
	TestCases []TestCase `json:"test_cases,omitempty"`
}

func (m ModelInfo) Bound() onnx.Tolerance {
	if m.Tolerance == nil {
		return onnx.Exact
	}
	return *m.Tolerance
}

// TestCase is one graph of the family that every build is checked on.
type TestCase struct {
	Name string `json:"name"`
	// Data is the folder with input_*.pb and output_*.pb.
	Data string `json:"data"`
	// Refused tells that edge_index holds a number that no node has: there are no
	// outputs, and a runtime must fail.
	Refused bool `json:"refused,omitempty"`
}

// IOInfo describes an input or output. Shape holds numbers and the names of
// dimensions that vary.
type IOInfo struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []any  `json:"shape"`
}

// FileInfo pins a file's content.
type FileInfo struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// CRC32C is what is checked whenever the file is read, since it takes a fifteenth
	// of the time; absent in exports of an earlier version.
	CRC32C string `json:"crc32c,omitempty"`
}

func NewFileInfo(data []byte) FileInfo {
	sum := sha256.Sum256(data)
	return FileInfo{Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), CRC32C: seal.Sum(data)}
}

func NewIOInfos(values []*onnxpb.ValueInfoProto) []IOInfo {
	list := []IOInfo{}
	for _, v := range values {
		t := v.GetType().GetTensorType()
		info := IOInfo{Name: v.Name, DType: "float32", Shape: []any{}}
		if onnxpb.TensorProto_DataType(t.GetElemType()) == onnx.Int64Type {
			info.DType = "int64"
		}
		for _, d := range t.GetShape().GetDim() {
			switch {
			case d.GetDimParam() != "":
				info.Shape = append(info.Shape, d.GetDimParam())
			case d.GetValue() == nil:
				info.Shape = append(info.Shape, "?")
			default:
				info.Shape = append(info.Shape, d.GetDimValue())
			}
		}
		list = append(list, info)
	}
	return list
}

// Read reads the manifest of an export folder. It checks what the manifest says,
// and its checksum, not the other files.
func Read(dir string) (*Manifest, error) {
	if err := seal.Folder(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is no export of gsrc: it has no %s", dir, FileName)
	}
	if err != nil {
		return nil, err
	}
	sealed, err := seal.Check(nil, data, nil)
	if err != nil {
		return nil, &FileError{path, err.Error()}
	}
	m := Manifest{Dir: dir}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s: more follows after the manifest", path)
	}
	if m.SchemaVersion < 1 || m.SchemaVersion > Version {
		return nil, fmt.Errorf("%s has schema version %d, this gsrc reads 1 to %d", path, m.SchemaVersion, Version)
	}
	if m.SchemaVersion > 1 && !sealed {
		return nil, &FileError{path, "its checksum is gone: it is damaged, or was changed by hand"}
	}
	for name := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("%s names the file %q, which is outside the folder", path, name)
		}
	}
	for role, info := range m.Models {
		if _, ok := m.Files[info.File]; !ok {
			return nil, fmt.Errorf("%s: the file %q of the %s is not in its list of files", path, info.File, role)
		}
		if _, ok := m.Files[info.Data]; !ok && info.Data != "" {
			return nil, fmt.Errorf("%s: the file %q with weights of the %s is not in its list of files", path, info.Data, role)
		}
		if !filepath.IsLocal(filepath.FromSlash(info.TestData)) {
			return nil, fmt.Errorf("%s: the test data of the %s are outside the folder", path, role)
		}
		for _, c := range info.TestCases {
			if !filepath.IsLocal(filepath.FromSlash(c.Data)) {
				return nil, fmt.Errorf("%s: the test data %q of the %s are outside the folder", path, c.Name, role)
			}
		}
	}
	if err := m.validate(); err != nil {
		return nil, &FileError{path, err.Error()}
	}
	return &m, nil
}

// Bounds of what manifests may say: no graph is so large, and no model so deep.
const (
	maxFeatures = 1<<31 - 1
	maxHops     = 1 << 20
)

// validate refuses what no export says.
func (m *Manifest) validate() error {
	if _, err := onnx.ParseLowering(string(m.Lowering)); err != nil {
		return err
	}
	if _, err := onnx.ParsePrecision(string(m.Precision)); err != nil {
		return err
	}
	switch {
	case len(m.Models) == 0:
		return errors.New("it names no models")
	case m.NumFeatures < 1 || m.NumFeatures > maxFeatures:
		return fmt.Errorf("num_features is %d; it is at least 1 and below 2³¹", m.NumFeatures)
	case m.Task != "" && m.Task != TaskNodes && m.Task != TaskGraphs:
		return fmt.Errorf("task is %q; it is %s or %s", m.Task, TaskNodes, TaskGraphs)
	}
	if c := m.Columns; c != nil {
		if err := c.Check(); err != nil {
			return err
		}
		if len(c.Columns) > 0 && c.Width() != m.NumFeatures { // without any, x is of places or a matrix
			return fmt.Errorf("its columns become %d features, and num_features is %d", c.Width(), m.NumFeatures)
		}
	}
	for name, f := range m.Files {
		if f.Bytes < 0 || len(f.SHA256) != hex.EncodedLen(sha256.Size) {
			return fmt.Errorf("the file %q is said to have %d bytes and the SHA-256 %q", name, f.Bytes, f.SHA256)
		}
	}
	for role, info := range m.Models {
		if info.Hops != nil && (*info.Hops < 0 || *info.Hops > maxHops) {
			return fmt.Errorf("hops of the %s is %d; it is 0 or more", role, *info.Hops)
		}
		if len(info.Inputs) == 0 || len(info.Outputs) == 0 {
			return fmt.Errorf("the %s has no inputs, or no outputs", role)
		}
		for _, io := range slices.Concat(info.Inputs, info.Outputs) {
			if err := m.validateIO(io); err != nil {
				return fmt.Errorf("the %s: %w", role, err)
			}
		}
	}
	return nil
}

func (m *Manifest) validateIO(io IOInfo) error {
	if io.Name == "" || io.DType != "float32" && io.DType != "int64" {
		return fmt.Errorf("an input or output is called %q and of the type %q", io.Name, io.DType)
	}
	for _, d := range io.Shape {
		switch d := d.(type) {
		case string:
		case float64:
			if d < 0 || d > maxFeatures || d != math.Trunc(d) {
				return fmt.Errorf("%s has the shape %v", io.Name, io.Shape)
			}
		default:
			return fmt.Errorf("%s has the shape %v", io.Name, io.Shape)
		}
	}
	want := map[string]int{"x": m.NumFeatures, "logits": len(m.Classes), "probabilities": len(m.Classes)}
	if n, ok := want[io.Name]; ok {
		if len(io.Shape) != 2 {
			return fmt.Errorf("%s has the shape %v", io.Name, io.Shape)
		}
		if have, fixed := Dimension(io.Shape[1]); fixed && have != int64(n) {
			return fmt.Errorf("%s has %d columns, and num_features is %d and classes are %d", io.Name, have, m.NumFeatures, len(m.Classes))
		}
	}
	return nil
}

// The tasks of classifiers: of the nodes of a graph, or of whole graphs in batches.
const (
	TaskNodes  = "node-classification"
	TaskGraphs = "graph-classification"
)

package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
)

// The names that Triton's onnxruntime backend looks for.
const (
	tritonConfig  = "config.pbtxt"
	tritonModel   = "model.onnx"
	tritonVersion = "1"
	tritonMark    = "# Written by gsrc"
)

// WriteTriton writes the models of an export into a model repository of NVIDIA Triton:
// for each a folder, such as gcn_classifier, with its configuration and, in the folder
// of version 1, its file. An earlier one of the same run is replaced at once, other models stay, and what
// [CheckTriton] refuses is an error before anything is written. The files are those of the export, byte for
// byte.
func WriteTriton(dist, dir string) error {
	m, err := manifest.Read(dist)
	if err != nil {
		return err
	}
	unlock, err := manifest.LockFolder(dir)
	if err != nil {
		return fmt.Errorf("cannot write the model repository: %w", err)
	}
	defer unlock()
	if err := CheckTriton(dir, m); err != nil {
		return err
	}
	for _, r := range append(slices.Clone(roles), pipelineRole) {
		if _, built := m.Models[r.name]; !built { // of an earlier build of the run
			if err := os.RemoveAll(filepath.Join(dir, TritonName(m, r.name))); err != nil {
				return err
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(m.Models)) {
		info := m.Models[role]
		name, files := TritonName(m, role), map[string][]byte{}
		if files[tritonConfig], err = tritonConfiguration(name, m, role); err != nil {
			return err
		}
		if files[path.Join(tritonVersion, tritonModel)], err = m.ReadFile(info.File); err != nil {
			return err
		}
		if info.Data != "" {
			// The model names this file, which stands beside it.
			if files[path.Join(tritonVersion, path.Base(info.Data))], err = m.ReadFile(info.Data); err != nil {
				return err
			}
		}
		if err := atomicfile.WriteFolder(filepath.Join(dir, name), files, func(string) error { return nil }, atomicfile.WriteSynced); err != nil {
			return fmt.Errorf("cannot write the model repository: %w", err)
		}
	}
	return nil
}

// CheckTriton is the error of [WriteTriton] to a folder that is no model repository, or has a model of
// another run by the name that one of the export's would have. Of m it reads Model, Dataset and ConfigHash.
func CheckTriton(dir string, m *manifest.Manifest) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mine := map[string]bool{TritonName(m, pipelineRole.name): true}
	for _, r := range roles {
		mine[TritonName(m, r.name)] = true
	}
	for _, e := range entries {
		model := filepath.Join(dir, e.Name())
		switch config, _ := os.ReadFile(filepath.Join(model, tritonConfig)); {
		case e.Type().IsRegular() && !strings.HasPrefix(e.Name(), "."):
			return fmt.Errorf("%s holds %s, and a model repository holds nothing but folders of models; choose another folder", dir, e.Name())
		case mine[e.Name()] && !bytes.Contains(config, []byte(tritonRun(m))):
			return fmt.Errorf("%s is not of this run (%s on %s): give --triton another folder, or remove %s to replace it", model, m.Model, m.Dataset, model)
		}
	}
	return nil
}

// tritonRun is the line of a configuration that says which run the model is of.
func tritonRun(m *manifest.Manifest) string {
	return fmt.Sprintf("# Run %s on %s\n", pbComment(m.ConfigHash), pbComment(m.Dataset))
}

// TritonName is what Triton calls a model of an export.
func TritonName(m *manifest.Manifest, role string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, m.Model+"_"+role)
}

// tritonConfiguration is the ModelConfig of a model in protobuf's text format. There is
// no batch dimension: nodes and edges of a graph are not separate questions.
func tritonConfiguration(name string, m *manifest.Manifest, role string) ([]byte, error) {
	info := m.Models[role]
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s from the %s of a %s trained on %s.\n", tritonMark, m.Version, role, pbComment(m.Model), pbComment(m.Dataset))
	b.WriteString(tritonRun(m))
	fmt.Fprintf(&b, "name: %s\nbackend: \"onnxruntime\"\ndefault_model_filename: %s\nmax_batch_size: 0\n", pbString(name), pbString(tritonModel))
	for _, x := range []struct {
		kind string
		list []manifest.IOInfo
	}{{"input", info.Inputs}, {"output", info.Outputs}} {
		for _, io := range x.list {
			kind, ok := map[string]string{"float32": "TYPE_FP32", "int64": "TYPE_INT64"}[io.DType]
			if !ok {
				return nil, fmt.Errorf("%s of the %s is of the type %s, which has no name for Triton here", io.Name, role, io.DType)
			}
			var dims []string
			for _, d := range io.Shape {
				dim := "-1"
				if n, fixed := manifest.Dimension(d); fixed {
					dim = fmt.Sprint(n)
				}
				dims = append(dims, dim)
			}
			fmt.Fprintf(&b, "%s {\n  name: %s\n  data_type: %s\n  dims: [ %s ]\n}\n", x.kind, pbString(io.Name), kind, strings.Join(dims, ", "))
		}
	}
	classes, err := json.Marshal(m.Classes)
	if err != nil {
		return nil, err
	}
	for _, p := range [][2]string{{"class_labels", string(classes)}, {"task", m.Task}} {
		fmt.Fprintf(&b, "parameters {\n  key: %s\n  value {\n    string_value: %s\n  }\n}\n", pbString(p[0]), pbString(p[1]))
	}
	return b.Bytes(), nil
}

// pbString quotes a string for protobuf's text format: what is not plain ASCII goes by
// octal numbers of its bytes.
func pbString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// pbComment returns text that stays within its line.
func pbComment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
}

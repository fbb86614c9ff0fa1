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

// WriteTriton writes the models of an export as a model repository of NVIDIA Triton:
// for each a folder, such as gcn_classifier, with its configuration and, in the folder
// of version 1, its file. An earlier repository that was written so is replaced at once;
// a folder with other things is an error. The files are those of the export, byte for
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
	files := map[string][]byte{}
	for _, role := range slices.Sorted(maps.Keys(m.Models)) {
		info := m.Models[role]
		name := TritonName(m, role)
		config, err := tritonConfiguration(name, m, role)
		if err != nil {
			return err
		}
		files[path.Join(name, tritonConfig)] = config
		if files[path.Join(name, tritonVersion, tritonModel)], err = m.ReadFile(info.File); err != nil {
			return err
		}
		if info.Data != "" {
			// The model names this file, which stands beside it.
			if files[path.Join(name, tritonVersion, path.Base(info.Data))], err = m.ReadFile(info.Data); err != nil {
				return err
			}
		}
	}
	if err := atomicfile.WriteFolder(dir, files, tritonReplaceable, atomicfile.WriteSynced); err != nil {
		return fmt.Errorf("cannot write the model repository: %w", err)
	}
	return nil
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

// tritonReplaceable refuses a folder with anything that WriteTriton does not write.
func tritonReplaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		config, err := os.ReadFile(filepath.Join(dir, e.Name(), tritonConfig))
		if err != nil || !bytes.HasPrefix(config, []byte(tritonMark)) {
			return fmt.Errorf("%s holds %s, which gsrc has not written; choose another folder", dir, e.Name())
		}
	}
	return nil
}

// tritonConfiguration is the ModelConfig of a model in protobuf's text format. There is
// no batch dimension: nodes and edges of a graph are not separate questions.
func tritonConfiguration(name string, m *manifest.Manifest, role string) ([]byte, error) {
	info := m.Models[role]
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s from the %s of a %s trained on %s.\n", tritonMark, m.Version, role, pbComment(m.Model), pbComment(m.Dataset))
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
				if n, ok := d.(float64); ok { // a number from the manifest's JSON
					dim = fmt.Sprint(int64(n))
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

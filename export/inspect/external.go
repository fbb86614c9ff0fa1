package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"google.golang.org/protobuf/proto"
)

// externalPart says where a tensor's bytes are.
type externalPart struct {
	location       string
	offset, length int64
}

func partOf(t *onnxpb.TensorProto) (externalPart, error) {
	p := externalPart{length: -1}
	for _, e := range t.ExternalData {
		var err error
		switch e.GetKey() {
		case onnx.ExternalLocation:
			p.location = e.GetValue()
		case onnx.ExternalOffset:
			p.offset, err = strconv.ParseInt(e.GetValue(), 10, 64)
		case onnx.ExternalLength:
			p.length, err = strconv.ParseInt(e.GetValue(), 10, 64)
		}
		if err != nil || p.offset < 0 {
			return p, fmt.Errorf("tensor %s: external data with %s %q", t.GetName(), e.GetKey(), e.GetValue())
		}
	}
	if p.length < 0 { // the file does not say
		p.length = elements(t.GetDims()) * elementTypes[t.GetDataType()].size
	}
	if !filepath.IsLocal(filepath.FromSlash(p.location)) {
		return p, fmt.Errorf("tensor %s: its data are said to be in %q, which is no file in the model's folder", t.GetName(), p.location)
	}
	return p, nil
}

// externalFiles lists the files in dir that a model's tensors are in, in the order of first
// use. It refuses a model whose weights are missing, or end too early: runtimes say little of it.
func externalFiles(dir string, m *onnxpb.ModelProto) (names []string, err error) {
	least := map[string]int64{} // bytes that each must have
	for _, t := range m.Graph.Initializer {
		if t.DataLocation != onnxpb.TensorProto_EXTERNAL {
			continue
		}
		p, err := partOf(t)
		if err != nil {
			return nil, err
		}
		if _, ok := least[p.location]; !ok {
			names = append(names, p.location)
		}
		least[p.location] = max(least[p.location], p.offset+p.length)
	}
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, &manifest.FileError{Path: path, Reason: "it holds weights of the model beside it, and is missing: copy both files together"}
		case err != nil:
			return nil, err
		case info.Size() < least[name]:
			return nil, &manifest.FileError{Path: path, Reason: fmt.Sprintf("it has %d bytes, and the model's weights reach to %d: it was cut short", info.Size(), least[name])}
		}
	}
	return names, nil
}

// maxModelFile is beyond what a message of protocol buffers holds.
const maxModelFile = 1 << 31

// readModel reads an ONNX file.
func readModel(path string) (*onnxpb.ModelProto, error) {
	// Not a device or a pipe, which may have no end.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no ONNX file: it is not a regular file", path)
	} else if info.Size() >= maxModelFile {
		return nil, fmt.Errorf("%s is no ONNX file: it has %d bytes, and 2 GiB are the most that the format allows", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s is no ONNX file, or a damaged one: %w", path, err)
	}
	if m.Graph == nil || len(m.Graph.Node) == 0 {
		return nil, fmt.Errorf("%s is no ONNX file: it has no graph with operations", path)
	}
	return &m, nil
}

// internalize reads what lies in other files into a model.
func internalize(dir string, m *onnxpb.ModelProto) error {
	for _, t := range m.Graph.Initializer {
		if t.DataLocation != onnxpb.TensorProto_EXTERNAL {
			continue
		}
		p, err := partOf(t)
		if err != nil {
			return err
		}
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(p.location)))
		if err != nil {
			return err
		}
		t.RawData = make([]byte, p.length)
		_, err = io.ReadFull(io.NewSectionReader(f, p.offset, p.length), t.RawData)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		t.DataLocation, t.ExternalData = onnxpb.TensorProto_DEFAULT, nil
	}
	return nil
}

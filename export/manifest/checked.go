package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/internal/seal"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// inMemory is up to which size a model is read into memory, checked, and handed to
// onnxruntime from there. Larger ones, and those with weights in another file,
// onnxruntime maps into memory by itself.
const inMemory = onnx.DefaultExternalData

// wholeGraph is the metadata entry hops of a model whose answers have none.
const wholeGraph = "whole graph"

// Path returns where a file of the export is.
func (m *Manifest) Path(name string) string { return filepath.Join(m.Dir, filepath.FromSlash(name)) }

// ReadFile reads a file of the export. It is a *[FileError] if the manifest does not
// list it, or says something else of it.
func (m *Manifest) ReadFile(name string) ([]byte, error) {
	path := m.Path(name)
	want, ok := m.Files[name]
	if !ok {
		return nil, &FileError{path, "the manifest does not list it"}
	}
	f, err := openFile(path, want)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, want.Bytes)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, want.checkSum(path, bytes.NewReader(data))
}

// openFile opens a file that has the size it should have.
func openFile(path string, want FileInfo) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &FileError{path, "the manifest lists it, and it is missing"}
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &FileError{path, "it is no file"}
	case info.Size() != want.Bytes:
		return nil, &FileError{path, fmt.Sprintf("it has %d bytes, the manifest says %d", info.Size(), want.Bytes)}
	}
	return os.Open(path)
}

// checkSum holds content against the checksum for reading: CRC-32C, or SHA-256 where an
// earlier version has written that alone.
func (want FileInfo) checkSum(path string, content io.Reader) error {
	if want.CRC32C == "" {
		return want.checkSHA(path, content)
	}
	h := seal.New()
	if _, err := io.Copy(h, content); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if got := seal.Text(h.Sum32()); got != want.CRC32C {
		return &FileError{path, fmt.Sprintf("its checksum is %s, the manifest says %s: it is damaged, or another export's", got, want.CRC32C)}
	}
	return nil
}

// Session loads a model that is what the manifest says: its bytes, and what it says of
// itself.
func (m *Manifest) Session(role string, o ort.Options) (*ort.Session, error) {
	info := m.Models[role]
	s, err := m.load(info, o)
	if err != nil {
		return nil, err
	}
	if err := m.agree(role, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (m *Manifest) load(info ModelInfo, o ort.Options) (*ort.Session, error) {
	if info.Data != "" || m.Files[info.File].Bytes > inMemory {
		return m.loadMapped(info, o)
	}
	data, err := m.ReadFile(info.File)
	if err != nil {
		return nil, err
	}
	s, err := ort.OpenBytes(data, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path(info.File), err)
	}
	return s, nil
}

// loadMapped has onnxruntime read a model's files by itself, while their checksums are
// taken of the open files, and makes sure that both have read the same: afterwards the
// names must stand for the files that were checked, and these must not have changed.
func (m *Manifest) loadMapped(info ModelInfo, o ort.Options) (s *ort.Session, err error) {
	var files []*watched
	defer func() {
		for _, w := range files {
			w.f.Close()
		}
	}()
	for _, name := range []string{info.File, info.Data} {
		if name == "" {
			continue
		}
		w, err := m.watch(name)
		if err != nil {
			return nil, err
		}
		files = append(files, w)
	}
	sums := make(chan error)
	go func() {
		for _, w := range files {
			if err := w.check(); err != nil {
				sums <- err
				return
			}
		}
		sums <- nil
	}()
	s, err = ort.Open(m.Path(info.File), o)
	if sum := <-sums; sum != nil { // which explains what onnxruntime says
		err = sum
	}
	for _, w := range files {
		if err == nil {
			err = w.unchanged()
		}
	}
	if err != nil && s != nil {
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// watched is a file that somebody else reads too.
type watched struct {
	f    *os.File
	was  fs.FileInfo
	want FileInfo
}

func (m *Manifest) watch(name string) (*watched, error) {
	f, err := openFile(m.Path(name), m.Files[name])
	if err != nil {
		return nil, err
	}
	was, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &watched{f, was, m.Files[name]}, nil
}

func (w *watched) check() error {
	return w.want.checkSum(w.f.Name(), bufio.NewReaderSize(struct{ io.Reader }{w.f}, 1<<18))
}

func (w *watched) unchanged() error {
	now, err := os.Stat(w.f.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(now, w.was) || now.Size() != w.was.Size() || !now.ModTime().Equal(w.was.ModTime()) {
		return &FileError{w.f.Name(), "it was changed while it was read; try again"}
	}
	return nil
}

// agree holds the manifest against what a model declares. Files of earlier
// versions say less.
func (m *Manifest) agree(role string, s *ort.Session) error {
	info := m.Models[role]
	differ := func(what string, have, want any) error {
		return &FileError{m.Path(FileName), fmt.Sprintf("it says that %s is %v, and %s says %v: one of them is damaged, or another export's", what, have, info.File, want)}
	}
	for _, x := range []struct {
		kind string
		have []IOInfo
		want []ort.IO
	}{{"input", info.Inputs, s.Inputs()}, {"output", info.Outputs, s.Outputs()}} {
		if len(x.have) != len(x.want) {
			return differ("the number of "+x.kind+"s", len(x.have), len(x.want))
		}
		for i, io := range x.have {
			want := x.want[i]
			if io.Name != want.Name || io.DType != want.DType.String() || len(io.Shape) != len(want.Dims) {
				return differ(fmt.Sprintf("%s %d", x.kind, i), fmt.Sprintf("%s %s %v", io.Name, io.DType, io.Shape), fmt.Sprintf("%s %s %v", want.Name, want.DType, want.Dims))
			}
			for k, d := range io.Shape {
				if n, fixed := Dimension(d); fixed && n != want.Dims[k] || !fixed && want.Dims[k] >= 0 {
					return differ("the shape of "+io.Name, io.Shape, want.Dims)
				}
			}
		}
	}
	md := s.Metadata()
	says := map[string]string{
		"model": m.Model, "dataset": m.Dataset, "config_hash": m.ConfigHash, "gsrc_version": m.Version, "precision": cmp.Or(string(m.Precision), "fp32"),
		"num_features": strconv.Itoa(m.NumFeatures), "inductive": strconv.FormatBool(m.Inductive), "symmetrize": strconv.FormatBool(m.Symmetrize), "hops": HopsText(info.Hops), "weight_transform": m.WeightTransform,
	}
	if role == "classifier" {
		says["edge_weight"], says["raw_weight"] = strconv.FormatBool(m.EdgeWeight), strconv.FormatFloat(float64(m.RawWeight), 'g', -1, 32)
		if m.Task != "" {
			says["task"] = m.Task
		}
	}
	for key, have := range says {
		if want, ok := md[key]; ok && want != have {
			return differ(key, strconv.Quote(have), strconv.Quote(want))
		}
	}
	if text, ok := md["class_labels"]; ok {
		var classes []string
		if err := json.Unmarshal([]byte(text), &classes); err != nil || !slices.Equal(classes, m.Classes) {
			return differ("the list of classes", fmt.Sprintf("%q", m.Classes), text)
		}
	}
	return nil
}

// HopsText is the metadata entry hops.
func HopsText(n *int) string {
	if n == nil {
		return wholeGraph
	}
	return strconv.Itoa(*n)
}

// Dimension reads a dimension of an [IOInfo]; it is not fixed where it has a name.
func Dimension(d any) (n int64, fixed bool) {
	switch n := d.(type) {
	case float64: // from JSON
		return int64(n), true
	case int64:
		return n, true
	}
	return 0, false
}

// LockFolder keeps others from writing an export, or the like, to a folder. Its lock is
// beside it, since the folder is replaced as a whole.
func LockFolder(dir string) (unlock func(), err error) {
	if dir, err = filepath.Abs(atomicfile.Follow(filepath.Clean(dir))); err != nil {
		return nil, err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	lock, err := filelock.TryLock(filepath.Join(parent, "."+filepath.Base(dir)+".lock"))
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		held.Path = filepath.Join(dir, filepath.Base(held.Path)) // it is said of the folder
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = lock.Remove() }, nil // a file more does no harm
}

// FileError says which file of an export is not what the manifest says.
type FileError struct {
	Path   string
	Reason string
}

func (e *FileError) Error() string { return e.Path + ": " + e.Reason }

// checkSHA holds content against its SHA-256.
func (want FileInfo) checkSHA(path string, content io.Reader) error {
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want.SHA256 {
		return &FileError{path, fmt.Sprintf("its SHA-256 is %s, the manifest says %s", got, want.SHA256)}
	}
	return nil
}

// CheckFile reads all of a file and holds it against the manifest. It returns the file's
// CRC-32C.
func (m *Manifest) CheckFile(name string) (string, error) {
	path, want := m.Path(name), m.Files[name]
	f, err := openFile(path, want)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := seal.New()
	err = want.checkSHA(path, io.TeeReader(f, sum))
	if got := seal.Text(sum.Sum32()); err == nil && want.CRC32C != "" && got != want.CRC32C {
		err = &FileError{path, fmt.Sprintf("its CRC-32C is %s, the manifest says %s", got, want.CRC32C)}
	}
	return seal.Text(sum.Sum32()), err
}

// Seal rewrites the manifest with checksums, those given of the files.
func (m *Manifest) Seal(sums map[string]string) error {
	m.SchemaVersion = Version
	for name, f := range m.Files {
		f.CRC32C = sums[name]
		m.Files[name] = f
	}
	text, err := m.Marshal()
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(m.Path(FileName), text)
}

// TestTensors reads the inputs or outputs of one model in a folder of test data, in
// the model's order.
func (m *Manifest) TestTensors(data, kind string, list []IOInfo) (map[string]ort.Tensor, error) {
	out := map[string]ort.Tensor{}
	for i, io := range list {
		file := path.Join(data, fmt.Sprintf("%s_%d.pb", kind, i))
		content, err := m.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name, t, err := onnx.ParseTensor(m.Path(file), content)
		if err != nil {
			return nil, err
		}
		if name != io.Name {
			return nil, &FileError{m.Path(file), fmt.Sprintf("it holds %q, the manifest's %s %d is %q", name, kind, i, io.Name)}
		}
		out[name] = t
	}
	return out, nil
}

package store

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/internal/seal"
)

// Options say how a store is built.
type Options struct {
	// Key stands for what the store is made of: a build that was broken off goes on where
	// its Key is the same, and starts anew where it is not.
	Key string
	// Memory bounds what sorting takes; 0 is what the process may use.
	Memory int64
	// Force replaces a store.
	Force bool
	// Progress, if not nil, gets how far a stage is; total is 0 where it is not known. Its
	// error ends the build.
	Progress func(stage string, done, total int64) error
}

// leastMemory is what sorting takes at least.
const leastMemory = 16 << 20

// Builder writes a store into DIR.partial, and renames that when it is whole.
type Builder struct {
	dir, temp string
	opts      Options
	lock      *filelock.Lock
	state     state
	writers   []*Writer
}

// state is what is done, in build.json.
type state struct {
	Key    string             `json:"key"`
	Stages []string           `json:"stages"`
	Arrays []Array            `json:"arrays"`
	Merged Merged             `json:"merged"`
	Edges  int64              `json:"edges"`
	Runs   map[string][]int64 `json:"runs"`
	Notes  map[string]string  `json:"notes"` // of stages, for those after them
}

const stateFile = "build.json"

// partial ends the name of the folder of a store that is not whole.
const partial = ".partial"

// New begins or goes on with the building of a store in a new folder.
func New(dir string, o Options) (*Builder, error) {
	if !littleEndian {
		return nil, errors.New("graph stores are written on little-endian machines only")
	}
	if o.Memory <= 0 {
		o.Memory, _ = budget.Default()
	}
	if o.Memory < leastMemory {
		return nil, &budget.ExceededError{What: "sorting edges", Need: leastMemory, Free: o.Memory, Total: o.Memory}
	}
	dir = filepath.Clean(atomicfile.Follow(filepath.Clean(dir)))
	if err := replaceable(dir, o.Force); err != nil {
		return nil, err
	}
	b := &Builder{dir: dir, temp: dir + partial, opts: o}
	if err := os.MkdirAll(b.temp, 0o755); err != nil {
		return nil, err
	}
	var err error
	if b.lock, err = filelock.TryLock(filepath.Join(b.temp, lockFile)); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(b.temp, stateFile))
	if err == nil {
		err = json.Unmarshal(text, &b.state)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) || b.state.Key != o.Key {
		b.state = state{}
		if err := b.clear(); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	b.state.Key = o.Key
	if b.state.Runs == nil {
		b.state.Runs, b.state.Notes = map[string][]int64{}, map[string]string{}
	}
	return b, nil
}

// replaceable returns an error unless dir is free, or a store that may be replaced.
func replaceable(dir string, force bool) error {
	left, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(left) == 0:
		return nil
	case err != nil:
		return err
	case !Is(dir):
		return fmt.Errorf("%s is not empty, and no graph store; give a new folder", dir)
	case !force:
		return fmt.Errorf("%s has a graph store already; --force replaces it", dir)
	}
	return nil
}

func (b *Builder) clear() error {
	left, err := os.ReadDir(b.temp)
	for _, e := range left {
		if e.Name() != lockFile && e.Name() != lockFile+".owner" && err == nil {
			err = os.RemoveAll(filepath.Join(b.temp, e.Name()))
		}
	}
	return err
}

func (b *Builder) save() error {
	return atomicfile.WriteJSON(filepath.Join(b.temp, stateFile), &b.state)
}

func (b *Builder) progress(stage string, done, total int64) error {
	if b.opts.Progress == nil {
		return nil
	}
	return b.opts.Progress(stage, done, total)
}

// Close ends the build. What was not finished stays for the next one.
func (b *Builder) Close() error {
	for _, w := range b.writers {
		_ = w.f.Close() // of those that broke off: Windows replaces no file that is open
	}
	return b.lock.Unlock()
}

// Stage does a part of the build, unless it was done before an interruption. note is what
// do left for later parts then.
func (b *Builder) Stage(name string, do func() (note string, err error)) (note string, err error) {
	if slices.Contains(b.state.Stages, name) {
		return b.state.Notes[name], nil
	}
	defer rss.Leave(rss.Enter(name))
	if note, err = do(); err != nil {
		return "", err
	}
	b.state.Stages = append(b.state.Stages, name)
	b.state.Notes[name] = note
	return note, b.save()
}

// Writer writes an array.
type Writer struct {
	b     *Builder
	a     Array
	f     *os.File
	sums  []byte
	block []byte // that is not whole yet
	n     int64
}

// Array begins an array. The first dimension of the shape is found when it is closed.
func (b *Builder) Array(name, kind string, shape ...int64) (*Writer, error) {
	f, err := os.Create(filepath.Join(b.temp, name+".bin"))
	if err != nil {
		return nil, err
	}
	w := &Writer{b: b, a: Array{Name: name, Type: kind, Shape: append([]int64{0}, shape...)}, f: f, block: make([]byte, 0, BlockSize)}
	b.writers = append(b.writers, w)
	return w, nil
}

func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	w.n += int64(n)
	for len(p) > 0 {
		k := min(len(p), BlockSize-len(w.block))
		w.block, p = append(w.block, p[:k]...), p[k:]
		if len(w.block) == BlockSize {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// flush writes the block, with its checksum.
func (w *Writer) flush() error {
	if len(w.block) == 0 {
		return nil
	}
	if _, err := w.f.Write(w.block); err != nil {
		return err
	}
	s := sha256.Sum256(w.block)
	w.sums, w.block = append(w.sums, s[:]...), w.block[:0]
	return nil
}

// Put appends elements, which must be of the array's type, or does nothing where w is nil.
func Put[T element](w *Writer, x ...T) error {
	if w == nil {
		return nil
	}
	if len(x) > 0 && sizes[w.a.Type] != int64(unsafe.Sizeof(x[0])) {
		return fmt.Errorf("store: elements of another size than those of %s", w.a.Name)
	}
	_, err := w.Write(bytesOf(x))
	return err
}

// Close ends the array, which belongs to the store from then on.
func (w *Writer) Close() error {
	if err := finish(w.f, w.flush); err != nil {
		return err
	}
	row := sizes[w.a.Type]
	for _, d := range w.a.Shape[1:] {
		row *= d
	}
	if row > 0 {
		w.a.Shape[0] = w.n / row
	}
	if w.a.bytes() != w.n {
		return fmt.Errorf("store: %s has %d bytes, which are no rows of %v", w.a.Name, w.n, w.a.Shape[1:])
	}
	w.a.Table = hexSum(w.sums)
	if err := atomicfile.WriteBytes(filepath.Join(w.b.temp, w.a.table()), w.sums); err != nil {
		return err
	}
	w.b.state.Arrays = slices.DeleteFunc(w.b.state.Arrays, func(a Array) bool { return a.Name == w.a.Name })
	w.b.state.Arrays = append(w.b.state.Arrays, w.a)
	return nil
}

// finish brings what was written to a file to the disk, and closes it.
func finish(f *os.File, flush func() error) error {
	err := flush()
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// arrays begins some arrays, of which those without a type are nil.
func (b *Builder) arrays(list ...Array) (out []*Writer, err error) {
	for _, a := range list {
		var w *Writer
		if a.Type != "" && err == nil {
			w, err = b.Array(a.Name, a.Type, a.Shape...)
		}
		out = append(out, w)
	}
	return out, err
}

// closeAll ends arrays, those that are nil aside.
func closeAll(arrays []*Writer) error {
	for _, w := range arrays {
		if w != nil {
			if err := w.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// PutArray writes a whole array.
func PutArray[T element](b *Builder, name, kind string, x []T, shape ...int64) error {
	w, err := b.Array(name, kind, shape...)
	if err != nil {
		return err
	}
	if err := Put(w, x...); err != nil {
		return err
	}
	return w.Close()
}

// Finish writes the header, whose sizes of edges and arrays it fills in, and gives the
// store its name. Readers of a store that is replaced must have ended.
func (b *Builder) Finish(h Header) (err error) {
	h.Format, h.Version, h.Arrays, h.Checksum = format, Version, b.state.Arrays, seal.Text(0)
	h.Merged, h.Edges, h.Entries = b.state.Merged, b.state.Edges, b.state.Edges
	if !h.Directed {
		h.Entries *= 2
	}
	if err := h.check(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	text, err := json.MarshalIndent(&h, "", " ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	seal.Stamp(text)
	if err := atomicfile.WriteBytes(filepath.Join(b.temp, HeaderFile), text); err != nil {
		return err
	}
	left, err := os.ReadDir(b.temp)
	if err != nil {
		return err
	}
	keep := map[string]bool{HeaderFile: true, lockFile: true, lockFile + ".owner": true}
	for _, a := range h.Arrays {
		keep[a.file()], keep[a.table()] = true, true
	}
	for _, e := range left {
		path := filepath.Join(b.temp, e.Name())
		if !keep[e.Name()] {
			err = os.RemoveAll(path)
		} else if e.Name() != lockFile && e.Name() != lockFile+".owner" {
			err = os.Chmod(path, 0o444)
		}
		if err != nil {
			return err
		}
	}
	if Is(b.dir) { // of those who replace and those who read one has to wait
		old, err := filelock.TryLock(filepath.Join(b.dir, lockFile))
		if err != nil {
			return err
		}
		away := b.dir + ".replaced"
		err = errors.Join(os.RemoveAll(away), os.Rename(b.dir, away))
		if err = errors.Join(err, old.Unlock()); err != nil {
			return err
		}
		defer os.RemoveAll(away)
	} else if err := os.Remove(b.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := b.lock.Unlock(); err != nil {
		return err
	}
	b.lock = nil
	_ = os.Remove(filepath.Join(b.temp, lockFile+".owner"))
	return os.Rename(b.temp, b.dir)
}

// Merged counts what was dropped and merged of the edges.
func (b *Builder) Merged() Merged { return b.state.Merged }

func (b *Builder) open(name string) (*os.File, *bufio.Reader, error) {
	f, err := os.Open(filepath.Join(b.temp, name+".bin"))
	if err != nil {
		return nil, nil, err
	}
	return f, bufio.NewReaderSize(f, 256<<10), nil
}

func read32(r io.Reader, to []int32) error {
	_, err := io.ReadFull(r, bytesOf(to))
	return err
}

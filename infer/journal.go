package infer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/internal/wal"
)

// journal keeps the updates of an online graph in a folder:
//
//	journal.json   which export and data it belongs to
//	updates-N.log  a record for each version above N, see package wal
//	graph-N        the graph of version N as a data set, and in the file state what
//	               such a one cannot say
//	lock           held by the process that uses the folder
//
// A graph-N takes the place of all records up to version N. It is written aside while
// updates go on in updates-N.log, and has its name when it is whole.
type journal struct {
	dir  string
	log  func(format string, args ...any)
	lock *filelock.Lock

	w     *wal.Log
	since atomic.Int64 // bytes of logs behind the newest graph, but for w's

	compacting sync.WaitGroup
	busy       chan struct{} // holds a token while a graph is written
	failed     int64         // bytes of logs when one could not be written last, 0 if one was since; with the token
}

// compactAfter is how many bytes of updates are kept before they are folded into a
// graph.
var compactAfter int64 = 64 << 20

const notCompacted = "the journal is not compacted: %v; it is tried again after %d MiB more of updates"

// JournalError says that an update could not be written down, and so was not made.
type JournalError struct {
	Err error
	// Unsure tells that what was written of it could not be removed: it may be made
	// when the journal is read again.
	Unsure bool
}

func (e *JournalError) Error() string {
	if e.Unsure {
		return fmt.Sprintf("the update cannot be written to the journal, and may be made after a restart: %v", e.Err)
	}
	return fmt.Sprintf("the update was not made, since it cannot be written to the journal: %v", e.Err)
}

func (e *JournalError) Unwrap() error { return e.Err }

// journalFor is journal.json.
type journalFor struct {
	SchemaVersion int    `json:"schema_version"`
	Export        string `json:"export"` // checksum of what its manifest says of the models
	Data          string `json:"data"`   // checksum of the data set
	Directed      bool   `json:"directed"`
}

const (
	journalFile = "journal.json"
	stateFile   = "state"
)

func logName(version int64) string   { return fmt.Sprintf("updates-%d.log", version) }
func graphName(version int64) string { return fmt.Sprintf("graph-%d", version) }

// numberIn returns the version in a name that logName or graphName gave.
func numberIn(name, prefix, suffix string) (int64, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	rest, end := strings.CutSuffix(rest, suffix)
	v, err := strconv.ParseInt(rest, 10, 64)
	return v, ok && end && err == nil && v > 0 && strconv.FormatInt(v, 10) == rest
}

// checksumOf identifies what an export computes.
func checksumOf(m *manifest.Manifest) (string, error) {
	text, err := json.Marshal(struct {
		Task       string
		Classes    []string
		Features   int
		EdgeWeight bool
		Files      map[string]manifest.FileInfo
	}{m.Task, m.Classes, m.NumFeatures, m.EdgeWeight, m.Files})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// openJournal reads a journal, or begins one, for a graph as its data are. It returns
// the version that its updates lead to, without answers, or first where there are none.
func (r *Graph) openJournal(dir string, first *Snapshot, base *data.Dataset) (_ *Snapshot, err error) {
	if err := mayBeJournal(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	j := &journal{dir: dir, log: r.p.o.Log, busy: make(chan struct{}, 1)}
	if j.lock, err = filelock.TryLock(filepath.Join(dir, "lock")); err != nil {
		return nil, fmt.Errorf("the journal: %w", err)
	}
	defer func() {
		if err != nil {
			j.close()
		}
	}()
	if err := j.claim(r.p.manifest, base); err != nil {
		return nil, err
	}
	graphs, logs, err := j.list()
	if err != nil {
		return nil, err
	}
	s := first
	if n := len(graphs); n > 0 {
		if s, err = r.readGraph(filepath.Join(dir, graphName(graphs[n-1])), first, base); err != nil {
			return nil, err
		}
		if s.Version != graphs[n-1] {
			return nil, fmt.Errorf("%s holds version %d", filepath.Join(dir, graphName(graphs[n-1])), s.Version)
		}
	}
	if s, err = j.replay(r, s, logs); err == nil {
		r.journal = j
	}
	return s, err
}

// mayBeJournal refuses a folder that is no journal and has other files, such as a data set.
func mayBeJournal(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == journalFile }) {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		_, isLog := numberIn(name, "updates-", ".log")
		if !isLog && name != "lock" && name != "lost+found" && !strings.HasPrefix(name, "graph-") && !strings.HasPrefix(name, "."+journalFile) {
			return fmt.Errorf("%s is no journal and holds %s: name a journal's folder, an empty one, or one that is not there", dir, name)
		}
	}
	return err
}

// claim holds the journal against the export and the data, or writes down whose it is.
func (j *journal) claim(m *manifest.Manifest, base *data.Dataset) error {
	sum, err := checksumOf(m)
	if err != nil {
		return err
	}
	want := journalFor{SchemaVersion: 1, Export: sum, Data: base.Checksum, Directed: base.Graph.Directed}
	path := filepath.Join(j.dir, journalFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j.begin(path, want)
	}
	if err != nil {
		return err
	}
	var have journalFor
	if err := json.Unmarshal(text, &have); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case have.SchemaVersion != want.SchemaVersion:
		return fmt.Errorf("%s: schema version %d is not what this gsrc writes", path, have.SchemaVersion)
	case have.Export != want.Export:
		return fmt.Errorf("the journal %s belongs to another export (checksum %.12s, this one has %.12s)", j.dir, have.Export, want.Export)
	case have.Data != want.Data || have.Directed != want.Directed:
		return fmt.Errorf("the journal %s belongs to other data (checksum %.12s, directed %v; these have %.12s, %v)", j.dir, have.Data, have.Directed, want.Data, want.Directed)
	}
	return nil
}

// begin makes the log and then journal.json, so that without a log something is lost.
func (j *journal) begin(path string, whose journalFor) error {
	graphs, logs, err := j.list()
	if err != nil {
		return err
	}
	records := 0
	first := filepath.Join(j.dir, logName(1))
	w, _, err := wal.Open(first, func([]byte) error { records++; return nil })
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if len(graphs) > 0 || len(logs) > 1 || len(logs) == 1 && logs[0] != 1 || records > 0 {
		return fmt.Errorf("%s has updates and no %s, which says what they belong to", j.dir, journalFile)
	}
	return atomicfile.WriteJSON(path, whose)
}

// list returns the versions of graphs and logs, ascending, and removes what a crash has
// left.
func (j *journal) list() (graphs, logs []int64, err error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if v, ok := numberIn(e.Name(), "graph-", ""); ok {
			graphs = append(graphs, v)
		} else if v, ok := numberIn(e.Name(), "updates-", ".log"); ok {
			logs = append(logs, v)
		} else if strings.HasPrefix(e.Name(), "graph-") && strings.HasSuffix(e.Name(), ".tmp") {
			if err := os.RemoveAll(filepath.Join(j.dir, e.Name())); err != nil {
				return nil, nil, err
			}
		}
	}
	slices.Sort(graphs)
	slices.Sort(logs)
	return graphs, logs, nil
}

// replay applies the updates of the logs behind a version, all at once.
func (j *journal) replay(r *Graph, from *Snapshot, logs []int64) (*Snapshot, error) {
	d, version := newDraft(from), from.Version
	read := func(record []byte) error {
		c, err := decodeCommit(record)
		if err != nil {
			return err
		}
		if c.Version < from.Version { // the graph has it
			return nil
		}
		if c.Version > version+1 {
			return fmt.Errorf("an update makes version %d of version %d: those between are lost", c.Version, version)
		}
		for _, u := range c.updates {
			if u.edit != nil && c.Version > from.Version {
				if !d.fits(u.edit) {
					return fmt.Errorf("the update of version %d does not fit the graph: it is another graph's, or one before it is lost", c.Version)
				}
				d.apply(u.edit)
			}
			if u.key != "" {
				r.keys.put(u.key, u.hash, c.Applied, c.time)
			}
		}
		version = c.Version
		return nil
	}
	for len(logs) > 1 && logs[1] <= from.Version { // the graph has all of the first
		logs = logs[1:]
	}
	if len(logs) == 0 || logs[0] > from.Version {
		return nil, fmt.Errorf("the journal %s has a graph of version %d, and no log of the updates from there on: it is lost", j.dir, from.Version)
	}
	// One that no disk space was left to begin: updates went on in the log before.
	unbegun := func(v int64) bool {
		info, err := os.Stat(filepath.Join(j.dir, logName(v)))
		return err == nil && info.Size() == 0 && v > from.Version
	}
	last := len(logs) - 1
	for unbegun(logs[last]) {
		last--
	}
	for i, v := range logs {
		path := filepath.Join(j.dir, logName(v))
		if i > 0 && v > version {
			return nil, fmt.Errorf("%s begins at version %d, and the records before it end at %d: what is between is lost", path, v, version)
		}
		if unbegun(v) {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
			continue
		}
		before := version
		var err error
		if i < last { // complete when the next one began
			err = wal.Read(path, read)
			if info, statErr := os.Stat(path); statErr == nil {
				j.since.Add(info.Size())
			}
		} else {
			begin := wal.Open
			if v <= from.Version { // its log was begun before the graph, or journal.json, was there
				begin = wal.Reopen
			}
			var cut int64
			if j.w, cut, err = begin(path, read); cut > 0 {
				j.log("%s: removed the last %d bytes, a record that was not finished; no update in it had been answered", path, cut)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("the journal: %w", lost(err, version))
		}
		if version > before {
			j.log("%s: %d versions", path, version-before)
		}
	}
	if version == from.Version {
		return from, nil
	}
	s, _ := d.finish()
	s.Version = version
	r.remember(d)
	return s.dense(), nil
}

// lost says which versions damage has taken.
func lost(err error, last int64) error {
	d, ok := errors.AsType[*wal.DamageError](err)
	if !ok {
		return err
	}
	if d.Next != nil {
		if c, bad := decodeCommit(d.Next); bad == nil {
			if c.Version-1 > last+1 {
				return fmt.Errorf("%w: the updates of versions %d to %d are lost, and with them what follows", err, last+1, c.Version-1)
			}
			return fmt.Errorf("%w: the updates of version %d are lost, and with them what follows", err, last+1)
		}
	}
	return fmt.Errorf("%w: the updates of version %d and what follows are lost; to go on with version %d, shorten the file to %d bytes", err, last+1, last, d.Offset)
}

// append writes updates down; when it returns they are on the disk.
func (j *journal) append(c *commit) error {
	if err := j.w.Append(c.append(nil)); err != nil {
		return &JournalError{err, j.w.Unsure()}
	}
	return nil
}

// close ends what is under way and gives the folder back.
func (j *journal) close() {
	j.compacting.Wait()
	if j.w != nil {
		j.w.Close()
	}
	if err := j.lock.Unlock(); err != nil {
		j.log("%v", err)
	}
}

// compactIfLarge folds updates into a graph aside, where there are many.
func (j *journal) compactIfLarge(r *Graph, s *Snapshot) {
	select {
	case j.busy <- struct{}{}:
	default: // one is being written
		return
	}
	size := j.w.Size() + j.since.Load()
	if size < j.failed+compactAfter || s.Version == 1 {
		<-j.busy
		return
	}
	j.failed = size // until it is written
	if err := j.rotate(s.Version); err != nil {
		j.log(notCompacted, err, compactAfter>>20)
		<-j.busy
		return
	}
	r.mu.Lock()
	state := slices.Clone(r.keys.made)
	r.mu.Unlock()
	j.compacting.Go(func() {
		defer func() { <-j.busy }()
		if path, err := j.writeGraph(s, r.labels, state); err != nil {
			j.log(notCompacted, err, compactAfter>>20)
		} else {
			j.log("the journal's graph of version %d is %s", s.Version, path)
		}
	})
}

// rotate begins a log of what follows a version.
func (j *journal) rotate(version int64) error {
	w, _, err := wal.Open(filepath.Join(j.dir, logName(version)), func([]byte) error { return nil })
	if err != nil {
		return err
	}
	// What made the version is in the log before, and is counted until it is removed.
	j.since.Add(j.w.Size())
	err = j.w.Close()
	j.w = w
	return err
}

// Compact folds the updates of the journal into a graph that data.Load reads, and
// returns its folder. It waits until no update is left to make, those included whose
// context has ended; updates that come meanwhile wait for it.
func (r *Graph) Compact() (string, error) {
	j := r.journal
	if j == nil {
		return "", errors.New("there is no journal")
	}
	j.busy <- struct{}{}
	defer func() { <-j.busy }()
	r.mu.Lock()
	for r.busy {
		r.idle.Wait()
	}
	closed, keys := r.closed, slices.Clone(r.keys.made)
	r.busy = !closed
	r.mu.Unlock()
	if closed {
		return "", errClosed
	}
	defer func() { go r.updateAll() }()
	s := r.Snapshot()
	path := filepath.Join(j.dir, graphName(s.Version))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if s.Version == 1 {
		return "", errors.New("the journal has no updates: the graph is that of the data")
	}
	if err := j.rotate(s.Version); err != nil {
		return "", err
	}
	return j.writeGraph(s, r.labels, keys)
}

// writeGraph writes the graph of a version, and removes what it takes the place of.
func (j *journal) writeGraph(s *Snapshot, labels []string, keys []committedKey) (path string, err error) {
	path = filepath.Join(j.dir, graphName(s.Version))
	temporary := path + ".tmp"
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temporary))
		}
	}()
	if err := os.RemoveAll(temporary); err != nil {
		return "", err
	}
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return "", err
	}
	for name, write := range map[string]func(io.Writer) error{
		data.SchemaFile: s.writeSchema,
		"nodes.csv":     func(w io.Writer) error { return s.writeNodes(w, labels) },
		"edges.csv":     s.writeEdges,
		"features.npy":  s.writeFeatures,
	} {
		if err := atomicfile.Write(filepath.Join(temporary, name), write); err != nil {
			return "", err
		}
	}
	in := func(name string) string { return filepath.Join(temporary, name) }
	sum, err := data.ChecksumOf(in(data.SchemaFile), in("edges.csv"), in("nodes.csv"), in("features.npy"))
	if err != nil {
		return "", err
	}
	if err := wal.Write(in(stateFile), slices.Values([][]byte{s.appendState(nil, sum, keys)})); err != nil {
		return "", err
	}
	unread := s.readBack(temporary)
	if _, memory := errors.AsType[*budget.ExceededError](unread); unread != nil && !memory {
		return "", fmt.Errorf("the graph cannot be read as it was written: %w", unread)
	}
	if err := os.Rename(temporary, path); err != nil {
		return "", err
	}
	if err := atomicfile.SyncDir(j.dir); err != nil {
		return "", err
	}
	j.since.Store(0)
	j.failed = 0
	if unread != nil {
		j.log("what %s takes the place of is kept until the next graph, since there is not the memory to read it back: %v", path, unread)
		return path, nil
	}
	graphs, logs, err := j.list()
	if err != nil {
		return "", err
	}
	for _, v := range logs {
		if v < s.Version {
			err = errors.Join(err, os.Remove(filepath.Join(j.dir, logName(v))))
		}
	}
	for _, v := range graphs {
		if v < s.Version {
			err = errors.Join(err, os.RemoveAll(filepath.Join(j.dir, graphName(v))))
		}
	}
	return path, err
}

// readBack holds a graph that was written against the version.
func (s *Snapshot) readBack(dir string) error {
	limit := s.r.p.o.Load.MaxBytes
	if b := s.r.budget; b != nil {
		limit = (b.Total() - b.Used()) / 2 // updates that come meanwhile have the rest
		held, err := b.Reserve("reading the journal's graph back", max(limit, 1))
		if err != nil {
			return err
		}
		defer held.Release()
	}
	ds, _, err := loadGraph(dir, s.graph.Directed, limit)
	if err != nil {
		return err
	}
	nodes := s.deleted.others(s.rows())
	if ds.Graph.N != len(nodes) || ds.X.Cols != s.x.cols || len(ds.Graph.Edges) != len(s.graph.Edges) {
		return fmt.Errorf("it has %d nodes, %d features and %d edges in place of %d, %d and %d", ds.Graph.N, ds.X.Cols, len(ds.Graph.Edges), len(nodes), s.x.cols, len(s.graph.Edges))
	}
	for i, v := range nodes {
		if s.ids != nil && ds.NodeID(i) != s.name(int(v)) {
			return fmt.Errorf("node %q is called %q", s.name(int(v)), ds.NodeID(i))
		}
	}
	return nil
}

// writeSchema says of the tables what could be guessed otherwise.
func (s *Snapshot) writeSchema(w io.Writer) error {
	text := "[nodes]\nid = \"id\"\nlabel = \"label\"\nlabel_kind = \"class\"\n\n[edges]\nsource = \"source\"\ntarget = \"target\"\n"
	if s.graph.Weights != nil {
		text += "weight = \"weight\"\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

func (s *Snapshot) writeNodes(w io.Writer, labels []string) error {
	nodes := s.deleted.others(s.rows())
	label := func(i int) string {
		if v := s.number(int(nodes[i])); v < len(labels) {
			return labels[v]
		}
		return ""
	}
	return writeCSV(w, len(nodes), []column{texts("id", func(i int) string { return s.name(int(nodes[i])) }), texts("label", label)}, nil)
}

func (s *Snapshot) writeEdges(w io.Writer) error {
	edges := s.graph.Edges
	columns := []column{
		texts("source", func(i int) string { return s.name(int(edges[i][0])) }),
		texts("target", func(i int) string { return s.name(int(edges[i][1])) }),
	}
	if s.graph.Weights != nil {
		columns = append(columns, floats("weight", func(i int) float32 { return inData(s.r.p.info.Weights, s.graph.Weights[i]) }))
	}
	return writeCSV(w, len(edges), columns, nil)
}

// writeFeatures writes a .npy file.
func (s *Snapshot) writeFeatures(w io.Writer) error {
	nodes := s.deleted.others(s.rows())
	return writeMatrix(w, len(nodes), s.x.cols, func(i int) []float32 { return s.x.row(int(nodes[i])) }, nil)
}

// appendState is what a data set cannot say of a version: its number, the deleted nodes
// and the keys of updates, and the checksum of the data set. Where weights of its edges are still
// to be transformed it says how: data sets of earlier versions have transformed ones.
func (s *Snapshot) appendState(b []byte, checksum string, keys []committedKey) []byte {
	b = appendText(b, checksum)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(s.Version)), uint64(s.next))
	b = binary.AppendUvarint(b, uint64(s.next-s.Nodes()))
	names := map[int]string{}
	if s.ids != nil {
		s.r.numbers.Range(func(name, number any) bool {
			if v := int(number.(int32)); v < s.next && s.gone(s.row(v)) {
				names[v] = name.(string)
			}
			return true
		})
	}
	for v := range s.next {
		if s.gone(s.row(v)) {
			b = binary.AppendUvarint(b, uint64(v))
			if s.ids != nil {
				b = appendText(b, names[v])
			}
		}
	}
	b = binary.AppendUvarint(b, uint64(len(keys)))
	for _, k := range keys {
		b = append(appendText(b, k.key), k.hash[:]...)
		for _, n := range []int64{k.Version, int64(k.Nodes), int64(k.Edges), k.time} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	if w := s.r.p.info.Weights; w != data.WeightsAsTheyAre {
		b = appendText(b, string(w))
	}
	return b
}

// loadGraph reads the files that writeGraph has written, and what its state has behind their checksum.
func loadGraph(dir string, directed bool, maxBytes int64) (*data.Dataset, *decoder, error) {
	var state []byte
	if err := wal.Read(filepath.Join(dir, stateFile), func(b []byte) error { state = bytes.Clone(b); return nil }); err != nil {
		return nil, nil, err
	}
	// Labels are those of the data. Earlier versions wrote no schema.toml, and some may not look like classes.
	ds, err := data.Load(dir, data.LoadOptions{Directed: directed, Tables: data.Tables{Ignore: []string{"label"}}, MaxBytes: maxBytes})
	if err != nil {
		return nil, nil, err
	}
	d := &decoder{b: state}
	if sum := d.text(); sum != ds.Checksum || sum == "" {
		return nil, nil, fmt.Errorf("%s is damaged: its files have the checksum %.12s, and had %.12s when they were written", dir, ds.Checksum, sum)
	}
	return ds, d, nil
}

// readGraph reads what writeGraph has written. first is the graph of the data.
func (r *Graph) readGraph(dir string, first *Snapshot, base *data.Dataset) (*Snapshot, error) {
	path := filepath.Join(dir, stateFile)
	ds, d, err := loadGraph(dir, base.Graph.Directed, r.p.o.Load.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("the journal: %w", err)
	}
	s := &Snapshot{Version: d.int(), r: r, numbering: numbering{next: int(d.int())}}
	var deleted bitset
	names := map[int]string{}
	for range d.count(1) {
		v := int(d.node())
		if d.bad || v >= s.next || deleted.has(v) {
			return nil, fmt.Errorf("%s: %w", path, errRecord)
		}
		deleted = deleted.with(v, false)
		if first.ids != nil {
			names[v] = d.text()
		}
	}
	for range d.count(2 + sha256.Size) {
		k := committedKey{key: d.text()}
		copy(k.hash[:], d.take(len(k.hash)))
		k.Applied, k.time = Applied{d.int(), int(d.int()), int(d.int())}, d.int()
		r.keys.put(k.key, k.hash, k.Applied, k.time)
	}
	if len(d.b) > 0 {
		data.EdgeWeights(d.text()).Apply(ds)
	}
	if d.bad || len(d.b) > 0 || ds.Graph.N+deleted.count != s.next || ds.X.Cols != first.x.cols {
		return nil, fmt.Errorf("%s: %w", path, errRecord)
	}
	s.graph, s.x = ds.Graph, matrixOf(ds.X.ToDense().Dense, ds.X.Cols)
	if first.ids != nil {
		for i := range ds.Graph.N {
			s.ids = append(s.ids, ds.NodeID(i))
		}
	}
	if deleted.count > 0 {
		s.numbers = deleted.others(s.next)
	}
	if s.graph.Directed = base.Graph.Directed; s.graph.Weights == nil && base.Graph.Weights != nil {
		s.graph.Weights = []float32{} // there is no edge to weigh
	}
	for row, name := range s.ids {
		names[s.number(row)] = name
	}
	for v, name := range names {
		if v >= first.next {
			r.numbers.Store(name, int32(v))
		}
	}
	return s, nil
}

// renumber gives the nodes of a graph other numbers, below n, which ascend.
func renumber(g *graph.Graph, number []int32, n int) *graph.Graph {
	h := &graph.Graph{N: n, Edges: make([][2]int32, len(g.Edges)), Weights: g.Weights, Directed: g.Directed}
	for i, e := range g.Edges {
		h.Edges[i] = [2]int32{number[e[0]], number[e[1]]}
	}
	return h
}

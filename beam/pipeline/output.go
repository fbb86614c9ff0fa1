package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/metrics"
)

func init() {
	registerTelling[writeFn]()
	register.DoFn3x1[context.Context, int64, func(*[]byte) bool, error](&summaryFn{})
}

// SummaryFile is the file of an output that says what the others are. It is the last to be
// there: an output without it is not whole.
const SummaryFile = "summary.json"

// unfinished ends the names of files of an output that is not whole yet.
const unfinished = ".unfinished"

// Summary is summary.json.
type Summary struct {
	Kind       string  `json:"kind"` // predictions, embedding or refined
	Model      string  `json:"model"`
	Nodes      int64   `json:"nodes"`
	Edges      int64   `json:"edges"` // each undirected one once, without self-loops
	Partitions int64   `json:"partitions"`
	Shards     []Shard `json:"shards"`
	Refined    *Counts `json:"refined,omitempty"`
	// Searches say how near nodes were found, by each kind of rows that were compared.
	Searches []Search `json:"searches,omitempty"`
}

// Shard is a file of an output.
type Shard struct {
	File    string  `json:"file"`
	Rows    int     `json:"rows"`
	Entries int64   `json:"entries"` // edges that lead to its nodes, in both directions where they are undirected
	Refined *Counts `json:"refined,omitempty"`
}

// Counts are of the edges of a refined graph.
type Counts struct {
	Kept    int `json:"kept"`
	New     int `json:"new"`
	Removed int `json:"removed"`
	// Near counts candidates whose probability is within 1e-5 of the threshold, where another
	// processor, or another order of sums, may decide otherwise.
	Near int `json:"near_threshold"`
}

func (c *Counts) add(d *Counts) {
	c.Kept, c.New, c.Removed, c.Near = c.Kept+d.Kept, c.New+d.New, c.Removed+d.Removed, c.Near+d.Near
}

// output says what is written of partitions, and where.
type output struct {
	Kind, Model, Out string
	Layout           Layout
	Directed         bool
	Classes          []string
	Refinement       *onnx.Refinement // of refined graphs
	Searches         []Search         // that are known before
}

// report is of what was written, or found.
type report struct {
	Shard  *Shard  `json:",omitempty"`
	Search *Search `json:",omitempty"`
}

func (r report) send(w *work, emit func(int64, []byte)) error {
	text, err := json.Marshal(r)
	if err == nil {
		w.emit(emit, 0, text)
	}
	return err
}

func (o *output) write(s beam.Scope, states beam.PCollection, reports []beam.PCollection) {
	reports = append(reports, telling(s, "write", writeFn{*o}, states))
	beam.ParDo0(s, &summaryFn{*o}, beam.GroupByKey(s, beam.Flatten(s, reports...)))
}

// writeFn writes a partition's file and reports it.
type writeFn struct{ Output output }

func (f writeFn) do(c *call, s *state, sent []*table) (err error) {
	o := &f.Output
	shard := Shard{File: fmt.Sprintf("%s-%05d-of-%05d.parquet", o.Kind, s.partition, o.Layout.Partitions), Rows: s.n(), Entries: int64(len(s.col))}
	var write func(path string) error
	switch o.Kind {
	case kindPredictions:
		write, err = o.predictions(s)
	case kindEmbedding:
		write, err = o.embedding(s)
	default:
		write, shard.Refined, shard.Rows, err = o.refined(s)
	}
	if err == nil {
		err = writeFile(c.ctx, join(o.Out, shard.File+unfinished), write)
	}
	if err != nil {
		return err
	}
	return report{Shard: &shard}.send(c.work, c.out)
}

func (o *output) predictions(s *state) (func(string) error, error) {
	p, err := s.finite("probabilities")
	if err != nil {
		return nil, err
	}
	if _, err := s.finite("logits"); err != nil {
		return nil, err
	}
	r := &infer.Prediction{Classes: o.Classes, Probabilities: p, IDs: s.texts("names")}
	for _, c := range metrics.Argmax(p, len(o.Classes)) {
		r.Predicted = append(r.Predicted, int(c))
	}
	return func(path string) error { return r.WriteFile(path, nil) }, nil
}

func (o *output) embedding(s *state) (func(string) error, error) {
	h, err := s.finite(embeddingValue)
	if err != nil {
		return nil, err
	}
	e := &infer.Embedding{IDs: s.texts("names"), Width: len(h) / s.n(), Values: h}
	return e.WriteFile, nil
}

// finite returns a value of which every number is finite.
func (s *state) finite(name string) ([]float32, error) {
	x, err := s.value(name)
	if err != nil {
		return nil, err
	}
	data := x.Data.([]float32)
	if i := slices.IndexFunc(data, func(v float32) bool { return v-v != 0 }); i >= 0 {
		return nil, &infer.FiniteError{What: fmt.Sprintf("node %q", s.texts("names")[i/width(x.Shape)])}
	}
	return data, nil
}

// writeFile has a file written in a folder of its own, from which it is moved to a local path, or copied to one of
// another file system. In the first case that folder is beside the path, where the next command removes what is left.
func writeFile(ctx context.Context, path string, write func(file string) error) error {
	parent := ""
	if local(path) {
		parent = filepath.Dir(path)
		if err := os.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(parent, "gsrc-beam-*"+unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "shard.parquet")
	if err := write(file); err != nil {
		return err
	}
	if local(path) {
		return os.Rename(file, path)
	}
	fs, err := filesystem.New(ctx, path)
	if err != nil {
		return err
	}
	defer fs.Close()
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := fs.OpenWrite(ctx, path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// join is filepath.Join for paths with a scheme, too.
func join(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// summaryFn writes the summary when every shard was written.
type summaryFn struct{ Output output }

func (f *summaryFn) ProcessElement(ctx context.Context, _ int64, reports func(*[]byte) bool) error {
	work := begin(ctx, "write")
	defer work.end()
	reports = work.reads(reports)
	o := &f.Output
	sum := Summary{Kind: o.Kind, Model: o.Model, Nodes: o.Layout.Nodes, Partitions: o.Layout.Partitions, Searches: slices.Clone(o.Searches)}
	var b []byte
	for reports(&b) {
		var r report
		if err := json.Unmarshal(b, &r); err != nil {
			return err
		}
		if r.Search != nil {
			sum.Searches = append(sum.Searches, *r.Search)
			continue
		}
		sum.Shards = append(sum.Shards, *r.Shard)
		sum.Edges += r.Shard.Entries
		if r.Shard.Refined != nil {
			if sum.Refined == nil {
				sum.Refined = &Counts{}
			}
			sum.Refined.add(r.Shard.Refined)
		}
	}
	slices.SortFunc(sum.Searches, func(a, b Search) int { return strings.Compare(a.Rows, b.Rows) })
	if !o.Directed {
		sum.Edges /= 2
	}
	if n := int64(len(sum.Shards)); n != o.Layout.Partitions {
		return fmt.Errorf("of %d partitions %d were written", o.Layout.Partitions, n)
	}
	slices.SortFunc(sum.Shards, func(a, b Shard) int { return strings.Compare(a.File, b.File) })
	text, err := json.MarshalIndent(sum, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(ctx, join(o.Out, SummaryFile+unfinished), func(path string) error { return os.WriteFile(path, append(text, '\n'), 0o666) })
}

// finish gives the files of an output that is whole their names, the summary last.
func finish(ctx context.Context, out string) (*Summary, error) {
	fs, err := filesystem.New(ctx, out)
	if err != nil {
		return nil, err
	}
	defer fs.Close()
	text, err := readFile(ctx, join(out, SummaryFile+unfinished))
	if err != nil {
		return nil, fmt.Errorf("the pipeline ended without a summary: %w", err)
	}
	var sum Summary
	if err := json.Unmarshal(text, &sum); err != nil {
		return nil, err
	}
	names, err := list(ctx, out)
	if err != nil {
		return nil, err
	}
	if slices.Contains(names, SummaryFile) { // a lock keeps others out of local folders only
		return nil, fmt.Errorf("%s has a %s by now, which another pipeline has written: choose another folder with --out", out, SummaryFile)
	}
	for _, f := range append(slices.Clone(sum.Shards), Shard{File: SummaryFile}) {
		if err := filesystem.Rename(ctx, fs, join(out, f.File+unfinished), join(out, f.File)); err != nil {
			return nil, err
		}
	}
	// The model, and what workers were writing that were ended and replaced.
	if names, err = list(ctx, out); err == nil {
		err = remove(ctx, out, slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, unfinished) }))
	}
	return &sum, err
}

// leftovers returns the names of what a pipeline that did not end has left in a folder, and an error if there
// is anything else.
func leftovers(ctx context.Context, out string) ([]string, error) {
	names, err := list(ctx, out)
	if err != nil {
		return nil, err
	}
	// The model is there from the beginning until the summary has its name.
	left := slices.Contains(names, modelName) && !slices.Contains(names, SummaryFile)
	for _, name := range names {
		if !strings.HasSuffix(name, unfinished) && !(left && shardName.MatchString(name)) {
			return nil, fmt.Errorf("%s is not empty: it has %s; choose another folder with --out, or delete this one", out, name)
		}
	}
	return names, nil
}

// prepare keeps other processes from a folder, where it is local, and removes what a pipeline that did not end
// has left in it.
func prepare(ctx context.Context, out string) (unlock func(), err error) {
	release := func() {}
	if local(out) {
		if release, err = manifest.LockFolder(out); err != nil {
			return nil, err
		}
	}
	names, err := leftovers(ctx, out)
	if err == nil {
		err = remove(ctx, out, names)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// remove removes what has one of the names in a folder, with what is in it where it is a local folder.
func remove(ctx context.Context, out string, names []string) error {
	fs, err := filesystem.New(ctx, out)
	if err != nil {
		return err
	}
	defer fs.Close()
	remover, ok := fs.(filesystem.Remover)
	for _, name := range names {
		switch {
		case local(out):
			err = os.RemoveAll(join(out, name))
		case ok:
			err = remover.Remove(ctx, join(out, name))
		default:
			err = fmt.Errorf("%s has files of a pipeline that did not end, and the file system removes none", out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// local reports whether a path is one of this machine, and not of a file system with a scheme.
func local(path string) bool { return !strings.Contains(path, "://") }

// list returns the names in a folder, none where there is no folder. File systems list by patterns, which the
// name of a local folder may look like.
func list(ctx context.Context, dir string) (names []string, err error) {
	if local(dir) {
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return names, err
	}
	if strings.ContainsAny(dir, `*?[\`) {
		return nil, fmt.Errorf("--out is %s: its file system would take it for a pattern; choose a name without *, ?, [ and \\", dir)
	}
	fs, err := filesystem.New(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer fs.Close()
	paths, err := fs.List(ctx, join(dir, "*"))
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names, err
}

var shardName = regexp.MustCompile(`^(predictions|embedding|refined)-\d{5,}-of-\d{5,}\.parquet$`)

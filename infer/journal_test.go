package infer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/internal/wal"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// friends writes a data set whose nodes have names, and exports a model of it.
func friends(t *testing.T, set ...string) (dist, path string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "friends")
	var nodes, edges strings.Builder
	nodes.WriteString("id,label,split,age,chess\n")
	edges.WriteString("source,target,weight\n")
	for i := range 40 {
		fmt.Fprintf(&nodes, "\"n, %d\",%s,%s,%d,%d\n", i, []string{"cat", "dog"}[i%2], []string{"train", "val", "test"}[i%3], 20+i, i%4)
		fmt.Fprintf(&edges, "\"n, %d\",\"n, %d\",%g\n\"n, %d\",\"n, %d\",1\n", i, (i+1)%40, float32(i+1)/7, i, (i+7)%40)
	}
	if err := errors.Join(os.MkdirAll(path, 0o755), os.WriteFile(filepath.Join(path, "nodes.csv"), []byte(nodes.String()), 0o644),
		os.WriteFile(filepath.Join(path, "edges.csv"), []byte(edges.String()), 0o644)); err != nil {
		t.Fatal(err)
	}
	return Train(t, filepath.Join(dir, "run"), "gcn", path, export.BuildOptions{}, append(set, "train.epochs=2")...).Dist, path
}

func open(t *testing.T, dist, path, journal string) *Graph {
	t.Helper()
	r, err := OpenGraph(t.Context(), dist, path, GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU}, Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustUpdate(t *testing.T, r *Graph, u Update) Applied {
	t.Helper()
	a, err := r.Update(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A key has its update made once, whoever asks and however often.
func TestKeys(t *testing.T) {
	r, _, _ := resident(t, "gcn", GraphOptions{})
	x := slices.Clone(r.Snapshot().x.row(3))
	u := Update{X: x, Sources: []string{"120"}, Targets: []string{"7"}, Key: "first"}
	first := mustUpdate(t, r, u)
	mustUpdate(t, r, Update{Sources: []string{"120"}, Targets: []string{"8"}})
	if again := mustUpdate(t, r, u); again != first || r.Snapshot().Version != 3 {
		t.Errorf("the same key gives %+v, then %+v, version %d", first, again, r.Snapshot().Version)
	}
	other := u
	other.Targets = []string{"9"}
	var key *KeyError
	if _, err := r.Update(t.Context(), other); !errors.As(err, &key) {
		t.Errorf("the same key with other content: %v", err)
	}
	for _, bad := range []string{"a\nb", " a", strings.Repeat("a", MaxKey+1), "\xff"} {
		var fault *UpdateError
		if _, err := r.Update(t.Context(), Update{DeleteNodes: []string{"7"}, Key: bad}); !errors.As(err, &fault) {
			t.Errorf("the key %q: %v", bad, err)
		}
	}
	// One that fails is tried again.
	u = Update{DeleteNodes: []string{"121"}, Key: "later"}
	if _, err := r.Update(t.Context(), u); err == nil {
		t.Fatal("a node that there is not was deleted")
	}
	mustUpdate(t, r, Update{X: x})
	if a := mustUpdate(t, r, u); a.Version != 5 {
		t.Errorf("version %d", a.Version)
	}
	// One whose caller has gone is made, and who asks again waits for it.
	exact, started, goOn := r.advance, make(chan struct{}), make(chan struct{})
	r.advance = func(ctx context.Context, old, next *Snapshot, c *changes) error {
		close(started)
		<-goOn
		return exact(ctx, old, next, c)
	}
	u = Update{X: x, Key: "slow"}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := r.Update(ctx, u); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if a, err := r.Update(t.Context(), u); err != nil || a.Version != 6 {
				t.Error(a, err)
			}
		})
	}
	close(goOn)
	wg.Wait()
	if v := r.Snapshot().Version; v != 6 {
		t.Errorf("version %d", v)
	}
	// Keys are kept for a time, and that many of them.
	k := &keys{}
	now := time.Now().Unix()
	k.put("old", [32]byte{}, Applied{Version: 2}, now-int64(KeyLife/time.Second)-5)
	for i := range KeysKept + 3 {
		k.put(strconv.Itoa(i), [32]byte{}, Applied{Version: int64(i)}, now)
	}
	if k.find("old") != nil || k.find("2") != nil || k.find("3") == nil || len(k.attempts) != KeysKept {
		t.Errorf("%d keys are kept", len(k.attempts))
	}
}

// The weight in the data of a logarithm has it, and as few digits as the data.
func TestWeightsInData(t *testing.T) {
	s := rand.New(rand.NewPCG(1, 1))
	for i := range 100_000 {
		w := float32(math.Exp(40*s.Float64() - 12))
		if i < 1000 {
			w = float32(i) / 10
		}
		for _, e := range []data.EdgeWeights{data.WeightsAsTheyAre, data.LogWeights} {
			got := inData(e, e.Of(w))
			if e.Of(got) != e.Of(w) || i < 1000 && got != w {
				t.Fatalf("%q: %v of %v", e, got, w)
			}
		}
	}
}

// What was answered is there when the graph is opened again, from the log, from a graph
// that was written in its place, and from both.
func TestJournal(t *testing.T) {
	for _, named := range []bool{false, true} {
		journal := filepath.Join(t.TempDir(), "journal")
		o := PredictOptions{Provider: ort.CPU}
		dist, run := "", (*Exported)(nil)
		path := "synthetic"
		name := strconv.Itoa
		n := 120
		if named {
			dist, path = friends(t, "data.weights=log1p")
			name, n = func(i int) string { return fmt.Sprintf("n, %d", i) }, 40
		} else {
			dist, run = exported120(t, "ecl-gsr")
			o.Load = run.Load
		}
		reopen := func(r *Graph) *Graph {
			t.Helper()
			if r != nil {
				r.Close()
			}
			r, err := OpenGraph(t.Context(), dist, path, GraphOptions{PredictOptions: o, Journal: journal})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		r := reopen(nil)
		x := slices.Clone(r.Snapshot().x.row(3))
		all := []Update{
			{X: slices.Concat(x, x), IDs: []string{name(n), name(n + 1)}, Sources: []string{name(n), name(4)}, Targets: []string{name(n + 1), name(9)}, Key: "one"},
			{DeleteNodes: []string{name(5)}, ChangeNodes: []string{name(6)}, ChangeX: x},
			{Sources: []string{name(n)}, Targets: []string{name(n)}, Key: "nothing"},                                     // a self-loop
			{DeleteSources: []string{name(n)}, DeleteTargets: []string{name(n + 1)}, DeleteNodes: []string{name(n + 1)}}, // refused
			{DeleteSources: []string{name(n)}, DeleteTargets: []string{name(n + 1)}, Sources: []string{name(n)}, Targets: []string{name(3)}},
		}
		var applied []Applied
		for i, u := range all {
			a, err := r.Update(t.Context(), u)
			if (err != nil) != (i == 3) {
				t.Fatal(i, err)
			}
			applied = append(applied, a)
		}
		if applied[2] != applied[1] {
			t.Errorf("an update that changes nothing makes version %+v of %+v", applied[2], applied[1])
		}
		want := answers(t, r.Snapshot())
		check := func(version int64) {
			t.Helper()
			s := r.Snapshot()
			got := answers(t, s)
			if s.Version != version || len(got) != len(want) {
				t.Fatalf("named %v: version %d is another, want %d", named, s.Version, version)
			}
			for i := range want {
				if d := got[i] - want[i]; !(d <= 1e-5 && d >= -1e-5) {
					t.Fatalf("named %v: probability %d of version %d is %g, and was %g", named, i, version, got[i], want[i])
				}
			}
			var node *NodeError
			if _, err := s.Find(name(5)); !errors.As(err, &node) || !node.Deleted {
				t.Errorf("the deleted node: %v", err)
			}
			for _, i := range []int{0, 2} {
				if a := mustUpdate(t, r, all[i]); a != applied[i] {
					t.Errorf("the key of update %d: %+v, want %+v", i, a, applied[i])
				}
			}
		}
		r = reopen(r)
		check(4)
		folder, err := r.Compact()
		if err != nil {
			t.Fatal(err)
		}
		same(t, r.Snapshot(), dist, folder, PredictOptions{Provider: ort.CPU})
		check(4)
		r = reopen(r)
		check(4)
		mustUpdate(t, r, Update{X: x, IDs: []string{name(n + 2)}, Sources: []string{name(n + 2)}, Targets: []string{name(8)}, DeleteNodes: []string{name(n)}})
		want = answers(t, r.Snapshot())
		r = reopen(r)
		check(5)
		if folder, err = r.Compact(); err != nil {
			t.Fatal(err)
		}
		same(t, r.Snapshot(), dist, folder, PredictOptions{Provider: ort.CPU})
		r = reopen(r)
		check(5)
		left, err := filepath.Glob(filepath.Join(journal, "*"))
		if err != nil || len(left) != 4+1 { // with the lock and its owner
			t.Errorf("the journal has %q, %v", left, err)
		}
		r.Close()
	}
}

// Labels of a graph that was written are classes, whatever they look like; also those of earlier
// versions, which wrote no schema.toml.
func TestCompactNumberLabels(t *testing.T) {
	for _, c := range []struct {
		schema string
		label  func(i int) string
		gone   func(i int) bool
	}{
		{"[nodes]\nlabel_kind = \"class\"\n", func(i int) string { return fmt.Sprint(1.37 * float64(i%39)) }, func(i int) bool { return i == 5 }},
		{"", func(i int) string { return strconv.Itoa(i % 40) }, func(i int) bool { return i%40 < 2 }},
	} {
		dir := t.TempDir()
		path, dir := filepath.Join(dir, "numbers"), filepath.Join(dir, "journal")
		nodes, edges := "id,label,split,a,b\n", "source,target\n"
		gone := Update{}
		for i := range 120 {
			nodes += fmt.Sprintf("n%d,%s,%s,%d,%d\n", i, c.label(i), []string{"train", "val", "test"}[i%3], i%7, i%5)
			edges += fmt.Sprintf("n%d,n%d\n", i, (i+1)%120)
			if c.gone(i) {
				gone.DeleteNodes = append(gone.DeleteNodes, fmt.Sprintf("n%d", i))
			}
		}
		files := map[string]string{"nodes.csv": nodes, "edges.csv": edges}
		if c.schema != "" {
			files[data.SchemaFile] = c.schema
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		dist := Train(t, filepath.Join(filepath.Dir(dir), "run"), "gcn", path, export.BuildOptions{}, "train.epochs=1").Dist
		r := open(t, dist, path, dir)
		mustUpdate(t, r, gone)
		folder, err := r.Compact()
		if err != nil {
			t.Fatal(err)
		}
		same(t, r.Snapshot(), dist, folder, PredictOptions{Provider: ort.CPU})
		s, in := r.Snapshot(), func(name string) string { return filepath.Join(folder, name) }
		r.Close()
		want := s.Nodes()
		reopen := func() {
			t.Helper()
			r := open(t, dist, path, dir)
			defer r.Close()
			if got := r.Snapshot(); got.Version != 2 || got.Nodes() != want {
				t.Errorf("version %d with %d nodes, want %d", got.Version, got.Nodes(), want)
			}
		}
		reopen()
		if err := os.Remove(in(data.SchemaFile)); err != nil {
			t.Fatal(err)
		}
		sum, err := data.ChecksumOf(in("edges.csv"), in("nodes.csv"), in("features.npy"))
		if err != nil {
			t.Fatal(err)
		}
		if err := wal.Write(in(stateFile), slices.Values([][]byte{s.appendState(nil, sum, nil)})); err != nil {
			t.Fatal(err)
		}
		reopen()
	}
}

// A graph that cannot be read as it was written leaves the journal as it was.
func TestCompactReadsBack(t *testing.T) {
	dist, path := friends(t)
	dir := filepath.Join(t.TempDir(), "journal")
	r := open(t, dist, path, dir)
	defer r.Close()
	mustUpdate(t, r, Update{DeleteNodes: []string{"n, 1"}})
	s := *r.Snapshot()
	s.ids = slices.Clone(s.ids)
	s.ids[0] = s.ids[2]
	if _, err := r.journal.writeGraph(&s, r.labels, nil); err == nil {
		t.Error("a graph of two nodes of one name was written")
	}
	for name, there := range map[string]bool{"updates-1.log": true, "graph-2": false, "graph-2.tmp": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A graph that was written is not written anew before as much has come again.
func TestCompactOnce(t *testing.T) {
	defer func(n int64) { compactAfter = n }(compactAfter)
	compactAfter = 500
	dist, path := friends(t)
	r := open(t, dist, path, filepath.Join(t.TempDir(), "journal"))
	defer r.Close()
	update := func(i int) (compacted bool) {
		mustUpdate(t, r, Update{X: []float32{30, 1}, IDs: []string{fmt.Sprint("new ", i)}})
		r.journal.busy <- struct{}{} // once what it has begun is written
		<-r.journal.busy
		_, err := os.Stat(filepath.Join(r.journal.dir, graphName(int64(i+2))))
		return err == nil
	}
	i := 0
	for !update(i) {
		i++
	}
	if update(i + 1) {
		t.Errorf("the graph was written after %d updates, and again after the next", i+1)
	}
}

// A graph that cannot be written is tried again once as much has come again, and not at each update.
func TestCompactBacksOff(t *testing.T) {
	defer func(n int64) { compactAfter = n }(compactAfter)
	compactAfter = 500
	dist, path := friends(t)
	r := open(t, dist, path, filepath.Join(t.TempDir(), "journal"))
	defer r.Close()
	var at []int64 // bytes of updates at each failure; with the token, which the one that failed has
	r.journal.log = func(string, ...any) { at = append(at, r.journal.failed) }
	for tried, i := 0, 0; tried < 3 && i < 100; i++ {
		if err := os.MkdirAll(filepath.Join(r.journal.dir, graphName(int64(i+2)), "taken"), 0o755); err != nil {
			t.Fatal(err)
		}
		mustUpdate(t, r, Update{X: []float32{30, 1}, IDs: []string{fmt.Sprint("new ", i)}})
		r.journal.busy <- struct{}{} // once what it has begun has ended
		tried = len(at)
		<-r.journal.busy
	}
	r.journal.busy <- struct{}{}
	defer func() { <-r.journal.busy }()
	if len(at) < 3 || at[1]-at[0] < compactAfter || at[2]-at[1] < compactAfter {
		t.Errorf("writing the graph was tried at %v bytes of updates", at)
	}
}

// An update whose caller has gone is in the graph that Compact writes, as it was when it was
// made, and the journal goes on behind it.
func TestCompactWaits(t *testing.T) {
	dist, path := friends(t)
	dir := filepath.Join(t.TempDir(), "journal")
	r := open(t, dist, path, dir)
	mustUpdate(t, r, Update{X: []float32{30, 1}, IDs: []string{"new 0"}})
	advance, goOn := r.advance, make(chan struct{})
	r.advance = func(ctx context.Context, old, next *Snapshot, c *changes) error {
		<-goOn
		return advance(ctx, old, next, c)
	}
	late := func(i int) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		u := Update{X: []float32{30, 1}, IDs: []string{fmt.Sprint("new ", i)}}
		if _, err := r.Update(ctx, u); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("update %d: %v", i, err)
		}
		u.X[0], u.IDs[0] = 99, "other" // the caller's again
	}
	late(1)
	late(2)
	var folder string
	var wg sync.WaitGroup
	wg.Go(func() {
		var err error
		if folder, err = r.Compact(); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(100 * time.Millisecond) // for a Compact that does not wait
	close(goOn)
	wg.Wait()
	if want := filepath.Join(dir, graphName(r.Snapshot().Version)); folder != want || r.Snapshot().Nodes() != 43 {
		t.Errorf("compacted into %s, want %s of %d nodes", folder, want, r.Snapshot().Nodes())
	}
	mustUpdate(t, r, Update{X: []float32{30, 1}, IDs: []string{"new 3"}})
	r.Close()
	if _, err := r.Compact(); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
	r = open(t, dist, path, dir)
	defer r.Close()
	for i := range 4 {
		v, err := r.Snapshot().Find(fmt.Sprint("new ", i))
		if err != nil {
			t.Error(err)
		} else if x := r.Snapshot().x.row(int(v)); !slices.Equal(x, []float32{30, 1}) {
			t.Errorf("new %d has the features %v", i, x)
		}
	}
}

// A journal of something else, or one that is in use or damaged, is refused, and said to
// be.
func TestJournalFaults(t *testing.T) {
	dist, path := friends(t)
	dir := filepath.Join(t.TempDir(), "journal")
	r := open(t, dist, path, dir)
	fault := func(what, want, dist, path string) {
		t.Helper()
		if r, err := OpenGraph(t.Context(), dist, path, GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU}, Journal: dir}); err == nil {
			r.Close()
			t.Errorf("%s is taken", what)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	var held *filelock.HeldError
	if _, err := OpenGraph(t.Context(), dist, path, GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU}, Journal: dir}); !errors.As(err, &held) {
		t.Errorf("a journal that is in use: %v", err)
	}
	if _, err := OpenGraph(t.Context(), dist, path, GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU}, Journal: path}); err == nil || !strings.Contains(err.Error(), "is no journal and holds") {
		t.Errorf("a data set as the journal: %v", err)
	}
	for i := range 6 {
		mustUpdate(t, r, Update{X: []float32{30, float32(i)}, IDs: []string{fmt.Sprint("new ", i)}})
	}
	r.Close()
	log := filepath.Join(dir, logName(1))
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) {
		if err := os.WriteFile(log, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := bytes.Index(text, []byte("new 2"))
	bad := slices.Clone(text)
	bad[at] ^= 4
	put(bad)
	fault("a damaged update", "the updates of version 4 are lost", dist, path)
	for _, n := range []int{0, 3} {
		put(text[:n])
		fault("a log that was emptied", "its records are lost", dist, path)
	}
	put(text[:len(text)-3])
	r = open(t, dist, path, dir)
	if v := r.Snapshot().Version; v != 6 {
		t.Errorf("version %d after the last record was torn, want 6", v)
	}
	mustUpdate(t, r, Update{X: []float32{30, 5}, IDs: []string{"new 5"}})
	r.Close()
	if err := os.Rename(log, log+".away"); err != nil {
		t.Fatal(err)
	}
	fault("a journal whose log is gone", "it is lost", dist, path)
	if err := os.Rename(log+".away", log); err != nil {
		t.Fatal(err)
	}
	otherDist, otherPath := friends(t)
	if err := os.WriteFile(filepath.Join(otherPath, "edges.csv"), []byte("source,target\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	fault("a journal of other data", "belongs to other data", dist, otherPath)
	manifest := filepath.Join(otherDist, "manifest.json")
	old, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	// Two trainings are the same to the bit, so that their exports are one and the same.
	r = open(t, otherDist, path, dir)
	folder, err := r.Compact()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if !bytes.Contains(old, []byte(`"cat"`)) {
		t.Fatal("no classes")
	}
	for _, name := range []string{"nodes.csv", "edges.csv", "features.npy", stateFile} {
		file := filepath.Join(folder, name)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bad := slices.Clone(text)
		bad[len(bad)-9] ^= 1
		if err := os.WriteFile(file, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		fault("a damaged "+name, "the journal", dist, path)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	synthetic, _ := exported120(t, "gcn")
	_, err = OpenGraph(t.Context(), synthetic, "synthetic", GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU}, Journal: dir})
	if err == nil || !strings.Contains(err.Error(), "belongs to another export") {
		t.Errorf("a journal of another export: %v", err)
	}
	open(t, dist, path, dir).Close()
}

// fullDisk is a disk without room.
type fullDisk struct{ w io.Writer }

func (d fullDisk) Write(b []byte) (int, error) {
	n, _ := d.w.Write(b[:len(b)/2])
	return n, errors.New("no space left on device")
}

// A full disk refuses updates, and questions go on.
func TestJournalOnFullDisk(t *testing.T) {
	dist, path := friends(t)
	dir := filepath.Join(t.TempDir(), "journal")
	r, err := OpenGraph(t.Context(), dist, path, GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU}, Journal: dir, Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, r, Update{X: []float32{30, 1}, IDs: []string{"a"}})
	memory := r.memory.Bytes()
	wal.Wrap = func(w io.Writer) io.Writer { return fullDisk{w} }
	defer func() { wal.Wrap = nil }()
	var full *JournalError
	u := Update{X: []float32{30, 1}, IDs: []string{"b"}, Key: "b"}
	for range 3 {
		if _, err := r.Update(t.Context(), u); !errors.As(err, &full) || full.Unsure {
			t.Fatal(err)
		}
	}
	if s := r.Snapshot(); s.Version != 2 || len(answers(t, s)) != 82 {
		t.Errorf("version %d", s.Version)
	}
	if _, err := r.Snapshot().Find("b"); err == nil || r.memory.Bytes() != memory {
		t.Errorf("an update that was refused is there, or holds %d bytes", r.memory.Bytes()-memory)
	}
	wal.Wrap = nil
	if a := mustUpdate(t, r, u); a.Version != 3 || a.Nodes != 42 {
		t.Errorf("%+v", a)
	}
	r.Close()
	r = open(t, dist, path, dir)
	if s := r.Snapshot(); s.Version != 3 || s.Nodes() != 42 {
		t.Errorf("version %d with %d nodes", s.Version, s.Nodes())
	}
	// A compaction that fails leaves no log, and what earlier versions left is passed over.
	wal.Wrap = func(w io.Writer) io.Writer { return fullDisk{w} }
	if _, err := r.Compact(); err == nil {
		t.Error("a journal was compacted on a full disk")
	}
	r.Close()
	if _, err := os.Stat(filepath.Join(dir, logName(3))); err == nil {
		t.Error("a log that was not begun is there")
	}
	for _, v := range []int64{2, 3} {
		if err := os.WriteFile(filepath.Join(dir, logName(v)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r = open(t, dist, path, dir)
	wal.Wrap = nil
	if a := mustUpdate(t, r, Update{X: []float32{30, 1}, IDs: []string{"c"}}); a.Version != 4 {
		t.Errorf("%+v", a)
	}
	r.Close()
	r = open(t, dist, path, dir)
	if s := r.Snapshot(); s.Version != 4 || s.Nodes() != 43 {
		t.Errorf("version %d with %d nodes", s.Version, s.Nodes())
	}
	r.Close()
}

// Many small updates are one version when they are read again.
func TestReplay(t *testing.T) {
	count, name := 3000, data.Synthetic
	if n, err := strconv.Atoi(os.Getenv("GSRC_UPDATES")); err == nil { // a longer check
		count = n
	}
	dist, run := exported120(t, "gcn")
	if named := os.Getenv("GSRC_UPDATES_DATA"); named != "" { // such as cora
		name = named
		run = Train(t, filepath.Join(t.TempDir(), "run"), "gcn", name, export.BuildOptions{}, "train.epochs=2")
		dist = run.Dist
	}
	dir := filepath.Join(t.TempDir(), "journal")
	o := GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU, Load: run.Load}, Journal: dir}
	r, err := OpenGraph(t.Context(), dist, name, o)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, r.Snapshot().x.cols)
	x[5] = 1
	r.Close()
	n := run.Data.Graph.N
	if err := wal.Write(filepath.Join(dir, logName(1)), func(yield func([]byte) bool) {
		for i := range count {
			c := &commit{Applied: Applied{int64(i + 2), n + 1 + i, 0}, updates: []committed{{edit: &edit{x: x, add: [][2]int32{{int32(i % n), int32(n + i)}}}}}}
			if !yield(c.append(nil)) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if r, err = OpenGraph(t.Context(), dist, name, o); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Logf("%d updates of %s with %d nodes: ready after %v", count, name, n, time.Since(start))
	if s := r.Snapshot(); s.Version != int64(count+1) || s.Nodes() != n+count || s.Edges() != len(run.Data.Graph.Edges)+count || s.graph.Validate() != nil {
		t.Errorf("version %d with %d nodes and %d edges", s.Version, s.Nodes(), s.Edges())
	}
	same(t, r.Snapshot(), dist, folder(t, r.Snapshot()), PredictOptions{Provider: ort.CPU})
}

// A graph that would outgrow its budget does not.
func TestGraphWithinBudget(t *testing.T) {
	r, _, ds := resident(t, "gcn", GraphOptions{Memory: 16 << 20})
	b := r.budget
	x := make([]float32, 200*ds.X.Cols)
	x[0] = 1
	var growth *GrowthError
	version := r.Snapshot().Version
	for i := 0; ; i++ {
		a, err := r.Update(t.Context(), Update{X: x})
		if err != nil {
			if !errors.As(err, &growth) || i == 0 {
				t.Fatal(i, err)
			}
			break
		}
		if version = a.Version; i > 1000 {
			t.Fatal("the graph grows without end")
		}
	}
	held := b.Used()
	if _, err := r.Update(t.Context(), Update{X: x}); !errors.As(err, &growth) || b.Used() != held || r.Snapshot().Version != version {
		t.Errorf("%v, %d of %d bytes", err, b.Used(), held)
	}
	mustUpdate(t, r, Update{DeleteNodes: []string{"3"}})
	r.Close()
	if b.Used() != 0 {
		t.Errorf("%d bytes are held after the end", b.Used())
	}
}

// What is held to compute what updates reach is in the budget, too, before it is made.
func TestIncrementalWithinBudget(t *testing.T) {
	t.Run("embedding", func(t *testing.T) { incrementalWithinBudget(t, 3000, "model.edges.judge=embedding") })
	t.Run("evidence", func(t *testing.T) {
		incrementalWithinBudget(t, 1000, "model.edges.judge=evidence", "candidates.similarity=evidence", "candidates.two_step=10", "candidates.mutual=false")
	})
}

func incrementalWithinBudget(t *testing.T, nodes int, set ...string) {
	dist, run := exported120(t, "ecl-gsr", set...)
	large := run.Config.Synthetic.CSBM(7)
	large.Nodes = nodes
	o := GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU, Threads: 1, Load: data.LoadOptions{Seed: 7, Synthetic: &large}}}
	live := func() int64 {
		// What a pool lets go of outlasts two collections, what a cleanup does one more.
		for range 5 {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var used, held [2]int64
	for i, exact := range []bool{true, false} {
		o.Exact, o.Memory = exact, 4<<30
		before := live()
		r, err := OpenGraph(t.Context(), dist, data.Synthetic, o)
		if err != nil {
			t.Fatal(err)
		}
		if used[i], held[i] = r.budget.Used(), live()-before; exact == (r.inc != nil) {
			t.Fatal("the other way is taken")
		}
		r.Close()
		runtime.KeepAlive(r)
		if r.budget.Used() != 0 {
			t.Errorf("%d bytes are held after the end", r.budget.Used())
		}
		if two, g := &r.p.info.TwoStep, r.Snapshot().graph; *two > 0 {
			all := r.models.bytes(g)
			if *two = 0; all <= r.models.bytes(g) {
				t.Error("candidates two steps away are not foreseen")
			}
		}
	}
	if reserved, takes := used[1]-used[0], held[1]-held[0]; takes < 1<<20 || reserved < takes || reserved > 6*takes {
		t.Errorf("%d bytes are reserved for what takes %d", reserved, takes)
	}
	o.Exact = false
	b := budget.New((used[0] + used[1]) / 2)
	var growth *GrowthError
	if _, err := OpenGraphWithin(t.Context(), b, dist, data.Synthetic, o); !errors.As(err, &growth) || b.Used() != 0 {
		t.Errorf("%v, %d bytes are held", err, b.Used())
	}
}

// childVar names the folder of the process that [TestKilled] kills.
const childVar = "GSRC_TEST_JOURNAL"

// updateUntilKilled makes updates with the ids that it reads, and says which were made.
func updateUntilKilled(dir string) error {
	compactAfter = 20_000
	r, err := OpenGraph(context.Background(), filepath.Join(dir, "run-dist"), filepath.Join(dir, "friends"), GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU, Threads: 1}, Journal: filepath.Join(dir, "journal")})
	if err != nil {
		return err
	}
	fmt.Println("ready", r.Snapshot().Version)
	ids := make(chan string)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for id := range ids {
				a, err := r.Update(context.Background(), killedUpdate(id))
				if err != nil {
					fmt.Println("failed", id, err)
					os.Exit(1)
				}
				fmt.Println("made", id, a.Version)
			}
		})
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		ids <- in.Text()
	}
	close(ids)
	wg.Wait()
	r.Close()
	return in.Err()
}

// killedUpdate is the update of an id: a node of that name, and its edges.
func killedUpdate(id string) Update {
	n, _ := strconv.Atoi(id)
	return Update{X: []float32{float32(n % 60), 1}, IDs: []string{id}, Sources: []string{id, id}, Targets: []string{fmt.Sprintf("n, %d", n%40), fmt.Sprintf("n, %d", n*7%40)}, Key: "key " + id}
}

// Whenever the process is killed, what it has answered is there, and what is asked for
// again is there once. GSRC_KILLS says how often; make kill-serve does it more often.
func TestKilled(t *testing.T) {
	kills := 10
	if text := os.Getenv("GSRC_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dist, path := friends(t)
	dir := filepath.Dir(dist)
	random := rand.New(rand.NewPCG(uint64(kills), 1))
	made := map[string]int64{}
	var again []string // sent and not answered
	next := 0
	for round := range kills + 1 {
		last := round == kills
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), childVar+"="+dir)
		c.Stderr = os.Stderr
		stdin, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		sent := slices.Clone(again)
		for len(sent) < 2000 && !last {
			sent = append(sent, strconv.Itoa(next))
			next++
		}
		go func() {
			io.WriteString(stdin, strings.Join(sent, "\n")+"\n")
			stdin.Close()
		}()
		answered := 0
		stop := 1 + random.IntN(60) // and a moment that no answer marks
		out := bufio.NewScanner(stdout)
		for out.Scan() {
			var id string
			var version int64
			if n, _ := fmt.Sscanf(out.Text(), "made %s %d", &id, &version); n == 2 {
				if before, ok := made[id]; ok && before != version {
					t.Fatalf("update %s made version %d, and then %d", id, before, version)
				}
				made[id] = version
				if answered++; answered == stop && !last {
					go func(d time.Duration) {
						time.Sleep(d)
						c.Process.Kill()
					}(time.Duration(random.IntN(20_000)) * time.Microsecond)
				}
			} else if !strings.HasPrefix(out.Text(), "ready") {
				t.Error(out.Text())
			}
		}
		if err := c.Wait(); last && err != nil || answered == 0 && !last {
			t.Fatal(round, err)
		}
		again = again[:0]
		for _, id := range sent {
			if _, ok := made[id]; !ok {
				again = append(again, id)
			}
		}
	}
	if len(again) > 0 {
		t.Fatalf("%d updates were never made", len(again))
	}
	r := open(t, dist, path, filepath.Join(dir, "journal"))
	defer r.Close()
	s := r.Snapshot()
	if s.Nodes() != 40+next || len(made) != next {
		t.Errorf("%d nodes, want 40 and %d", s.Nodes(), next)
	}
	for id := range made {
		if _, err := s.Find(id); err != nil {
			t.Error(err)
		}
		if a := mustUpdate(t, r, killedUpdate(id)); a.Version != made[id] {
			t.Fatalf("update %s made version %d, and now %d", id, made[id], a.Version)
		}
	}
	compacted, err := r.Compact()
	if err != nil {
		t.Fatal(err)
	}
	same(t, s, dist, compacted, PredictOptions{Provider: ort.CPU})
	t.Logf("%d updates, version %d", len(made), s.Version)
}

// What a store was converted from is the training data, there too: the same nodes' labels are known, and
// edges are added as in training.
func TestPredictOnStore(t *testing.T) {
	dist, path := friends(t, "model.known_labels=0.5", "data.add_edges=0.2")
	store := filepath.Join(t.TempDir(), "store")
	if err := data.Convert(path, store, data.ConvertOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []*Prediction
	for _, from := range []string{path, store} {
		p, err := Predict(t.Context(), dist, from, "", PredictOptions{Provider: ort.CPU})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
	}
	a, b := got[0], got[1]
	if !b.TrainingGraph || a.Known == 0 || a.Known != b.Known || a.Edges != b.Edges || !slices.Equal(a.Probabilities, b.Probabilities) {
		t.Errorf("%d known labels and %d edges of the folder, %d and %d of its store", a.Known, a.Edges, b.Known, b.Edges)
	}
}

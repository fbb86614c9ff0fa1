package data

import (
	"github.com/gsrc-dev/gsrc/data/pickle"

	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The same data set pickled with every protocol that is read, against the values that
// testdata/make.py wrote.
func TestPlanetoidProtocols(t *testing.T) {
	for p := 2; p < 5; p++ {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			ds := mustLoad(t, fmt.Sprintf("testdata/planetoid-p%d", p), LoadOptions{})
			if got, want := fmt.Sprint(ds.Graph.Edges), "[[0 1] [0 2] [1 3] [3 4] [4 5] [5 7]]"; got != want {
				t.Errorf("edges %s, want %s", got, want)
			}
			if want := []int32{0, 1, 0, 1, 0, 1, -1, 1}; !slices.Equal(ds.Labels, want) {
				t.Errorf("labels %v, want %v", ds.Labels, want)
			}
			x := ds.X.ToDense()
			for k, v := range x.Dense {
				want := float32(k % 5)
				if k/4 == 6 {
					want = 0 // the gap in the test index
				}
				if v != want {
					t.Errorf("feature of node %d in column %d is %v, want %v", k/4, k%4, v, want)
				}
			}
			// Listed in one direction only: 7 → 5. Twice: 1 → 3.
			want := Repairs{DuplicateEdges: 1, OneWayEdges: 1, SelfLoops: 2, MissingNodes: 1, Unlabelled: 1, EmptyRows: 1}
			if ds.Repairs != want {
				t.Errorf("repairs %+v, want %+v", ds.Repairs, want)
			}
			s := ds.Splits[0]
			if !slices.Equal(s.Train, []int32{0, 1}) || !slices.Equal(s.Val, []int32{2, 3}) || !slices.Equal(s.Test, []int32{4, 5, 7}) {
				t.Errorf("split %v", s)
			}
		})
	}
}

func TestPickleRefuses(t *testing.T) {
	for name, pieces := range map[string][]string{
		"evil":         {"posix.system", "runs no code"},
		"object-array": {`"O8"`, "not supported"},
		"structured":   {`"V8"`, "not supported"},
		"protocol5":    {"protocol 5", "save with protocol"},
		"big-int":      {"integer of 9 bytes"},
	} {
		file := filepath.Join("testdata/pickles", name+".pkl")
		_, err := unpickle(file, mustRead(t, file), nil)
		wantError(t, err, append(pieces, file)...)
	}
	// What protocols 0 and 1 write as text.
	for _, p := range []string{"p0", "p1"} {
		_, err := Load("testdata/planetoid-"+p, LoadOptions{})
		wantError(t, err, "protocol 2 to 4", "ind.tiny.")
	}
}

func TestPickleIntegerKinds(t *testing.T) {
	for name, want := range map[string]string{"numpy-ints": "[0 1] [1 0]", "ordered": "[0] [1]"} {
		file := filepath.Join("testdata/pickles", name+".pkl")
		e, err := adjacency(file, mustRead(t, file), 2, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(e.src, e.dst); got != want {
			t.Errorf("%s: edges %s, want %s", name, got, want)
		}
	}
}

// Every opcode that pushes a value, with what pickletools says it means.
func TestPickleValues(t *testing.T) {
	scalar := func(dtype, data string) string {
		return "cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(U\x02" + dtype + "K\x00K\x01tR" + data + "tR."
	}
	for _, c := range []struct {
		data string
		want any
	}{
		{"N.", nil},
		{"\x88.", true},
		{"K\xff.", int64(255)},
		{"M\x01\x02.", int64(513)},
		{"J\xfe\xff\xff\xff.", int64(-2)},
		{"\x8a\x00.", int64(0)},
		{"\x8a\x01\xff.", int64(-1)},
		{"\x8a\x02\xff\x00.", int64(255)},
		{"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", int64(-1 << 63)},
		{"\x8b\x03\x00\x00\x00\x00\x00\x01.", int64(65536)},
		{"G\x3f\xf8\x00\x00\x00\x00\x00\x00.", 1.5},
		{"U\x02ab.", "ab"},
		{"T\x02\x00\x00\x00ab.", "ab"},
		{"C\x02ab.", "ab"},
		{"B\x02\x00\x00\x00ab.", "ab"},
		{"\x8e" + u64(2) + "ab.", "ab"},
		{"X\x02\x00\x00\x00ab.", "ab"},
		{"\x8c\x02ab.", "ab"},
		{"\x8d" + u64(2) + "ab.", "ab"},
		{"(NN0t0N.", nil}, // POP takes a value, then a mark
		{"N(KK1.", nil},
		{"N2\x860N.", nil},
		{"Nr" + u32(300) + "j" + u32(300) + "00N.", nil},
		{scalar("i4", "U\x04\xfe\xff\xff\xff"), int64(-2)},
		{scalar("f4", "U\x04\x00\x00\xc0\x3f"), 1.5},
		{scalar("b1", "U\x01\x01"), int64(1)},
		{"c__builtin__\nlist\n)R.", "a list of 0"},
		{"ccollections\nOrderedDict\n)R.", "a dict of 0"},
		{"(N(NNld.", "a dict of 1"},
		{"(NNl.", "a list of 2"},
		{"NN\x86.", "a tuple of 2"},
		{"cnumpy\ndtype\n(U\x02f4K\x00K\x01tR.", "a NumPy type"},
		{"cnumpy\nndarray\n.", "numpy.ndarray"},
	} {
		got, err := unpickle("v.pkl", []byte(c.data), nil)
		if err != nil {
			t.Errorf("%q: %v", c.data, err)
			continue
		}
		if want, ok := c.want.(string); ok {
			s, isText := pickle.Text(got)
			if !isText {
				s = pickle.Describe(got)
			}
			if s != want {
				t.Errorf("%q: %q, want %q", c.data, s, want)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%q: %v, want %v", c.data, got, c.want)
		}
	}
	_, err := unpickle("v.pkl", []byte(scalar("S2", "U\x02ab")), nil)
	wantError(t, err, "not a number")
	_, err = unpickle("v.pkl", []byte(scalar("i4", "U\x02ab")), nil)
	wantError(t, err, "needs 4 bytes")
}

func u32(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
func u64(n int) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(n))) }

// hostile are pickles made by hand. All but the last few must give an error;
// none may panic, loop or allocate out of proportion.
var hostile = []struct{ name, data, err string }{
	{"empty", "", "empty"},
	{"no stop", "N", "ends in the middle"},
	{"text", "id,label\n", "opcode 0x69 is not supported"},
	{"stop on nothing", ".", "ends with 0 objects"},
	{"two objects", "NN.", "ends with 2 objects"},
	{"open mark", "N(.", "ends with 1 objects"},
	{"trailing", "N.N.", "follow the end"},
	{"pop nothing", "0.", "nothing on the stack"},
	{"pop through mark", "N(a.", "nothing on the stack"},
	{"no mark", "Nt.", "no mark"},
	{"dup nothing", "2.", "nothing on the stack"},
	{"tuple of nothing", "\x87.", "nothing on the stack"},
	{"4 GiB of text", "X\xff\xff\xff\xff", "ends in the middle"},
	{"4 GiB of bytes", "B\xff\xff\xff\xff", "ends in the middle"},
	{"4 GiB of string", "T\xff\xff\xff\xff", "ends in the middle"},
	{"64-bit text", "\x8d" + u64(-1), "ends in the middle"},
	{"64-bit bytes", "\x8e" + u64(-1), "ends in the middle"},
	{"64-bit frame", "\x80\x04\x95" + u64(-1), "ends in the middle"},
	{"huge long", "\x8b\xff\xff\xff\x7f", "ends in the middle"},
	{"long long", "\x8a\x09123456789.", "9 bytes"},
	{"memo missing", "h\x07.", "never stored"},
	{"append to tuple", ")Na.", "not to a list"},
	{"items of list", "](NNu.", "not of a dict"},
	{"odd items", "}(Nu.", "no value"},
	{"global", "cos\nsystem\n.", "os.system"},
	{"builtin", "c__builtin__\neval\n(S'1'\ntR.", "__builtin__.eval"},
	{"stack global", "\x8c\x02os\x8c\x06system\x93.", "os.system"},
	{"inst", "(ios\nsystem\n.", "not supported"},
	{"obj", "(cos\nsystem\no.", "os.system"},
	{"persistent id", "Pabc\n.", "not supported"},
	{"extension", "\x82\x01.", "not supported"},
	{"call a number", "K\x01)R.", "calls the integer 1"},
	{"call without tuple", "cnumpy\ndtype\nNR.", "calls numpy.dtype with None"},
	{"call ndarray", "cnumpy\nndarray\n)R.", "unexpected arguments"},
	{"state of a number", "K\x01}b.", "sets the state"},
	{"state of a dict", "}}b.", "sets the state"},
	{"reconstruct other", "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\ndtype\nNNtR.", "unexpected arguments"},
	{"csr unfilled state", "cscipy.sparse.csr\ncsr_matrix\n)\x81}b.", "lacks its shape"},
	{"csr of strings", "cscipy.sparse.csr\ncsr_matrix\n)\x81}U\x04dataNsb.", "is None"},
	{"array with huge shape", arrayPickle("(J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7ft", "U\x04abcd"), "impossible shape"},
	{"array too short", arrayPickle("(K\x02t", "U\x04abcd"), "needs 8 bytes"},
	{"array of negative shape", arrayPickle("(J\xff\xff\xff\xfft", "U\x04abcd"), "dimension"},
	{"array of nothing", arrayPickle("(K\x01t", "N"), "not plain numbers"},
	{"array with odd state", "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nNNtRNb.", "unexpected state"},
	{"encode bomb", "(X" + u32(1000) + strings.Repeat("x", 1000) + "q\x00" + "U\x06latin1q\x01" + "c_codecs\nencode\nq\x02" +
		strings.Repeat("h\x02h\x00h\x01\x86R", 400) + "t.", "bomb"},
	{"encode other", "c_codecs\nencode\n(X\x01\x00\x00\x00aU\x05utf-8tR.", "unexpected arguments"},
	{"encode wide", "c_codecs\nencode\n(X\x03\x00\x00\x00\xe2\x82\xacU\x06latin1tR.", "not Latin-1"},
	{"state bomb", "}q\x00(" + strings.Repeat("NN", 1000) + "ucscipy.sparse.csr\ncsr_matrix\n)\x81" + strings.Repeat("h\x00b", 1000) + ".", "lacks its shape"},

	{"deep tuple", "N" + strings.Repeat("\x85", 1<<20) + ".", ""},
	{"deep list", strings.Repeat("]", 1<<16) + strings.Repeat("a", 1<<16-1) + ".", ""},
	{"list in itself", "]2a.", ""},
	{"marks", strings.Repeat("(", 1<<16) + "N" + strings.Repeat("t", 1<<16) + ".", ""},
}

// arrayPickle is a NumPy array of int32 with a shape and data given as opcodes.
func arrayPickle(shape, data string) string {
	return "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nNNtR(K\x01" + shape + "cnumpy\ndtype\n(U\x02i4K\x00K\x01tR\x89" + data + "tb."
}

func TestPickleHostile(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			var err error
			got := allocated(func() { _, err = unpickle("hostile.pkl", []byte(c.data), nil) })
			// A value takes 16 bytes on the stack, which grows by doubling, and
			// as much again in the tuple it goes into.
			if most := uint64(128*len(c.data) + 1<<16); got > most {
				t.Errorf("allocated %d bytes for %d of input", got, len(c.data))
			}
			if c.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, "hostile.pkl", c.err)
		})
	}
}

// A pickle cut anywhere is an error.
func TestPickleTruncated(t *testing.T) {
	for protocol := 2; protocol < 5; protocol++ {
		for _, p := range planetoidParts[:7] {
			whole := mustRead(t, fmt.Sprintf("testdata/planetoid-p%d/ind.tiny.%s", protocol, p))
			if _, err := unpickle(p, whole, nil); err != nil {
				t.Fatal(err)
			}
			for n := range whole {
				if v, err := unpickle(p, whole[:n], nil); err == nil || v != nil {
					t.Fatalf("protocol %d, %s cut to %d of %d bytes: %v, %v", protocol, p, n, len(whole), v, err)
				}
			}
		}
	}
}

// A data set with one file cut is an error that names the file.
func TestPlanetoidTruncated(t *testing.T) {
	from := "testdata/planetoid-p2"
	for _, p := range planetoidParts {
		name := "ind.tiny." + p
		whole := mustRead(t, filepath.Join(from, name))
		dir := copyDir(t, from)
		for _, n := range []int{0, 1, len(whole) / 2, len(whole) - 2} {
			if err := os.WriteFile(filepath.Join(dir, name), whole[:n], 0o644); err != nil {
				t.Fatal(err)
			}
			ds, err := Load(dir, LoadOptions{})
			wantError(t, err, name)
			if ds != nil {
				t.Error("half a data set came with the error")
			}
		}
	}
}

func TestPlanetoidFaults(t *testing.T) {
	tiny := "testdata/planetoid-p2"
	other := func(name string) string { return string(mustRead(t, filepath.Join(tiny, name))) }
	for _, c := range []struct {
		name, file, text string
		err              []string
	}{
		{"features for labels", "ind.tiny.y", other("ind.tiny.x"), []string{"ind.tiny.y", "csr_matrix, not an array of labels"}},
		{"labels for graph", "ind.tiny.graph", other("ind.tiny.y"), []string{"ind.tiny.graph", "not a dict"}},
		{"graph for features", "ind.tiny.allx", other("ind.tiny.graph"), []string{"ind.tiny.allx", "not a matrix"}},
		{"labels of other rows", "ind.tiny.ally", other("ind.tiny.y"), []string{"ind.tiny.ally", "do not fit"}},
		{"not a number", "ind.tiny.test.index", "7\nx\n5\n", []string{"test.index:2", `"x"`, "not a node number"}},
		{"below allx", "ind.tiny.test.index", "7\n1\n5\n", []string{"test.index:2", "out of range"}},
		{"negative", "ind.tiny.test.index", "7\n-4\n5\n", []string{"test.index:2", "out of range"}},
		{"twice", "ind.tiny.test.index", "7\n4\n7\n", []string{"test.index:3", "same node as in line 1"}},
		{"wide gap", "ind.tiny.test.index", "7\n4\n2000000000\n", []string{"test.index", "describe only 7"}},
		{"too many", "ind.tiny.test.index", "7\n4\n5\n6\n", []string{"names 4 nodes, tx has 3"}},
		{"empty index", "ind.tiny.test.index", "", []string{"names 0 nodes"}},
		{"unknown neighbour", "ind.tiny.graph", "}K\x00]K\x09as.", []string{"the integer 9", "0 to 7"}},
		{"text neighbour", "ind.tiny.graph", "}K\x00]U\x01aas.", []string{`the string "a"`}},
		{"not a list", "ind.tiny.graph", "}K\x00K\x01s.", []string{"neighbours of node 0", "not a list"}},
		{"node twice", "ind.tiny.graph", "}(K\x00]K\x00]u.", []string{"two lists"}},
		{"unfilled array", "ind.tiny.y", "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nNNtR.", []string{"ind.tiny.y"}},
		{"unfilled matrix", "ind.tiny.x", "cscipy.sparse.csr\ncsr_matrix\n)\x81.", []string{"never filled"}},
		{"neighbour bomb", "ind.tiny.graph", "]q\x00(" + strings.Repeat("K\x01", 500) + "e0}(" + "K\x00h\x00K\x01h\x00K\x02h\x00K\x03h\x00" + "u.", []string{"bomb"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copyDir(t, tiny)
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Load(dir, LoadOptions{})
			wantError(t, err, c.err...)
		})
	}

	dir := copyDir(t, tiny)
	os.Remove(filepath.Join(dir, "ind.tiny.tx"))
	_, err := Load(dir, LoadOptions{})
	wantError(t, err, "ind.tiny.tx", "missing", "x, y, tx")

	dir = copyDir(t, tiny)
	os.WriteFile(filepath.Join(dir, "ind.cora.x"), nil, 0o644)
	_, err = Load(dir, LoadOptions{})
	wantError(t, err, "several", "cora, tiny")
}

// No edges is a graph.
func TestPlanetoidWithoutEdges(t *testing.T) {
	dir := copyDir(t, "testdata/planetoid-p2")
	os.WriteFile(filepath.Join(dir, "ind.tiny.graph"), []byte("}."), 0o644)
	ds := mustLoad(t, dir, LoadOptions{})
	if len(ds.Graph.Edges) != 0 || ds.Graph.N != 8 || ds.Info().Degree.Isolated != 8 || ds.Info().Homophily != nil {
		t.Errorf("%+v", ds.Info())
	}
}

func TestPlanetoidDirected(t *testing.T) {
	ds := mustLoad(t, "testdata/planetoid-p2", LoadOptions{Directed: true})
	if n := len(ds.Graph.Edges); n != 11 || !ds.Graph.Directed { // 5 both ways, one one way
		t.Errorf("%d edges: %v", n, ds.Graph.Edges)
	}
	if ds.Repairs.OneWayEdges != 0 || ds.Repairs.DuplicateEdges != 1 {
		t.Errorf("repairs %+v", ds.Repairs)
	}
}

func FuzzPickle(f *testing.F) {
	for _, c := range hostile {
		if len(c.data) < 4096 {
			f.Add([]byte(c.data))
		}
	}
	for _, pattern := range []string{"testdata/planetoid-p*/ind.tiny.*", "testdata/pickles/*.pkl"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			f.Add(mustRead(f, file))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// Every reader of pickled objects gets the input.
		var feats *Features
		got := allocated(func() {
			feats, _ = pickledFeatures("f", b, nil)
			pickledLabels("f", b, nil)
			adjacency("f", b, 8, nil)
		})
		if most := uint64(1024*len(b) + 1<<20); got > most {
			t.Errorf("allocated %d bytes for %d of input", got, len(b))
		}
		if feats != nil {
			if err := feats.Check(); err != nil {
				t.Errorf("features that are not valid came out: %v", err)
			}
		}
	})
}

// FuzzPlanetoid reads whole data sets, of which the fuzzer changes four files: no
// panic, no more memory than the files are worth, and what comes out is sound.
func FuzzPlanetoid(f *testing.F) {
	parts := []string{"x", "allx", "graph", "test.index"}
	base := map[string][]byte{}
	for i := range 5 {
		dir := fmt.Sprintf("testdata/planetoid-p%d/ind.tiny.", i)
		var in [4][]byte
		for k, part := range parts {
			in[k] = mustRead(f, dir+part)
		}
		f.Add(in[0], in[1], in[2], in[3])
		for _, part := range planetoidParts {
			base[part] = mustRead(f, dir+part)
		}
		for _, index := range []string{"", "x", "2147483646\n", "7\n7\n", "-1\n", "9\n8\n\n7"} {
			f.Add(in[0], in[1], in[2], []byte(index))
		}
	}
	dir := f.TempDir()
	write := func(t testing.TB, part string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, "ind.tiny."+part), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for part, b := range base {
		write(f, part, b)
	}
	f.Fuzz(func(t *testing.T, x, allx, graph, index []byte) {
		size := 0
		for k, b := range [][]byte{x, allx, graph, index} {
			write(t, parts[k], b)
			size += len(b)
		}
		var ds *Dataset
		var err error
		got := allocated(func() { ds, err = Load(dir, LoadOptions{MaxBytes: 1 << 20}) })
		if most := uint64(1024*size + 4<<20); got > most {
			t.Errorf("allocated %d bytes for %d of input", got, size)
		}
		if err != nil {
			checkText(t, err)
			return
		}
		if err := ds.Check(); err != nil {
			t.Errorf("a data set that is not valid came out: %v", err)
		}
		ds.Info()
	})
}

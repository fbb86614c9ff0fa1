package data

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

const attackLimit = 16 << 20

// Small files that would take many times the memory that is allowed are refused before
// it is allocated, and the error says which file, how much and what to do.
func TestWhatTakesTooMuchMemoryIsRefused(t *testing.T) {
	npy := func(descr, shape string, bytes int) []byte { return npyBytes(descr, shape, make([]byte, bytes)) }
	var rows bytes.Buffer
	if err := parquet.Write(&rows, make([]struct {
		Source int64 `parquet:"source,dict"`
		Target int64 `parquet:"target,dict"`
	}, 1<<20)); err != nil {
		t.Fatal(err)
	}
	ogb := ogbFiles()
	ogb["raw/edge.csv.gz"] = gz(t, strings.Repeat("0,1\n", 4<<20))
	delete(ogb, "raw/edge.csv")
	nodes := "id,x\na,1\nb,0\n"
	for name, files := range map[string]map[string]string{
		"edge.csv.gz":   ogb,
		"edges.parquet": {"edges.parquet": rows.String(), "nodes.csv": nodes},
		"edges.csv":     {"edges.csv": strings.Repeat(",", 1<<20), "nodes.csv": nodes},
		"nodes.csv":     {"edges.csv": "a,b\n", "nodes.csv": "id,x\na," + strings.Repeat(",", 1<<20)},
		"features.npz": {"edges.csv": "0,1\n", "features.npz": string(npzBytes(t, part{"indptr", npy("<i4", "(2,)", 8)}, part{"shape", npyBytes("<i4", "(2,)", []int32{1, 8})},
			part{"indices", npy("|u1", "(4194304,)", 4<<20)}, part{"data", npy("|u1", "(4194304,)", 4<<20)}))},
		"features.npy":  {"edges.csv": "0,1\n", "features.npy": string(npy("|u1", "(1048576, 8)", 8<<20))},
		"DS_A.txt":      {"DS_A.txt": strings.Repeat("1,2\n", 2<<20), "DS_graph_indicator.txt": "1\n1\n", "DS_graph_labels.txt": "0\n"},
		"10fold_idx":    {"DS.txt": "1\n1 0\n0 " + strconv.Itoa(4<<20) + strings.Repeat(" 0", 4<<20), "10fold_idx/readme": ""},
		"ind.tiny.allx": {"ind.tiny.allx": "(" + strings.Repeat("}", 1<<20), "ind.tiny.x": "", "ind.tiny.y": "", "ind.tiny.tx": "", "ind.tiny.ty": "", "ind.tiny.ally": "", "ind.tiny.graph": "", "ind.tiny.test.index": ""},
	} {
		dir := writeFiles(t, files)
		var err error
		took := allocated(func() { _, _, err = LoadAny(dir, LoadOptions{MaxBytes: attackLimit}) })
		var exceeded *budget.ExceededError
		if !errors.As(err, &exceeded) || !strings.Contains(err.Error(), "--memory") || strings.Contains(err.Error(), "MaxBytes") {
			t.Errorf("%s: %v", name, err)
		}
		if name != "10fold_idx" && !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
		if took > 3*attackLimit { // garbage included
			t.Errorf("%s: %d bytes were allocated where %d are allowed", name, took, attackLimit)
		}
	}
	if _, err := Load(Synthetic, LoadOptions{MaxBytes: 100 << 10}); err == nil || !strings.Contains(err.Error(), "--memory") {
		t.Errorf("a generated graph: %v", err)
	}
}

// A file of 31 kB that holds 5·10⁸ equal rows is refused for what they would take. It was
// written by parquet-go, with dictionaries and zstd, and is kept compressed once more.
func TestManyRowsOfParquetAreRefused(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "many-rows.parquet.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	dir := writeFiles(t, map[string]string{"edges.parquet": string(text), "nodes.csv": "id,x\n1,1\n2,0\n"})
	took := allocated(func() { _, err = Load(dir, LoadOptions{MaxBytes: 4 << 30}) })
	var exceeded *budget.ExceededError
	if !errors.As(err, &exceeded) || exceeded.Need < 500_000_000*8 || took > 64<<20 {
		t.Errorf("%d bytes were allocated: %v", took, err)
	}
}

// What is claimed for a data set is what reading it takes, within a factor: a limit of
// a few times the data does not refuse it.
func TestClaimsAreOfTheSizeOfTheData(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n, m = 5000, 50000
	var edges, nodes strings.Builder
	for range m {
		edges.WriteString(strconv.Itoa(r.IntN(n)) + "," + strconv.Itoa(r.IntN(n)) + "\n")
	}
	nodes.WriteString("id,label,split" + strings.Repeat(",f", 0))
	for j := range 32 {
		nodes.WriteString(",f" + strconv.Itoa(j))
	}
	for v := range n {
		nodes.WriteString("\n" + strconv.Itoa(v) + "," + strconv.Itoa(v%7) + ",train")
		for range 32 {
			nodes.WriteString("," + strconv.FormatFloat(r.Float64(), 'g', 6, 32))
		}
	}
	dir := writeFiles(t, map[string]string{"edges.csv": edges.String(), "nodes.csv": nodes.String()})
	size := edges.Len() + nodes.Len()
	if _, err := Load(dir, LoadOptions{MaxBytes: int64(3 * size)}); err != nil {
		t.Errorf("a folder of %d bytes: %v", size, err)
	}
}

// parquetFile writes rows of several types with a codec. parquet-go does not write missing
// values in pages of version 1 so that it can read them, so only version 2 has some.
func parquetFile(tb testing.TB, codec compress.Codec, version int, rows int) []byte {
	tb.Helper()
	type row struct {
		Source string  `parquet:"source,delta"`
		Target string  `parquet:"target,dict"`
		Length string  `parquet:"length"`
		Weight float32 `parquet:"weight,split"`
		Delta  int64   `parquet:"number,delta"`
		Plain  int32   `parquet:"plain"`
		Flag   bool    `parquet:"flag"`
	}
	type optional struct {
		row
		Maybe *int64 `parquet:"maybe,optional,dict"`
	}
	list := make([]optional, rows)
	for i := range list {
		n := int64(i % 5)
		list[i].row = row{"node " + strconv.Itoa(i), "node " + strconv.Itoa(i%7), strings.Repeat("x", i%9), float32(i) / 3, n * n, int32(-i), i%3 == 0}
		if i%2 == 0 {
			list[i].Maybe = &n
		}
	}
	var b bytes.Buffer
	schema := parquet.SchemaOf(optional{})
	if version == 1 {
		schema = parquet.SchemaOf(row{})
	}
	w := parquet.NewWriter(&b, schema, parquet.Compression(codec), parquet.DataPageVersion(version), parquet.MaxRowsPerRowGroup(int64(rows/2+1)))
	for i := range list {
		var v any = list[i]
		if version == 1 {
			v = list[i].row
		}
		if err := w.Write(v); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

var parquetCodecs = []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Brotli, &parquet.Lz4Raw}

// Every encoding and codec that parquet-go writes is read, and gives the same.
func TestParquetEncodings(t *testing.T) {
	for _, version := range []int{1, 2} {
		var want []byte
		for _, codec := range parquetCodecs {
			mem, _ := budget.New(attackLimit).Reserve("it", 0)
			got, err := parquetText(parquetFile(t, codec, version, 3000), mem)
			if err != nil {
				t.Fatalf("%s, version %d: %v", codec, version, err)
			}
			if want == nil {
				want = got
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s, version %d: another text", codec, version)
			}
			if held := mem.Bytes(); held != 0 {
				t.Errorf("%s: %d bytes are claimed when all is read", codec, held)
			}
		}
		if lines := bytes.Count(want, []byte{'\n'}); lines != 3001 {
			t.Errorf("%d lines, want 3001", lines)
		}
	}
}

// Pages that have fewer values than rows that are not null end in an error; parquet-go asks
// for the others for ever. Such pages come of a bit in their count of nulls, and of lengths.
func TestPagesOfParquetWithTooFewValues(t *testing.T) {
	for _, codec := range parquetCodecs[:1] { // in others few damages unpack
		whole := parquetFile(t, codec, 2, 20)
		for at := range whole {
			for bit := range 2 {
				broken := bytes.Clone(whole)
				broken[at] ^= 1 << bit
				mem, _ := budget.New(4<<20).Reserve("it", 0)
				_, _ = parquetText(broken, mem)
			}
		}
	}
	for _, c := range []struct {
		kind format.Type
		body []byte
		want int64
	}{
		{format.Boolean, make([]byte, 3), 24}, {format.Int32, make([]byte, 11), 2}, {format.Double, make([]byte, 17), 2},
		{format.ByteArray, []byte("\x01\x00\x00\x00a\x00\x00\x00\x00\x09\x00\x00\x00b"), 2},
	} {
		if got := plainValues(c.kind, c.body); got != c.want {
			t.Errorf("%d values of type %s in %d bytes, want %d", got, c.kind, len(c.body), c.want)
		}
	}
	for body, want := range map[string][2]int64{"\x0a\x01": {5, 5}, "\x0a\x00": {5, 0}, "\x03\xff": {8, 6}, "\x04\x01\x03\x0f": {10, 6}} {
		if total, set, err := checkRuns([]byte(body), 1, 6); err != nil || [2]int64{total, set} != want {
			t.Errorf("%q holds %d values and %d ones (%v), want %v", body, total, set, err, want)
		}
	}
}

func FuzzParquet(f *testing.F) {
	for i, codec := range parquetCodecs {
		f.Add(parquetFile(f, codec, 1+i%2, 20))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 20
		mem, _ := budget.New(limit).Reserve("it", 0)
		var text []byte
		took := allocated(func() { text, _ = parquetText(b, mem) })
		if took > 16*limit { // garbage, and windows of decoders, included
			t.Errorf("%d bytes were allocated for a file of %d and a text of %d, where %d are allowed", took, len(b), len(text), limit)
		}
	})
}

// A damaged byte in a small Parquet file never takes more than a few times the file and
// what it may unpack to.
func TestDamagedParquetTakesLittleMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const limit = 4 << 20
	for _, codec := range parquetCodecs {
		whole := parquetFile(t, codec, 1+r.IntN(2), 60)
		for range 300 {
			broken := bytes.Clone(whole)
			at := r.IntN(len(broken))
			if r.IntN(4) == 0 { // lengths are here
				at = len(broken) - 1 - r.IntN(len(broken)/3)
			}
			broken[at] ^= 1 << r.IntN(8)
			mem, _ := budget.New(limit).Reserve("it", 0)
			if took := allocated(func() { _, _ = parquetText(broken, mem) }); took > 3*limit {
				t.Fatalf("%s: with bit flipped in byte %d, %d bytes were allocated where %d are allowed", codec, at, took, limit)
			}
		}
	}
}

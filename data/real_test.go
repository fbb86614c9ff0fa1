package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"github.com/gsrc-dev/gsrc/internal/datatest"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"testing"
)

// datasets returns the folder of real data, or skips the test.
func datasets(tb testing.TB) string {
	tb.Helper()
	return datatest.Path(tb, ".")
}

// The facts were computed with NumPy and SciPy from the same files. hash covers
// the edges [E,2], the features' row pointers, columns and values, and the
// labels, each as little-endian 32-bit words (unknown labels as 0), in that
// order; it starts the SHA-256.
var realSets = []struct {
	path                   string
	nodes, edges, features int
	nnz, emptyRows         int
	sum                    float64
	classes                []int
	isolated, maxDegree    int
	homophily              float64
	splits                 int
	split                  SplitInfo
	hash                   string
}{
	{"planetoid/cora", 2708, 5278, 1433, 49216, 0, 49216, []int{351, 217, 418, 818, 426, 298, 180}, 0, 168, 0.809966, 1, SplitInfo{140, 500, 1000}, "eb82798f37971470"},
	{"planetoid/citeseer", 3327, 4552, 3703, 105165, 15, 105165, []int{249, 590, 668, 701, 596, 508}, 48, 99, 0.737654, 1, SplitInfo{120, 500, 1000}, "dab044f5677fab46"},
	{"heterophilous/cornell.npz", 183, 277, 1703, 17240, 0, 17240, []int{38, 16, 30, 82, 17}, 0, 94, 0.122744, 10, SplitInfo{87, 59, 37}, "2bd8a30ece4893c8"},
	{"heterophilous/texas.npz", 183, 279, 1703, 15266, 0, 15266, []int{33, 1, 18, 101, 30}, 0, 104, 0.060932, 10, SplitInfo{87, 59, 37}, "45f94a20aa89f6ef"},
	{"heterophilous/wisconsin.npz", 251, 450, 1703, 24057, 0, 24057, []int{10, 70, 118, 32, 21}, 0, 122, 0.177778, 10, SplitInfo{120, 80, 51}, "c511710dcfd6b2b3"},
	{"heterophilous/actor.npz", 7600, 26659, 932, 40977, 0, 40977, []int{853, 1337, 1630, 1815, 1965}, 0, 1303, 0.216737, 10, SplitInfo{3648, 2432, 1520}, "724754c92ca54bfa"},
	{"large/coauthor_phy.npz", 34493, 247962, 8415, 1137311, 0, 1930034, []int{5750, 5045, 17426, 2753, 3519}, 0, 382, 0.931445, 0, SplitInfo{}, "71d19f3d6e732c6e"},
	{"large/amazon_cs.npz", 13752, 245861, 767, 3675081, 0, 3675081, []int{436, 2142, 1414, 542, 5158, 308, 487, 818, 2156, 291}, 281, 2992, 0.777216, 0, SplitInfo{}, "88aaf02b18292bce"},
}

func TestRealData(t *testing.T) {
	root := datasets(t)
	for _, want := range realSets {
		t.Run(want.path, func(t *testing.T) {
			ds, err := Load(filepath.Join(root, want.path), LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			in := ds.Info()
			if in.Nodes != want.nodes || in.Edges != want.edges || in.Features != want.features {
				t.Errorf("%d nodes, %d edges, %d features; want %d, %d, %d", in.Nodes, in.Edges, in.Features, want.nodes, want.edges, want.features)
			}
			if in.FeatureNNZ != want.nnz || in.Repairs.EmptyRows != want.emptyRows {
				t.Errorf("%d feature values, %d empty rows; want %d, %d", in.FeatureNNZ, in.Repairs.EmptyRows, want.nnz, want.emptyRows)
			}
			if !slices.Equal(in.ClassCounts, want.classes) {
				t.Errorf("classes %v, want %v", in.ClassCounts, want.classes)
			}
			if in.Degree.Isolated != want.isolated || in.Degree.Max != want.maxDegree {
				t.Errorf("%d isolated, degree at most %d; want %d, %d", in.Degree.Isolated, in.Degree.Max, want.isolated, want.maxDegree)
			}
			if in.Homophily == nil {
				t.Error("no homophily")
			} else if !(math.Abs(*in.Homophily-want.homophily) <= 1e-6) {
				t.Errorf("homophily %.6f, want %.6f", *in.Homophily, want.homophily)
			}
			if len(in.Splits) != want.splits {
				t.Errorf("%d splits, want %d", len(in.Splits), want.splits)
			}
			if want.splits > 0 && in.Splits[0] != want.split {
				t.Errorf("split %v, want %v", in.Splits[0], want.split)
			}
			x := ds.X.ToCSR()
			sum := 0.0
			for _, v := range x.Val {
				sum += float64(v)
			}
			if sum != want.sum {
				t.Errorf("features add up to %v, want %v", sum, want.sum)
			}
			if got := structureHash(ds, x); got != want.hash {
				t.Errorf("hash %s, want %s", got, want.hash)
			}
		})
	}
}

func structureHash(ds *Dataset, x *Features) string {
	h := sha256.New()
	put := func(v uint32) { h.Write(binary.LittleEndian.AppendUint32(nil, v)) }
	for _, e := range ds.Graph.Edges {
		put(uint32(e[0]))
		put(uint32(e[1]))
	}
	for _, v := range x.RowPtr {
		put(uint32(v))
	}
	for _, v := range x.Col {
		put(uint32(v))
	}
	for _, v := range x.Val {
		put(math.Float32bits(v))
	}
	for _, c := range ds.Labels {
		put(uint32(max(c, 0)))
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// The public split's lists, not only their sizes: training nodes first, then
// validation, then the sorted test index.
func TestPlanetoidPublicSplit(t *testing.T) {
	root := datasets(t)
	for _, c := range []struct {
		path                string
		valFirst, valLast   int32
		testFirst, testLast int32
	}{{"planetoid/cora", 140, 639, 1708, 2707}, {"planetoid/citeseer", 120, 619, 2312, 3326}} {
		ds, err := Load(filepath.Join(root, c.path), LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := ds.SplitFor(5)
		if err != nil {
			t.Fatal(err)
		}
		if s.Train[0] != 0 || s.Train[len(s.Train)-1] != c.valFirst-1 || s.Val[0] != c.valFirst || s.Val[499] != c.valLast || s.Test[0] != c.testFirst || s.Test[999] != c.testLast {
			t.Errorf("%s: split starts and ends at %d %d, %d %d, %d %d", c.path, s.Train[0], s.Train[len(s.Train)-1], s.Val[0], s.Val[499], s.Test[0], s.Test[999])
		}
	}
}

func TestCiteseerGaps(t *testing.T) {
	ds, err := Load(filepath.Join(datasets(t), "planetoid/citeseer"), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := ds.Repairs
	if r.MissingNodes != 15 || r.Unlabelled != 15 || r.EmptyRows != 15 {
		t.Errorf("missing %d, unlabelled %d, empty %d; want 15 each", r.MissingNodes, r.Unlabelled, r.EmptyRows)
	}
	for v, c := range ds.Labels {
		if (c < 0) != ds.X.emptyRow(v) {
			t.Errorf("node %d: label %d, but features empty is %t", v, c, ds.X.emptyRow(v))
		}
	}
	if r.SelfLoops != 124 {
		t.Errorf("%d self-loops, the files have 124", r.SelfLoops)
	}
}

func TestFixedSplitsByIndex(t *testing.T) {
	ds, err := Load(filepath.Join(datasets(t), "heterophilous/texas.npz"), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := ds.SplitFor(3)
	b, _ := ds.SplitFor(13)
	c, _ := ds.SplitFor(4)
	if !slices.Equal(a.Train, b.Train) || slices.Equal(a.Train, c.Train) {
		t.Error("split 3 and 13 should be the same of ten, 3 and 4 different")
	}
}

// BenchmarkLoad reads and checks whole data sets; MB/s are of the files' bytes.
func BenchmarkLoad(b *testing.B) {
	root := datasets(b)
	for _, name := range []string{"planetoid/cora", "planetoid/citeseer", "heterophilous/actor.npz", "large/amazon_cs.npz", "large/coauthor_phy.npz"} {
		path := filepath.Join(root, name)
		b.Run(filepath.Base(name), func(b *testing.B) {
			var bytes int64
			err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				if err == nil && !d.IsDir() {
					bytes += info.Size()
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(bytes)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Load(path, LoadOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package data

import (
	"archive/zip"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// fuzzed reads the files of a data set from memory, as a .zip; not compressed,
// which would take most of the time.
func fuzzed(tb testing.TB, files map[string]string) (*Dataset, *Collection, error) {
	l := newLoader(LoadOptions{MaxBytes: 1 << 20})
	s, err := l.parseZip("f.zip", zipWith(tb, zip.Store, "", files))
	if err != nil {
		return nil, nil, err
	}
	read, ok := l.recogniseFiles(s)
	if !ok {
		tb.Fatal("the files are not recognised")
	}
	if read.dataset != nil {
		ds, err := l.finish("f.zip", read)
		return ds, nil, err
	} else {
		c, err := l.finishCollection("f.zip", read)
		return nil, c, err
	}
}

// sound checks what came out: an error that says where, or a whole collection.
func sound(t *testing.T, c *Collection, err error) {
	t.Helper()
	if err != nil {
		checkText(t, err)
		return
	}
	if err := c.Check(); err != nil {
		t.Errorf("a collection that is not valid came out: %v", err)
	}
	c.Info()
	all := make([]int32, len(c.Graphs))
	for g := range all {
		all[g] = int32(g)
	}
	b, err := c.Batch(nil, all)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Graph.Validate(); err != nil {
		t.Error(err)
	}
}

// checkText fails where an error could write control characters to a terminal. One of
// several faults is a line for each.
func checkText(t *testing.T, err error) {
	t.Helper()
	if faults := (*Faults)(nil); errors.As(err, &faults) {
		if faults.Total < len(faults.List) || len(faults.List) < 2 || strings.Count(err.Error(), "\n") != len(faults.List) {
			t.Errorf("%d faults, %d listed: %q", faults.Total, len(faults.List), err)
		}
		for _, e := range faults.List {
			checkText(t, e)
		}
		return
	}
	if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
		t.Errorf("control character in %q", err)
	}
}

func FuzzTU(f *testing.F) {
	d := tuFiles()
	f.Add(d["DS_A.txt"], d["DS_graph_indicator.txt"], d["DS_graph_labels.txt"], d["DS_node_labels.txt"], d["DS_node_attributes.txt"], d["DS_edge_labels.txt"])
	f.Add("1,2", "1\n1", "0", "", "", "")
	f.Add("1 1\n\n1\t1", "\xef\xbb\xbf1\r\n", "-5", "1,2", "1e39", "x")
	f.Fuzz(func(t *testing.T, a, indicator, labels, nodes, attributes, edges string) {
		files := map[string]string{"DS_A.txt": a, "DS_graph_indicator.txt": indicator, "DS_graph_labels.txt": labels}
		for name, text := range map[string]string{"node_labels": nodes, "node_attributes": attributes, "edge_labels": edges} {
			if text != "" {
				files["DS_"+name+".txt"] = text
			}
		}
		_, c, err := fuzzed(t, files)
		sound(t, c, err)
	})
}

func FuzzGINText(f *testing.F) {
	f.Add(ginLines, "0\n1\n", "2\n")
	f.Add("1\n2 0\n0 1 1 0.5 -2\n0 1 0 1e-3 7\n", "", "")
	f.Add("1\n1 0\n0 0", "0", "0")
	f.Add("2147483647\n2147483645 0\n", "", "")
	f.Fuzz(func(t *testing.T, text, train, test string) {
		files := map[string]string{"DS.txt": text, "10fold_idx/readme": ""}
		if test != "" {
			files["10fold_idx/train_idx-1.txt"], files["10fold_idx/test_idx-1.txt"] = train, test
		}
		_, c, err := fuzzed(t, files)
		sound(t, c, err)
	})
}

func FuzzOGB(f *testing.F) {
	d := ogbFiles()
	f.Add(d["raw/edge.csv"], d["raw/node-feat.csv"], d["raw/node-label.csv"], "5\n", d["split/time/train.csv"])
	f.Add("", "1\n", "nan\n", "1", "0")
	f.Fuzz(func(t *testing.T, edges, features, labels, nodes, train string) {
		ds, _, err := fuzzed(t, map[string]string{"raw/edge.csv": edges, "raw/node-feat.csv": features, "raw/node-label.csv": labels, "raw/num-node-list.csv": nodes,
			"split/time/train.csv": train, "split/time/valid.csv": "", "split/time/test.csv": ""})
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

// FuzzZip reads damaged archives of every format.
func FuzzZip(f *testing.F) {
	f.Add(zipFiles(f, "DS/", tuFiles()))
	f.Add(zipFiles(f, "", map[string]string{"DS.txt": ginLines, "10fold_idx/test_idx-1.txt": "2\n", "10fold_idx/train_idx-1.txt": "0\n"}))
	f.Add(zipFiles(f, "tiny/", packed(f, ogbFiles())))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := newLoader(LoadOptions{MaxBytes: 1 << 20})
		s, err := l.parseZip("f.zip", b)
		if err != nil {
			checkText(t, err)
			return
		}
		s.list("")
		read, ok := l.recogniseFiles(s)
		if !ok {
			return
		}
		if read.dataset != nil {
			if _, err := l.finish("f.zip", read); err != nil {
				checkText(t, err)
			}
		} else {
			c, err := l.finishCollection("f.zip", read)
			sound(t, c, err)
		}
	})
}

// The quick way through a list that needs no repair, and the long one, agree.
func FuzzMirrored(f *testing.F) {
	f.Add([]byte{0, 1, 1, 0})
	f.Add([]byte{0, 0, 0, 1, 1, 0, 1, 2, 2, 1, 2, 2})
	f.Add([]byte{0, 1, 0, 2, 1, 0, 2, 0})
	f.Add([]byte{0, 2, 1, 2, 2, 0, 2, 1, 3, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		const n = 8
		e := &edgeList{}
		for i := 0; i+1 < len(b); i += 2 {
			e.src, e.dst = append(e.src, int32(b[i]%n)), append(e.dst, int32(b[i+1]%n))
		}
		edges, loops, ok := e.mirrored(n)
		w := make([]float32, len(e.src)) // weights take the long way
		slow := &edgeList{src: e.src, dst: e.dst, w: w}
		var rep Repairs
		g, err := slow.build(n, false, true, &rep, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ok && (!slices.Equal(edges, g.Edges) || rep != (Repairs{SelfLoops: loops})) {
			t.Errorf("%v %d, want %v %+v", edges, loops, g.Edges, rep)
		}
		ascending := true
		for i := 1; i < len(e.src); i++ {
			ascending = ascending && slices.Compare([]int32{e.src[i-1], e.dst[i-1]}, []int32{e.src[i], e.dst[i]}) < 0
		}
		if !ok && ascending && rep == (Repairs{SelfLoops: rep.SelfLoops}) {
			t.Errorf("%v %v needs no repair and was sent the long way", e.src, e.dst)
		}
	})
}

// Node numbers are 32-bit: what does not fit is refused, not cut off.
func TestWideNumbersAreRefused(t *testing.T) {
	for _, text := range []string{"4294967297", "-4294967295", "9223372036854775807"} {
		tf := newTextFile("f", strings.NewReader(text), nil, nil)
		var v int
		if err := tf.each(func() { v = tf.index("node", 0, math.MaxInt32) }); err == nil {
			t.Errorf("%s was read as %d", text, v)
		}
	}
}

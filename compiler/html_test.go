package compiler

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"pgregory.net/rapid"
)

func TestMatchLines(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       string // matched lines
	}{
		{"equal", "a b c", "a b c", "a b c"},
		{"nothing before", "", "a b", ""},
		{"nothing after", "a b", "", ""},
		{"inserted", "a c", "a b c", "a c"},
		{"removed", "a b c", "a c", "a c"},
		{"replaced", "a b c", "a x c", "a c"},
		{"moved", "a b c d", "b c d a", "b c d"},
		{"repeated lines", "a } b }", "a } x } b }", "a } b }"},
		{"only repeated", "} } }", "} }", "} }"},
	} {
		a, b := strings.Fields(c.a), strings.Fields(c.b)
		var got []string
		for _, m := range matchLines(a, b) {
			if a[m[0]] != b[m[1]] {
				t.Fatalf("%s: %d and %d differ", c.name, m[0], m[1])
			}
			got = append(got, a[m[0]])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: matched %q, want %q", c.name, strings.Join(got, " "), c.want)
		}
	}
}

// Matches ascend in both texts, pair equal lines and miss none of an
// unchanged text.
func TestMatchLinesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom(strings.Split("abcdefgh}", "")), 0, 30)
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		last := [2]int{-1, -1}
		for _, m := range matchLines(a, b) {
			if m[0] <= last[0] || m[1] <= last[1] || a[m[0]] != b[m[1]] {
				t.Fatalf("match %v after %v", m, last)
			}
			last = m
		}
		if n := len(matchLines(a, slices.Clone(a))); n != len(a) {
			t.Fatalf("%d of %d equal lines matched", n, len(a))
		}
	})
}

func TestSplitRefs(t *testing.T) {
	line := `  %a.1, $w = dropout %x {stream="a%b\"$"} : f32[N,3]`
	var refs []string
	text := ""
	for _, p := range splitRefs(line) {
		text += p.Text
		if p.Ref != "" {
			refs = append(refs, p.Ref)
		}
	}
	if text != line || !slices.Equal(refs, []string{"%a.1", "$w", "%x"}) {
		t.Errorf("%q, references %q", text, refs)
	}
}

func TestHTML(t *testing.T) {
	model, err := models.Lookup("ecl-gsr")
	if err != nil {
		t.Fatal(err)
	}
	var rec Recorder
	p, err := Compile(model.Build(small()), Options{Trace: rec.Record})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := rec.WriteHTML(&b, `ecl-gsr <on> "data"`, p.Stats); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	for _, want := range []string{"<h1>ecl-gsr &lt;on&gt; &#34;data&#34;</h1>", "lower-gsr", "hoist", "@pretrain", "unchanged", `class="l new"`, `class="l gone"`, "spmm"} {
		if !strings.Contains(out, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"src=", "href=", "http://", "https://", "@import", "url("} {
		if strings.Contains(out, bad) {
			t.Errorf("the page refers elsewhere: %q", bad)
		}
	}
	checkNesting(t, out)
	var none Recorder
	if err := none.WriteHTML(io.Discard, "", nil); err == nil {
		t.Error("a page without a recording was written")
	}
	if err := rec.WriteHTML(fullDisk{}, "", p.Stats); !errors.Is(err, errFull) {
		t.Errorf("error %v, want that of the writer", err)
	}
}

var errFull = errors.New("no space left")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// checkNesting reads the page as XML, which the template keeps to, and fails on
// a tag that is not closed.
func checkNesting(t *testing.T, page string) {
	t.Helper()
	_, page, _ = strings.Cut(page, "\n") // the doctype
	if i, j := strings.Index(page, "<script>"), strings.Index(page, "</script>"); i >= 0 && j > i {
		page = page[:i] + page[j+len("</script>"):]
	}
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
	}
}

func TestRecorderOrdersFunctions(t *testing.T) {
	var rec Recorder
	m := ir.NewModule("m")
	for _, name := range []string{"a", "c"} {
		b := m.NewFunc(name)
		b.Return("y", b.Arg("x", ir.T(ir.F32, "N")))
	}
	rec.Record("input", m)
	c := m.Func("c")
	m.RemoveFunc("c")
	b := m.NewFunc("b")
	b.Return("y", b.Arg("x", ir.T(ir.F32, "N")))
	m.Funcs = append(m.Funcs, c)
	rec.Record("dce", m)
	if got := rec.sectionNames(); !slices.Equal(got, []string{paramSection, "@a", "@b", "@c"}) {
		t.Errorf("sections %q", got)
	}
}

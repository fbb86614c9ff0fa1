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
)

func TestMissing(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       string // lines of b that are new
	}{
		{"equal", "a b c", "a b c", ""},
		{"nothing before", "", "a b", "a b"},
		{"nothing after", "a b", "", ""},
		{"inserted", "a c", "a b c", "b"},
		{"removed", "a b c", "a c", ""},
		{"replaced", "a b c", "a x c", "x"},
		{"moved", "a b c d", "b c d a", ""},
		{"repeated lines", "a } b }", "a } x } b }", "x }"},
		{"only repeated", "} }", "} } }", "}"},
	} {
		isNew := missing(strings.Fields(c.a))
		var got []string
		for _, line := range strings.Fields(c.b) {
			if isNew(line) {
				got = append(got, line)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, strings.Join(got, " "), c.want)
		}
	}
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

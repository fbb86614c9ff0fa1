package models

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
)

// program builds the program of a text as of a file.
func program(t *testing.T, o Options, graphs bool, text string) (*ir.Module, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mine.gsr")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		return nil, err
	}
	return m.Program(o, graphs)
}

// Every function and part of every model that is replaced by its own text leaves the program as
// it is, but for names of values.
func TestReplacedByItself(t *testing.T) {
	for _, model := range All {
		for name, change := range map[string]func(*Options){
			"default": func(*Options) {},
			"graphs":  func(*Options) {},
			"weights": func(o *Options) { o.EdgeWeights = true },
			"struct":  func(o *Options) { o.StructWidth, o.Views.Edges = 4, 0 },
			"known":   func(o *Options) { o.KnownLabels, o.Classifier = 0.5, "linear" },
			"mlp":     func(o *Options) { o.Classifier, o.Smooth.Alpha = "mlp", 0.5 },
			"gat":     func(o *Options) { o.Classifier, o.Encoder.Kind, o.ECL.Alpha = "gat", "sage", 0 },
			"random":  func(o *Options) { o.Classifier, o.Edges.Judge = "propagation", JudgeEvidence },
			"dense":   func(o *Options) { o.Edges.Judge, o.Edges.Labels, o.Dense = JudgeEvidence, true, true },
		} {
			o := small()
			o.Encoder.Hidden, o.Encoder.Projection, o.GEN.Steps = 7, 6, 2
			change(&o)
			if o.Edges.Judge != JudgeEmbedding && model.Name != "ecl-gsr" {
				o.Edges.Judge = JudgeEmbedding
			}
			graphs := name == "graphs"
			zoo, err := model.Program(o, graphs)
			if err != nil || name != "default" && !model.Refines {
				continue // a model that has no such option
			}
			want := unnamed(zoo)
			for _, f := range append(zoo.Parts, zoo.Funcs...) {
				m, err := program(t, o, graphs, "extends "+zoo.Name+"\n"+f.String())
				if err != nil {
					t.Errorf("%s %s: %v in\n%s", model.Name, name, err, f)
				} else if got := unnamed(m); got != want {
					t.Errorf("%s %s: with its own @%s, the program is\n%s\nwithout\n%s", model.Name, name, f.Name, got, want)
				}
			}
		}
	}
}

// unnamed prints a module whose results of operations are numbered.
func unnamed(m *ir.Module) string {
	c := m.Clone()
	for _, f := range c.Funcs {
		n := 0
		for _, op := range f.Body {
			for _, r := range op.Results {
				n++
				r.Name = "v" + string(ir.D(n))
			}
		}
	}
	return c.String()
}

const energy = `extends ecl_gsr

func @energy(%nu: f32[N,features+struct_width], %g: graph<N,E>, %anchors: i64[B], %zp: f32[B,encoder.projection], %w: f32[E]) -> (energy: f32[]) {
  %z = @represent %nu, %g, %w, %anchors : f32[B,encoder.projection]
`

// A part that is replaced is so in all functions, and parameters that nothing reads are gone.
func TestReplacedPart(t *testing.T) {
	o := small()
	m, err := program(t, o, false, `extends ecl_gsr
param $mix: f32[features+struct_width,encoder.hidden] {group="encoder", init="glorot"}
func @encoder(%x: f32[N,features], %g: graph<N,E>, %w: f32[E]) -> (embedding: f32[N,encoder.hidden]) {
  %twice = add %w, %w : f32[E]
  %y = spmm %g, %twice, _, %x : f32[N,features]
  %h = matmul %y, $mix : f32[N,encoder.hidden]
  return %h
}
func @edge_probability(%c: graph<N,M>, %embedding: f32[N,encoder.hidden], %old: f32[M]) -> (probability: f32[M], lo: f32[], hi: f32[]) {
  %p, %l, %h = @edge_probability %c, %embedding, %old : f32[M], f32[], f32[]
  %q = square %p : f32[M]
  return %q, %l, %h
}
func @classifier(%x: f32[N,features], %g: graph<N,M>, %w: f32[M]) -> (logits: f32[N,classes]) {
  %d = dropout %x {rate=dropout, stream="d"} : f32[N,features]
  %h = @classifier %d, %g, %w : f32[N,classes]
  return %h
}
`)
	if err != nil {
		t.Fatal(err)
	}
	if m.Param("encoder.0.weight") != nil || m.Param("mix") == nil || m.Param("classifier.0.weight") == nil {
		t.Errorf("the parameters are %v", m.Params)
	}
	text := func(name string) string { return m.Func(name).String() }
	for name, want := range map[string]int{"pretrain": 3, "joint": 4, "energy": 1, "encode": 1, "probability": 0, "fit": 0} {
		if got := strings.Count(text(name), "$mix"); got != want {
			t.Errorf("@%s reads the parameter %d times, want %d", name, got, want)
		}
	}
	if !strings.Contains(text("encode"), "edge_ones") || strings.Contains(text("pretrain"), "edge_ones") {
		t.Error("absent weights are not ones, or present ones are")
	}
	if strings.Contains(text("classify"), "dropout") || !strings.Contains(text("fit"), `"sample1.d"`) || !strings.Contains(text("fit"), `"sample1.h.dropout1"`) {
		t.Errorf("what the classifier drops is wrong:\n%s%s", text("classify"), text("fit"))
	}
	if !strings.Contains(text("probability"), "square") || !strings.Contains(text("joint"), "square") {
		t.Error("the probability of edges is not replaced everywhere")
	}
}

// A program without a base has names of sizes, too.
func TestNamedSizes(t *testing.T) {
	m, err := program(t, small(), false, `module @mine
param $w: f32[features,classes] {init="glorot"}
func @layer(%x: f32[N,features]) -> (y: f32[N,classes]) {
  %d = dropout %x {rate=input_dropout, stream="d"} : f32[N,features]
  %y = matmul %d, $w : f32[N,classes]
  return %y
}
func @both(%x: f32[N,features]) -> (z: f32[N,classes]) {
  %a = @layer %x : f32[N,classes]
  %b = @layer %x : f32[N,classes]
  %z = add %a, %b : f32[N,classes]
  return %z
}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := `func @both(%x: f32[N,5]) -> (z: f32[N,3]) {
  %a.d = dropout %x {rate=0.5, stream="a.d"} : f32[N,5]
  %a = matmul %a.d, $w : f32[N,3]
  %b.d = dropout %x {rate=0.5, stream="b.d"} : f32[N,5]
  %b = matmul %b.d, $w : f32[N,3]
  %z = add %a, %b : f32[N,3]
  return %z
}
`
	if got := m.Func("both").String(); got != want {
		t.Errorf("the program is\n%s", got)
	}
}

func TestExtensionFaults(t *testing.T) {
	const rest = "  %s = reduce_sum %z {axis=\"all\"} : f32[]\n  return %s\n}\n"
	if _, err := program(t, small(), false, energy+rest); err != nil {
		t.Fatal(err)
	}
	encoder := "func @encoder(%x: f32[N,features], %g: graph<N,E>, %w: f32[E]) -> (embedding: f32[N,encoder.hidden]) {\n"
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{"extends ecl_gs", 1, `did you mean "ecl_gsr"?`},
		{"extends", 1, "expected a name"},
		{"extends gcn\nfunc @energy() -> () { return }", 2, "gcn has no function @energy to replace; it has @train, @classify, @classifier"},
		{strings.Replace(energy, "%zp: f32[B,encoder.projection]", "%zp: f32[B,encoder.hiden]", 1) + rest, 3, `no size or option is called encoder.hiden; did you mean "encoder.hidden"?`},
		{strings.Replace(energy, "%anchors: i64[B], ", "", 1) + rest, 3, "@energy has another signature than in ecl_gsr: here (%nu: f32[N,5], %g: graph<N,E>, %zp: f32[B,128], %w: f32[E]) -> (energy: f32[]), there (%nu: f32[N,5], %g: graph<N,E>, %anchors: i64[B], %zp: f32[B,128], %w: f32[E]) -> (energy: f32[])"},
		{strings.Replace(energy, "N,features+struct_width", "N,featurs", 1) + rest, 3, "%nu: f32[N,featurs]"},
		{strings.Replace(energy, "encoder.projection", "encoder.kind", 1) + rest, 3, "encoder.kind is gcn, which is no size"},
		{strings.Replace(energy, "-> (energy: f32[])", "-> (energy: f32[]) {differentiate=\"energy\"}", 1) + rest, 3, `@energy: it has the attributes {differentiate="energy"}, in ecl_gsr none; leave them out`},
		{strings.Replace(energy, "@represent", "@represented", 1) + rest, 4, "there is no function @represented above this one"},
		{strings.Replace(energy, "%nu, %g, %w, %anchors", "%nu, %g, %anchors", 1) + rest, 4, "@represent is called with 3 arguments; it is @represent(%x: "},
		{strings.Replace(energy, "%nu, %g, %w, %anchors", "_, %g, %w, %anchors", 1) + rest, 4, "argument %x cannot be absent"},
		{strings.Replace(energy, "%w, %anchors :", "%anchors, %w :", 1) + rest, 4, "argument %w is given i64[B]"},
		{strings.Replace(energy, "%anchors : f32[B", "%anchors : f32[N", 1) + rest, 4, "@represent does not return what is written"},
		{energy + "  %s = gsr.energy %z, %zp {tau=ecl.tua} : f32[B]\n  return %s\n}\n", 5, `did you mean "ecl.tau"?`},
		{energy + rest + encoder + "  %h = matmul %x, $encoder.0.weight : f32[N,encoder.hidden]\n  return %h\n}\n", 8, "@encoder is replaced below a call of @represent, which it changes; put it above"},
		{"extends ecl_gsr\n" + encoder + "  %d = dropout %x {rate=0.5, stream=\"d\"} : f32[N,features]\n  %h = matmul %d, $encoder.0.weight : f32[N,encoder.hidden]\n  return %h\n}\n", 3, "@encoder draws random numbers (dropout), and is part of what predicts"},
		{"extends ecl_gsr\nparam $w: f32[featurs]", 2, `its dimensions must be sizes, and featurs is none; did you mean "features"?`},
		{"extends ecl-gsr\n", 1, "names have no - here: write ecl_gsr"},
		{"extends ecl_gsr\nparam $encoder.0.weight: f32[1]", 2, "parameter $encoder.0.weight is declared twice"},
		{"module @mine\nfunc @f() -> () {\n%y = @f : f32[]\nreturn }", 3, "there is no function @f above this one"},
	} {
		_, err := program(t, small(), false, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
		if e := (*ir.SyntaxError)(nil); !errors.As(err, &e) || e.Line != c.line || filepath.Base(e.File) != "mine.gsr" {
			t.Errorf("%s\n got %v, want line %d", c.text, err, c.line)
		}
	}
}

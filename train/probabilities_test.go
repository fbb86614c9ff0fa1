package train

import (
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
)

// Probabilities of a program that are none are refused at the first evaluation.
func TestProbabilitiesAreChecked(t *testing.T) {
	ds := synthetic(t, 3)
	for last, words := range map[string]string{
		"softmax %l": "", "tanh %l": "mine.gsr:9:7: @classify has the result probabilities, of which row ", "square %l": "sum",
		"softmax %n": "mine.gsr:9:7: @classify has logits and probabilities that disagree: row ", "softmax %z": "", "softmax %s": "",
	} {
		module, err := ir.ParseNamed("mine.gsr", `module @mine
param $v: f32[features,classes] {group="classifier", init="glorot"}
func @train(%x: f32[N,features], %g: graph<N,E>, %train_idx: i64[T], %labels: i64[T]) -> (loss: f32[]) {differentiate="loss"} {
  %l = matmul %x, $v : f32[N,classes]
  %rows = gather %l, %train_idx : f32[T,classes]
  %xent = cross_entropy %rows, %labels : f32[]
  return %xent
}
func @classify(%x: f32[N,features], %g: graph<N,E>) -> (logits: f32[N,classes], probabilities: f32[N,classes]) {
  %l = matmul %x, $v : f32[N,classes]
  %n = neg %l : f32[N,classes]
  %z = sub %l, %l : f32[N,classes]
  %s = add %l, %l : f32[N,classes]
  %p = `+last+` : f32[N,classes]
  return %l, %p
}
`, ir.Names{Values: map[string]any{"features": int64(ds.X.Cols), "classes": int64(ds.Classes)}})
		if err != nil {
			t.Fatal(err)
		}
		for _, by := range []string{"accuracy", "macro_f1"} {
			_, err = Train(t.Context(), Job{Model: "mine.gsr", Module: module, Task: Nodes(ds)}, configure(t, "gcn", "train.epochs=1", "train.select="+by), Options{})
			if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
				t.Errorf("%s, %s: the error is %v, want %q", last, by, err, words)
			}
		}
	}
}

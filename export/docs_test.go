package export

import (
	"os"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/onnx"
)

// The Python code that is shown gives a classifier all that it may take beside the inputs of other forms.
func TestPythonOfDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/export.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(text), "\n## Python\n")
	code, _, _ = strings.Cut(code, "\n## ")
	for _, name := range []string{"x", onnx.InputEdgeIndex, onnx.InputEdgeWeight, onnx.InputKnownLabels, onnx.InputGraphIDs} {
		if !strings.Contains(code, `"`+name+`": `) {
			t.Errorf("the code has no input %s", name)
		}
	}
}

package onnx

import (
	"encoding/json"
	"testing"
)

// Lowerings are read by either word, and files have those of earlier versions.
func TestLoweringWords(t *testing.T) {
	for word, want := range map[string]Lowering{"buckets": DegreeBuckets, "host-buckets": PrecomputedBuckets, "flat": Scatter, "dense": Dense, "auto": Auto} {
		for _, name := range []string{word, string(want)} {
			if got, err := ParseLowering(name); err != nil || got != want {
				t.Errorf("%s is %q (%v), want %q", name, got, err, want)
			}
			var read Lowering
			if err := json.Unmarshal([]byte(`"`+name+`"`), &read); err != nil || read != want {
				t.Errorf("%s in a file is %q (%v), want %q", name, read, err, want)
			}
		}
		if text, err := json.Marshal(want); err != nil || string(text) != `"`+word+`"` {
			t.Errorf("%s is written as %s (%v)", want, text, err)
		}
	}
	if _, err := ParseLowering("sorted"); err == nil {
		t.Error("a lowering that there is not is read")
	}
}

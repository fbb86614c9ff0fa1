package seal

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The value of RFC 3720, appendix B.4, and of most other descriptions.
func TestKnownSum(t *testing.T) {
	if got := Sum([]byte("123456789")); got != "crc32c:e3069283" {
		t.Errorf("the checksum of 123456789 is %s", got)
	}
}

func TestStampedTextsAreChecked(t *testing.T) {
	for _, indent := range []string{"", "  "} {
		text, err := json.MarshalIndent(map[string]string{"name": `"checksum": "crc32c:00000000"`, "checksum": Blank}, "", indent)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Check(nil, text, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("a blank checksum holds: %v", err)
		}
		Stamp(text)
		if sealed, err := Check(nil, text, nil); !sealed || err != nil {
			t.Errorf("%s: sealed %v, %v", text, sealed, err)
		}
		if _, err := Check([]byte("x"), text, nil); err == nil {
			t.Error("what stands before does not count")
		}
		if _, err := Check(nil, text, []byte("x")); err == nil {
			t.Error("what stands after does not count")
		}
		text[len(text)-1] ^= 1
		if _, err := Check(nil, text, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("a changed text: %v", err)
		}
	}
	if sealed, err := Check(nil, []byte(`{"checksum": "md5:00"}`), nil); sealed || err != nil {
		t.Errorf("a text with a checksum of another kind: %v, %v", sealed, err)
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	want := Of([]byte("content"))
	for text, complaint := range map[string]string{"content": "", "contenT": "checksum", "contents": "8 bytes", "": "0 bytes"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := want.ReadFile(path)
		if complaint == "" && (err != nil || string(data) != text) || complaint != "" && (err == nil || !strings.Contains(err.Error(), complaint)) {
			t.Errorf("%q: %v", text, err)
		}
		have, err := OfPath(path)
		if err != nil || have != Of([]byte(text)) {
			t.Errorf("%q: %+v, %v", text, have, err)
		}
	}
	if _, err := want.ReadFile(filepath.Dir(path)); err == nil {
		t.Error("a folder was read")
	}
}

func TestReadTakesFilesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(path); err != nil || string(text) != "text" {
		t.Errorf("%q, error %v", text, err)
	}
	if _, err := Read(os.DevNull); err == nil || !strings.Contains(err.Error(), os.DevNull+": it is no file") {
		t.Errorf("a device: error %v", err)
	}
}

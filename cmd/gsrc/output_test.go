package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"google.golang.org/protobuf/proto"
)

// What a file declares cannot command the terminal, nor forge lines.
func TestInspectHostileStrings(t *testing.T) {
	const evil = "a\x1b]0;title\x07\x1b[2J\u009b31m\r\nforged\tline\x7f"
	value := func() *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: evil, DocString: evil, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: 1, Shape: &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: evil}}}}}}}}
	}
	m := &onnxpb.ModelProto{
		IrVersion: 8, ProducerName: evil, ProducerVersion: evil,
		OpsetImport:   []*onnxpb.OperatorSetIdProto{{Domain: evil, Version: 1}},
		MetadataProps: []*onnxpb.StringStringEntryProto{{Key: evil, Value: evil}},
		Graph: &onnxpb.GraphProto{Name: evil, DocString: evil, Input: []*onnxpb.ValueInfoProto{value()}, Output: []*onnxpb.ValueInfoProto{value()},
			Node: []*onnxpb.NodeProto{{Name: evil, OpType: evil, Domain: evil, Input: []string{evil}, Output: []string{evil}}}},
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "evil.onnx")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"inspect", path}, {"inspect", "--json", path}, {"inspect", path + evil}} {
		var stdout, stderr bytes.Buffer
		run(t.Context(), args, &stdout, &stderr)
		text := stdout.String() + stderr.String()
		if !strings.Contains(text, "title") {
			t.Errorf("%v does not show the name:\n%s", args[:1], text)
		}
		for i, r := range text {
			if unicode.IsControl(r) && r != '\n' && (r != '\t' || args[1] == path) || r == '\ufffd' {
				t.Errorf("%v prints %U at %d", args[:1], r, i)
			}
		}
		for l := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(l), "forged") && args[1] != path+evil {
				t.Errorf("%v has the line %q of the file's making", args[:1], l)
			}
		}
	}
}

// An interrupt has the same name in every message.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"repro", "table1", "--budget", "short", "--only", "cora", "--out", t.TempDir()}, {"sweep", "gcn", "--data", "synthetic"}} {
		var stdout, stderr bytes.Buffer
		code := run(ctx, args, &stdout, &stderr)
		if text := stderr.String(); code != exitInterrupted || !strings.Contains(text, "interrupted") || strings.Contains(text, "context") {
			t.Errorf("%v: exit %d, %s", args, code, text)
		}
	}
}

func TestMergeOfNothing(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"sweep", "--merge", t.TempDir(), "nosuch"}, &stdout, &stderr)
	if text := stderr.String(); code == exitOK || !strings.Contains(text, "the folder nosuch given to --merge does not exist") {
		t.Errorf("exit %d, %s", code, text)
	}
}

// Text in pieces comes out whole, and data as they are.
func TestOutput(t *testing.T) {
	const text = "é\x1b[1m \u009b\xff\x9b 中\U0001F600\tb\n"
	const want = "é\\x1b[1m \\u009b\\xff\\x9b 中\U0001F600\tb\n"
	for size := 1; size <= len(text); size++ {
		var to bytes.Buffer
		o := &output{to: &to}
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if n, err := o.Write(rest[:min(size, len(rest))]); err != nil || n != min(size, len(rest)) {
				t.Fatal(n, err)
			}
		}
		o.flush()
		if to.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, to.String(), want)
		}
	}
	var to bytes.Buffer
	o := &output{to: &to}
	if o.Write([]byte("a\xe4")); to.String() != "a" {
		t.Errorf("an unfinished character is written: %q", to.String())
	}
	o.flush()
	o.bytes().Write([]byte(text))
	if to.String() != `a\xe4`+text {
		t.Errorf("data come out as %q", to.String())
	}
}

// What could not be written is no success.
func TestFullDevice(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{"edges.csv": "source,target\na,b\nb,c\n", "nodes.csv": "id,label,f\na,x,1\nb,y,2\nc,x,3\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"models"}, {"ops"}, {"passes"}, {"version"}, {"help"}, {"--help"}, {"data", "list"}, {"data", "info", dir}, {"build", "gcn", "--emit", "ir"}, {"train", "--help-config", "gcn"}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, full, &stderr); code != exitError || !strings.Contains(stderr.String(), "standard output was not written whole") {
			t.Errorf("gsrc %s into a full device exits with %d: %s", strings.Join(args, " "), code, stderr.String())
		}
	}
}

// A server goes on, and ends, while nobody reads what it writes to standard error.
func TestServeUnreadStandardError(t *testing.T) {
	unread, stderr := io.Pipe()
	defer unread.Close()
	if code := run(t.Context(), []string{"serve", t.TempDir(), "--http", "127.0.0.1:0", "--grpc", ""}, io.Discard, stderr); code != exitError {
		t.Errorf("an export that is not there ends in exit code %d", code)
	}
}

// A device without end is refused rather than read.
func TestInspectDevice(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("this system has no /dev/zero")
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"inspect", "/dev/zero"}, &stdout, &stderr); code != exitError || !strings.Contains(stderr.String(), "not a regular file") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

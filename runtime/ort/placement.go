package ort

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Placed tells where a node of a model ran. Nodes are those that onnxruntime has after
// its optimisation.
type Placed struct {
	Node, Op string
	Provider string // as onnxruntime calls it, such as CPUExecutionProvider
}

// OnCPU tells that the node ran on the CPU.
func (p Placed) OnCPU() bool { return p.Provider == "CPUExecutionProvider" }

// Placement runs the model at path once with onnxruntime's profiler, and lists its
// nodes in the order of their runs, each once. Models that read files beside them are
// fine.
func Placement(path string, o Options, inputs map[string]Tensor) ([]Placed, error) {
	dir, err := os.MkdirTemp("", "gsrc-profile-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	o.profile = filepath.Join(dir, "p")
	s, err := Open(path, o)
	if err != nil {
		return nil, err
	}
	_, err = s.Run(inputs)
	if end := s.Close(); err == nil { // which writes the profile
		err = end
	}
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(o.profile + "*")
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("onnxruntime left %d profiles, want 1 (%v)", len(found), err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	return parsePlacement(text)
}

// parsePlacement reads a profile of onnxruntime.
func parsePlacement(text []byte) ([]Placed, error) {
	var events []struct {
		Category string `json:"cat"`
		Name     string `json:"name"`
		Args     struct {
			Op       string `json:"op_name"`
			Provider string `json:"provider"`
		} `json:"args"`
	}
	if err := json.Unmarshal(text, &events); err != nil {
		return nil, fmt.Errorf("the profile of onnxruntime cannot be read: %w", err)
	}
	var list []Placed
	seen := map[string]bool{}
	for _, e := range events {
		node, ok := strings.CutSuffix(e.Name, "_kernel_time")
		if e.Category != "Node" || !ok || e.Args.Provider == "" || seen[node] {
			continue
		}
		seen[node] = true
		list = append(list, Placed{node, e.Args.Op, e.Args.Provider})
	}
	return list, nil
}

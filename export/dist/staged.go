package dist

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"google.golang.org/protobuf/proto"
)

// Staged is a model in use level by level.
type Staged struct {
	*onnx.Stages
	d      *Dist
	levels []*ort.Session
}

// Stage opens a model of the export by its stages, see [onnx.Stages]. It returns nil for a model
// that has none: one whose outputs depend on the whole graph, of the dense form or with
// --symmetrize, with weights in a file beside it, or of an earlier version of gsrc.
func (d *Dist) Stage(role string) (*Staged, error) {
	info, ok := d.Manifest.Models[role]
	if !ok || info.Stages == nil || info.Data != "" {
		return nil, nil
	}
	m, err := d.model(info.File)
	if err != nil {
		return nil, err
	}
	options := d.options
	options.Threads = 1 // parts run at the same time
	s := &Staged{Stages: info.Stages, d: d}
	for level := range len(s.Values) + 1 {
		part, err := s.Part(m, level)
		var data []byte
		if err == nil {
			data, err = onnx.Marshal(part)
		}
		var session *ort.Session
		if err == nil {
			session, err = ort.OpenBytes(data, options)
		}
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("%s, level %d: %w", info.File, level, err)
		}
		s.levels = append(s.levels, session)
	}
	return s, nil
}

func (d *Dist) model(file string) (*onnxpb.ModelProto, error) {
	data, err := d.Manifest.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(data, &m); err != nil || m.Graph == nil {
		return nil, fmt.Errorf("%s is no ONNX model: %w", file, errors.Join(err, errors.New("it has no graph")))
	}
	return &m, nil
}

// Holds reports whether a model of the export holds a parameter, such as evidence.spectrum, or several whose names begin so.
func (d *Dist) Holds(role, param string) (bool, error) {
	m, err := d.model(d.Manifest.Models[role].File)
	if err != nil {
		return false, err
	}
	path := strings.ReplaceAll(param, ".", "/")
	return slices.ContainsFunc(m.Graph.Initializer, func(t *onnxpb.TensorProto) bool {
		return t.Name == path || strings.HasPrefix(t.Name, path+"/")
	}), nil
}

// Close frees the sessions.
func (s *Staged) Close() error {
	var err error
	for _, session := range s.levels {
		err = errors.Join(err, session.Close())
	}
	s.levels = nil
	return err
}

// Levels counts the levels.
func (s *Staged) Levels() int { return len(s.levels) }

// Reads names the values of nodes of lower levels that a level reads, and x where it does.
func (s *Staged) Reads(level int) (names []string) {
	x := false
	for _, io := range s.levels[level].Inputs() {
		if slices.ContainsFunc(s.Common, func(c onnx.CommonSum) bool { return c.Name == io.Name }) || slices.ContainsFunc(s.Sums, func(x onnx.NeighborSum) bool { return x.Name == io.Name }) {
			continue
		}
		switch io.Name {
		case s.Nodes, s.Weights, "pairs", onnx.InputEdgeIndex, onnx.InputEdgeWeight, onnx.InputDegree, onnx.InputOrder, onnx.InputOrderRows, onnx.InputSegments, onnx.InputSegmentRows, onnx.InputRest, onnx.InputRestore:
		case "x", onnx.InputIndptr, onnx.InputIndices, onnx.InputValues:
			x = true
		default:
			names = append(names, io.Name)
		}
	}
	if x {
		names = append(names, "x")
	}
	return names
}

// SumsOf are the sums that a level reads, and whether it reads edges beside.
func (s *Staged) SumsOf(level int) (sums []onnx.NeighborSum, edges bool) {
	for _, io := range s.levels[level].Inputs() {
		switch io.Name {
		case onnx.InputEdgeIndex, onnx.InputEdgeWeight, onnx.InputDegree, onnx.InputOrder, onnx.InputOrderRows, onnx.InputSegments, onnx.InputSegmentRows, onnx.InputRest, onnx.InputRestore, s.Weights:
			edges = true
		}
		for _, x := range s.Sums {
			if x.Name == io.Name {
				sums = append(sums, x)
			}
		}
	}
	return sums, edges
}

// Gives names the values that a level computes.
func (s *Staged) Gives(level int) []string {
	return lists.Map(s.levels[level].Outputs(), func(io ort.IO) string { return io.Name })
}

// Run computes a level for a graph of n nodes, or for a part of one in which all edges
// into the rows that are wanted are there, in the order of the whole graph's; other rows of
// the results mean nothing. in holds what [Staged.Reads] names, edgeIndex and weight are
// those of [Dist.Classify]; a model that has Weights is given weights. The last level of a scorer also reads pairs, int64 [2,P], and
// what Common names; the others the Sums that they read.
func (s *Staged) Run(level, n int, in map[string]ort.Tensor, edgeIndex ort.Tensor, weight *ort.Tensor) (map[string]ort.Tensor, error) {
	session := s.levels[level]
	takes := map[string]bool{}
	for _, io := range session.Inputs() {
		takes[io.Name] = true
	}
	in = maps.Clone(in)
	if takes[s.Nodes] {
		in[s.Nodes] = ort.Int64s([]int64{int64(n)}, 1)
	}
	if takes[onnx.InputIndptr] {
		if err := onnx.AddSparse(in); err != nil {
			return nil, err
		}
	}
	if s.Weights != "" {
		if takes[s.Weights] {
			in[s.Weights] = *weight
		}
		weight = nil
	}
	if takes[onnx.InputEdgeIndex] {
		if err := addGraph(s.d.Manifest, in, takes, int64(n), edgeIndex, weight); err != nil {
			return nil, err
		}
	}
	return session.RunContext(s.d.ctx, in)
}

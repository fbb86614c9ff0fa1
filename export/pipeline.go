package export

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/ir"
)

// pipeline.onnx does in one file what the encoder, a search for near neighbours,
// the scorer and the classifier do one after another: from features and graph to
// the refined graph, with the probability of each edge, and to the classes of the
// nodes on it.

// PipelineMode says whether pipeline.onnx is written.
type PipelineMode string

const (
	PipelineAuto PipelineMode = "auto" // where the model allows it
	PipelineOn   PipelineMode = "on"   // or else it is an error
	PipelineOff  PipelineMode = "off"
)

// ParsePipelineMode reads a mode; the empty string is PipelineAuto.
func ParsePipelineMode(s string) (PipelineMode, error) {
	switch m := PipelineMode(s); m {
	case "":
		return PipelineAuto, nil
	case PipelineAuto, PipelineOn, PipelineOff:
		return m, nil
	}
	return "", fmt.Errorf("unknown pipeline mode %q: choose auto, on or off", s)
}

var pipelineRole = role{"pipeline", "classify", "graph-refinement", "Refines a graph and classifies its nodes: embeds them, finds candidates for edges among near neighbours, scores them, and classifies on the refined graph."}

// pipelineParts finds them, or says why there is no pipeline.
func (o *BuildOptions) pipelineParts(programs []built) (onnx.PipelineParts, error) {
	var p onnx.PipelineParts
	if r := o.Refinement; r != nil {
		var err error
		if p.Encode, err = o.rows(cmp.Or(r.Rows, "encode")); err == nil && r.Together {
			p.Weigh, err = o.compiled("probability")
		}
		if err != nil {
			return p, err
		}
	}
	for _, m := range programs {
		switch m.Name {
		case "scorer":
			p.Score = m.fn
		case "classifier":
			p.Classify = m.fn
		}
	}
	switch {
	case o.Refinement != nil && p.Classify == nil:
		return p, fmt.Errorf("the model was trained without labels and has no classifier")
	case o.Refinement != nil && p.Score == nil && p.Weigh == nil:
		return p, fmt.Errorf("the edges of the training graph have weights of their own, which say nothing of other edges")
	case o.Refinement == nil || p.Encode == nil || p.Classify == nil:
		return p, fmt.Errorf("the model classifies on the graph as it is, so there is nothing to refine")
	case o.Refinement.Elsewhere() != "":
		return p, errors.New(o.Refinement.Elsewhere())
	case onnx.BatchArg(p.Classify) != nil:
		return p, fmt.Errorf("the model classifies whole graphs, whose neighbours are searched in each graph by itself")
	case p.Encode.Arg("x_struct") != nil:
		return p, fmt.Errorf("the encoder reads x_struct, the DeepWalk embedding of its training graph, which other graphs do not have; train with deepwalk.width = 0")
	case p.Classify.Arg(onnx.InputKnownLabels) != nil:
		return p, fmt.Errorf("the classifier reads known labels, which pipeline.onnx does not take")
	case o.Lowering == onnx.Dense:
		return p, fmt.Errorf("the dense lowering has no edge_index; take degree-buckets, precomputed-buckets or scatter")
	case o.Precision == onnx.INT8:
		return p, fmt.Errorf("products in 8 bits round similarities, so that chance would choose among near neighbours; take fp16 or leave --int8 out")
	case o.Sample.Nodes() > onnx.MaxPipelineNodes:
		return p, fmt.Errorf("the training graph has %d nodes, and all pairs of nodes are compared: at most %d", o.Sample.Nodes(), onnx.MaxPipelineNodes)
	}
	judge, scorer, scores := p.Score, []string{"embedding", "pairs"}, []string{"probability", "probability_existing"}
	switch {
	case p.Score == nil:
		judge, scorer, scores = p.Weigh, nil, scores[:1]
	case onnx.GraphArg(p.Score) != nil:
		scorer[0], scores[1] = "x", "edge_probability"
	}
	for _, want := range []struct {
		fn   *ir.Func
		args []string
		outs []string
	}{
		{p.Encode, []string{"x"}, nil},
		{judge, scorer, scores},
		{p.Classify, []string{"x"}, []string{"logits", "probabilities"}},
	} {
		for _, name := range want.args {
			if want.fn.Arg(name) == nil {
				return p, fmt.Errorf("@%s has no argument %s", want.fn.Name, name)
			}
		}
		for _, name := range want.outs {
			if want.fn.Result(name) == nil {
				return p, fmt.Errorf("@%s gives no %s", want.fn.Name, name)
			}
		}
	}
	return p, nil
}

// rows compiles what gives the rows that neighbours are searched by, with the graph whose edges are
// candidates, too, as an argument also where it reads none; nil where there is no such function.
func (o *BuildOptions) rows(name string) (*ir.Func, error) {
	if o.Module.Func(name) == nil {
		return nil, nil
	}
	fn, err := o.compiled(name)
	if err != nil {
		return nil, err
	}
	if x := fn.Arg("x"); onnx.GraphArg(fn) == nil && x != nil {
		fn.Args = append(fn.Args, &ir.Value{Name: "g", Type: ir.GraphType(x.Type.Dims[0], "E")})
	}
	if len(fn.Results) == 1 && fn.Result("embedding") == nil {
		fn.Results[0].Name = onnx.OutputSimilarityRows
	}
	return fn, nil
}

// addPipeline appends the pipeline to the models where it is wanted and can be.
func (o *BuildOptions) addPipeline(models, programs []built) ([]built, error) {
	if o.Pipeline == PipelineOff {
		return models, nil
	}
	p, why := o.pipelineParts(programs)
	if why != nil {
		if o.Pipeline == PipelineOn {
			return nil, fmt.Errorf("pipeline.onnx cannot be written: %w", why)
		}
		if p.Encode != nil {
			o.Log("no pipeline.onnx: %v", why)
		}
		return models, nil
	}
	r := pipelineRole
	m := built{Model: parity.Model{Name: r.name, Func: r.fn, Classify: p.Classify, Lowering: o.Lowering, Sparse: o.SparseX && p.Encode.Arg(onnx.SparseArg) != nil, Symmetric: o.Symmetrize},
		task: r.task, doc: r.doc, fn: p.Classify, parts: &p, constants: map[string]float32{}}
	if m.Lowering == onnx.PrecomputedBuckets {
		m.Lowering = onnx.DegreeBuckets // the host does not know the refined graph
	}
	for _, part := range models {
		maps.Copy(m.constants, part.constants)
	}
	g := onnx.GraphArg(p.Encode)
	m.Weighted = slices.ContainsFunc(p.Encode.Args, func(a *ir.Value) bool { return onnx.OverEdges(a, g) })
	var err error
	if m.Proto, err = onnx.Pipeline(p, o.Params, *o.Refinement, onnx.ModelOptions{
		Lowering: m.Lowering, NoEdgeWeight: o.NoEdgeWeight, Constants: m.constants, SparseX: m.Sparse, Symmetrize: m.Symmetric, Opset: o.Opset, Precision: o.Precision,
		Name: o.Model + "_" + m.Name, Doc: m.doc, Docs: o.docs(&m), Metadata: o.metadata(m), ProducerVersion: o.Version,
	}); err != nil {
		return nil, fmt.Errorf("pipeline.onnx: %w", err)
	}
	if err := o.seal(&m); err != nil {
		return nil, err
	}
	judge := cmp.Or(p.Score, p.Weigh)
	o.Log("lowered @%s, @%s and @%s to pipeline.onnx: %d nodes, %.1f MiB", p.Encode.Name, judge.Name, p.Classify.Name, len(m.Proto.Graph.Node), float64(len(m.Data)+len(m.Weights))/(1<<20))
	return append(models, m), nil
}

// pipelineMetadata describes how the pipeline refines.
func (o *BuildOptions) pipelineMetadata(md map[string]string) {
	r := o.Refinement
	md["k"] = strconv.Itoa(r.K)
	md["mutual"] = strconv.FormatBool(r.Mutual)
	md[onnx.MetadataTwoStep] = strconv.Itoa(r.TwoStep)
	md["threshold"] = strconv.FormatFloat(r.Threshold, 'g', -1, 64)
	md["refined_weight"] = "1"
	if r.Weighted && !o.NoEdgeWeight {
		md["refined_weight"] = "probability"
	}
	md["max_nodes"] = strconv.Itoa(onnx.MaxPipelineNodes)
}

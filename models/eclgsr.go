package models

import (
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
)

// ecl holds what the functions of ECL-GSR share. A sample of its contrastive loss is a
// node, or a graph of a batch.
type ecl struct {
	Options
	m          *ir.Module
	encoder    network   // φ
	projector  network   // ϕ
	classifier network   // C of nodes; nil where graphs are classified
	graphs     *graphNet // C of graphs; nil where nodes are classified
	evidence   *evidence // nil where embeddings or attributes judge edges
	counted    bool      // existing edges count by their weights in the data
}

// newECL declares encoder and projector.
func newECL(name string, o Options) *ecl {
	m := ir.NewModule(name)
	in := o.Features + o.StructWidth
	enc := shape{name: "encoder", group: "encoder", act: "elu", in: in, hidden: o.Encoder.Hidden, layers: o.Encoder.Layers, out: o.Encoder.Hidden, decay: o.Encoder.WeightDecay}
	proj := enc
	proj.name, proj.in, proj.hidden, proj.layers, proj.out = "projector", enc.out, o.Encoder.Projection, 2, o.Encoder.Projection
	e := &ecl{Options: o, m: m, encoder: architecture(o.Encoder.Kind).declare(m, enc, o), projector: declareMLP(m, proj, o)}
	e.encoder = o.replaceable(m, "encoder", "embedding", e.encoder, e.dualType(), &rawGraph, nil)
	return e
}

// eclGSR builds ECL-GSR for one graph; without classes there is no classifier, and the
// encoder alone is trained.
func eclGSR(o Options) *ir.Module {
	counted := o.EdgeWeights
	o.EdgeWeights = false // networks read what edges count, up to 1, and not what they weigh
	e := newECL("ecl_gsr", o)
	if e.counted = counted; counted {
		e.m.Attrs[Weighted] = true
	}
	classifies := o.Classes > 0
	if classifies {
		e.classifier = o.classifierPart(e.m, classifier(e.m, architecture(o.Classifier), o), o.classifierInput(), graphOf(o, &candidates))
	}
	if o.Edges.Judge == JudgeEvidence {
		e.evidence = declareEvidence(e.m, o)
		e.evidence.counted = counted
	}
	e.energy()
	e.pretrain()
	if classifies {
		e.joint()
		e.fit()
	}
	e.encode()
	e.probability()
	e.refine(e.m)
	if e.evidence != nil {
		e.evidence.host(o)
		e.evidence.compared(o)
		e.evidence.score(o)
	} else {
		e.score()
	}
	if classifies {
		classify(e.m, o, e.classifier, &candidates)
	}
	return e.m
}

// eclGSRGraphs builds ECL-GSR for collections of graphs. There is no @probability: the
// bounds of Eq 18 are those of all training graphs, so batches ask @score.
func eclGSRGraphs(o Options) *ir.Module {
	e := newECL("ecl_gsr", o)
	e.graphs = declareGraphNet(e.m, o, architecture(o.Classifier))
	e.energy()
	e.pretrain()
	e.joint()
	e.fit()
	e.encode()
	e.refine(e.m)
	e.score()
	e.graphs.classify(e.m, candidates)
	return e.m
}

// arg declares an argument, which is another in every step where graphs are
// classified.
func (e *ecl) arg(b *ir.Builder, name string, t ir.Type) *ir.Value {
	if e.graphs != nil {
		return b.DynamicArg(name, t)
	}
	return b.Arg(name, t)
}

// samples returns name and type of the argument that makes samples of nodes, and the
// dimension that counts them: anchors, or the batch that the nodes belong to.
func (e *ecl) samples() (name string, t ir.Type, count ir.Dim) {
	if e.graphs != nil {
		return "batch", membership, "G"
	}
	return "anchors", ir.T(ir.I64, "B"), "B"
}

func (e *ecl) samplesArg(b *ir.Builder) *ir.Value {
	name, t, _ := e.samples()
	return b.DynamicArg(name, t)
}

// attributes declares the arguments of X† and returns [X^c, X^s]: row-normalised
// features beside the weighted structural embedding.
func (e *ecl) attributes(b *ir.Builder) (x, dual *ir.Value) {
	x = e.arg(b, "x", features(e.Options))
	var s *ir.Value
	if e.StructWidth > 0 {
		s = b.Arg("x_struct", ir.T(ir.F32, "N", ir.D(e.StructWidth)))
	}
	defer b.Named("dual")() // a plain name such as c would rename an argument declared later
	dual = b.One("l2_normalize", nil, x)
	if s != nil {
		dual = b.Concat(dual, b.Scale(b.One("l2_normalize", nil, s), e.Encoder.StructWeight))
	}
	return x, dual
}

func (e *ecl) dualType() ir.Type { return ir.T(ir.F32, "N", ir.D(e.Features+e.StructWidth)) }

// weighs tells that entries of the raw graph have weights.
func (e *ecl) weighs() bool { return e.counted || e.Edges.Judge != JudgeEmbedding }

// weights returns the weights of the raw graph's entries, nil for ones: existing edges
// that are doubted, or weigh little in the data, carry less of the encoder's messages.
func (e *ecl) weights(b *ir.Builder) *ir.Value {
	if !e.weighs() {
		return nil
	}
	return e.carried(b, b.Arg("w", ir.T(ir.F32, "E")))
}

// carried returns what entries carry of the encoder's messages that count w: max(0, (w − c)/(1 − c))
// with c = [Encoder.Cut], so that rounding does not decide whether one carries any.
func (e *ecl) carried(b *ir.Builder, w *ir.Value) *ir.Value {
	c := e.Encoder.Cut
	if c == 0 {
		return w
	}
	defer b.Named("carried")()
	return b.Scale(b.One("maximum", nil, b.Shift(w, -c), b.Const(0)), 1/(1-c))
}

// view returns an augmented X† and the edge weights of the view (nil: ones), raw
// being those of the graph.
func (e *ecl) view(b *ir.Builder, name string, g, raw, dual *ir.Value) (x, w *ir.Value) {
	defer b.Named(name)()
	v := e.Views
	x, w = dual, raw
	if v.Mask > 0 {
		x = b.One("gsr.mask_features", ir.Attrs{"rate": v.Mask, "stream": name + ".mask"}, x)
	}
	if v.Blur > 0 {
		x = b.One("gsr.gaussian_blur", ir.Attrs{"sigma": v.Blur, "stream": name + ".blur"}, x)
	}
	if v.Edges > 0 {
		w = b.One("gsr.drop_edges", ir.Attrs{"rate": v.Edges, "stream": name + ".edges"}, g)
		if raw != nil {
			w = b.Mul(w, raw)
		}
	}
	return x, w
}

// represent returns z, the normalised projection of the samples' embeddings: those of
// anchors, or of the graphs of a batch, which their nodes are read out to.
func (e *ecl) represent(b *ir.Builder, g, w, x, samples *ir.Value) *ir.Value {
	name, t, count := e.samples()
	args := []value{{"x", e.dualType(), x}, {"g", rawGraph, g}, {"w", ir.T(ir.F32, "E"), w}, {name, t, samples}}
	return e.part(b, "represent", []string{"z"}, args, func(b *ir.Builder, v []*ir.Value) []*ir.Value {
		h := e.encoder.run(b, v[1], v[2], v[0], nil)
		if e.graphs != nil {
			h = b.One("gnn.readout", ir.Attrs{"mode": e.Readout}, v[3], b.One("elu", nil, h))
		} else {
			h = b.One("elu", nil, b.One("gather", nil, h, v[3]))
		}
		projector := e.replaceable(e.m, "projector", "z", e.projector, ir.T(ir.F32, count, ir.D(e.Encoder.Hidden)), nil, nil)
		return []*ir.Value{b.One("l2_normalize", nil, projector.run(b, nil, nil, h, nil))}
	})[0]
}

// samplesType is that of z, a row a sample.
func (e *ecl) samplesType() ir.Type {
	_, _, count := e.samples()
	return ir.T(ir.F32, count, ir.D(e.Encoder.Projection))
}

// energy declares @energy, the sum over the batch of E(ν_n) that the sampler
// descends, where it is used; z′ is an argument, and so detached.
func (e *ecl) energy() {
	if e.ECL.Alpha == 0 || e.ECL.Steps == 0 {
		return
	}
	b := e.m.NewFunc("energy")
	nu := b.Arg("nu", e.dualType())
	g := b.Arg("g", rawGraph)
	name, t, _ := e.samples()
	samples := b.Arg(name, t)
	zp := b.Arg("zp", e.samplesType())
	var w *ir.Value
	if e.Views.Edges > 0 || e.weighs() {
		w = b.Arg("w", ir.T(ir.F32, "E"))
	}
	z := e.represent(b, g, w, nu, samples)
	b.Return("energy", b.Sum(b.One("gsr.energy", ir.Attrs{"tau": e.ECL.Tau}, z, zp)))
}

// loss appends one evaluation of Eq 17 and returns loss, disc, gen, reg.
func (e *ecl) loss(b *ir.Builder, g, raw, dual, samples *ir.Value) []*ir.Value {
	x1, w1 := e.view(b, "view1", g, raw, dual)
	x2, w2 := e.view(b, "view2", g, raw, dual)
	z, zp := e.represent(b, g, w1, x1, samples), e.represent(b, g, w2, x2, samples)
	var zs *ir.Value
	c := e.ECL
	if c.Alpha != 0 && c.Steps > 0 {
		nu := x1
		if c.InitNoise > 0 {
			nu = b.One("gsr.gaussian_blur", ir.Attrs{"sigma": c.InitNoise, "stream": "sgld.init"}, x1)
		}
		args := []*ir.Value{nu, g, samples, b.Stop(zp)}
		if w1 != nil {
			args = append(args, w1)
		}
		nu = b.One("gsr.sgld_sample", ir.Attrs{"energy": ir.FuncRef("energy"), "steps": c.Steps, "step": c.Step,
			"noise": c.Noise, "clip": c.Clip, "stream": "sgld"}, args...)
		zs = e.represent(b, g, w1, nu, samples)
	}
	t := e.samplesType()
	args := []value{{"z", t, z}, {"zp", t, zp}}
	if zs != nil {
		args = append(args, value{"zs", t, zs})
	}
	return e.part(b, "loss", []string{"loss", "disc", "gen", "reg"}, args, func(b *ir.Builder, z []*ir.Value) []*ir.Value {
		return b.Op("gsr.ecl_loss", ir.Attrs{"tau": c.Tau, "alpha": c.Alpha, "beta": c.Beta, "reg": c.Reg,
			"discriminative": c.Discriminative, "positive": c.Positive}, z...)
	})
}

func (e *ecl) pretrain() {
	b := e.m.NewFunc("pretrain")
	_, dual := e.attributes(b)
	g := e.arg(b, "g", rawGraph)
	w := e.weights(b)
	samples := e.samplesArg(b)
	for i, v := range e.loss(b, g, w, dual, samples) {
		b.Return([]string{"loss", "disc", "gen", "reg"}[i], v)
	}
	b.Func.Attrs["differentiate"] = "loss"
}

func (e *ecl) intervals() ir.Attrs {
	return ir.Attrs{"old_lo": e.Edges.OldLo, "old_hi": e.Edges.OldHi, "new_lo": e.Edges.NewLo, "new_hi": e.Edges.NewHi}
}

// supervision declares what the classifier learns from: the numbers of the labelled
// nodes (nil: all graphs of a batch are labelled) and their answers.
func (e *ecl) supervision(b *ir.Builder) (idx, answer *ir.Value) {
	if e.graphs != nil {
		return nil, graphAnswers(b, e.Options)
	}
	return supervision(b, e.Options)
}

// classifierLoss samples graphs from p and returns the cross-entropy and the
// consistency of the classifier on them. batch is nil where nodes are classified.
func (e *ecl) classifierLoss(b *ir.Builder, x, c, p, batch, idx, answers *ir.Value) (xent, consistency *ir.Value) {
	sampled := func(sample string) *ir.Value {
		return b.One("gsr.relaxed_bernoulli", ir.Attrs{"temperature": e.Edges.Temperature, "stream": sample + ".edges"}, c, p)
	}
	if e.graphs == nil {
		x = e.prepare(b, e.classifier, x)
		shown, answers := e.reveal(b, idx, answers)
		return sampledLoss(b, e.Options, idx, answers, func(sample string) *ir.Value {
			return e.learn(b, e.classifier, c, sampled(sample), x, shown, sample)
		})
	}
	seen := &statistics{}
	xent, consistency = sampledLoss(b, e.Options, idx, answers, func(sample string) *ir.Value {
		return e.graphs.run(b, c, sampled(sample), batch, x, e.dropouts(sample), seen)
	})
	seen.returnMeans(b)
	return xent, consistency
}

// joint declares one step of Eq 19. The classifier sees its own loss; what
// reaches the encoder through the edge probabilities is scaled by μ. A batch of
// graphs is given the bounds of Eq 18, which are those of all training graphs.
func (e *ecl) joint() {
	b := e.m.NewFunc("joint")
	x, dual := e.attributes(b)
	g := e.arg(b, "g", rawGraph)
	w := e.weights(b)
	c := e.arg(b, "c", candidates)
	old := e.arg(b, "old", ir.T(ir.F32, "M"))
	samples := e.samplesArg(b)
	idx, answers := e.supervision(b)
	ramp := b.DynamicArg("ramp", ir.Scalar())
	var bounds []*ir.Value
	var batch *ir.Value
	if e.graphs != nil {
		bounds = []*ir.Value{b.DynamicArg("lo", ir.Scalar()), b.DynamicArg("hi", ir.Scalar())}
		batch = samples
	}
	terms := e.loss(b, g, w, dual, samples)
	h := e.encoder.run(b, g, w, dual, nil)
	p := e.edgeProbability(b, c, h, old, bounds...)[0]
	p = b.One("scale_grad", ir.Attrs{"factor": e.Edges.Mu}, p)
	xent, consistency := e.classifierLoss(b, x, c, p, batch, idx, answers)
	b.Return("loss", b.Add(terms[0], sampledTotal(b, e.Options, xent, consistency, ramp)))
	for i, name := range []string{"ecl", "disc", "gen", "reg"} {
		b.Return(name, terms[i])
	}
	b.Return("xent", xent)
	b.Return("consistency", consistency)
	b.Func.Attrs["differentiate"] = "loss"
}

func (e *ecl) fit() {
	b := e.m.NewFunc("fit")
	x := e.arg(b, "x", features(e.Options))
	c := e.arg(b, "c", candidates)
	p := e.arg(b, "p", ir.T(ir.F32, "M"))
	var batch *ir.Value
	if e.graphs != nil {
		batch = e.samplesArg(b)
	}
	idx, answers := e.supervision(b)
	ramp := b.DynamicArg("ramp", ir.Scalar())
	xent, consistency := e.classifierLoss(b, x, c, p, batch, idx, answers)
	b.Return("loss", sampledTotal(b, e.Options, xent, consistency, ramp))
	b.Return("xent", xent)
	b.Return("consistency", consistency)
	b.Func.Attrs["differentiate"] = "loss"
}

func (e *ecl) encode() {
	b := e.m.NewFunc("encode")
	_, dual := e.attributes(b)
	g := e.arg(b, "g", rawGraph)
	b.Return("embedding", e.encoder.run(b, g, e.weights(b), dual, nil))
	if e.evidence == nil {
		return
	}
	b = e.m.NewFunc(EncodeJudging)
	x, dual := e.attributes(b)
	g = b.Arg("g", rawGraph)
	seen := e.evidence.edges(b, x, g)
	b.Return("embedding", e.encoder.run(b, g, e.carried(b, seen.probability), dual, nil))
	features, evidence := seen.asItIs.similar(b)
	b.Return(rowsOf+"features", features)
	b.Return(rowsOf+"evidence", evidence)
}

// EncodeJudging is @encode of a graph whose edges are not judged yet. Beside the embedding it
// gives the rows by which candidates may be searched.
const EncodeJudging = "encode_judging"

// SimilarityRows is the result of an exported @encode by whose rows candidates are searched,
// f32[N,·], where it is not the embedding.
const SimilarityRows = "similarity_rows"

const rowsOf = "rows_of_"

// EncodeByItself puts EncodeJudging in the place of @encode, to be exported: of the rows it
// keeps those of a similarity, "features" or "evidence"; of others none.
func EncodeByItself(m *ir.Module, similarity string) {
	m.RemoveFunc("encode")
	encode := m.Func(EncodeJudging)
	encode.Name = "encode"
	encode.Results = slices.DeleteFunc(encode.Results, func(r ir.Result) bool {
		return strings.HasPrefix(r.Name, rowsOf) && r.Name != rowsOf+similarity
	})
	for i, r := range encode.Results {
		if r.Name == rowsOf+similarity {
			encode.Results[i].Name = SimilarityRows
		}
	}
}

func (e *ecl) embeddingType() ir.Type { return ir.T(ir.F32, "N", ir.D(e.Encoder.Hidden)) }

// edgeProbability returns Eq 18's probabilities of the candidates, and its bounds.
// Where attributes tell how likely existing edges are edges at all, or data how much they
// weigh, their probabilities are multiplied by that; where evidence does, it is the probabilities.
func (e *ecl) edgeProbability(b *ir.Builder, c, h, old *ir.Value, bounds ...*ir.Value) []*ir.Value {
	args := []value{{"c", candidates, c}, {"embedding", e.embeddingType(), h}, {"old", ir.T(ir.F32, "M"), old}}
	for i, v := range bounds {
		args = append(args, value{[]string{"lo", "hi"}[i], ir.Scalar(), v})
	}
	p := slices.Clone(e.part(b, "edge_probability", probabilities, args, func(b *ir.Builder, v []*ir.Value) []*ir.Value {
		return b.Op("gsr.edge_probability", e.intervals(), v...)
	}))
	switch {
	case e.Edges.Judge == JudgeEvidence:
		p[0] = b.Arg("evidence", ir.T(ir.F32, "M"))
	case e.weighs():
		p[0] = b.Mul(p[0], b.Arg("evidence", ir.T(ir.F32, "M")))
	}
	return p
}

func (e *ecl) probability() {
	b := e.m.NewFunc("probability")
	h := b.DynamicArg("embedding", e.embeddingType())
	c := b.Arg("c", candidates)
	old := b.Arg("old", ir.T(ir.F32, "M"))
	for i, v := range e.edgeProbability(b, c, h, old) {
		b.Return(probabilities[i], v)
	}
}

func (e *ecl) score() {
	b := e.m.NewFunc("score")
	h := b.DynamicArg("embedding", e.embeddingType())
	pairs := b.DynamicArg("pairs", ir.T(ir.I64, "2", "P"))
	lo, hi := b.DynamicArg("lo", ir.Scalar()), b.DynamicArg("hi", ir.Scalar())
	for i, v := range b.Op("gsr.pair_probability", e.intervals(), h, pairs, lo, hi) {
		b.Return([]string{"similarity", "probability", "probability_existing"}[i], v)
	}
}

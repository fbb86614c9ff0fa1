// Package models declares the model zoo, as Go functions over the IR and
// nothing else. A model is a module with functions of agreed names, which the
// training loop and the exporter look for:
//
//	@train      one supervised step: (x, g, train_idx, labels) → loss
//	@begin      ([c, old]) → what @pretrain or @joint carries from step to step ([NextPrefix])
//	@pretrain   one ECL step without labels: (x, [x_struct], g, anchors) → loss and its terms
//	@joint      one step of Eq 19: ECL, edge probabilities, samples, classifier
//	@fit        one step of the classifier on samples of given edge probabilities
//	@encode     (x, [x_struct], g) → embedding
//	@probability (embedding, c, old) → probability of each candidate and the bounds
//	@refine     (p) → edge weights for evaluation
//	@score      (embedding, pairs, lo, hi) → similarity, probability
//	@classify   (x, g, w, [known_labels]) → logits, probabilities
//
// A model of whole graphs has, over a batch of them (docs/graph-classification.md):
//
//	@train      (x, g, batch, labels) → loss
//	@classify   (x, g, w, batch) → logits, probabilities, a row for each graph
//
// and one that refines their edges has @pretrain, @joint, @fit, @encode, @refine and
// @score as above, with batch in place of the anchors.
//
// x is raw: normalisation is part of the functions. g is the raw graph, c the
// candidate graph, w and p edge values f32[E] or f32[M], ramp the share of its
// weight that the consistency term has at this step.
package models

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
)

// Model is one entry of the zoo.
type Model struct {
	Name  string
	Doc   string
	Build func(Options) *ir.Module
	// Graphs builds the program that classifies whole graphs, in batches; nil where
	// the model classifies nodes only.
	Graphs func(Options) *ir.Module
	// Refines reports whether the model learns a graph.
	Refines bool
	// Learner says how it does, nil for models that do not.
	Learner *Learner

	file *file // what it was read from: see [Open]
}

// Learner is what to know of a structure learner before choosing one.
type Learner struct {
	// Inductive tells that what is learned refines other graphs too; a transductive one
	// learns the edges of the training graph themselves.
	Inductive bool
	// Unlabelled tells that a graph can be learned without any labels.
	Unlabelled bool
	// Labels is what the graph is learned with.
	Labels string
	// Cost is time and memory of an epoch, in nodes N, edges E and the options.
	Cost string
}

// Kind is "inductive" or "transductive".
func (l *Learner) Kind() string {
	if l.Inductive {
		return "inductive"
	}
	return "transductive"
}

// Options are the hyper-parameters that shape a program. The sizes that data
// decide are not read from a configuration.
type Options struct {
	Features    int `toml:"-"` // columns of x
	Classes     int `toml:"-"`
	StructWidth int `toml:"-"` // columns of x_struct, 0 for none
	// EdgeWeights tells that the graph has weights that tell edges apart; modules that read
	// them have the attribute [Weighted].
	EdgeWeights bool `toml:"-"`
	// Directed tells that edges lead from source to target only.
	Directed bool `toml:"-"`
	// Dense tells that the graph has at least [SpectrumDegree] entries a node.
	Dense bool `toml:"-"`
	// Marks are the columns of x that only tell nodes apart, where x are places in the graph; 0 for features.
	Marks int `toml:"-"`
	// replaced are functions and parts of the model that a program replaces, by name.
	replaced map[string]*ir.Func

	Classifier   string  `toml:"classifier" doc:"network of the classifier, one of those that gsrc models lists"`
	Norm         string  `toml:"norm" doc:"row normalisation of the classifier's features: l1, l2 or none"`
	Hidden       int     `toml:"hidden" range:"size" doc:"hidden width of the classifier"`
	Layers       int     `toml:"layers" range:"repeats" doc:"layers of the classifier"`
	Dropout      float64 `toml:"dropout" range:"dropout.rate" doc:"dropout on hidden layers of the classifier"`
	InputDropout float64 `toml:"input_dropout" range:"dropout.rate" doc:"dropout on the classifier's features"`
	WeightDecay  float64 `toml:"weight_decay" doc:"L2 weight decay of the classifier's weights"`
	DecayFirst   bool    `toml:"decay_first" doc:"weight decay on the first layer only, as in Kipf and Welling"`
	ClassWeights string  `toml:"class_weights" doc:"weight of a training node in the cross-entropy: none (all nodes equal) or balanced (all classes equal, for classes of different sizes)" oneof:"none,balanced"`

	// KnownLabels is how many of the training nodes' labels a step reads beside the features.
	KnownLabels float64 `toml:"known_labels" range:"dropout.rate" neutral:"0.0" doc:"share of the training labels that the classifier reads as input in a training step, to learn the others from them (Shi et al. 2021); predictions read all of them. 0: labels are not an input"`

	Readout        string  `toml:"readout" range:"gnn.readout.mode" doc:"how a graph's nodes are pooled, where graphs are classified: sum, mean or max" oneof:"sum,mean,max"`
	ReadoutDropout float64 `toml:"readout_dropout" range:"dropout.rate" doc:"dropout on the output of the readout, where graphs are classified"`

	GCNII       GCNII       `toml:"gcnii" doc:"the network gcnii"`
	GIN         GIN         `toml:"gin" doc:"the network gin"`
	Propagation Propagation `toml:"propagation" doc:"the classifier propagation"`
	GAT         GAT         `toml:"gat" doc:"graph attention"`
	Linear      Linear      `toml:"linear" doc:"the network linear"`
	Smooth      Smooth      `toml:"smooth" doc:"predictions smoothed over the graph"`
	STABLE      STABLE      `toml:"stable" doc:"the structure learner stable"`
	SUBLIME     SUBLIME     `toml:"sublime" doc:"the structure learner sublime"`
	GEN         GEN         `toml:"gen" doc:"the structure learner gen"`
	LDS         LDS         `toml:"lds" doc:"the structure learner lds"`
	IDGL        IDGL        `toml:"idgl" doc:"the structure learner idgl"`
	ProGNN      ProGNN      `toml:"prognn" doc:"the structure learner prognn"`
	Encoder     Encoder     `toml:"encoder" doc:"encoder and projector"`
	ECL         ECL         `toml:"ecl" doc:"the energy-based contrastive loss"`
	Views       Views       `toml:"views" doc:"what makes a view of the graph"`
	Edges       Edges       `toml:"edges" doc:"edge probabilities and their samples"`
}

// GCNII holds what only the network gcnii reads.
type GCNII struct {
	Alpha       float64 `toml:"alpha" doc:"share of the first layer's result in every layer"`
	Lambda      float64 `toml:"lambda" doc:"how much a layer changes its input: layer l by ln(lambda/l + 1)"`
	WeightDecay float64 `toml:"weight_decay" doc:"L2 weight decay of the graph convolutions; model.weight_decay is that of the two dense layers"`
}

// GIN holds what only the network gin reads.
type GIN struct {
	Eps float64 `toml:"eps" range:"gnn.gin_conv.eps" doc:"a node counts 1 + eps times as much as a neighbour"`
}

// Propagation holds what only the classifier propagation reads.
type Propagation struct {
	Order     int     `toml:"order" range:"repeats from 0" doc:"highest power K of the normalised adjacency in the mean"`
	DropNodes float64 `toml:"drop_nodes" range:"dropout.rate" doc:"share of nodes whose features are dropped in a sample"`
}

// Linear holds what only the network linear reads.
type Linear struct {
	Steps int `toml:"steps" range:"repeats from 0" neutral:"0" doc:"steps of propagation with restart, 0.9·Â·x + 0.1·x₀, applied to the features; 0 ignores the graph"`
}

// Smooth is how a classifier's predictions and the labels of training nodes are spread over
// the graph where nodes are classified: in evaluation, not in training.
type Smooth struct {
	Alpha   float64 `toml:"alpha" range:"dropout.rate" neutral:"0.0" doc:"weight of a node's neighbours when predictions, with known labels in place of those of training nodes, are smoothed over the graph; 0 does not smooth"`
	Correct float64 `toml:"correct" range:"dropout.rate" neutral:"0.0" doc:"weight of a node's neighbours when errors on training nodes are propagated first, to correct other predictions (Huang et al. 2020); 0 does not correct"`
	Steps   int     `toml:"steps" range:"repeats" neutral:"20" doc:"steps of smoothing, and of correcting"`
}

// STABLE holds what only the model stable reads.
type STABLE struct {
	Jaccard     float64 `toml:"jaccard" range:"dropout.rate" neutral:"0.03" doc:"edges whose ends have a smaller Jaccard index of features are left out where representations are learned"`
	Recover     float64 `toml:"recover" range:"dropout.rate" neutral:"0.2" doc:"share of these edges that a view restores"`
	SelfWeight  float64 `toml:"self_weight" neutral:"2.0" doc:"weight of a node itself relative to a neighbour, where representations are learned"`
	Cosine      float64 `toml:"cosine" neutral:"0.1" doc:"edges whose ends' representations have a cosine of at most this are dropped"`
	DegreePower float64 `toml:"degree_power" neutral:"0.3" doc:"a neighbour counts by its degree to this power in the classifier; -0.5 normalises as in Kipf and Welling, higher values trust nodes of high degree, which attacks touch less"`
}

// SUBLIME holds what only the model sublime reads. views.mask_features is the share of columns
// masked beside the learned graph, views.drop_edges that of entries dropped from both graphs,
// encoder.hidden and encoder.projection are the widths of the network that is contrasted, and
// ecl.tau is twice its temperature.
type SUBLIME struct {
	K          int     `toml:"k" range:"edge_kth.k" neutral:"20" doc:"nearest others of each node in the learned graph"`
	Momentum   float64 `toml:"momentum" range:"dropout.rate" neutral:"0.9999" doc:"what the anchor graph keeps of itself in a step; the rest is the learned graph"`
	MaskAnchor float64 `toml:"mask_anchor" range:"dropout.rate" neutral:"0.8" doc:"share of columns of the features masked beside the anchor graph"`
	DropEdges  float64 `toml:"drop_edges" range:"dropout.rate" neutral:"0.5" doc:"share of entries of the learned graph that the classifier does not see in a step"`
	LR         float64 `toml:"lr" neutral:"0.01" doc:"with model.encoder.kind=fgp: learning rate of the weights of candidates"`
}

// GEN holds what only the model gen reads.
type GEN struct {
	K         int     `toml:"k" range:"edge_kth.k" neutral:"9" doc:"nearest others of each node in an observation; candidates.k must not be less"`
	Keep      bool    `toml:"keep" neutral:"true" doc:"the data's edges are an observation too, and stay; for graphs whose edges join like nodes"`
	Steps     int     `toml:"steps" range:"repeats" neutral:"50" doc:"steps of expectation maximisation at most"`
	Tolerance float64 `toml:"tolerance" range:"gsr.gaussian_blur.sigma" neutral:"0.01" doc:"it ends when the rates of true and false edges of observations change by less"`
}

// ProGNN holds what only the model prognn reads: the weights of the terms, and how the
// adjacency moves.
type ProGNN struct {
	Sparse     float64 `toml:"sparse" range:"term" neutral:"0.0005" doc:"weight α of the L1 norm of the adjacency"`
	Nuclear    float64 `toml:"nuclear" range:"term" neutral:"1.5" doc:"weight β of its nuclear norm, which makes its rank low; 0 leaves it out"`
	Classifier float64 `toml:"classifier" range:"term" neutral:"1.0" doc:"weight γ of the classifier's loss"`
	Smooth     float64 `toml:"smooth" range:"term" neutral:"0.001" doc:"weight λ of how unlike the features of joined nodes are; 0 leaves it out"`
	LR         float64 `toml:"lr" range:"rate" neutral:"0.01" doc:"learning rate of the adjacency"`
	Momentum   float64 `toml:"momentum" range:"dropout.rate" neutral:"0.9" doc:"share of the last step's direction in the next"`
	Rank       int     `toml:"rank" range:"size" neutral:"50" doc:"how many of the largest singular values are kept, at most"`
}

// LDS holds what only the model lds reads.
type LDS struct {
	Steps   int     `toml:"steps" range:"repeats" neutral:"5" doc:"steps τ of the network between those of the probabilities, which the gradient of these flows back through"`
	LR      float64 `toml:"lr" range:"rate" neutral:"1.0" doc:"learning rate η of the probabilities, by which it falls to half within 1000 steps of them"`
	InnerLR float64 `toml:"inner_lr" range:"rate" neutral:"0.02" doc:"learning rate of the network in these steps"`
	Restart int     `toml:"restart" range:"repeats from 0" neutral:"80" doc:"steps of the probabilities after which the network begins anew; 0: never"`
}

// IDGL holds what only the model idgl reads.
type IDGL struct {
	Heads     int     `toml:"heads" range:"repeats" neutral:"4" doc:"weighted cosines whose mean is the similarity"`
	Epsilon   float64 `toml:"epsilon" range:"dropout.rate" neutral:"0.0" doc:"similarities that are not above are 0"`
	Keep      float64 `toml:"keep" range:"dropout.rate" neutral:"0.8" doc:"share λ of the data's graph in the one that is read"`
	Update    float64 `toml:"update" range:"dropout.rate" neutral:"0.1" doc:"share η of the turn's similarities in the learned part; the rest are the first turn's"`
	Smooth    float64 `toml:"smooth" range:"term" neutral:"0.2" doc:"weight of how unlike the features of joined nodes are"`
	Degree    float64 `toml:"degree" range:"term" neutral:"0.0" doc:"weight of the term against nodes of small degree"`
	Sparse    float64 `toml:"sparse" range:"term" neutral:"0.0" doc:"weight of the squared similarities"`
	Steps     int     `toml:"steps" range:"repeats" neutral:"10" doc:"turns of graph and embedding behind the first, at most"`
	Tolerance float64 `toml:"tolerance" range:"term" neutral:"4e-05" doc:"they end when the squared similarities change by less than this share"`
	DropEdges float64 `toml:"drop_edges" range:"dropout.rate" neutral:"0.0" doc:"share of entries of the first turn's graph, and of its similarities, that a step does not see"`
}

// NextPrefix begins the names of results of @pretrain or @joint that are arguments of its next
// step, or parameters: the result next.NAME is the argument NAME or what $NAME is then. The first step gets those of @begin. Those of
// candidates, f32[M], follow these where others are chosen, and are 0 of new ones. next.p of
// @joint are the candidates' probabilities, in place of those that @probability gives.
const NextPrefix = "next."

// Encoder shapes φ and ϕ.
type Encoder struct {
	Kind         string  `toml:"kind" doc:"network of the encoder: gcn, mlp (which reads no edges), gat, acm, sage or gin; for sublime also fgp, a weight of its own for each candidate edge; for grcn and sublime also diagonal, which scales features instead of mixing them"`
	Hidden       int     `toml:"hidden" range:"size" doc:"width of the encoder's layers and of the embedding"`
	Layers       int     `toml:"layers" range:"repeats" doc:"layers of the encoder (the paper: 3)"`
	Projection   int     `toml:"projection" range:"size" doc:"width of the projector (the paper: 128)"`
	WeightDecay  float64 `toml:"weight_decay" doc:"L2 weight decay of encoder and projector"`
	StructWeight float64 `toml:"struct_weight" doc:"scale of the structural attributes X^s"`
	Cut          float64 `toml:"cut" range:"gsr.drop_edges.rate" neutral:"0.0" doc:"an existing edge that counts w, by attributes or evidence for it and by its weight, carries max(0, (w - cut)/(1 - cut)) of the encoder's messages: those below carry none; 0: w"`
}

// ECL holds the loss of Eq 5–17 and the sampler of Eq 3.
type ECL struct {
	Tau            float64 `toml:"tau" range:"gsr.ecl_loss.tau" doc:"temperature (the paper: 0.1)"`
	Alpha          float64 `toml:"alpha" range:"gsr.ecl_loss.alpha" doc:"weight of the generative term (the paper: 0.1); 0 leaves it out"`
	Beta           float64 `toml:"beta" range:"gsr.ecl_loss.beta" doc:"weight of the regulariser (the paper: 0.01)"`
	Reg            string  `toml:"reg" range:"gsr.ecl_loss.reg" doc:"mean: mean of (tau E)^2 over n != m; paper: as printed in Eq 17"`
	Discriminative bool    `toml:"discriminative" doc:"include the discriminative term, Eq 15"`
	Positive       bool    `toml:"positive" doc:"include the positive pair in the denominator of Eq 15"`
	Steps          int     `toml:"sgld_steps" range:"gsr.sgld_sample.steps" doc:"Langevin steps K (the paper: 3)"`
	Step           float64 `toml:"sgld_step" range:"gsr.sgld_sample.step" doc:"step size lambda of Eq 3"`
	Noise          float64 `toml:"sgld_noise" range:"gsr.sgld_sample.noise" doc:"noise scale of a step"`
	InitNoise      float64 `toml:"sgld_init" range:"gsr.gaussian_blur.sigma" doc:"noise added to the view at the start of the chain"`
	Clip           float64 `toml:"sgld_clip" range:"gsr.sgld_sample.clip" doc:"maximum row norm of a step's gradient; 0 does not clip"`
}

// Views holds the augmentations; each may be 0, which leaves it out.
type Views struct {
	Blur  float64 `toml:"blur" range:"gsr.gaussian_blur.sigma" doc:"sigma of the Gaussian blur (the paper's only operator)"`
	Mask  float64 `toml:"mask_features" range:"gsr.mask_features.rate" doc:"share of feature columns masked"`
	Edges float64 `toml:"drop_edges" range:"gsr.drop_edges.rate" doc:"share of edges dropped"`
}

// Edges holds Eq 18, the relaxed Bernoulli samples and the consistency term.
type Edges struct {
	OldLo       float64 `toml:"old_lo" range:"gsr.edge_probability.old_lo" doc:"probability of the least similar existing edge"`
	OldHi       float64 `toml:"old_hi" range:"gsr.edge_probability.old_hi" doc:"probability of the most similar existing edge"`
	NewLo       float64 `toml:"new_lo" range:"gsr.edge_probability.new_lo" doc:"probability of the least similar new edge"`
	NewHi       float64 `toml:"new_hi" range:"gsr.edge_probability.new_hi" doc:"probability of the most similar new edge"`
	Temperature float64 `toml:"temperature" range:"gsr.relaxed_bernoulli.temperature" doc:"temperature of the relaxed Bernoulli samples"`
	Samples     int     `toml:"samples" range:"repeats" doc:"graphs sampled per step"`
	Consistency float64 `toml:"consistency" doc:"weight of the consistency term between the samples' predictions; 0 leaves it out"`
	Sharpen     float64 `toml:"sharpen" range:"gsr.consistency.temperature" doc:"temperature that sharpens the mean prediction"`
	Confidence  float64 `toml:"confidence" range:"gsr.consistency.confidence" neutral:"0.0" doc:"probability that the likeliest class must have in the mean prediction of a node for the consistency term to count it"`
	Judge       string  `toml:"judge" neutral:"\"embedding\"" doc:"how likely existing edges are: embedding, by the similarity of their ends' embeddings, as in the paper; evidence, by features, neighbours and structure joined, each without the edge itself, which the encoder's messages are weighted by, too, and ranks new edges"`
	Labels      bool    `toml:"labels" neutral:"false" doc:"where evidence judges edges, whether training labels are a source of it: how likely both ends are of one class, by a logistic regression of the features on the training nodes"`
	Disguised   bool    `toml:"disguised" neutral:"false" doc:"where evidence judges edges, whether wrong ones may look like pairs whose ends are drawn by degree, and like pairs of alike nodes, and not like random pairs alone"`
	SameClass   bool    `toml:"same_class" neutral:"false" doc:"whether the probability of an edge in the refined graph that is written is how likely its ends are of one class, by the classifier, which itself reads what judge says"`
	Mu          float64 `toml:"mu" range:"scale_grad.factor" doc:"weight of the classification loss for the encoder (Eq 19; the paper: 0.01)"`
	Mode        string  `toml:"mode" range:"gsr.refine.mode" doc:"weights of the refined edges in evaluation: expected (their probabilities) or threshold (1)"`
	Threshold   float64 `toml:"threshold" range:"gsr.refine.threshold" doc:"candidates with a lower probability are left out of the refined graph"`
}

// The values of Edges.Judge.
const (
	JudgeEmbedding = "embedding"
	JudgeEvidence  = "evidence"
)

// Default returns the options before any data set's own defaults.
func Default() Options {
	return Options{
		Classifier: "gcn", ClassWeights: "none", Propagation: Propagation{Order: 4, DropNodes: 0.5}, GAT: GAT{Heads: 8, OutHeads: 1, AttentionDropout: 0.6},
		Norm: "l2", Hidden: 16, Layers: 2, Dropout: 0.5, InputDropout: 0.5, WeightDecay: 5e-4, DecayFirst: true, Readout: "sum", ReadoutDropout: 0.5,
		Smooth:  Smooth{Steps: 20},
		GCNII:   GCNII{Alpha: 0.1, Lambda: 0.5, WeightDecay: 0.01},
		STABLE:  STABLE{Jaccard: 0.03, Recover: 0.2, SelfWeight: 2, Cosine: 0.1, DegreePower: 0.3},
		SUBLIME: SUBLIME{K: 20, Momentum: 0.9999, MaskAnchor: 0.8, DropEdges: 0.5, LR: 0.01},
		GEN:     GEN{K: 9, Keep: true, Steps: 50, Tolerance: 0.01},
		IDGL:    IDGL{Heads: 4, Keep: 0.8, Update: 0.1, Smooth: 0.2, Steps: 10, Tolerance: 4e-5},
		LDS:     LDS{Steps: 5, LR: 1, InnerLR: 0.02, Restart: 80},
		ProGNN:  ProGNN{Sparse: 0.0005, Nuclear: 1.5, Classifier: 1, Smooth: 0.001, LR: 0.01, Momentum: 0.9, Rank: 50},
		Encoder: Encoder{Kind: "gcn", Hidden: 128, Layers: 2, Projection: 128, StructWeight: 1},
		ECL: ECL{Tau: 0.5, Alpha: 0.1, Beta: 0.01, Reg: "mean", Discriminative: true,
			Steps: 3, Step: 0.05, Noise: 0.01, InitNoise: 0.03, Clip: 1},
		Views: Views{Mask: 0.3, Edges: 0.3},
		Edges: Edges{OldLo: 0.5, OldHi: 0.9, NewLo: 0.1, NewHi: 0.5, Judge: JudgeEmbedding, Temperature: 0.5, Samples: 2, Consistency: 1, Sharpen: 0.5,
			Mu: 0.01, Mode: "expected", Threshold: 0.5},
	}
}

// All lists the zoo.
var All = zoo()

func zoo() []Model {
	list := []Model{{Name: "ecl-gsr", Doc: "energy-based contrastive learning of a refined graph, with a classifier on its samples (Zeng et al., ECL-GSR)", Build: eclGSR, Graphs: eclGSRGraphs, Refines: true,
		Learner: &Learner{Inductive: true, Unlabelled: true, Labels: "none needed; the classifier's refine it (mu)", Cost: "time and memory O(N + E) for each step, anchors² for the loss; a search of N² once in refresh_every epochs, less by an index"}}}
	for i := range Architectures {
		a := &Architectures[i]
		list = append(list, Model{Name: a.Model, Doc: a.Doc, Build: alone(a), Graphs: graphModel(a)})
	}
	return append(list,
		Model{Name: "label-propagation", Doc: "known labels spread over the graph, which reads no features and trains nothing (Zhou et al. 2004)", Build: labelPropagation},
		Model{Name: "grcn", Doc: "graph-revised convolution: the classifier's loss learns the similarities that are added to the graph (GRCN, Yu et al. 2020)", Build: grcn, Refines: true,
			Learner: &Learner{Inductive: true, Labels: "the classifier's", Cost: "memory O(E + N·k); time (E + N·k)·width each epoch, and a search of N²·width in refresh_every of them, less by an index"}},
		Model{Name: "stable", Doc: "representations without labels, by which edges are dropped and added, for graphs under attack (STABLE, Li et al. 2022)", Build: stable, Refines: true,
			Learner: &Learner{Unlabelled: true, Labels: "none", Cost: "time and memory O((E + N)·width) for each step of pre-training, one search of N²·width, then epochs of a graph convolutional network"}},
		Model{Name: "sublime", Doc: "a graph of nearest neighbours learned without labels, by contrast with an anchor graph that follows it (SUBLIME, Liu et al. 2022; learners of SLAPS, Fatemi et al. 2021)", Build: sublime, Refines: true,
			Learner: &Learner{Inductive: true, Unlabelled: true, Labels: "none", Cost: "memory O((N + E + N·k)·width); time the same each step of pre-training and anchors²·width for the contrast, a search of N²·width in refresh_every of them, less by an index"}},
		Model{Name: "gen", Doc: "a graph estimated from several observations of it by a block model of the classes (GEN, Wang et al. 2021)", Build: gen, Refines: true,
			Learner: &Learner{Labels: "the classifier's, and its predictions", Cost: "memory O(E + N·k·features); epochs of a graph convolutional network, and every refresh_every of them two searches of N²·hidden and N²·classes and (E + N·k)·features; one search of N²·features, less by an index"}},
		Model{Name: "idgl", Doc: "graph and embedding learned in turn, by weighted cosines of features and of the hidden layer (IDGL, Chen et al. 2020)", Build: idgl, Refines: true,
			Learner: &Learner{Inductive: true, Labels: "the classifier's", Cost: "memory and time O((E + N·k)·(features + hidden·steps)·heads) each epoch; one search of N²·features, less by an index"}},
		Model{Name: "prognn", Doc: "the adjacency itself is learned, near to the data's, sparse, of low rank and between like features, for graphs under attack (Pro-GNN, Jin et al. 2020)", Build: prognn, Refines: true,
			Learner: &Learner{Labels: "the classifier's", Cost: "memory O((E + N·k) + N·rank), N² with k = N − 1; time (E + N·k)·(rank + hidden) and N·rank² each step of the adjacency; one search of N²·features, less by an index"}},
		Model{Name: "lds", Doc: "the probability of each edge is learned through the training of the network on samples of the edges (LDS, Franceschi et al. 2019)", Build: lds, Refines: true,
			Learner: &Learner{Labels: "the classifier's, and those of half of the validation nodes", Cost: "memory O((E + N·k + N·(features + hidden))·steps), N² with k = N − 1; time some five epochs of a graph convolutional network for each of the steps of an epoch; one search of N²·features, less by an index"}})
}

// Lookup returns the model of a name; the error is an *UnknownError.
func Lookup(name string) (*Model, error) {
	for i := range All {
		if All[i].Name == name {
			return &All[i], nil
		}
	}
	return nil, &UnknownError{name}
}

// RangeError is an option that is out of its range.
type RangeError struct {
	Option string // in TOML, below [model], such as "ecl.tau"
	Want   string // what it must be, such as "greater than 0"
}

func (e *RangeError) Error() string { return fmt.Sprintf("model.%s must be %s", e.Option, e.Want) }

// ranges are those that the tag range names beside attributes of operations: sizes of
// dimensions, what is repeated in a program, and terms of a loss and rates that are multiplied.
var ranges = map[string]ir.Range{"size": {Min: 1, Max: ir.MaxSize}, "repeats": {Min: 1, Max: ir.MaxUnroll}, "repeats from 0": {Min: 0, Max: ir.MaxUnroll},
	"term": {Min: 0, Max: 1e6}, "rate": {Min: 0, Max: 1e6, Above: true}}

// Validate checks that every option is one that a program can be built with: the tag
// range of an option names the attribute that it becomes, whose range in the operation
// table is the option's. The error is a [RangeError].
func (o Options) Validate() error {
	if err := checkRanges("", reflect.ValueOf(o)); err != nil {
		return err
	}
	for _, b := range []struct {
		name string
		ok   bool
		want string
	}{
		{"class_weights", o.ClassWeights == "none" || o.ClassWeights == "balanced", "none or balanced"},
		{"weight_decay", o.WeightDecay >= 0, "at least 0"}, {"norm", slices.Contains([]string{"l1", "l2", "none"}, o.Norm), "l1, l2 or none"},
		{"classifier", slices.Contains(Classifiers(), o.Classifier), "one of " + strings.Join(Classifiers(), ", ")},
		{"gcnii.alpha", o.GCNII.Alpha >= 0 && o.GCNII.Alpha <= 1, "within [0, 1]"}, {"gcnii.lambda", o.GCNII.Lambda >= 0, "at least 0"}, {"gcnii.weight_decay", o.GCNII.WeightDecay >= 0, "at least 0"},
		{"encoder.kind", slices.Contains([]string{EncoderDiagonal, EncoderFGP}, o.Encoder.Kind) || slices.Contains(Encoders(), o.Encoder.Kind), "one of " + strings.Join(Encoders(), ", ") + ", diagonal for grcn or sublime, or fgp for sublime"},
		{"edges.judge", slices.Contains([]string{JudgeEmbedding, JudgeEvidence}, o.Edges.Judge), "embedding or evidence"}, {"stable.self_weight", o.STABLE.SelfWeight > 0, "greater than 0"}, {"stable.cosine", o.STABLE.Cosine >= -1 && o.STABLE.Cosine <= 1, "within [-1, 1]"},
		{"stable.degree_power", math.Abs(o.STABLE.DegreePower) <= 4, "within [-4, 4]"},
	} {
		if !b.ok {
			return &RangeError{Option: b.name, Want: b.want}
		}
	}
	return nil
}

// checkRanges checks the fields of a section that have the tag range.
func checkRanges(prefix string, section reflect.Value) error {
	for f, v := range section.Fields() {
		name := prefix + f.Tag.Get("toml")
		if v.Kind() == reflect.Struct {
			if err := checkRanges(name+".", v); err != nil {
				return err
			}
			continue
		}
		ok, want := true, ""
		r, isRange := ranges[f.Tag.Get("range")]
		spec := ir.Attr(f.Tag.Get("range"))
		if spec != nil && !isRange {
			r = spec.Range
		}
		switch v.Kind() {
		case reflect.Int:
			ok, want = r.Holds(float64(v.Int())), r.String()
		case reflect.Float64:
			ok, want = r.Holds(v.Float()), r.String()
		case reflect.String:
			if spec != nil && spec.OneOf != nil {
				ok, want = slices.Contains(spec.OneOf, v.String()), "one of "+strings.Join(spec.OneOf, ", ")
			}
		}
		if !ok {
			return &RangeError{Option: name, Want: want}
		}
	}
	return nil
}

// ClassifiesGraphs reports whether the model has a program that classifies whole graphs.
func (m *Model) ClassifiesGraphs() bool {
	program, _ := m.IsProgram()
	return m.Graphs != nil || program
}

// readsGraph reports whether the model's classifier reads edges.
func (m *Model) readsGraph(o Options) bool {
	if m.Refines {
		return architecture(o.Classifier).readsGraph(o)
	}
	i := slices.IndexFunc(Architectures, func(a Architecture) bool { return a.Model == m.Name })
	return i >= 0 && Architectures[i].readsGraph(o)
}

// Program builds the model's program, which classifies whole graphs where graphs is set.
// The error is a [RangeError], an [ir.SyntaxError] of a file's text, or says that the program
// would be too large.
func (m *Model) Program(o Options, graphs bool) (prog *ir.Module, err error) {
	if program, _ := m.IsProgram(); program {
		return m.file.parse(o)
	}
	build := m.Build
	if graphs {
		build = m.Graphs
	}
	if build == nil {
		return nil, fmt.Errorf("model %s classifies nodes, not graphs", m.Name)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	const ignoring = "train it with --ignore-weights (data.weights=ignore), or take "
	switch {
	case !o.EdgeWeights:
	case m.Name == "gat":
		return nil, errors.New("gat has no place for weights of edges: its attention weighs them; " + ignoring + "a model that counts them: gcn, sage, gin, gcnii, grand or acm")
	case m.Refines && m.Name != "ecl-gsr":
		return nil, errors.New(m.Name + " has no place for weights of edges: to it a pair of nodes is an edge or none; " + ignoring + "ecl-gsr, which counts them")
	case m.Name == "ecl-gsr" && o.Encoder.Kind == "gat":
		return nil, errors.New("a gat encoder has no place for weights of edges: its attention weighs them; " + ignoring + "an encoder that counts them (model.encoder.kind): gcn, sage, gin or acm")
	}
	own := slices.Contains([]string{"gen", "prognn", "idgl", "lds"}, m.Name) // classifier
	wantGCN := "gcn for " + m.Name
	if m.Name == "gen" {
		wantGCN += ", which reads its hidden layer"
	}
	cut, wholes := o.Encoder.Cut > 0, "0 where whole graphs are classified, which have no neighbours"
	for _, refused := range []struct {
		where        bool
		option, want string
	}{
		{own && o.Classifier != "gcn", "classifier", wantGCN},
		{m.Name == "idgl" && o.Layers < 2, "layers", "at least 2 for idgl, which compares the hidden layer"},
		{own && o.KnownLabels > 0, "known_labels", "0 for " + m.Name + ", whose own classifier reads none; model.smooth.alpha spreads them over its graph"},
		{m.Name == "ecl-gsr" && o.Encoder.Kind == EncoderDiagonal, "encoder.kind", "one of " + strings.Join(Encoders(), ", ") + " for " + m.Name},
		{m.Name != "sublime" && o.Encoder.Kind == EncoderFGP, "encoder.kind", "another than fgp for " + m.Name},
		{cut && (m.Name != "ecl-gsr" || o.Edges.Judge == JudgeEmbedding && !o.EdgeWeights), "encoder.cut",
			"0 but for ecl-gsr with edges that count more or less: by model.edges.judge=evidence, or by their weights"},
		{cut && !slices.Contains([]string{"gcn", "sage", "gin", "acm"}, o.Encoder.Kind), "encoder.cut",
			"0 for an encoder " + o.Encoder.Kind + ", which reads no weights of edges"},
		{m.Refines && m.Name != "ecl-gsr" && o.Edges.Judge != JudgeEmbedding, "edges.judge", "embedding for " + m.Name + ", which judges edges in its own way"},
		{m.Name == "stable" && o.KnownLabels > 0, "known_labels", "0 for stable, whose classifier reads representations that were learned without labels"},
		{graphs && o.Smooth.Alpha > 0, "smooth.alpha", wholes},
		{graphs && o.KnownLabels > 0, "known_labels", wholes},
		{o.KnownLabels > 0 && !m.readsGraph(o), "known_labels",
			"0 for " + m.Name + ", which does not read the graph: a node's neighbours could not tell it their labels"},
		{graphs && o.Smooth.Correct > 0, "smooth.correct", wholes},
	} {
		if refused.where {
			return nil, &RangeError{Option: refused.option, Want: refused.want}
		}
	}
	defer func() {
		if p := recover(); p != nil {
			large, ok := p.(*ir.SizeError)
			if !ok {
				panic(p)
			}
			prog, err = nil, large
		}
	}()
	if m.file != nil {
		return m.file.extend(build, o)
	}
	return build(o), nil
}

package auto

import (
	"fmt"
	"slices"
	"strings"
)

// Candidate is a model that may be chosen.
type Candidate struct {
	Name  string   `json:"name"`
	Model string   `json:"model"`
	Set   []string `json:"set"`
	// Structure is the graph that it reads: none, nearest neighbours (of the features), raw,
	// rewired (cut by the features, or with nearest neighbours added) or refined.
	Structure string `json:"structure"`
	// Simple candidates run first. Another one must be better by more than a standard error.
	Simple bool `json:"simple"`
	// Scores are the accuracies in percent on the judging nodes of resplits 0, 1, and so on.
	Scores []float64 `json:"scores"`
	// Restarts are those of the winner on the validation nodes of the given split, by train.restart.
	Restarts []float64 `json:"restarts,omitempty"`
	// Failed says why it ran no further, such as that it diverged.
	Failed string `json:"failed,omitempty"`

	// same are the options with which the model keeps the graph as it is, and plain, if not
	// empty, the model that classifies as it does and learns no graph, which has them alone.
	same  []string
	plain string
}

// Latest is the score of the training that ended last, of a beginning or on a resplit. There is none
// where it has failed.
func (c *Candidate) Latest() float64 {
	scores := slices.Concat(c.Scores, c.Restarts)
	return scores[len(scores)-1]
}

// Structures that candidates read.
const (
	noEdges = "none"
	nearest = "nearest neighbours"
	raw     = "raw"
	rewired = "rewired"
	refined = "refined"
)

// rule is a line of the list of candidates: a further one makes a further candidate.
type rule struct {
	Candidate
	// due is whether it is worth a trial on a graph; nil is always.
	due func(Seen) bool
}

var (
	linked     = func(s Seen) bool { return s.Edges > 0 }
	features   = func(s Seen) bool { return s.Kind != "none" }
	judgeable  = func(s Seen) bool { return linked(s) && features(s) && s.Edges >= s.Nodes/10 }
	homophilic = func(s Seen) bool { return linked(s) && (s.Homophily == nil || *s.Homophily > 0.3) }
	mixed      = func(s Seen) bool { return linked(s) && (s.Homophily == nil || *s.Homophily < 0.7) }
	mute       = func(s Seen) bool { return s.Similarity < s.Random+0.02 && s.Nodes <= 20_000 }           // features of joined nodes are no more alike than of others
	placed     = func(s Seen) bool { return s.Kind == "places" && s.Nodes <= 20_000 }                     // there are none
	narrow     = func(s Seen) bool { return s.Kind != "none" && s.Kind != "places" && s.Features <= 200 } // too few to leave any out
	tampered   = func(s Seen) bool { return s.Tampered }
	few        = func(s Seen) bool { return s.LabelsPerClass <= 10 }
	many       = func(s Seen) bool { return s.TrainNodes >= s.Nodes/10 }                           // labels to read at neighbours
	spread     = func(s Seen) bool { return s.Nodes >= 3*s.TrainNodes }                            // nodes whose predictions may be known labels
	scarce     = func(s Seen) bool { return s.LabelsPerClass <= 50 && s.Nodes >= 10*s.TrainNodes } // nodes to self-train on
)

// near is whether the neighbours of all nodes are searched within a minute.
func near(s Seen) bool { return features(s) && s.Nodes <= 100_000 }

// compared is whether an epoch that compares the features of edges' ends and of each node's k
// nearest takes about a second or less.
func compared(k int) func(Seen) bool {
	return func(s Seen) bool {
		return near(s) && (2*s.Edges+2*k*s.Nodes)*s.Features < 1_000_000_000
	}
}

// all is whether all conditions hold.
func all(conditions ...func(Seen) bool) func(Seen) bool {
	return func(s Seen) bool {
		return !slices.ContainsFunc(conditions, func(c func(Seen) bool) bool { return !c(s) })
	}
}

// asItIs has ecl-gsr classify on the graph as it is.
var asItIs = []string{"candidates.structure=raw", "candidates.keep=1"}

// linear is propagated features in a linear classifier, as ecl-gsr has it: with dropped
// features and the agreement of several samples.
var linear = []string{"model.classifier=linear", "model.input_dropout=0.0", "model.weight_decay=0.0002", "model.decay_first=false", "train.lr=0.1", "model.linear.steps=8", "train.eval_every=5"}

// fewLabels is how config/defaults/few.ecl-gsr.toml trains: self-training, and samples that agree where they are confident.
var fewLabels = []string{"model.edges.consistency=2", "model.edges.confidence=0.7", "train.lr=0.03", "train.warmup=0", "train.self_training=3", "train.epochs=100", "train.eval_every=5"}

// consistent is the classifier of config/defaults/own.ecl-gsr.toml, self-trained.
var consistent = append([]string{"model.classifier=sage", "model.hidden=64", "model.weight_decay=0.0002"}, fewLabels...)

// randomly is random propagation, self-trained. On validation nodes of splits drawn anew it is 1.9 to 2.5 points above the better of
// consistent and linear, self-trained, with 1 and 3 % of the labels of Cora, 1 % of Citeseer's and 20 a class there.
var randomly = append([]string{"model.classifier=propagation", "model.hidden=32", "model.propagation.order=8", "model.weight_decay=0.002"}, fewLabels...)

// unrelated is the classifier of config/defaults/unrelated.ecl-gsr.toml.
var unrelated = []string{"model.classifier=acm", "model.norm=l2", "model.hidden=64", "model.decay_first=false", "model.dropout=0.7", "model.input_dropout=0.2", "model.weight_decay=0.005",
	"model.edges.consistency=0", "model.edges.confidence=0.7", "model.edges.same_class=true", "train.lr=0.03", "train.warmup=0", "train.epochs=100", "train.eval_every=5", "train.select=loss"}

var (
	// selfTrained are three rounds of learning from confident predictions. A linear classifier
	// needs no more epochs in each: on validation nodes of Citeseer with 1 % of the labels 72.3
	// with 100, 72.1 with 200.
	selfTrained = []string{"train.self_training=3", "train.epochs=100", "train.eval_every=10"}
	// cut leaves edges out that are likelier none.
	cut = []string{"model.edges.threshold=0.5"}
)

// atTraining leaves edges out that were likelier added at training nodes.
const atTraining = "data.edges=cut:training"

// whole reads all features where each may matter: dropped inputs pay for words, of which there are many.
var whole = []string{"model.hidden=64", "model.dropout=0.2", "model.input_dropout=0.0", "model.weight_decay=0"}

// roles describe nodes by what the graph around them looks like.
var roles = []string{"data.node_features=roles"}

// places describe nodes by where they are in the graph, in the place of features that say nothing.
var places = []string{"data.node_features=places"}

// refining is ecl-gsr whose edges are judged by evidence and whose encoder is not trained, so
// that it takes little longer than its classifier.
func refining(name string, set ...string) Candidate {
	set = append([]string{"train.pretrain_steps=0", "train.joint_every=0", "model.edges.judge=evidence"}, set...)
	return Candidate{Name: name, Model: "ecl-gsr", Set: set, Structure: refined, same: asItIs}
}

// learner is a structure learner of the literature, with a graph convolutional network.
func learner(name, model string, set ...string) Candidate {
	return Candidate{Name: name, Model: model, Set: append(set, "train.eval_every=5"), Structure: refined, plain: "gcn"}
}

// rules are in the order in which candidates run: simple ones first, and of equals the
// quicker one.
var rules = []rule{
	{Candidate{Name: "linear", Model: "linear", Structure: noEdges, Simple: true}, features},
	{Candidate{Name: "label propagation", Model: "label-propagation", Structure: raw, Simple: true}, homophilic},
	{Candidate{Name: "linear, smoothed", Model: "linear", Set: []string{"model.smooth.alpha=0.5"}, Structure: raw, Simple: true}, all(features, homophilic)},
	{Candidate{Name: "linear, corrected and smoothed", Model: "linear", Set: []string{"model.smooth.alpha=0.7", "model.smooth.correct=0.5"}, Structure: raw, Simple: true}, all(features, homophilic)},
	{Candidate{Name: "propagated, linear", Model: "linear", Set: []string{"model.linear.steps=16"}, Structure: raw, Simple: true}, all(features, homophilic)},
	{Candidate{Name: "propagated, linear, self-trained", Model: "linear", Set: append([]string{"model.linear.steps=16"}, selfTrained...), Structure: raw, Simple: true}, all(features, homophilic, scarce)},
	{Candidate{Name: "cut by features, propagated, linear, self-trained", Model: "linear", Set: append([]string{"data.edges=cut:0.05", "model.linear.steps=8"}, selfTrained...), Structure: rewired, Simple: true}, all(features, homophilic, scarce)},
	{Candidate{Name: "cut at training nodes, propagated, linear, self-trained", Model: "linear", Set: append([]string{atTraining, "model.linear.steps=16"}, selfTrained...), Structure: rewired, Simple: true}, all(tampered, homophilic, scarce)},
	{Candidate{Name: "nearest neighbours, linear", Model: "linear", Set: []string{"data.edges=knn:5", "model.linear.steps=4"}, Structure: nearest, Simple: true}, near},
	{Candidate{Name: "mlp", Model: "mlp", Set: []string{"model.hidden=64"}, Structure: noEdges, Simple: true}, features},
	{Candidate{Name: "mlp of all features", Model: "mlp", Set: []string{"model.hidden=64", "model.input_dropout=0.0", "model.weight_decay=0.002"}, Structure: noEdges, Simple: true}, features},
	{Candidate{Name: "gcn", Model: "gcn", Structure: raw, Simple: true}, linked},
	{Candidate{Name: "cut at training nodes, gcn", Model: "gcn", Set: []string{atTraining}, Structure: rewired, Simple: true}, tampered},
	{Candidate{Name: "nearest neighbours, gcn", Model: "gcn", Set: []string{"data.edges=knn:5"}, Structure: nearest, Simple: true}, near},

	{Candidate{Name: "propagated, linear, consistent", Model: "ecl-gsr", Set: slices.Concat(asItIs, linear), Structure: raw}, all(features, homophilic)},
	{Candidate{Name: "propagated, linear, consistent, self-trained", Model: "ecl-gsr", Set: slices.Concat(asItIs, linear, selfTrained), Structure: raw}, all(features, homophilic, scarce)},
	{refining("refined, propagated, linear", linear...), judgeable},
	{refining("refined, cut at 0.5, propagated, linear", slices.Concat(linear, cut)...), all(judgeable, homophilic)},
	{refining("refined, propagated, linear, self-trained", slices.Concat(linear, selfTrained)...), all(judgeable, homophilic, scarce)},
	{refining("refined, cut at 0.5, propagated, linear, self-trained", slices.Concat(linear, selfTrained, cut)...), all(judgeable, homophilic, scarce)},
	{refining("cut at training nodes, refined, propagated, linear, self-trained", slices.Concat(linear, selfTrained, []string{atTraining})...), all(judgeable, homophilic, scarce, tampered)},
	{refining("refined, linear, smoothed", "model.classifier=linear", "model.input_dropout=0.0", "model.weight_decay=0.0002", "model.decay_first=false", "model.smooth.alpha=0.7", "model.smooth.correct=0.5", "model.edges.threshold=0.5", "train.lr=0.1"), all(judgeable, homophilic)},
	{refining("refined, gcn", "model.classifier=gcn"), judgeable},
	{refining("refined, cut at 0.5, gcn", "model.classifier=gcn", "model.edges.threshold=0.5"), judgeable},
	{refining("refined, grand", "model.classifier=propagation", "model.hidden=32"), all(judgeable, homophilic)},
	{Candidate{Name: "sage, consistent, self-trained", Model: "ecl-gsr", Set: slices.Concat(asItIs, consistent), Structure: raw}, all(features, linked)},
	{refining("refined, sage, consistent, self-trained", consistent...), judgeable},
	{refining("cut at training nodes, refined, sage, consistent, self-trained", slices.Concat(consistent, []string{atTraining})...), all(judgeable, tampered)},
	{Candidate{Name: "grand, consistent, self-trained", Model: "ecl-gsr", Set: slices.Concat(asItIs, randomly), Structure: raw}, all(features, homophilic, scarce)},
	{refining("refined, cut at 0.5, grand, consistent, self-trained", slices.Concat(randomly, cut)...), all(judgeable, homophilic, scarce)},
	{Candidate{Name: "places, gcn", Model: "gcn", Set: places, Structure: raw}, all(linked, features, homophilic, mute)},
	{Candidate{Name: "places, sage", Model: "sage", Set: append([]string{"model.hidden=64"}, places...), Structure: raw}, all(linked, features, homophilic, mute)},
	{Candidate{Name: "gcn, known labels", Model: "gcn", Set: []string{"model.known_labels=0.5"}, Structure: raw}, all(features, homophilic, many)},
	{Candidate{Name: "sage, known labels", Model: "sage", Set: []string{"model.known_labels=0.5"}, Structure: raw}, all(features, linked, many)},
	{Candidate{Name: "sage, known labels, self-trained", Model: "sage", Set: []string{"model.known_labels=0.5", "model.hidden=64", "train.self_training=3"}, Structure: raw}, all(features, linked, many, mixed, spread)},
	{Candidate{Name: "sage of all features, known labels", Model: "sage", Set: append([]string{"model.known_labels=0.5", "model.layers=3"}, whole...), Structure: raw}, all(narrow, linked, many)},
	{Candidate{Name: "roles, sage", Model: "sage", Set: slices.Concat(whole, roles), Structure: raw}, all(linked, placed)},
	{Candidate{Name: "roles, sage, known labels", Model: "sage", Set: slices.Concat([]string{"model.known_labels=0.5", "model.layers=3"}, whole, roles), Structure: raw}, all(linked, placed, many)},
	{Candidate{Name: "acm", Model: "acm", Structure: raw}, all(features, mixed)},
	{Candidate{Name: "sage", Model: "sage", Set: []string{"model.hidden=64"}, Structure: raw}, all(features, mixed)},
	{Candidate{Name: "raw and nearest neighbours, sage", Model: "sage", Set: []string{"data.edges=raw+knn:20", "model.hidden=64"}, Structure: rewired}, all(near, mixed)},
	{Candidate{Name: "raw and nearest neighbours, sage, self-trained", Model: "sage", Set: append([]string{"data.edges=raw+knn:20", "model.hidden=64"}, selfTrained...), Structure: rewired}, all(near, mixed, scarce)},
	{Candidate{Name: "acm of much dropout", Model: "ecl-gsr", Set: slices.Concat(asItIs, unrelated), Structure: raw}, all(features, mixed)},
	{refining("refined, acm of much dropout", unrelated...), all(judgeable, mixed)},
	{Candidate{Name: "refined by the embedding, sage", Model: "ecl-gsr", Set: []string{"model.classifier=sage", "model.hidden=64", "model.edges.judge=embedding", "candidates.similarity=embedding", "candidates.two_step=0", "candidates.k=20",
		"model.edges.old_lo=0.01", "model.edges.old_hi=0.5", "model.edges.new_lo=0.3", "model.edges.new_hi=0.9", "train.pretrain_steps=100", "train.joint_every=0", "train.epochs=100", "train.eval_every=5"}, Structure: refined, same: asItIs}, all(judgeable, mixed)},
	{Candidate{Name: "refined by the embedding, gcn", Model: "ecl-gsr", Set: []string{"model.classifier=gcn", "model.edges.judge=embedding", "candidates.similarity=embedding", "candidates.two_step=0", "candidates.k=10",
		"model.edges.new_lo=0.3", "model.edges.new_hi=0.9", "model.edges.consistency=0", "train.joint_every=0"}, Structure: refined, same: asItIs}, all(judgeable, few)},

	// idgl, prognn and lds are left out by what a training takes.
	{learner("gen", "gen", "train.epochs=800"), all(near, judgeable, homophilic)},
	{learner("gen, without the data's edges", "gen", "model.gen.keep=false", "train.epochs=800"), all(near, judgeable, mixed)},
	{learner("stable", "stable", "model.encoder.hidden=128", "train.pretrain_steps=200"), all(near, judgeable, homophilic)},
	{learner("sublime", "sublime", "model.encoder.kind=gcn", "train.anchors=512", "train.pretrain_steps=100", "train.refresh_every=20"), all(near, judgeable, homophilic)},
	{learner("grcn", "grcn", "candidates.k=20", "train.refresh_every=25", "train.epochs=150"), all(compared(20), judgeable, homophilic)},
}

// suits is whether a candidate takes the edges of a graph: structure learners take no weights, nearest neighbours
// have no direction, and none reads all edges as they are where those of training nodes were tampered with.
func (c *Candidate) suits(s Seen) bool {
	asItIs := c.Structure == raw || strings.HasPrefix(c.edges(), raw)
	return !(asItIs && s.Tampered) && !(c.plain != "" && s.Weighted) && !(strings.Contains(c.edges(), "knn:") && s.Directed)
}

// candidates is the list for a graph, by other rules than the package's if there are any.
func candidates(s Seen, by []rule) []*Candidate {
	if by == nil {
		by = rules
	}
	var list []*Candidate
	for _, r := range by {
		c := r.Candidate
		if (r.due == nil || r.due(s)) && c.suits(s) {
			c.Set = slices.Clone(c.Set)
			if !slices.ContainsFunc(c.Set, func(set string) bool { return strings.HasPrefix(set, "train.eval_every=") }) {
				c.Set = append(c.Set, "train.eval_every=5") // all nodes are evaluated, which costs as much as a step
			}
			c.Scores = []float64{}
			list = append(list, &c)
		}
	}
	return list
}

// edges is what the candidate has in the place of the graph's edges, as data.edges says it.
func (c *Candidate) edges() string {
	for _, set := range c.Set {
		if edges, ok := strings.CutPrefix(set, "data.edges="); ok {
			return edges
		}
	}
	return ""
}

// twin is the same model on the graph as it is.
func (c *Candidate) twin() *Candidate {
	own := slices.DeleteFunc(slices.Clone(c.Set), func(set string) bool { return set == atTraining })
	t := &Candidate{Name: fmt.Sprintf("%s, on the graph as it is", c.Name), Model: c.Model, Set: slices.Concat(own, c.same), Structure: raw}
	if c.plain != "" {
		t.Model, t.Set = c.plain, c.same
	}
	return t
}

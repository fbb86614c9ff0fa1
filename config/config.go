// Package config holds the configuration of a training run: which options there
// are, where their defaults come from, and how a user overrides them.
//
// A resolved [Config] is built in layers, each overriding the ones before it:
//
//  1. defaults/default.toml, which has every option
//  2. defaults/default.MODEL.toml
//  3. defaults/data/DATASET.toml
//  4. defaults/data/DATASET.MODEL.toml
//  5. a TOML file of the user's (--config FILE), or a built-in one (--preset NAME)
//  6. single options (--set key=value)
//
// Layers 1 to 4 are embedded in the program; each of their values carries a
// comment that says where it comes from, and the comment stays with the value:
// [Config.Encode] writes it beside it. An option that does not exist is an error
// that names the nearest one that does, wherever it comes from.
//
// Options are Go struct fields: the tag toml names the key, the tag doc explains
// it, the tag range bounds it, and the type says what a value may be. [Keys] lists them all.
package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/BurntSushi/toml"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/nearest"
	"github.com/gsrc-dev/gsrc/internal/tomltext"
	"github.com/gsrc-dev/gsrc/models"
)

//go:embed defaults/*.toml defaults/data/*.toml
var defaults embed.FS

//go:embed presets/*.toml
var presets embed.FS

// Preset is what the name of a built-in file of options begins with, in the place of a path.
const Preset = "preset:"

// Config is a resolved configuration: every option has a value. The sizes in
// Model that the data decide (Features, Classes, StructWidth) are not part of
// it.
type Config struct {
	Model      models.Options `toml:"model" doc:"the model"`
	Train      Train          `toml:"train" doc:"the training loop"`
	Candidates Candidates     `toml:"candidates" doc:"the edges that a structure learner may choose from"`
	DeepWalk   DeepWalk       `toml:"deepwalk" doc:"structural attributes X^s by DeepWalk"`
	Data       Data           `toml:"data" doc:"how the data set is read and split"`
	Synthetic  Synthetic      `toml:"synthetic" doc:"the generated graph of --data synthetic"`

	sources map[string]string // key → where its value comes from
}

// Train are the options of the training loop.
type Train struct {
	Seed            int     `toml:"seed" range:"at least 0" doc:"seed of every random stream"`
	Restart         int     `toml:"restart" range:"at least 0" neutral:"0" doc:"another beginning with the same seed: other initial parameters and other draws in steps, such as of dropout, on the same split and the same damage to the graph"`
	LR              float64 `toml:"lr" range:"greater than 0" doc:"Adam's learning rate of the classifier"`
	EncoderLR       float64 `toml:"encoder_lr" range:"greater than 0" doc:"Adam's learning rate of encoder and projector"`
	Epochs          int     `toml:"epochs" range:"at least 1" doc:"epochs of the classifier, of one step each"`
	Select          string  `toml:"select" doc:"validation metric that selects the kept epoch: accuracy, macro_f1, auc (ties: the lower loss) or loss; macro_f1 and auc give rare classes the weight of frequent ones" oneof:"accuracy,macro_f1,auc,loss"`
	Patience        int     `toml:"patience" range:"at least 0" doc:"epochs without improvement on validation after which training stops; 0 never stops early"`
	SelfTraining    int     `toml:"self_training" range:"at least 0" neutral:"0" doc:"rounds of self-training: after train.epochs epochs the nodes whose predictions are most confident join the training nodes, with the predicted classes as their labels, and training goes on for as many epochs from the kept epoch"`
	SelfTrained     int     `toml:"self_trained" range:"at least 1" neutral:"60" doc:"nodes of each class that join the training nodes in the first round of self-training; twice as many in the second, and so on"`
	PretrainSteps   int     `toml:"pretrain_steps" range:"at least 0" doc:"contrastive steps before the classifier (Algorithm 1)"`
	Warmup          int     `toml:"warmup" range:"at least 0" doc:"epochs over which the consistency term rises to its weight"`
	JointEvery      int     `toml:"joint_every" range:"at least 0" doc:"epochs between steps of Eq 19, which train the encoder too; 0: no such steps"`
	RefreshEvery    int     `toml:"refresh_every" range:"at least 0" doc:"epochs between searches for candidate edges while the encoder trains; 0 keeps the first candidates"`
	Sampler         string  `toml:"sampler" doc:"what a step reads: full, the whole graph, of which anchors are the samples of the contrastive loss; edges, for the contrastive loss the ends of seed edges and what is around them; neighbors, batches of training nodes, and of anchors, with neighbours that are drawn" oneof:"full,edges,neighbors"`
	Anchors         int     `toml:"anchors" doc:"samples of the contrastive loss per step where sampler is full or neighbors; 0 takes all nodes, or batch_nodes"`
	BatchEdges      int     `toml:"batch_edges" range:"at least 1" doc:"seed edges per step where sampler is edges (the paper: 64)"`
	Batches         int     `toml:"batches" range:"at least 0" doc:"batches per epoch where sampler is edges, drawn without replacement; 0 uses every edge once"`
	Hops            int     `toml:"hops" range:"at least 0" doc:"radius of a batch's subgraph where sampler is edges; 0 is the number of encoder layers"`
	FanOut          int     `toml:"fanout" range:"at least 0" doc:"maximum number of neighbours followed from a node where sampler is edges, or neighbors without fanouts; 0 follows all"`
	FanOuts         string  `toml:"fanouts" neutral:"\"\"" doc:"neighbours drawn of a node where sampler is neighbors, by layer, the last one's being those of the training nodes: 15,10,5; 0 takes all; empty: fanout in every layer"`
	BatchNodes      int     `toml:"batch_nodes" range:"at least 1" neutral:"1024" doc:"training nodes per step where sampler is neighbors"`
	BatchGraphs     int     `toml:"batch_graphs" range:"at least 1" doc:"graphs per step, where graphs are classified"`
	HalveLREvery    int     `toml:"halve_lr_every" range:"at least 0" doc:"epochs between halvings of the learning rates; 0: no halving"`
	Threads         int     `toml:"threads" range:"between 0 and 1024" doc:"threads; 0 is one for each processor; results do not depend on it"`
	Device          string  `toml:"device" neutral:"\"cpu\"" doc:"where programs run: cpu, cuda (the first GPU; cuda:1 is the second), or auto: a GPU where there is one"`
	TF32            bool    `toml:"tf32" neutral:"false" doc:"on a GPU, round the factors of matrix products to TF32: faster, with about three decimal digits"`
	EvalEvery       int     `toml:"eval_every" range:"at least 1" doc:"epochs between evaluations"`
	LogEvery        int     `toml:"log_every" range:"at least 1" doc:"contrastive steps between records in metrics.jsonl"`
	CheckpointEvery int     `toml:"checkpoint_every" range:"at least 0" doc:"steps between checkpoints; 0 writes them only at the end of a phase"`
}

// Candidates are the options of the candidate edges.
type Candidates struct {
	Structure  string  `toml:"structure" doc:"refined: existing edges and nearest neighbours with learned probabilities; raw: existing edges, each kept with probability keep, without an encoder (the fair baseline of the same classifier and sampling)" oneof:"refined,raw"`
	K          int     `toml:"k" range:"at least 0" doc:"nearest neighbours of a node that become candidates"`
	Mutual     bool    `toml:"mutual" doc:"require both nodes of a new candidate to be among each other's nearest"`
	Similarity string  `toml:"similarity" neutral:"\"embedding\"" doc:"what nodes are near each other by, of which several can be joined by + (k of each): embedding, that of the encoder; features, projected; evidence, these and the mean of the neighbours' (both as model.edges.judge = evidence has them: with another judge the embedding takes their place)"`
	TwoStep    int     `toml:"two_step" range:"at least 0" neutral:"0" doc:"nodes two steps away that become candidates beside the nearest ones, of each node those that share the rarest neighbours with it (Adamic-Adar)"`
	Index      string  `toml:"index" doc:"how nearest neighbours are searched: exact; approximate, in nearly linear time with a recall of about 0.95; auto: exact up to 200,000 nodes, on a GPU up to 1,000,000" oneof:"auto,exact,approximate"`
	Keep       float64 `toml:"keep" range:"greater than 0 and at most 1" doc:"probability of an edge where structure is raw; 1 samples nothing"`
}

// The parts of Candidates.Similarity.
const (
	SimilarityEmbedding = "embedding"
	SimilarityFeatures  = "features"
	SimilarityEvidence  = "evidence"
)

// Similarities returns the parts of candidates.similarity, [SimilarityEmbedding] in place of
// what needs evidence where edges are judged by something else.
func (c *Config) Similarities() (parts []string) {
	for _, part := range strings.Split(c.Candidates.Similarity, "+") {
		if c.Model.Edges.Judge != models.JudgeEvidence {
			part = SimilarityEmbedding
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return parts
}

// MostCandidates returns how many candidates a node proposes at most.
func (c *Config) MostCandidates() int {
	return c.Candidates.K*len(c.Similarities()) + c.Candidates.TwoStep
}

// DeepWalk are the options of the structural attributes; see graph.DeepWalk.
type DeepWalk struct {
	Width     int `toml:"width" range:"at least 0" doc:"columns of the embedding; 0 leaves it out and keeps the model inductive"`
	Walks     int `toml:"walks" range:"at least 1" doc:"walks from each node"`
	Length    int `toml:"length" range:"at least 2" doc:"nodes of a walk"`
	Window    int `toml:"window" range:"at least 1" doc:"maximum distance between a node and its context"`
	Negatives int `toml:"negatives" range:"at least 1" doc:"negative samples per pair"`
	Epochs    int `toml:"epochs" range:"at least 1" doc:"passes over the walks"`
}

// Data says how the data set is read; see data.LoadOptions.
type Data struct {
	Split        string `toml:"split" doc:"how to draw a split, such as per-class:20,500,1000, random:0.6,0.2,0.2, ratio:0.05 (new training nodes for the split that comes with the data), or time:COLUMN,0.6,0.2 (the earliest nodes of a table, those after them, and the latest); empty takes the split that comes with the data"`
	NodeFeatures string `toml:"node_features" doc:"what describes the nodes of a collection of graphs: auto (labels, else attributes, else degrees), labels, attributes, both or degrees; of one graph, in the place of its features, places says where nodes are in it and roles what it looks like around them" oneof:"auto,labels,attributes,both,degrees,places,roles"`
	Directed     bool   `toml:"directed" doc:"keep the direction of edges"`

	ID      string `toml:"id" neutral:"\"\"" doc:"column of the node table with the ids; empty: found automatically"`
	Label   string `toml:"label" neutral:"\"\"" doc:"column with the classes; empty: found by its name"`
	Source  string `toml:"source" neutral:"\"\"" doc:"column of the edge table with the sources; empty: found automatically"`
	Target  string `toml:"target" neutral:"\"\"" doc:"column of the edge table with the targets; empty: found automatically"`
	Weight  string `toml:"weight" neutral:"\"\"" doc:"column of the edge table with the weights; empty: found by its name"`
	Ignore  string `toml:"ignore" neutral:"\"\"" doc:"columns of either table to leave out, separated by commas"`
	Merge   string `toml:"merge" neutral:"\"\"" doc:"weight of an edge that is listed more than once: sum, mean, max or first (also if empty)" oneof:",sum,mean,max,first"`
	Weights string `toml:"weights" neutral:"\"\"" doc:"transform of edge weights: ignore (every edge has weight 1) or log1p (the logarithm of 1 + weight); empty: none" oneof:",ignore,log1p"`
	Prepare bool   `toml:"prepare" neutral:"true" doc:"prepare the columns of tables: scale numbers, fill gaps, encode categories and times; features that are prepared already stay as they are"`

	Edges       string  `toml:"edges" neutral:"\"\"" doc:"edges that take the place of the data's own, by the features alone: none; knn:K, each node with its K nearest by cosine; cut:T, those of the data's whose ends have a cosine of at least T; cut:training, all but those of training nodes that were likelier added to mislead; or raw+knn:K, cut:T+knn:K; empty or raw leaves them as they are. Counts are weighed by tf-idf"`
	AddEdges    float64 `toml:"add_edges" range:"at least 0" doc:"edges added at random before anything else, as a share of those that the data have; drawn by train.seed"`
	RemoveEdges float64 `toml:"remove_edges" range:"between 0 and 1" doc:"share of the edges removed at random before anything else; with the same add_edges they are replaced"`
}

// Load resolves the configuration of a run of a model on a data set. dataset is
// the data set's short name, such as "cora"; a name, or a model, without
// defaults of its own gets the general ones. file is a TOML file, or empty; sets
// are key=value texts. An error names the file or the text, the key, and what
// was expected.
func Load(model, dataset, file string, sets []string) (*Config, error) {
	return layered(slices.Concat(general(model), ofData(model, dataset)), file, sets)
}

// LoadGraphs is [Load] for a data set that is a collection of graphs: behind the
// general defaults it has those of graphs.toml and graphs.MODEL.toml.
func LoadGraphs(model, dataset, file string, sets []string) (*Config, error) {
	return layered(slices.Concat(general(model), []string{"graphs", "graphs." + model}, ofData(model, dataset)), file, sets)
}

// LoadTables is [Load] for a graph whose features are prepared columns of a table: behind
// the general defaults it has those of tables.toml and tables.MODEL.toml.
func LoadTables(model, dataset, file string, sets []string) (*Config, error) {
	return layered(slices.Concat(general(model), []string{"tables", "tables." + model}, ofData(model, dataset)), file, sets)
}

// LoadFew is [Load] for a graph with few labelled nodes to train on: before the file it has those
// of few.toml and few.MODEL.toml, since what a data set's own defaults were chosen for is its
// usual split.
func LoadFew(model, dataset, file string, sets []string) (*Config, error) {
	return layered(slices.Concat(general(model), ofData(model, dataset), []string{"few", "few." + model}), file, sets)
}

// Neighbours says what the edges of a graph tell of classes.
type Neighbours int

const (
	Alike     Neighbours = iota // most join nodes of one class, or it is not known
	Unlike                      // most join nodes of different classes
	Unrelated                   // they join nodes of one class about as often as chance would
)

// LoadOwn is [Load] for a graph without defaults of its own: behind those of [LoadFew], whatever it
// has of labels, come those of own.MODEL.toml, with Unlike neighbours of unlike.MODEL.toml, and with
// Unrelated ones of unrelated.MODEL.toml, too.
func LoadOwn(model, dataset, file string, sets []string, n Neighbours) (*Config, error) {
	layers := append(general(model), "few", "few."+model, "own."+model)
	if n != Alike {
		layers = append(layers, "unlike."+model)
	}
	if n == Unrelated {
		layers = append(layers, "unrelated."+model)
	}
	return layered(layers, file, sets)
}

// Tuned reports whether a data set has defaults of its own for a model.
func Tuned(model, dataset string) bool {
	return slices.ContainsFunc(ofData(model, dataset), func(name string) bool {
		_, err := builtIn(name)
		return err == nil
	})
}

// Size is what a data set with defaults of its own is known by, beside its name. Nodes are those of all
// graphs; Features of a collection are 0, since options decide them.
type Size struct{ Graphs, Nodes, Features, Classes int }

// Sizes are those of the data sets with files in defaults/data, but for generated graphs.
var Sizes = map[string]Size{
	"actor": {0, 7600, 932, 5}, "blogcatalog": {0, 5196, 8189, 7}, "citeseer": {0, 3327, 3703, 6}, "cora": {0, 2708, 1433, 7},
	"cornell": {0, 183, 1703, 5}, "texas": {0, 183, 1703, 5}, "wisconsin": {0, 251, 1703, 5},
	"collab": {5000, 372474, 0, 3}, "mutag": {188, 3371, 0, 2}, "proteins": {1113, 43471, 0, 2},
}

// general lists the layers of any data.
func general(model string) []string { return []string{"default", "default." + model} }

// ofData lists the layers of a data set, which has the name of a user's file or folder: they have a
// folder of their own, so that data called few or own do not get the layers of that name.
func ofData(model, dataset string) []string {
	if strings.ContainsAny(dataset, `./\`) { // cora.ecl-gsr is no data set
		return nil
	}
	return []string{"data/" + dataset, "data/" + dataset + "." + model}
}

func layered(layers []string, file string, sets []string) (*Config, error) {
	c := &Config{sources: map[string]string{}}
	for _, name := range layers {
		if layer, _, _ := strings.Cut(name, "."); file == Preset+"general" && !slices.Contains([]string{"default", "tables", "graphs"}, layer) {
			continue
		}
		l, err := builtIn(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = c.applyTree("", l.tree, l.sources)
		}
		if err != nil {
			return nil, fmt.Errorf("built-in defaults %s.toml: %w", name, err)
		}
	}
	if file != "" {
		if err := c.applyFile(file); err != nil {
			return nil, err
		}
	}
	for _, s := range sets {
		if err := c.Set(s); err != nil {
			return nil, err
		}
	}
	if err := c.Validate(); err != nil {
		if file != "" && len(sets) == 0 {
			err = fmt.Errorf("configuration %s: %w", file, err)
		}
		return nil, err
	}
	return c, nil
}

// layer is a TOML text, decoded.
type layer struct {
	tree    map[string]any
	sources map[string]string
}

// layers holds the built-in ones that have been read: a sweep resolves thousands
// of configurations.
var layers sync.Map

// builtIn returns a layer of the built-in defaults, which must not be changed.
func builtIn(name string) (*layer, error) {
	if l, ok := layers.Load(name); ok {
		return l.(*layer), nil
	}
	text, err := defaults.ReadFile("defaults/" + name + ".toml")
	if err != nil {
		return nil, err
	}
	l := &layer{sources: commentSources(string(text))}
	if l.tree, _, err = Decode(string(text)); err != nil {
		return nil, err
	}
	layers.Store(name, l)
	return l, nil
}

// Read reads a complete configuration that [Config.Write] wrote. Options that
// it lacks (it may be from an older version) get their general defaults.
func Read(path string) (*Config, error) { return Load("", "", path, nil) }

func (c *Config) applyFile(path string) error {
	read := budget.ReadFile
	if name, ok := strings.CutPrefix(path, Preset); ok {
		read = func(string) ([]byte, error) { return ReadPreset(name) }
	}
	text, err := read(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	sources := commentSources(string(text))
	sources[""] = path
	tree, _, err := Decode(string(text))
	if err == nil {
		err = c.applyTree("", tree, sources)
	}
	if err != nil {
		return fmt.Errorf("configuration %s: %w", path, err)
	}
	return nil
}

// FileOptions returns the options that a file sets, as texts that [Config.Set] takes.
func FileOptions(path string) ([]string, error) {
	c := &Config{sources: map[string]string{}}
	if err := c.applyFile(path); err != nil {
		return nil, err
	}
	set := []string{}
	for _, key := range KeyNames() {
		if c.sources[key] != "" {
			set = append(set, key+"="+c.Value(key))
		}
	}
	return set, nil
}

// ReadPreset returns the text of a built-in file of options.
func ReadPreset(name string) ([]byte, error) {
	text, err := presets.ReadFile("presets/" + name + ".toml")
	if err != nil {
		return nil, fmt.Errorf("no preset %q; there are general and paper", name)
	}
	return text, nil
}

// Decode reads a TOML text. An error names the line, and quotes what cannot be
// printed: the message may repeat the file, which can hold anything.
func Decode(text string) (tree map[string]any, meta toml.MetaData, err error) {
	meta, err = toml.Decode(text, &tree)
	var pe toml.ParseError
	if errors.As(err, &pe) {
		msg := strconv.Quote(pe.Message)
		err = fmt.Errorf("line %d: %s", pe.Position.Line, strings.ReplaceAll(msg[1:len(msg)-1], `\"`, `"`))
	}
	return tree, meta, err
}

// applyTree sets every option of a decoded TOML text.
func (c *Config) applyTree(prefix string, tree map[string]any, sources map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(tree)) {
		path := prefix + k
		if sub, ok := tree[k].(map[string]any); ok {
			if !isSection(path) {
				if _, known := Keys()[Canonical(path)]; known {
					return fmt.Errorf("%s is an option, not a section", path)
				}
				return unknownKey(path)
			}
			if err := c.applyTree(path+".", sub, sources); err != nil {
				return err
			}
			continue
		}
		if neutral := removed(path); neutral != "" {
			if v := literal(reflect.ValueOf(tree[k])); v != neutral {
				return fmt.Errorf("%s = %s: this option is no more, and files may have %s alone, which is what is done now; a version of gsrc that has it goes on with the run", path, v, neutral)
			}
			continue
		}
		if err := c.SetValue(path, tree[k], cmp.Or(sources[path], sources[""])); err != nil {
			return err
		}
	}
	return nil
}

// Set sets one option from a text such as "model.ecl.tau=0.2". Strings need no
// quotes.
func (c *Config) Set(text string) error {
	key, raw, ok := strings.Cut(text, "=")
	key, raw = strings.TrimSpace(key), strings.TrimSpace(raw)
	if !ok {
		return fmt.Errorf("--set %s: write it as key=value, for example model.ecl.tau=0.2", text)
	}
	_, k, err := c.field(key)
	if err != nil {
		return fmt.Errorf("--set %s: %w", text, err)
	}
	var value any = raw
	switch k.Type {
	case "integer":
		if v, err := strconv.ParseInt(strings.ReplaceAll(raw, "_", ""), 10, 64); err == nil {
			value = v
		}
	case "number":
		if v, err := strconv.ParseFloat(raw, 64); err == nil {
			value = v
		}
	case "true or false":
		if raw == "true" || raw == "false" {
			value = raw == "true"
		}
	case "text":
		if v, err := strconv.Unquote(raw); err == nil {
			value = v
		}
	}
	if err := c.SetValue(key, value, "--set"); err != nil {
		return fmt.Errorf("--set %s: %w", text, err)
	}
	return nil
}

// SetValue sets one option to a value as TOML decodes it: a string, an int64, a
// float64 or a bool. source is what [Config.Source] says of it afterwards.
func (c *Config) SetValue(key string, value any, source string) error {
	if err := c.set(key, value); err != nil {
		return err
	}
	if c.sources == nil {
		c.sources = map[string]string{}
	}
	c.sources[Canonical(key)] = source
	return nil
}

// Value returns the value of an option as TOML; "" if there is no such option.
func (c *Config) Value(key string) string {
	f, _, err := c.field(key)
	if err != nil {
		return ""
	}
	return literal(f)
}

// set assigns a decoded TOML value to an option.
func (c *Config) set(path string, value any) error {
	f, k, err := c.field(path)
	if err != nil {
		return err
	}
	wrong := func() error {
		switch v := value.(type) {
		case string:
			return fmt.Errorf("%s must be %s, got %q", path, article(k.Type), v)
		case []any:
			return fmt.Errorf("%s must be %s, got a list", path, article(k.Type))
		}
		return fmt.Errorf("%s must be %s, got %v", path, article(k.Type), value)
	}
	switch f.Kind() {
	case reflect.Int:
		v, ok := value.(int64)
		if v > math.MaxInt32 {
			return fmt.Errorf("%s must be an integer of at most %d, got %d", path, math.MaxInt32, v)
		}
		if !ok || v < math.MinInt32 {
			return wrong()
		}
		f.SetInt(v)
	case reflect.Float64:
		v, ok := value.(float64)
		if i, isInt := value.(int64); isInt {
			v, ok = float64(i), true
		}
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			return wrong()
		}
		f.SetFloat(v)
	case reflect.Bool:
		v, ok := value.(bool)
		if !ok {
			return wrong()
		}
		f.SetBool(v)
	default:
		v, ok := value.(string)
		if !ok {
			return wrong()
		}
		f.SetString(v)
	}
	return nil
}

func article(kind string) string {
	switch kind {
	case "integer":
		return "an integer"
	case "number":
		return "a finite number"
	case "text":
		return "a text"
	}
	return kind
}

func unknownKey(path string) error {
	shown := path
	if strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		shown = strconv.Quote(path)
	}
	if removed(path) != "" {
		return fmt.Errorf("there is no option %s any more", shown)
	}
	names := KeyNames()
	// The section may have been left out.
	var tails []string
	for _, n := range names {
		if strings.HasSuffix(n, "."+path) {
			tails = append(tails, n)
		}
	}
	if len(tails) > 0 {
		return fmt.Errorf("there is no option %s; did you mean %s?", shown, strings.Join(tails, " or "))
	}
	if n := nearest.Of(path, append(sections(), names...)); n != "" {
		return fmt.Errorf("there is no option %s; did you mean %s?", shown, n)
	}
	last := path[strings.LastIndex(path, ".")+1:]
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = n[strings.LastIndex(n, ".")+1:]
	}
	if s := nearest.Of(last, short); s != "" {
		return fmt.Errorf("there is no option %s; did you mean %s?", shown, names[slices.Index(short, s)])
	}
	return fmt.Errorf("there is no option %s; gsrc train --help-config lists them all", shown)
}

// Encode writes the complete configuration as TOML, every value with a comment
// that says where it comes from.
func (c *Config) Encode(w io.Writer) error {
	var b bytes.Buffer
	section := ""
	for _, name := range KeyNames() {
		dot := strings.LastIndex(name, ".")
		if s := name[:dot]; s != section {
			if section != "" {
				b.WriteByte('\n')
			}
			section = s
			fmt.Fprintf(&b, "[%s]\n", section)
		}
		fmt.Fprintf(&b, "%s = %s", name[dot+1:], c.Value(name))
		if s := c.sources[name]; s != "" {
			fmt.Fprintf(&b, "  # %s", strings.ReplaceAll(s, "\n", " "))
		}
		b.WriteByte('\n')
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Write writes the complete configuration to a file, atomically. [Read] reads it.
func (c *Config) Write(path string) error { return atomicfile.Write(path, c.Encode) }

// Source says where the value of an option comes from: the comment of a file, or --set.
func (c *Config) Source(key string) string { return c.sources[Canonical(key)] }

// hashSkips are the options that a run may go on with other values of.
var hashSkips = map[string]bool{"train.threads": true, "train.device": true, "train.checkpoint_every": true}

// Hash returns the SHA-256 of all values that say what is computed, in
// hexadecimal: all but train.threads, train.device and train.checkpoint_every, so
// that a run may go on with others. An option that came later counts only where it
// differs from its neutral value; see Key. The names in it are those of
// hash_names.txt, so that an option can be renamed.
func (c *Config) Hash() string { return c.hash(frozen()) }

func (c *Config) hash(names []frozenName) string {
	h := sha256.New()
	for _, n := range names {
		if hashSkips[n.hashed] || n.removed != "" {
			continue
		}
		f, k, err := c.field(n.now)
		if err != nil {
			panic(err) // a test holds the table against the struct
		}
		if k.Neutral == "" || literal(f) != k.Neutral {
			fmt.Fprintf(h, "%s = %s\n", n.hashed, literal(f))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Clone returns a copy that shares nothing with c.
func (c *Config) Clone() *Config {
	d := *c
	d.sources = maps.Clone(c.sources)
	return &d
}

// literal writes a value as TOML, floats with the fewest digits that read back
// to the same value.
func literal(f reflect.Value) string {
	switch f.Kind() {
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(f.Int(), 10)
	case reflect.Bool:
		return strconv.FormatBool(f.Bool())
	case reflect.Float64:
		s := strconv.FormatFloat(f.Float(), 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return s
	}
	return tomltext.Quote(f.String())
}

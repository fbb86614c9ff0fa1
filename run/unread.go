package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
)

// reading is what decides whether a run reads an option that does not shape its program.
type reading struct {
	*config.Config
	refines, learns, trains bool // has a graph of candidates; learns it; trains an encoder for it
	graphs, tables          bool // the data are a collection; tables
	generated               bool
	prog                    *ir.Module
}

func (s *Setup) reading() reading {
	r := reading{Config: s.Config, prog: s.Module}
	r.refines = s.Module.Func("refine") != nil && s.Module.Func("train") == nil
	r.learns = r.refines && s.Config.Candidates.Structure != "raw"
	r.trains = r.learns && s.Config.Train.PretrainSteps+s.Config.Train.JointEvery > 0
	info := s.task.Info()
	r.graphs, r.generated = r.takes("batch"), info.Source == data.Synthetic
	r.tables = s.Data != nil && s.Data.Format == "folder"
	return r
}

func (r reading) takes(arg string) bool {
	return slices.ContainsFunc(r.prog.Funcs, func(f *ir.Func) bool { return f.Arg(arg) != nil })
}

// researches tells whether candidates are searched again without joint training: while the
// pretraining carries a graph on, or since the graph is estimated from the one before.
func (r reading) researches() bool {
	encode, pretrain := r.prog.Func("encode"), r.prog.Func("pretrain")
	return encode != nil && encode.Arg("p") != nil || pretrain != nil && pretrain.Arg("c") != nil
}

// readers says of options, or of all below a prefix that ends in a dot, when a run reads
// them. Others are read by every run, but for those of the model: these are compared by the
// program that they give.
var readers = map[string]func(reading) bool{
	"train.lr":             func(r reading) bool { return len(r.prog.Params) > 0 },
	"train.encoder_lr":     func(r reading) bool { return r.trains },
	"train.self_trained":   func(r reading) bool { return r.Train.SelfTraining > 0 },
	"train.pretrain_steps": func(r reading) bool { return r.learns },
	"train.joint_every":    func(r reading) bool { return r.learns },
	"train.refresh_every":  func(r reading) bool { return r.learns && (r.Train.JointEvery > 0 || r.researches()) },
	"train.log_every":      func(r reading) bool { return r.learns && r.Train.PretrainSteps > 0 },
	"train.warmup":         func(r reading) bool { return r.takes("ramp") },
	"train.sampler":        func(r reading) bool { return r.trains && r.takes("anchors") || r.Train.Sampler == "neighbors" },
	"train.anchors":        func(r reading) bool { return r.trains && r.takes("anchors") && r.Train.Sampler != "edges" },
	"train.batch_edges":    sampled, "train.batches": sampled, "train.hops": sampled,
	"train.fanout":           func(r reading) bool { return sampled(r) || r.Train.Sampler == "neighbors" },
	"train.fanouts":          func(r reading) bool { return r.Train.Sampler == "neighbors" },
	"train.batch_nodes":      func(r reading) bool { return r.Train.Sampler == "neighbors" },
	"train.batch_graphs":     func(r reading) bool { return r.graphs },
	"train.tf32":             func(r reading) bool { return r.Train.Device != "cpu" },
	"candidates.structure":   func(r reading) bool { return r.refines },
	"candidates.keep":        func(r reading) bool { return r.refines && !r.learns },
	"candidates.":            func(r reading) bool { return r.learns },
	"deepwalk.width":         func(r reading) bool { return r.learns && r.takes("x_struct") },
	"deepwalk.":              func(r reading) bool { return r.learns && r.DeepWalk.Width > 0 },
	"model.edges.judge":      func(r reading) bool { return r.learns },
	"model.edges.same_class": func(r reading) bool { return r.learns },
	"model.edges.mode":       func(r reading) bool { return r.learns },
	"model.edges.threshold":  func(r reading) bool { return r.learns },
	"model.class_weights":    func(r reading) bool { return r.takes("targets") }, // which they come in by
	"model.encoder.layers":   sampled,
	"data.node_features":     func(r reading) bool { return r.graphs || data.NodeFeatures(r.Data.NodeFeatures).Structural() },
	"data.edges":             func(r reading) bool { return r.takes("g") },
	"data.prepare":           func(r reading) bool { return r.tables },
	"data.weights":           func(r reading) bool { return !r.graphs }, // a collection's edges have none
	"synthetic.":             func(r reading) bool { return r.generated },
}

func sampled(r reading) bool { return r.trains && r.takes("anchors") && r.Train.Sampler == "edges" }

// Unread returns the options that differ from their defaults for the model and the data,
// and that nothing in this run reads.
func (s *Setup) Unread() (names []string, err error) {
	defaults := strings.ReplaceAll(s.Module.Name, "_", "-")
	if !models.IsFile(s.Model) {
		defaults = s.Model
	}
	plain, err := s.task.defaults()(defaults, datasetOf(s.task.Info()), "", nil)
	if err != nil {
		return nil, err
	}
	return s.unread(plain)
}

// unread is Unread of the options that differ from plain.
func (s *Setup) unread(plain *config.Config) (names []string, err error) {
	r := s.reading()
	for _, name := range config.KeyNames() {
		if s.Config.Value(name) == plain.Value(name) {
			continue
		}
		reads, listed := readers[name]
		if section, _, _ := strings.Cut(name, "."); !listed && section != "model" {
			reads, listed = readers[section+"."]
		}
		switch {
		case listed && reads(r), !listed && !strings.HasPrefix(name, "model."):
			continue
		case strings.HasPrefix(name, "model."):
			c := s.Config.Clone()
			if err := c.Set(name + "=" + plain.Value(name)); err != nil {
				return nil, err
			}
			// A program that cannot be built without the option reads it.
			if m, err := s.task.Module(s.Model, c); err != nil || m.String() != s.Module.String() {
				continue
			}
		}
		names = append(names, name)
	}
	return names, nil
}

// warnUnread reports options that have no effect.
func (s *Setup) warnUnread(warn func(string)) error {
	if warn == nil {
		return nil
	}
	names, err := s.Unread()
	if err != nil || len(names) == 0 {
		return err
	}
	why := "nothing in a run of " + s.Model + " on these data reads it"
	if models.IsFile(s.Model) {
		why = "nothing in a run of this program reads it; what shapes a program stands in the file"
	}
	for _, name := range names {
		warn(fmt.Sprintf("%s has no effect: %s", name, why))
	}
	return nil
}

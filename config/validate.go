package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/models"
)

var devicePattern = regexp.MustCompile(`^(cpu|auto|cuda(:[0-9]{1,3})?)$`)

// Validate checks every option's range; the error names the option and what it
// must be.
func (c *Config) Validate() error {
	for _, name := range KeyNames() {
		f, k, err := c.field(name)
		if err != nil {
			return err
		}
		if k.OneOf != nil && !slices.Contains(k.OneOf, f.String()) {
			return fmt.Errorf("%s must be one of %s, got %q", name, strings.Join(k.OneOf, ", "), f.String())
		}
	}
	out := func(key, want string) error {
		f, _, err := c.field(key)
		if err != nil {
			return err
		}
		return fmt.Errorf("%s must be %s, got %s", key, want, literal(f))
	}
	if err := c.Model.Validate(); err != nil {
		var outside *models.RangeError
		if !errors.As(err, &outside) {
			return err
		}
		return out("model."+outside.Option, outside.Want)
	}
	type bound struct {
		key  string
		ok   bool
		want string
	}
	share := func(v float64) bool { return v >= 0 && v <= 1 }
	t, s := c.Train, c.Synthetic
	bounds := []bound{
		{"train.seed", t.Seed >= 0, "at least 0"},
		{"train.lr", t.LR > 0, "greater than 0"},
		{"train.encoder_lr", t.EncoderLR > 0, "greater than 0"},
		{"train.epochs", t.Epochs >= 1, "at least 1"},
		{"train.patience", t.Patience >= 0, "at least 0"},
		{"train.pretrain_steps", t.PretrainSteps >= 0, "at least 0"},
		{"train.warmup", t.Warmup >= 0, "at least 0"},
		{"train.joint_every", t.JointEvery >= 0, "at least 0"},
		{"train.refresh_every", t.RefreshEvery >= 0, "at least 0"},
		{"train.anchors", t.Anchors == 0 || t.Anchors >= 2, "0, or at least 2: a sample is contrasted with the others"},
		{"train.batch_edges", t.BatchEdges >= 1, "at least 1"},
		{"train.batches", t.Batches >= 0, "at least 0"},
		{"train.hops", t.Hops >= 0, "at least 0"},
		{"train.fanout", t.FanOut >= 0, "at least 0"},
		{"train.batch_graphs", t.BatchGraphs >= 1, "at least 1"},
		{"train.halve_lr_every", t.HalveLREvery >= 0, "at least 0"},
		{"train.threads", t.Threads >= 0 && t.Threads <= 1024, "between 0 and 1024"},
		{"train.device", devicePattern.MatchString(t.Device), "cpu, auto, cuda, or cuda:1 and so on"},
		{"train.eval_every", t.EvalEvery >= 1, "at least 1"},
		{"train.log_every", t.LogEvery >= 1, "at least 1"},
		{"train.checkpoint_every", t.CheckpointEvery >= 0, "at least 0"},
		{"candidates.k", c.Candidates.K >= 0, "at least 0"},
		{"candidates.keep", c.Candidates.Keep > 0 && c.Candidates.Keep <= 1, "greater than 0 and at most 1"},
		{"deepwalk.width", c.DeepWalk.Width >= 0, "at least 0"},
		{"deepwalk.walks", c.DeepWalk.Walks >= 1, "at least 1"},
		{"deepwalk.length", c.DeepWalk.Length >= 2, "at least 2"},
		{"deepwalk.window", c.DeepWalk.Window >= 1, "at least 1"},
		{"deepwalk.negatives", c.DeepWalk.Negatives >= 1, "at least 1"},
		{"synthetic.nodes", s.Nodes >= 1, "at least 1"},
		{"synthetic.classes", s.Classes >= 2 && s.Classes <= s.Nodes, "between 2 and the number of nodes"},
		{"synthetic.features", s.Features >= 1, "at least 1"},
		{"synthetic.community_size", s.CommunitySize >= 0, "at least 0"},
		{"synthetic.locality", share(s.Locality), "between 0 and 1"},
		{"synthetic.individuality", share(s.Individuality), "between 0 and 1"},
		{"synthetic.degree", s.Degree >= 0, "at least 0"},
		{"synthetic.homophily", share(s.Homophily), "between 0 and 1"},
		{"synthetic.signal", s.Signal >= 0, "at least 0"},
		{"synthetic.density", s.Density > 0 && s.Density <= 1, "greater than 0 and at most 1"},
		{"synthetic.wrong", s.Wrong >= 0, "at least 0"},
		{"synthetic.hidden", share(s.Hidden), "between 0 and 1"},
		{"data.add_edges", c.Data.AddEdges >= 0, "at least 0"},
		{"data.remove_edges", share(c.Data.RemoveEdges), "between 0 and 1"},
		{"deepwalk.epochs", c.DeepWalk.Epochs >= 1, "at least 1"},
	}
	for _, b := range bounds {
		if !b.ok {
			return out(b.key, b.want)
		}
	}
	return nil
}

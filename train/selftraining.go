package train

import (
	"cmp"
	"errors"
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// selfTrain begins the next round of self-training: from the kept state, with the nodes that
// it is most confident of as further training nodes. evaluate brings the graph that the
// classifier reads up to date.
func (t *trainer) selfTrain(evaluate func() (score, error)) error {
	if err := restoreBest(t); err != nil {
		return err
	}
	if e := t.edges; e != nil {
		e.fresh, e.embedded = e.fixed, false
	}
	if _, err := evaluate(); err != nil {
		return err
	}
	added, err := t.steps.confident(t.cfg.Train.SelfTrained * (t.state.Round + 1))
	if err != nil {
		return err
	}
	t.state.Round, t.state.RoundFrom, t.state.SelfTrained = t.state.Round+1, t.state.Epoch, added
	if err := t.steps.learn(added); err != nil {
		return err
	}
	return t.checkpoint()
}

// confident returns, of each class that is predicted, the n nodes with the highest
// probability, of equal ones the first; all if there are fewer. Training nodes are left out.
// Validation nodes are not, so that accuracy on them stays what to expect of other nodes.
func (t *nodeSteps) confident(n int) (found [][2]int32, err error) {
	_, probs, err := t.classify()
	if err != nil {
		return nil, err
	}
	classes := t.info.Classes
	members := make([][]int32, classes)
	top := make([]float32, t.ds.Graph.N)
	for _, v := range without(t.ds.Graph.N, t.split.Train) {
		row := probs.F32[int(v)*classes:][:classes]
		c := kernels.Top(row)
		members[c], top[v] = append(members[c], v), row[c]
	}
	for c, list := range members {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(top[b], top[a]) })
		for _, v := range list[:min(n, len(list))] {
			found = append(found, [2]int32{v, int32(c)})
		}
	}
	return found, nil
}

// learn makes the given training nodes and added ones, with their labels, what training
// steps learn from.
func (t *nodeSteps) learn(added [][2]int32) error {
	idx, labels := numbers(nil, t.split.Train), answers(nil, t.ds.Labels, t.split.Train)
	for _, a := range added {
		idx, labels = append(idx, int64(a[0])), append(labels, int64(a[1]))
	}
	if t.nodes, t.labels = idx, labels; t.cfg.Train.Sampler == neighbors {
		for _, s := range t.sampled {
			s.epoch = -1
		}
		return nil
	}
	err := errors.Join(t.prog.bind("train_idx", runtime.I64(idx, len(idx))), t.prog.bind("labels", runtime.I64(labels, len(labels))))
	if err == nil && t.prog.takes("targets") {
		err = t.prog.bind("targets", runtime.F32(targets(labels, t.ds.Classes, t.cfg.Model.ClassWeights), len(labels), t.ds.Classes))
	}
	return err
}

// without returns those of n nodes or graphs that no list has.
func without(n int, lists ...[]int32) (rest []int32) {
	listed := make([]bool, n)
	for _, list := range lists {
		for _, v := range list {
			listed[v] = true
		}
	}
	for v := range int32(n) {
		if !listed[v] {
			rest = append(rest, v)
		}
	}
	return rest
}

// mostTrained returns as many training nodes as self-training may lead to: the given ones
// and others, evenly spread.
func mostTrained(cfg *config.Config, split data.Split, nodes, classes int) []int32 {
	all := split.Train
	more := min(nodes-len(all), classes*cfg.Train.SelfTrained*cfg.Train.SelfTraining)
	if more <= 0 {
		return all
	}
	others := without(nodes, all)
	all = slices.Clone(all)
	for i := range more {
		all = append(all, others[i*len(others)/more])
	}
	return all
}

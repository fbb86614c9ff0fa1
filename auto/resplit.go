package auto

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/rng"
)

// pool is what may be seen while choosing: the training and validation nodes of the split.
type pool struct {
	ds    *data.Dataset // with their labels alone
	train []int32
	val   []int32
	// judges are nodes that no choice sees: the test nodes, or, where there are none, a quarter
	// of the validation nodes.
	judges []int32
	// tampered is [Seen.Tampered]: what was done to the training nodes shows where these train.
	tampered bool
	// ranked is whether candidates are compared by AUC, which nodes of one class do not have.
	ranked bool
}

// newPool hides all labels but those of the training and validation nodes.
func newPool(ds *data.Dataset, split data.Split, draws rng.Stream) (*pool, error) {
	p := &pool{train: split.Train, val: split.Val, judges: split.Test}
	if len(p.judges) == 0 && len(p.val) >= 8 {
		val := shuffled(p.val, draws.Sub("judges"))
		p.judges, p.val = val[:len(val)/4], val[len(val)/4:]
		slices.Sort(p.judges)
		slices.Sort(p.val)
	}
	if len(p.val) < 2 {
		return nil, fmt.Errorf("choosing takes two validation nodes at least, one to keep an epoch by and one to compare candidates on, and of %d labelled nodes the split has %d for validation: give it a larger share, or label more nodes (10 for --split random:0.6,0.2,0.2)", len(ds.Labels)-ds.Repairs.Unlabelled, len(p.val))
	}
	hidden := *ds
	hidden.Labels = slices.Repeat([]int32{-1}, len(ds.Labels))
	for _, nodes := range [][]int32{p.train, p.val} {
		for _, v := range nodes {
			hidden.Labels[v] = ds.Labels[v]
		}
	}
	hidden.Splits, hidden.SplitSpec, hidden.Truth = []data.Split{{Train: p.train, Val: p.val}}, nil, nil
	p.ds = &hidden
	return p, nil
}

// checkRanked refuses a pool whose resplits cannot have nodes of two classes in both halves. Each has as many
// nodes of a class in them as the validation nodes have.
func (p *pool) checkRanked() error {
	halved := 0
	for _, n := range (data.Split{Train: p.val}).ClassCounts(p.ds.Labels, p.ds.Classes) {
		if n >= 2 {
			halved++
		}
	}
	if halved >= 2 {
		return nil
	}
	return fmt.Errorf("train.select=auc: AUC takes nodes of two classes, one half of the validation nodes keeps an epoch and the other compares candidates, and fewer than two classes have two of these %d nodes or more; give validation a larger share (such as --split random:0.4,0.4,0.2), label more nodes, or set train.select=macro_f1", len(p.val))
}

// resplit draws training nodes again, as many of each class as there were, but keeps those whose edges were
// tampered with. Half of the others keep the epoch, as validation nodes; the candidates are compared on the rest, the resplit's
// test nodes. Where AUC compares, classes of two of these nodes or more are in both halves.
func (p *pool) resplit(draws rng.Stream) data.Split {
	counts := make([]int, p.ds.Classes)
	var s data.Split
	all := p.val
	if p.tampered {
		s.Train = slices.Clone(p.train)
	} else {
		counts = data.Split{Train: p.train}.ClassCounts(p.ds.Labels, p.ds.Classes)
		all = slices.Concat(p.train, p.val)
		slices.Sort(all)
	}
	var others []int32
	for _, v := range shuffled(all, draws) {
		if c := p.ds.Labels[v]; counts[c] > 0 {
			counts[c]--
			s.Train = append(s.Train, v)
		} else {
			others = append(others, v)
		}
	}
	if p.ranked {
		slices.SortStableFunc(others, func(a, b int32) int { return cmp.Compare(p.ds.Labels[a], p.ds.Labels[b]) })
		for i, v := range others { // of those of a class every other one
			if i%2 == 0 {
				s.Test = append(s.Test, v)
			} else {
				s.Val = append(s.Val, v)
			}
		}
	} else {
		s.Val, s.Test = others[:len(others)/2], others[len(others)/2:]
	}
	for _, nodes := range [][]int32{s.Train, s.Val, s.Test} {
		slices.Sort(nodes)
	}
	return s
}

func shuffled(nodes []int32, draws rng.Stream) []int32 {
	out := make([]int32, len(nodes))
	for i, j := range draws.Perm(len(nodes)) {
		out[i] = nodes[j]
	}
	return out
}

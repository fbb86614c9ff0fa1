package serve

import (
	"context"
	"errors"
	"slices"

	"github.com/gsrc-dev/gsrc/infer"
)

// nodes answers for nodes of the online graph.
type nodes struct {
	meta  Metadata
	graph *infer.Graph
	batch *batcher
}

func newNodes(r *infer.Graph, b *batcher) *nodes {
	classes := int64(len(r.Manifest().Classes))
	return &nodes{graph: r, batch: b, meta: Metadata{
		Name: "nodes", Versions: []string{modelVersion}, Platform: "gsrc",
		Inputs: []TensorInfo{{"node", BYTES, []int64{-1}}, {"number", INT64, []int64{-1}}},
		Outputs: []TensorInfo{
			{"label", BYTES, []int64{-1}}, {"class", INT64, []int64{-1}},
			{"probabilities", FP32, []int64{-1, classes}}, {"logits", FP32, []int64{-1, classes}},
		},
	}}
}

func (m *nodes) describe() *Metadata { return &m.meta }

func (m *nodes) infer(ctx context.Context, r *Request) (*Result, error) {
	q := &question{}
	switch names, numbers := r.input("node"), r.input("number"); {
	case names != nil && numbers != nil:
		return nil, invalid("give the nodes by name (node) or by number (number), not both")
	case names != nil:
		q.names = names.Text
	case numbers != nil:
		q.numbers = numbers.I64
	default:
		return nil, invalid("which nodes? give their names (node), or their numbers (number)")
	}
	a, err := m.batch.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	classes := m.graph.Manifest().Classes
	n, c := int64(len(a.probabilities)/len(classes)), len(classes)
	labels, numbers := make([]string, n), make([]int64, n)
	for i := range labels {
		row := a.probabilities[i*c : (i+1)*c]
		best := slices.Index(row, slices.Max(row))
		labels[i], numbers[i] = classes[best], int64(best)
	}
	return &Result{GraphVersion: a.version, Outputs: []Tensor{
		{Name: "label", Datatype: BYTES, Shape: []int64{n}, Text: labels},
		{Name: "class", Datatype: INT64, Shape: []int64{n}, I64: numbers},
		{Name: "probabilities", Datatype: FP32, Shape: []int64{n, int64(c)}, F32: a.probabilities},
		{Name: "logits", Datatype: FP32, Shape: []int64{n, int64(c)}, F32: a.logits},
	}}, nil
}

// question is for nodes, by their names or their numbers.
type question struct {
	names   []string
	numbers []int64
}

// find returns the nodes' numbers in a version.
func (q *question) find(s *infer.Snapshot) ([]int, error) {
	list := make([]int, 0, max(len(q.names), len(q.numbers)))
	for _, name := range q.names {
		v, err := s.Find(name)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	for _, v := range q.numbers {
		if err := s.Check(v); err != nil {
			return nil, err
		}
		list = append(list, int(v))
	}
	return list, nil
}

// update changes the online graph.
type update struct {
	meta  Metadata
	graph *infer.Graph
}

func newUpdate(r *infer.Graph) *update {
	features := int64(r.Manifest().NumFeatures)
	m := &update{graph: r, meta: Metadata{
		Name: "update", Versions: []string{modelVersion}, Platform: "gsrc",
		Inputs: []TensorInfo{
			{"x", FP32, []int64{-1, features}}, {"node", BYTES, []int64{-1}},
			{"source", BYTES, []int64{-1}}, {"target", BYTES, []int64{-1}},
			{"delete_source", BYTES, []int64{-1}}, {"delete_target", BYTES, []int64{-1}},
			{"change_node", BYTES, []int64{-1}}, {"change_x", FP32, []int64{-1, features}},
			{"delete_node", BYTES, []int64{-1}},
		},
		Outputs: []TensorInfo{{"num_nodes", INT64, []int64{1}}, {"num_edges", INT64, []int64{1}}},
	}}
	if r.ReadsWeights() {
		m.meta.Inputs = append(m.meta.Inputs, TensorInfo{"weight", FP32, []int64{-1}})
	}
	return m
}

func (m *update) describe() *Metadata { return &m.meta }

func (m *update) infer(ctx context.Context, r *Request) (*Result, error) {
	var u infer.Update
	for name, to := range map[string]*[]float32{"x": &u.X, "change_x": &u.ChangeX, "weight": &u.Weights} {
		if t := r.input(name); t != nil {
			*to = t.F32
		}
	}
	for name, to := range map[string]*[]string{"node": &u.IDs, "source": &u.Sources, "target": &u.Targets,
		"delete_source": &u.DeleteSources, "delete_target": &u.DeleteTargets, "change_node": &u.ChangeNodes, "delete_node": &u.DeleteNodes} {
		if t := r.input(name); t != nil {
			*to = t.Text
		}
	}
	u.Key = r.IdempotencyKey
	a, err := m.graph.Update(ctx, u)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return nil, fail(kindLate, "no answer within the time limit; the update may have been applied, or will be: to find out, send it again with its idempotency_key")
	}
	if err != nil {
		return nil, err
	}
	return &Result{GraphVersion: a.Version, Outputs: []Tensor{
		{Name: "num_nodes", Datatype: INT64, Shape: []int64{1}, I64: []int64{int64(a.Nodes)}},
		{Name: "num_edges", Datatype: INT64, Shape: []int64{1}, I64: []int64{int64(a.Edges)}},
	}}, nil
}

package train

import (
	"errors"
	"fmt"

	"github.com/gsrc-dev/gsrc/data"
)

// subject is what a run needs to know of its data, whether these are one graph
// whose nodes are classified or a collection of graphs.
type subject struct {
	name, source, format, checksum string
	graphs                         int // of a collection; 0 for one graph
	nodes, edges                   int // of all graphs
	features, classes              int
	labels                         []int32 // of what is classified: nodes or graphs
}

// subject describes the task's data.
func (t *Task) subject() (subject, error) {
	switch {
	case t.Data != nil && t.Graphs != nil:
		return subject{}, errors.New("train: the task has a data set and a collection of graphs; give one")
	case t.Data != nil:
		d := t.Data
		if err := d.Check(); err != nil {
			return subject{}, fmt.Errorf("train: %w", err)
		}
		return subject{d.Name, d.Source, d.Format, d.Checksum, 0, d.Graph.N, d.Graph.NumEdges(), d.X.Cols, d.Classes, d.Labels}, nil
	case t.Graphs != nil:
		c := t.Graphs
		if err := c.Check(); err != nil {
			return subject{}, fmt.Errorf("train: %w", err)
		}
		return subject{c.Name, c.Source, c.Format, c.Checksum, len(c.Graphs), c.Nodes(), c.NumEdges(), c.X.Cols, c.Classes, c.Labels}, nil
	}
	return subject{}, errors.New("train: the task has no data set")
}

// item is what one of the classified is called.
func (s *subject) item() string {
	if s.graphs > 0 {
		return "graph"
	}
	return "node"
}

func (t *Task) features() *data.Features {
	if t.Graphs != nil {
		return t.Graphs.X
	}
	return t.Data.X
}

func (t *Task) warnings(s data.Split) []string {
	if t.Graphs != nil {
		return t.Graphs.Warnings(s)
	}
	return t.Data.Warnings(s)
}

// splitFor returns the split of the data for a seed.
func (t *Task) splitFor(seed uint64) (data.Split, error) {
	if t.Graphs != nil {
		return t.Graphs.SplitFor(seed)
	}
	return t.Data.SplitFor(seed)
}

package run

import (
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
)

// ReadNodes reads the graph of o.Data as the options say, without the defaults that are
// tuned for a data set of its name; trained is the checksum of data that are to be read again, if not empty. A
// collection of graphs is an error.
func ReadNodes(o TrainOptions, trained string) (*data.Dataset, error) {
	c, err := o.configure(o.Model, "")
	if err != nil {
		return nil, err
	}
	read := LoadOptions(c)
	read.MaxBytes, read.Trained = o.Memory, trained
	return data.Load(o.Data, read)
}

// PrepareNodes is [Prepare] for a graph in memory, without the defaults that are tuned for
// a data set of its name: o.Data is not read. Edges that data.edges asks for take the place of
// the graph's in a copy, unless others have taken it already.
func PrepareNodes(o TrainOptions, ds *data.Dataset) (*Setup, error) {
	if err := ds.Check(); err != nil {
		return nil, err
	}
	o.load = nodeTask{ds: ds}.general()
	c, err := o.configure(o.Model, "")
	if err != nil {
		return nil, err
	}
	if as := data.NodeFeatures(c.Data.NodeFeatures); as.Structural() {
		described := *ds
		if err := described.DescribeByPlaces(); err != nil {
			return nil, err
		}
		if as == data.FeaturesRoles {
			described.PlacesAs(graph.RoleWidth)
		}
		ds = &described
	}
	if ds.Rewired == nil {
		rewired := *ds
		if err := rewired.Rewire(c.Data.Edges, uint64(c.Train.Seed)); err != nil {
			return nil, err
		}
		ds = &rewired
	}
	t, err := loaded(ds, nil, nil)
	if err != nil {
		return nil, err
	}
	m, err := t.Module(o.Model, c)
	if err != nil {
		return nil, err
	}
	if m, err = o.guess(t, m, o.Model, c); err != nil {
		return nil, err
	}
	return newSetup(o.Model, t, c, m), nil
}

// On returns the set-up for labels of ds in place of its own, and on a split that is not that of
// ds unless it is nil. Edges and features stay those of s. set, which may be nil, changes the configuration
// without the program.
func (s *Setup) On(ds *data.Dataset, split *data.Split, set func(*config.Config)) (*Setup, error) {
	labelled := *ds
	labelled.Graph, labelled.Checksum, labelled.Rewired = s.Data.Graph, s.Data.Checksum, s.Data.Rewired
	labelled.X, labelled.Structural, labelled.Columns = s.Data.X, s.Data.Structural, s.Data.Columns
	t, err := loaded(&labelled, nil, nil)
	if err != nil {
		return nil, err
	}
	c := s.Config.Clone()
	if set != nil {
		set(c)
	}
	other := newSetup(s.Model, t, c, s.Module)
	other.Split = split
	return other, nil
}

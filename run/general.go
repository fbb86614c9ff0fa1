package run

import (
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
)

// ReadNodes reads the graph of o.Data as the options say, without the defaults that are
// tuned for a data set of its name. A collection of graphs is an error.
func ReadNodes(o TrainOptions) (*data.Dataset, error) {
	c, err := o.configure(o.Model, "")
	if err != nil {
		return nil, err
	}
	read := LoadOptions(c)
	read.MaxBytes = o.Memory
	return data.Load(o.Data, read)
}

// PrepareNodes is [Prepare] for a graph in memory, without the defaults that are tuned for
// a data set of its name: o.Data is not read.
func PrepareNodes(o TrainOptions, ds *data.Dataset) (*Setup, error) {
	t, err := loaded(ds, nil, nil)
	if err != nil {
		return nil, err
	}
	c, err := o.configure(o.Model, "")
	if err != nil {
		return nil, err
	}
	if err := o.guess(t.Info(), o.Model, c); err != nil {
		return nil, err
	}
	m, err := t.Module(o.Model, c)
	if err != nil {
		return nil, err
	}
	return newSetup(o.Model, t, c, m), nil
}

// On returns the set-up for the same graph with other labels, or on a split that is not the
// data's unless it is nil. set, which may be nil, changes the configuration without the program.
func (s *Setup) On(ds *data.Dataset, split *data.Split, set func(*config.Config)) (*Setup, error) {
	t, err := loaded(ds, nil, nil)
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

package config

import "github.com/gsrc-dev/gsrc/graph"

// Synthetic are the options of the generated graph, a contextual stochastic
// block model with wrong edges added and right ones hidden; see graph.CSBM. The
// seed of a run is the seed of its graph.
type Synthetic struct {
	Nodes         int     `toml:"nodes" range:"at least 1" doc:"number of nodes"`
	Classes       int     `toml:"classes" doc:"number of classes"`
	Features      int     `toml:"features" range:"at least 1" doc:"columns of the features"`
	CommunitySize int     `toml:"community_size" range:"at least 0" doc:"mean size of the groups within a class; 0 means one group"`
	Locality      float64 `toml:"locality" range:"between 0 and 1" doc:"share of the edges inside classes that are inside groups"`
	Individuality float64 `toml:"individuality" range:"between 0 and 1" doc:"share of the feature signal's variance that belongs to the group"`
	Degree        float64 `toml:"degree" range:"at least 0" doc:"mean degree of the true graph"`
	Homophily     float64 `toml:"homophily" range:"between 0 and 1" doc:"share of the true edges that join nodes of one class"`
	Signal        float64 `toml:"signal" range:"at least 0" doc:"strength of the features' signal, in units of their noise"`
	Density       float64 `toml:"density" range:"greater than 0 and at most 1" doc:"share of features that are 1; 1 gives real values in place of 0 and 1"`
	Wrong         float64 `toml:"wrong" range:"at least 0" doc:"wrong edges added, as a share of the true edges"`
	Hidden        float64 `toml:"hidden" range:"between 0 and 1" doc:"share of the true edges that are hidden"`
}

// CSBM returns the options of the generator.
func (s Synthetic) CSBM(seed uint64) graph.CSBM {
	return graph.CSBM{
		Nodes: s.Nodes, Classes: s.Classes, Features: s.Features,
		CommunitySize: s.CommunitySize, Locality: s.Locality, Individuality: s.Individuality,
		Degree: s.Degree, Homophily: s.Homophily, Signal: s.Signal, Density: s.Density,
		Wrong: s.Wrong, Hidden: s.Hidden, Seed: seed,
	}
}

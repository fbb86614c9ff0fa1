package config

// Synthetic are the options of the contextual stochastic block model; see
// graph.Generate.
type Synthetic struct {
}

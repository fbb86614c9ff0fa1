package pyg

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Activations lists the values of the setting activation.
var Activations = []string{"none", "relu", "elu", "leaky_relu", "sigmoid", "tanh"}

// argument is a setting of layers.
type argument struct {
	name  string
	kinds []string // of layers that have it
	set   func(l *Layer, value string) error
}

var weighted = []string{GCN, GAT, SAGE, Linear}

var arguments = []argument{
	{"activation", weighted, func(l *Layer, v string) error { return oneOf(&l.Activation, v, Activations...) }},
	{"normalize", []string{GCN, SAGE}, func(l *Layer, v string) error { return boolean(&l.Normalize, v) }},
	{"add_self_loops", []string{GCN, GAT}, func(l *Layer, v string) error {
		if err := boolean(&l.SelfLoops, v); err != nil || l.SelfLoops || l.Kind == GCN {
			return err
		}
		return errors.New("a GATConv that adds no self-loops is not read")
	}},
	{"improved", []string{GCN}, func(l *Layer, v string) error { return boolean(&l.Improved, v) }},
	{"concat", []string{GAT}, func(l *Layer, v string) error { return boolean(&l.Concat, v) }},
	{"negative_slope", []string{GAT}, func(l *Layer, v string) error { return number(&l.Slope, v, 0, 1) }},
	{"aggr", []string{SAGE}, func(l *Layer, v string) error {
		if v == "add" {
			v = "sum"
		}
		return oneOf(&l.Aggregate, v, "mean", "sum", "max")
	}},
	{"eps", []string{BatchNorm}, func(l *Layer, v string) error { return number(&l.Eps, v, 0, 1) }},
}

func oneOf(to *string, v string, known ...string) error {
	if !slices.Contains(known, v) {
		return fmt.Errorf("%q is none of %s", v, strings.Join(known, ", "))
	}
	*to = v
	return nil
}

func boolean(to *bool, v string) error {
	switch strings.ToLower(v) {
	case "true":
		*to = true
	case "false":
		*to = false
	default:
		return fmt.Errorf("%q is neither true nor false", v)
	}
	return nil
}

func number(to *float64, v string, lo, hi float64) error {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x >= lo && x <= hi) {
		return fmt.Errorf("%q is no number from %g to %g", v, lo, hi)
	}
	*to = x
	return nil
}

// apply enters the settings. Between layers stands ReLU where nothing else is said,
// and behind the last one nothing.
func (s *Stack) apply(settings []Setting) error {
	last := -1
	for i, l := range s.Layers {
		if l.Kind != BatchNorm {
			if last >= 0 {
				s.Layers[last].Activation = "relu"
			}
			last = i
		}
	}
	if last < 0 {
		return fmt.Errorf("the layers (%s) are normalisations only", s.names())
	}
	for _, x := range settings {
		if x.Key == "features" {
			if err := oneOf(&s.Features, x.Value, "none", "l1", "l2"); err != nil {
				return fmt.Errorf("features: %w", err)
			}
			continue
		}
		layer, key := "", x.Key
		if at := strings.LastIndexByte(x.Key, '.'); at >= 0 {
			layer, key = x.Key[:at], x.Key[at+1:]
		}
		if err := s.set(layer, key, x.Value, last); err != nil {
			return fmt.Errorf("%s: %w", x.Key, err)
		}
	}
	for _, l := range s.Layers {
		if l.Kind == GCN && l.Improved && !(l.Normalize && l.SelfLoops) {
			return fmt.Errorf("%s: improved changes the weight of self-loops, which normalize=false or add_self_loops=false leaves out", l.Name)
		}
	}
	return nil
}

func (s *Stack) set(layer, key, value string, last int) error {
	at := slices.IndexFunc(arguments, func(a argument) bool { return a.name == key })
	if at < 0 {
		known := []string{"features"}
		for _, a := range arguments {
			known = append(known, a.name)
		}
		return fmt.Errorf("there is no such setting; there are %s", strings.Join(known, ", "))
	}
	a := arguments[at]
	hit := false
	for i := range s.Layers {
		l := &s.Layers[i]
		if layer != "" && l.Name != layer || layer == "" && key == "activation" && i == last {
			continue
		}
		if !slices.Contains(a.kinds, l.Kind) {
			if layer == "" {
				continue
			}
			return fmt.Errorf("%s is a %s; %s is a setting of %s", l.Name, l.Kind, key, strings.Join(a.kinds, ", "))
		}
		if err := a.set(l, value); err != nil {
			return err
		}
		hit = true
	}
	switch {
	case hit, layer == "" && key == "activation": // of a single layer
		return nil
	case layer == "":
		return fmt.Errorf("no layer has this setting; it is one of %s", strings.Join(a.kinds, ", "))
	}
	return fmt.Errorf("there is no layer %q; there are %s", layer, s.names())
}

package onnx

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
)

// partNames are the paths that the values of a function begin with, by its name.
var partNames = map[string]string{"encode": "encoder", "score": "scorer", "classify": "classifier"}

func partName(fn string) string {
	if name, ok := partNames[fn]; ok {
		return name
	}
	return fn
}

// layers says where in a network operations and parameters are, so that a viewer of
// the file shows classifier/conv1/spmm and classifier/conv1/weight.
type layers struct {
	ops    map[*ir.Op]string // such as conv1; none where an operation belongs to no layer
	params map[string]string // by name of a parameter: its path
}

// layersOf finds the layers of a function. A layer begins with what reads its
// parameters, and with what follows the activation of the layer before.
func layersOf(fn *ir.Func) layers {
	l := layers{ops: map[*ir.Op]string{}, params: map[string]string{}}
	rank := map[string]int{} // of a layer's parameters, in the order of their use
	var stems []string
	type state struct {
		rank      int
		activated bool
	}
	at := map[*ir.Value]state{}
	of := map[*ir.Op]int{}
	results := map[*ir.Value]bool{}
	for _, r := range fn.Results {
		results[r.Value] = true
	}
	for _, op := range fn.Body {
		now := state{rank: -1}
		for _, v := range op.Operands {
			if v == nil {
				continue
			}
			s, ok := at[v]
			if stem := layerStem(v); stem != "" {
				if _, known := rank[stem]; !known {
					rank[stem] = len(stems)
					stems = append(stems, stem)
				}
				s, ok = state{rank: rank[stem]}, true
			}
			switch {
			case ok && s.rank > now.rank:
				now = s
			case ok && s.rank == now.rank:
				now.activated = now.activated || s.activated
			}
		}
		of[op] = now.rank
		switch name := op.Name(); {
		case name == "relu" || name == "elu":
			now.activated = true
		case now.activated:
			of[op]++
		case name == "softmax" && results[op.Results[0]]:
			of[op] = -1
		}
		for _, v := range op.Results {
			at[v] = now
		}
	}
	aggregates := map[int]bool{}
	for op, r := range of {
		for _, v := range op.Operands {
			if v != nil && v.Type.IsGraph() && !v.Type.IsBlock() {
				aggregates[r] = true
			}
		}
	}
	names, count := make([]string, len(stems)), 0
	for r, stem := range stems {
		last := stem[strings.LastIndexByte(stem, '.')+1:]
		if _, err := strconv.Atoi(last); err == nil {
			kind := "linear"
			if aggregates[r] {
				kind = "conv"
			}
			count++
			last = fmt.Sprintf("%s%d", kind, count)
		}
		names[r] = last
	}
	for op, r := range of {
		if r >= 0 && r < len(names) {
			l.ops[op] = names[r]
		}
		for _, v := range op.Operands {
			if v == nil || !v.Param {
				continue
			}
			path := v.Name
			if stem := layerStem(v); stem != "" {
				path = stem[:strings.LastIndexByte(stem, '.')+1] + names[rank[stem]] + v.Name[len(stem):]
			}
			l.params[v.Name] = strings.ReplaceAll(path, ".", "/")
		}
	}
	return l
}

// layerStem is what the names of a layer's parameters have in common, as classifier.0
// of classifier.0.weight; "" for other values.
func layerStem(v *ir.Value) string {
	parts := strings.SplitN(v.Name, ".", 3)
	if !v.Param || len(parts) < 3 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// path names what an operation is written as, within its part.
func (l layers) path(op *ir.Op) string {
	name := op.Results[0].Name
	layer, ok := l.ops[op]
	if !ok {
		return name
	}
	if i := strings.LastIndexByte(name, '_'); i >= 0 {
		if _, err := strconv.Atoi(name[i+1:]); err == nil {
			name = name[:i] // numbered among its layer's
		}
	}
	return layer + "/" + name
}

// param is the path of a parameter.
func (l layers) param(name string) string {
	if path, ok := l.params[name]; ok {
		return path
	}
	return strings.ReplaceAll(name, ".", "/")
}

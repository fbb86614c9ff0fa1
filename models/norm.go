package models

import "github.com/gsrc-dev/gsrc/ir"

// norm is batch normalisation (Ioffe and Szegedy 2015): with the statistics of the
// batch in training, which move the running ones, and with these in evaluation.
type norm struct{ scale, shift, mean, variance *ir.Value }

// RunningPrefix begins the names of a training function's results that move a
// parameter towards them: the result running.p moves $p.
const RunningPrefix = "running."

// statisticsGroup has the parameters that no gradient moves.
const statisticsGroup = "statistics"

const normEps = 1e-5

func declareNorm(m *ir.Module, name string, width int) norm {
	t := ir.T(ir.F32, ir.D(width))
	return norm{
		scale:    m.AddParam(name+".scale", t, "ones", 0, "classifier"),
		shift:    m.AddParam(name+".shift", t, "zeros", 0, "classifier"),
		mean:     m.AddParam(name+".mean", t, "zeros", 0, statisticsGroup),
		variance: m.AddParam(name+".variance", t, "ones", 0, statisticsGroup),
	}
}

// apply normalises the columns of x. seen nil is evaluation.
func (n norm) apply(b *ir.Builder, x *ir.Value, seen *statistics) *ir.Value {
	mean, variance := n.mean, n.variance
	if seen != nil {
		axis := ir.Attrs{"axis": "0"}
		mean = b.One("reduce_mean", axis, x)
		d := b.Sub(x, mean)
		variance = b.One("reduce_mean", axis, b.One("square", nil, d))
		seen.add(n.mean, mean)
		seen.add(n.variance, variance)
		x = d
	} else {
		x = b.Sub(x, mean)
	}
	factor := b.Mul(b.One("rsqrt", nil, b.Shift(variance, normEps)), n.scale)
	return b.Add(b.Mul(x, factor), n.shift)
}

// statistics are what the normalisations of a training function have seen, in each of
// the samples that it runs the network on.
type statistics struct {
	params []*ir.Value   // running means and variances
	values [][]*ir.Value // of each, one a sample
}

func (s *statistics) add(param, value *ir.Value) {
	for i, p := range s.params {
		if p == param {
			s.values[i] = append(s.values[i], value)
			return
		}
	}
	s.params, s.values = append(s.params, param), append(s.values, []*ir.Value{value})
}

// returnMeans returns the mean over the samples of each, as what moves its parameter.
func (s *statistics) returnMeans(b *ir.Builder) {
	for i, p := range s.params {
		var mean *ir.Value
		for _, v := range s.values[i] {
			mean = b.Plus(mean, v)
		}
		if n := len(s.values[i]); n > 1 {
			mean = b.Scale(mean, 1/float64(n))
		}
		b.Return(RunningPrefix+p.Name, mean)
	}
}

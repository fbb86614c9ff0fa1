package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
)

// The tests of this file hold structure learners to programs in float64 that are written from
// the methods' papers, with dense matrices, and know nothing of this project's operations:
// the losses of a few steps, and the parameters behind them. Gradients are central differences.

type matrix [][]float64

func newMatrix(rows, cols int) matrix {
	m := make(matrix, rows)
	for i := range m {
		m[i] = make([]float64, cols)
	}
	return m
}

// slopes fills the gradient of a loss by the entries of a symmetric matrix off its diagonal, by
// differences of 2h, half of which each of both entries has.
func (a matrix) slopes(gradient matrix, h float64, loss func() float64) {
	for i := range a {
		for j := range i {
			v := a[i][j]
			a[i][j], a[j][i] = v+h, v+h
			up := loss()
			a[i][j], a[j][i] = v-h, v-h
			g := (up - loss()) / (4 * h)
			a[i][j], a[j][i] = v, v
			gradient[i][j], gradient[j][i] = g, g
		}
	}
}

func (a matrix) times(b matrix) matrix {
	y := newMatrix(len(a), len(b[0]))
	for i, row := range a {
		for k, v := range row {
			for j, w := range b[k] {
				y[i][j] += v * w
			}
		}
	}
	return y
}

func (a matrix) apply(f func(i, j int, v float64) float64) matrix {
	y := newMatrix(len(a), len(a[0]))
	for i, row := range a {
		for j, v := range row {
			y[i][j] = f(i, j, v)
		}
	}
	return y
}

// plusDiagonal is A + d·I.
func (a matrix) plusDiagonal(d float64) matrix {
	return a.apply(func(i, j int, v float64) float64 {
		if i == j {
			v += d
		}
		return v
	})
}

// normalised is D^-½·A·D^-½.
func (a matrix) normalised() matrix {
	degree := make([]float64, len(a))
	for i, row := range a {
		for _, v := range row {
			degree[i] += v
		}
	}
	return a.apply(func(i, j int, v float64) float64 { return v / math.Sqrt(degree[i]*degree[j]) })
}

// cosines of all pairs of rows.
func (a matrix) cosines() matrix {
	dot := func(x, y []float64) (s float64) {
		for i, v := range x {
			s += v * y[i]
		}
		return s
	}
	y := newMatrix(len(a), len(a))
	for i := range a {
		for j := range a {
			y[i][j] = dot(a[i], a[j]) / math.Sqrt(dot(a[i], a[i])*dot(a[j], a[j]))
		}
	}
	return y
}

func (a matrix) crossEntropy(rows []int32, labels []int32) (loss float64) {
	for _, v := range rows {
		total := 0.0
		for _, x := range a[v] {
			total += math.Exp(x)
		}
		loss -= (a[v][labels[v]] - math.Log(total)) / float64(len(rows))
	}
	return loss
}

// checkLoss holds the loss on validation nodes to that of logits.
func checkLoss(t *testing.T, tr *trainer, logits matrix, labels []int32, tolerance float64) {
	t.Helper()
	got, err := tr.steps.evaluate()
	if want := logits.crossEntropy(tr.split.Val, labels); err != nil || !(math.Abs(got.valLoss-want) <= tolerance*want) {
		t.Errorf("loss on validation nodes %.6f, %v, want %.6f", got.valLoss, err, want)
	}
}

// checkProbabilities holds the candidates' probabilities to those of a matrix, of which so many
// are to be neither 0 nor 1.
func checkProbabilities(t *testing.T, tr *trainer, alg algorithm1, epoch int, p matrix, least int) {
	t.Helper()
	if err := alg.refiner.fetch(); err != nil {
		t.Fatal(err)
	}
	within, most := 0, 0.0
	for k, e := range tr.edges.cand.Edges {
		want := p[e[0]][e[1]]
		most = max(most, math.Abs(float64(tr.edges.p[k])-want))
		if want > 0 && want < 1 {
			within++
		}
	}
	if most > 2e-5 || within < least {
		t.Errorf("epoch %d: probabilities are up to %.6f apart, %d of them within 0 and 1", epoch, most, within)
	}
}

// adam is Kingma and Ba's Algorithm 1, with weight decay added to the gradient.
type adam struct {
	lr, decay float64
	p, m, v   []float64
}

func (a *adam) step(grad []float64, t int) {
	for i, g := range grad {
		g += a.decay * a.p[i]
		a.m[i] = 0.9*a.m[i] + 0.1*g
		a.v[i] = 0.999*a.v[i] + 0.001*g*g
		a.p[i] -= a.lr * (a.m[i] / (1 - math.Pow(0.9, float64(t)))) / (math.Sqrt(a.v[i]/(1-math.Pow(0.999, float64(t)))) + 1e-8)
	}
}

// reference has the parameters of a run in float64, and its data as matrices.
type reference struct {
	x, a   matrix // features, and the adjacency
	params map[string]*adam
}

func newReference(t *trainer, ds *data.Dataset) *reference {
	r := &reference{a: newMatrix(ds.Graph.N, ds.Graph.N), params: map[string]*adam{}}
	x := ds.X.ToDense()
	for i := range ds.Graph.N {
		var row []float64
		for _, v := range x.Dense[i*x.Cols:][:x.Cols] {
			row = append(row, float64(v))
		}
		r.x = append(r.x, row)
	}
	for _, e := range ds.Graph.Undirected().Edges {
		r.a[e[0]][e[1]], r.a[e[1]][e[0]] = 1, 1
	}
	for _, p := range t.optim.Params {
		n := len(p.Value.F32)
		a := &adam{lr: p.Group.LR, decay: float64(p.Decay), p: make([]float64, n), m: make([]float64, n), v: make([]float64, n)}
		for i, v := range p.Value.F32 {
			a.p[i] = float64(v)
		}
		r.params[p.Name] = a
	}
	return r
}

// matrix returns a parameter as a matrix of that many columns.
func (r *reference) matrix(name string, cols int) matrix {
	var m matrix
	for row := range slices.Chunk(r.params[name].p, cols) {
		m = append(m, row)
	}
	return m
}

// bias adds a parameter to each row.
func (r *reference) bias(x matrix, name string) matrix {
	b := r.params[name].p
	return x.apply(func(_, j int, v float64) float64 { return v + b[j] })
}

// update moves the parameters of names along the gradient of a loss, step t from 1, and
// returns the loss before.
func (r *reference) update(loss func() float64, t int, names []string) float64 {
	before := loss()
	grads := map[string][]float64{}
	for _, name := range names {
		a := r.params[name]
		grads[name] = make([]float64, len(a.p))
		for i, v := range a.p {
			const h = 1e-5
			a.p[i] = v + h
			up := loss()
			a.p[i] = v - h
			grads[name][i] = (up - loss()) / (2 * h)
			a.p[i] = v
		}
	}
	for name, g := range grads {
		r.params[name].step(g, t)
	}
	return before
}

// nearest marks the k largest off the diagonal of each row, and their transposes.
func (a matrix) nearest(k int) matrix {
	y := newMatrix(len(a), len(a))
	for i, row := range a {
		order := make([]int, 0, len(row))
		for j := range row {
			if j != i {
				order = append(order, j)
			}
		}
		slices.SortFunc(order, func(p, q int) int {
			if row[p] > row[q] {
				return -1
			}
			return 1
		})
		for _, j := range order[:k] {
			y[i][j], y[j][i] = 1, 1
		}
	}
	return y
}

// compareSteps holds steps of a run that move the parameters of groups to a reference's.
func compareSteps(t *testing.T, tr *trainer, r *reference, steps int, groups []string, run func(step int) float64, loss func(step int) func() float64) {
	t.Helper()
	var names []string
	for _, p := range tr.optim.Params {
		if slices.Contains(groups, p.Group.Name) {
			names = append(names, p.Name)
		}
	}
	for step := range steps {
		want := r.update(loss(step), step+1, names)
		if got := run(step); !(math.Abs(got-want) <= 2e-5*math.Abs(want)) {
			t.Errorf("step %d: loss %.7f, want %.7f", step, got, want)
		}
		for _, p := range tr.optim.Params {
			for i, v := range p.Value.F32 {
				if want := r.params[p.Name].p[i]; !(math.Abs(float64(v)-want) <= 1e-3*max(0.05, math.Abs(want))) {
					t.Fatalf("step %d: %s[%d] is %.7f, want %.7f", step, p.Name, i, v, want)
				}
			}
		}
	}
}

// tiny is a graph on which central differences of all parameters take no time.
func tiny(t *testing.T) *data.Dataset {
	t.Helper()
	o := configure(t, "gcn").Synthetic.CSBM(3)
	o.Nodes, o.Features, o.CommunitySize = 40, 12, 8
	ds, err := data.Load(data.Synthetic, data.LoadOptions{Seed: 3, Synthetic: &o, Split: "random:0.3,0.3,0.4"})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// addNoise makes features such that no two pairs of nodes are equally alike, and none unlike.
func addNoise(ds *data.Dataset) {
	noise := rng.New(5, "features")
	x := ds.X.ToDense()
	ds.X = &data.Features{Rows: x.Rows, Cols: x.Cols, Dense: slices.Clone(x.Dense)}
	for i := range ds.X.Dense {
		ds.X.Dense[i] += 0.2 * noise.Uniform(uint64(i))
	}
}

// GRCN (Yu et al. 2020): z = Â·tanh(Â(X∘w₁))∘w₂, S the cosines of z between nodes that are
// edges or near, and on the diagonal; the classifier is a GCN on A + I + S.
func TestGRCN(t *testing.T) {
	ds := tiny(t)
	const k, hidden = 4, 6
	cfg := configure(t, "grcn", "candidates.k=4", "model.encoder.kind=diagonal", "model.edges.threshold=0", "model.hidden=6", "model.dropout=0", "model.input_dropout=0",
		"model.norm=none", "train.joint_every=1", "train.refresh_every=1", "train.pretrain_steps=0", "train.encoder_lr=0.02", "train.lr=0.02", "model.weight_decay=0.01")
	tr := started(t, Job{Model: "grcn", Task: Nodes(ds)}, cfg, Options{})
	defer tr.close()
	alg := algorithm1{tr, tr.steps.(refiner)}
	r := newReference(tr, ds)
	withSelf := r.a.plusDiagonal(1)
	embed := func() matrix {
		n := withSelf.normalised()
		scale := func(x matrix, name string) matrix {
			w := r.params[name].p
			return x.apply(func(_, j int, v float64) float64 { return v * w[j] })
		}
		h := n.times(scale(r.x, "encoder.0.scale")).apply(func(_, _ int, v float64) float64 { return math.Tanh(v) })
		return n.times(scale(h, "encoder.1.scale"))
	}
	var logits func() matrix
	loss := func(int) func() float64 {
		near := embed().cosines().nearest(k)
		logits = func() matrix {
			s := embed().cosines()
			revised := withSelf.apply(func(i, j int, v float64) float64 {
				if i == j || v > 0 || near[i][j] > 0 {
					v += max(0, s[i][j])
				}
				return v
			}).normalised()
			h := r.bias(revised.times(r.x.times(r.matrix("classifier.0.weight", hidden))), "classifier.0.bias")
			h = h.apply(func(_, _ int, v float64) float64 { return max(0, v) })
			return r.bias(revised.times(h.times(r.matrix("classifier.1.weight", ds.Classes))), "classifier.1.bias")
		}
		return func() float64 { return logits().crossEntropy(tr.split.Train, ds.Labels) }
	}
	compareSteps(t, tr, r, 3, []string{"encoder", "classifier"}, func(step int) float64 {
		_, loss, err := alg.epoch(step)
		if err != nil {
			t.Fatal(err)
		}
		tr.state.Epoch++
		return loss
	}, loss)
	if err := alg.refresh(); err != nil {
		t.Fatal(err)
	}
	checkLoss(t, tr, logits(), ds.Labels, 1e-4)
}

// STABLE (Li et al. 2022): Deep Graph Infomax on the graph without edges of small Jaccard
// index, against two views in which some are back; edges by the cosine of representations;
// and a classifier of these with propagation D_i^α·D_j^α(A + I), rows adding up to 1.
func TestSTABLE(t *testing.T) {
	ds := tiny(t)
	const k, hidden, width = 3, 5, 6
	const jaccard, recovered, self, cosine, power = 0.2, 0.4, 2, 0.8, 0.6
	cfg := configure(t, "stable", "candidates.k=3", "model.encoder.hidden=6", "model.hidden=5", "model.dropout=0", "model.input_dropout=0", "model.norm=none", "model.edges.threshold=0.5",
		"train.joint_every=0", "train.encoder_lr=0.02", "train.lr=0.02", "model.weight_decay=0.01",
		"model.stable.jaccard=0.2", "model.stable.recover=0.4", "model.stable.self_weight=2", "model.stable.cosine=0.8", "model.stable.degree_power=0.6")
	tr := started(t, Job{Model: "stable", Task: Nodes(ds)}, cfg, Options{})
	defer tr.close()
	for i, b := 0, tr.optim.Lookup("encoder.bias").Value.F32; i < len(b); i++ {
		b[i] = 0.05*float32(i) - 0.113 // at 0, nodes without features are at the activation's kink
	}
	r := newReference(tr, ds)

	dropped, n := 0, ds.Graph.N
	sharing := r.a.apply(func(i, j int, v float64) float64 {
		both, either := 0.0, 0.0
		for f, x := range r.x[i] {
			if x != 0 && r.x[j][f] != 0 {
				both++
			}
			if x != 0 || r.x[j][f] != 0 {
				either++
			}
		}
		if v > 0 && both/either < jaccard {
			dropped++
			return 0
		}
		return v
	})
	embed := func(a, x matrix) matrix {
		h := r.bias(a.plusDiagonal(self).normalised().times(x.times(r.matrix("encoder.weight", width))), "encoder.bias")
		return h.apply(func(_, _ int, v float64) float64 { return max(0, v) + 0.25*r.params["encoder.slope"].p[0]*min(0, v) })
	}
	stream := func(name string, step int) rng.Stream { return tr.stream("train").Sub(name).At(uint64(step)) }
	contrast := func(step int) func() float64 {
		view := func(name string) matrix {
			s := stream(name+".edges", step)
			return r.a.apply(func(i, j int, v float64) float64 {
				if v > 0 && s.UniformPair(uint32(i), uint32(j)) < recovered {
					return 1
				}
				return sharing[i][j]
			})
		}
		views := []matrix{view("view1"), view("view2")}
		order, draws := make([]int, n), stream("permutation", step)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(draws.Uniform(uint64(a)), draws.Uniform(uint64(b))) })
		var permuted matrix
		for _, i := range order {
			permuted = append(permuted, r.x[i])
		}
		return func() float64 {
			b, offset := r.matrix("discriminator.weight", width), r.params["discriminator.bias"].p[0]
			positive, negative := embed(sharing, r.x), embed(sharing, permuted)
			var summaries matrix
			for _, v := range views {
				mean := make([]float64, width)
				for _, row := range embed(v, r.x) {
					for f, x := range row {
						mean[f] += x / float64(n)
					}
				}
				for f, x := range mean {
					mean[f] = 1 / (1 + math.Exp(-x))
				}
				summaries = append(summaries, mean)
			}
			loss := 0.0
			for i := range n {
				for sign, h := range map[float64][]float64{1: positive[i], -1: negative[i]} {
					logit := 0.0
					for _, c := range summaries {
						for p := range h {
							for q := range c {
								logit += h[p] * b[p][q] * c[q]
							}
						}
						logit += offset
					}
					loss += math.Log(1+math.Exp(-sign*logit)) / float64(2*n)
				}
			}
			return loss
		}
	}
	ref := tr.steps.(refiner)
	f, err := tr.prog.function("pretrain")
	if err != nil {
		t.Fatal(err)
	}
	if err := ref.startContrast(f); err != nil {
		t.Fatal(err)
	}
	compareSteps(t, tr, r, 3, []string{"encoder"}, func(int) float64 {
		loss, err := ref.contrast(f)
		if err != nil {
			t.Fatal(err)
		}
		tr.state.Pretrained++
		return loss
	}, contrast)

	h := embed(sharing, r.x)
	s := h.cosines()
	kept := r.a.apply(func(i, j int, v float64) float64 {
		if s[i][j] <= cosine {
			return 0
		}
		return v
	})
	degree := func(i int) (d float64) {
		for _, v := range kept[i] {
			d += v
		}
		return d
	}
	near := s.nearest(k)
	added := 0
	refined := kept.apply(func(i, j int, v float64) float64 {
		if r.a[i][j] == 0 && near[i][j] > 0 && max(degree(i), degree(j)) > 1 {
			added++
			return 1
		}
		return v
	})
	weighed := refined.plusDiagonal(1)
	total := make([]float64, n)
	for i, row := range weighed {
		for _, v := range row {
			total[i] += v
		}
	}
	weighed = weighed.apply(func(i, j int, v float64) float64 { return v * math.Pow(total[i], power) * math.Pow(total[j], power) })
	sums := make([]float64, n)
	for i, row := range weighed {
		for _, v := range row {
			sums[i] += v
		}
	}
	weighed = weighed.apply(func(i, _ int, v float64) float64 { return v / sums[i] })
	logits := func() matrix {
		y := r.bias(weighed.times(h.times(r.matrix("classifier.0.weight", hidden))), "classifier.0.bias").apply(func(_, _ int, v float64) float64 { return max(0, v) })
		return r.bias(weighed.times(y.times(r.matrix("classifier.1.weight", ds.Classes))), "classifier.1.bias")
	}
	alg := algorithm1{tr, ref}
	compareSteps(t, tr, r, 2, []string{"classifier"}, func(step int) float64 {
		_, loss, err := alg.epoch(step)
		if err != nil {
			t.Fatal(err)
		}
		tr.state.Epoch++
		return loss
	}, func(int) func() float64 {
		return func() float64 { return logits().crossEntropy(tr.split.Train, ds.Labels) }
	})
	checkLoss(t, tr, logits(), ds.Labels, 1e-4)
	if dropped == 0 || added == 0 {
		t.Errorf("%d entries of small Jaccard index and %d new ones: the test tells little", dropped, added)
	}
}

// relu is max(0, v).
func (a matrix) relu() matrix {
	return a.apply(func(_, _ int, v float64) float64 { return max(0, v) })
}

// takesNearest returns S: cosines that are not negative of each node's k nearest others, and
// of those as near as the last, the mean of both directions, and 1 on the diagonal. chosen are
// the cosines by which they are.
func takesNearest(chosen, s matrix, k int) matrix {
	least := make([]float64, len(s))
	for i, row := range chosen {
		others := slices.Clone(row)
		others = slices.Delete(others, i, i+1)
		slices.Sort(others)
		least[i] = others[len(others)-k] - 1e-9
	}
	return s.apply(func(i, j int, v float64) float64 {
		w := 0.0
		if chosen[i][j] >= least[i] {
			w += 0.5
		}
		if chosen[i][j] >= least[j] {
			w += 0.5
		}
		if i == j {
			return 1
		}
		return w * max(0, v)
	})
}

// SUBLIME (Liu et al. 2022): the loss NT-Xent between a view on the graph of nearest neighbours
// by a learner, or by weights of their own, and one on the anchor graph, which follows it, and a
// classifier on the learned graph. All pairs are candidates, so that the moving average is the
// whole one.
func TestSUBLIME(t *testing.T) {
	for _, kind := range []string{models.EncoderDiagonal, models.EncoderFGP} {
		t.Run(kind, func(t *testing.T) { testSUBLIME(t, kind) })
	}
}

func testSUBLIME(t *testing.T, kind string) {
	ds := tiny(t)
	free := kind == models.EncoderFGP
	const k, hidden, width, classifier = 3, 6, 4, 5
	const maskAnchor, maskLearned, dropped, unseen, momentum, temperature = 0.2, 0.3, 0.25, 0.3, 0.8, 0.3
	const lr = 0.02 // of weights of their own
	cfg := configure(t, "sublime", "model.encoder.kind="+kind, "model.sublime.lr=0.02", "candidates.k=39", "model.sublime.k=3", "model.encoder.hidden=6", "model.encoder.projection=4", "model.hidden=5", "model.dropout=0", "model.input_dropout=0",
		"model.views.mask_features=0.3", "model.views.drop_edges=0.25", "model.sublime.mask_anchor=0.2", "model.sublime.drop_edges=0.3", "model.sublime.momentum=0.8", "model.ecl.tau=0.6", "model.edges.threshold=0",
		"train.pretrain_steps=3", "train.refresh_every=2", "train.anchors=0", "train.encoder_lr=0.02", "train.lr=0.02", "model.weight_decay=0.01")
	tr := started(t, Job{Model: "sublime", Task: Nodes(ds)}, cfg, Options{})
	defer tr.close()
	for _, p := range tr.optim.Params { // no activation at its kink
		for i := range p.Value.F32 {
			switch {
			case strings.HasSuffix(p.Name, ".bias"):
				p.Value.F32[i] = 0.05*float32(i) - 0.113
			case strings.HasSuffix(p.Name, ".scale"):
				p.Value.F32[i] = 1 + 0.3*float32(math.Sin(float64(3*i+len(p.Name))))
			}
		}
	}
	r := newReference(tr, ds)
	n := ds.Graph.N
	zeroes := func(cos matrix) matrix {
		return cos.apply(func(_, _ int, v float64) float64 {
			if math.IsNaN(v) { // of a node without features
				return 0
			}
			return v
		})
	}
	cosines := func() matrix {
		if free {
			return zeroes(r.x.cosines())
		}
		scale := func(x matrix, name string) matrix {
			w := r.params[name].p
			return x.apply(func(_, j int, v float64) float64 { return v * w[j] })
		}
		h := scale(r.x, "encoder.0.scale").apply(func(_, _ int, v float64) float64 { return math.Tanh(v) })
		return zeroes(scale(h, "encoder.1.scale").cosines())
	}
	// number is the place of an entry among those of the candidates.
	number := map[[2]int]uint64{}
	ref := tr.steps.(*nodeSteps)
	numbered := func() {
		in := ref.candidateSet().Structure().In
		for i := range n {
			for e := in.RowPtr[i]; e < in.RowPtr[i+1]; e++ {
				number[[2]int{i, int(in.Col[e])}] = uint64(e)
			}
		}
	}
	stream := func(name string, step int) rng.Stream { return tr.stream("train").Sub(name).At(uint64(step)) }
	drop := func(a matrix, name string, rate float64, step int) matrix {
		edges, self := stream(name+".edges", step), stream(name+".self", step)
		return a.apply(func(i, j int, v float64) float64 {
			u := self.Uniform(uint64(i))
			if i != j {
				u = edges.Uniform(number[[2]int{i, j}])
			}
			if float64(u) < rate {
				return 0
			}
			return v / (1 - rate)
		})
	}
	gcn := func(a, x matrix, name string, hidden, out int) matrix {
		h := r.bias(a.times(x.times(r.matrix(name+".0.weight", hidden))), name+".0.bias").relu()
		return r.bias(a.times(h.times(r.matrix(name+".1.weight", out))), name+".1.bias")
	}
	anchor := r.a.plusDiagonal(1).normalised()
	one := newMatrix(n, n).apply(func(_, _ int, _ float64) float64 { return 1 })
	theta := takesNearest(cosines(), one, k).apply(func(i, j int, v float64) float64 {
		if cosines()[i][j] <= 0 {
			return -6
		}
		return max(-6, math.Log(v))
	})
	own := func() matrix {
		return theta.apply(func(i, j int, v float64) float64 {
			switch _, candidate := number[[2]int{i, j}]; {
			case i == j:
				return 1
			case !candidate: // a node without features is nobody's neighbour
				return 0
			case v > 0:
				return v + 1
			}
			return math.Exp(v)
		})
	}
	learned := func() matrix {
		if free {
			return own()
		}
		c := cosines()
		return takesNearest(c, c, k)
	}
	dropBoth := func(a matrix, name string, rate float64, step int) matrix { // entries of both directions together
		edges, self := stream(name+".edges", step), stream(name+".self", step)
		return a.apply(func(i, j int, v float64) float64 {
			u := self.Uniform(uint64(i))
			if i != j {
				u = edges.UniformPair(uint32(i), uint32(j))
			}
			if float64(u) < rate {
				return 0
			}
			return v / (1 - rate)
		})
	}
	gradient, moment, square := newMatrix(n, n), newMatrix(n, n), newMatrix(n, n)
	move := func(loss func() float64, step int) (next matrix) { // a step of Adam
		theta.slopes(gradient, 1e-5, loss)
		return theta.apply(func(i, j int, v float64) float64 {
			g, t := gradient[i][j], float64(step+1)
			moment[i][j], square[i][j] = 0.9*moment[i][j]+0.1*g, 0.999*square[i][j]+0.001*g*g
			return v - lr*moment[i][j]/(1-math.Pow(0.9, t))/(math.Sqrt(square[i][j]/(1-math.Pow(0.999, t)))+1e-8)
		})
	}
	var next matrix
	contrast := func(step int) func() float64 {
		numbered()
		chosen := cosines()
		before := anchor
		now := learned().normalised()
		anchor = anchor.apply(func(i, j int, v float64) float64 { return momentum*v + (1-momentum)*now[i][j] })
		loss := func() float64 {
			view := func(name string, a matrix, rate float64, drop func(matrix, string, float64, int) matrix) matrix {
				u := stream(name+".mask", step)
				x := r.x.apply(func(_, j int, v float64) float64 {
					if float64(u.Uniform(uint64(j))) < rate {
						return 0
					}
					return v
				})
				h := gcn(drop(a, name, dropped, step), x, "contrast", hidden, width)
				h = r.bias(h.times(r.matrix("projector.0.weight", width)), "projector.0.bias").relu()
				return r.bias(h.times(r.matrix("projector.1.weight", width)), "projector.1.bias")
			}
			learned, dropLearned := own(), dropBoth
			if !free {
				learned, dropLearned = takesNearest(chosen, cosines(), k), drop
			}
			z1, z2 := view("anchor_view", before, maskAnchor, drop), view("learned_view", learned.normalised(), maskLearned, dropLearned)
			s := append(slices.Clone(z1), z2...).cosines()
			loss := 0.0
			for i := range n {
				row, col := 0.0, 0.0
				for j := range n {
					if j != i {
						row += math.Exp(s[i][n+j] / temperature)
						col += math.Exp(s[j][n+i] / temperature)
					}
				}
				loss += (math.Log(row) + math.Log(col) - 2*s[i][n+i]/temperature) / float64(2*n)
			}
			return loss
		}
		if free {
			next = move(loss, step)
		}
		return loss
	}
	f, err := tr.prog.function("pretrain")
	if err != nil {
		t.Fatal(err)
	}
	if err := ref.startContrast(f); err != nil {
		t.Fatal(err)
	}
	if err := chooseCarrying(ref); err != nil { // the candidates' order is known before the first step
		t.Fatal(err)
	}
	compareSteps(t, tr, r, 3, []string{"encoder"}, func(step int) float64 {
		loss, err := ref.contrast(f)
		if err != nil {
			t.Fatal(err)
		}
		tr.state.Pretrained++
		if !free {
			return loss
		}
		least, compared := 0.0, 0 // gradients that are large enough for float32 to tell their sign
		for at := range number {
			least = max(least, 1e-3*math.Abs(gradient[at[0]][at[1]]))
		}
		for at, e := range number {
			i, j, got := at[0], at[1], float64(tr.edges.carried["theta"].F32[e])
			if want := next[i][j]; !(math.Abs(gradient[i][j]) <= least) {
				compared++
				if !(math.Abs(got-want) <= 1e-3) {
					t.Fatalf("step %d: θ of (%d, %d) is %.5f, want %.5f", step, i, j, got, want)
				}
			}
			theta[i][j] = got
		}
		if compared < 100 {
			t.Errorf("step %d: of %d weights only %d could be compared", step, len(number), compared)
		}
		return loss
	}, contrast)

	alg := algorithm1{tr, ref}
	alg.chooseAnew()
	graph := learned().normalised()
	logits := func(a matrix) matrix { return gcn(a, r.x, "classifier", classifier, ds.Classes) }
	compareSteps(t, tr, r, 2, []string{"classifier"}, func(step int) float64 {
		_, loss, err := alg.epoch(step)
		if err != nil {
			t.Fatal(err)
		}
		tr.state.Epoch++
		return loss
	}, func(step int) func() float64 {
		seen := drop(graph, "classifier", unseen, 3+step)
		return func() float64 { return logits(seen).crossEntropy(tr.split.Train, ds.Labels) }
	})
	checkLoss(t, tr, logits(graph), ds.Labels, 1e-4)
}

// GEN (Wang et al. 2021): a graph convolutional network on the data's graph, and then on the
// pairs whose posterior is above ½, by expectation maximisation over four observations, all N²
// pairs of which the reference computes.
func TestGEN(t *testing.T) {
	ds := tiny(t)
	const k, hidden, threshold, tolerance = 3, 6, 0.5, 0.001
	addNoise(ds)
	for _, keep := range []bool{true, false} {
		cfg := configure(t, "gen", "candidates.k=3", "model.gen.k=3", fmt.Sprintf("model.gen.keep=%v", keep), "model.hidden=6", "model.dropout=0", "model.input_dropout=0",
			"model.norm=none", "model.gen.tolerance=0.001", "model.gen.steps=60", "train.refresh_every=2", "train.joint_every=0", "train.pretrain_steps=0", "train.lr=0.05", "model.weight_decay=0.01")
		tr := started(t, Job{Model: "gen", Task: Nodes(ds)}, cfg, Options{})
		for i, b := 0, tr.optim.Lookup("classifier.0.bias").Value.F32; i < len(b); i++ {
			b[i] = 0.3 + 0.1*float32(i) // no row of zeros
		}
		r := newReference(tr, ds)
		n := ds.Graph.N
		graph := r.a.apply(func(_, _ int, v float64) float64 { return v })
		layers := func() (h, z matrix) {
			a := graph.plusDiagonal(1).normalised()
			h = r.bias(a.times(r.x.times(r.matrix("classifier.0.weight", hidden))), "classifier.0.bias").relu()
			return h, r.bias(a.times(h.times(r.matrix("classifier.1.weight", ds.Classes))), "classifier.1.bias")
		}
		estimate := func() matrix {
			h, z := layers()
			class := make([]int, n)
			logs := z.apply(func(i, _ int, v float64) float64 {
				total := 0.0
				for _, w := range z[i] {
					total += math.Exp(w)
				}
				return v - math.Log(total)
			})
			for i, row := range z {
				for c, v := range row {
					if v > row[class[i]] {
						class[i] = c
					}
				}
			}
			size := make([]float64, ds.Classes)
			for _, v := range tr.split.Train {
				class[v] = int(ds.Labels[v])
			}
			for _, c := range class {
				size[c]++
			}
			seen, observations := newMatrix(n, n), 0.0
			if keep {
				seen, observations = r.a.apply(func(_, _ int, v float64) float64 { return v }), 1
			}
			for _, rows := range []matrix{r.x, h, logs} {
				near := rows.cosines().nearest(k)
				seen = seen.apply(func(i, j int, v float64) float64 { return v + near[i][j] })
				observations++
			}
			alpha, beta, omega := 0.8, 0.2, newMatrix(ds.Classes, ds.Classes).apply(func(_, _ int, _ float64) float64 { return 0.5 })
			posterior := func() matrix {
				return seen.apply(func(i, j int, e float64) float64 {
					w := omega[class[i]][class[j]]
					p1 := w * math.Pow(alpha, e) * math.Pow(1-alpha, observations-e)
					p2 := (1 - w) * math.Pow(beta, e) * math.Pow(1-beta, observations-e)
					return p1 / (p1 + p2)
				})
			}
			q, beforeAlpha, beforeBeta := posterior(), 0.0, 0.0
			for !(math.Abs(alpha-beforeAlpha) <= tolerance) || !(math.Abs(beta-beforeBeta) <= tolerance) {
				beforeAlpha, beforeBeta = alpha, beta
				var an, ad, bn, bd float64
				sums := newMatrix(ds.Classes, ds.Classes)
				for i := range n {
					for j := range i {
						an, ad = an+q[i][j]*seen[i][j], ad+q[i][j]*observations
						bn, bd = bn+(1-q[i][j])*seen[i][j], bd+(1-q[i][j])*observations
						sums[class[i]][class[j]] += q[i][j]
						sums[class[j]][class[i]] += q[i][j]
					}
				}
				alpha, beta = an/ad, bn/bd
				omega = sums.apply(func(a, b int, v float64) float64 {
					if a == b {
						return v / (size[a] * (size[a] - 1)) // each pair was added twice
					}
					return v / (size[a] * size[b])
				})
				q = posterior()
			}
			return q.apply(func(i, j int, v float64) float64 {
				if keep && r.a[i][j] > 0 {
					return 1
				}
				if i == j {
					return 0
				}
				return v
			})
		}
		added, dropped := 0, 0
		alg := algorithm1{tr, tr.steps.(refiner)}
		compareSteps(t, tr, r, 5, []string{"classifier"}, func(step int) float64 {
			_, loss, err := alg.epoch(step)
			if err != nil {
				t.Fatal(err)
			}
			tr.state.Epoch++
			return loss
		}, func(step int) func() float64 {
			if step > 0 && step%2 == 0 {
				graph = estimate().apply(func(i, j int, v float64) float64 {
					switch edge := v >= threshold; {
					case edge && r.a[i][j] == 0:
						added++
					case !edge && r.a[i][j] > 0:
						dropped++
					case !edge:
						return 0
					default:
						return 1
					}
					return 1 - r.a[i][j]
				})
			}
			return func() float64 { _, z := layers(); return z.crossEntropy(tr.split.Train, ds.Labels) }
		})
		if added == 0 || !keep && dropped == 0 {
			t.Errorf("keep %v: %d entries added, %d dropped: the test tells little", keep, added, dropped)
		}
		tr.close()
	}
}

// inverse is a⁻¹, by Gauss and Jordan with pivots.
func (a matrix) inverse() matrix {
	n := len(a)
	y := newMatrix(n, n).plusDiagonal(1)
	a = a.plusDiagonal(0)
	for c := range n {
		p := c
		for i := c; i < n; i++ {
			if !(math.Abs(a[i][c]) <= math.Abs(a[p][c])) {
				p = i
			}
		}
		a[c], a[p], y[c], y[p] = a[p], a[c], y[p], y[c]
		for i := range n {
			for k, d, f := 0, a[c][c], a[i][c]; k < n; k++ {
				if i == c {
					a[i][k], y[i][k] = a[i][k]/d, y[i][k]/d
				}
				if i > c || i < c {
					a[i][k], y[i][k] = a[i][k]-f/d*a[c][k], y[i][k]-f/d*y[c][k]
				}
			}
		}
	}
	return y
}

// absolute is V·|Λ|·Vᵀ of a symmetric V·Λ·Vᵀ: a·sign(a), the sign by Newton's iteration.
func (a matrix) absolute() matrix {
	sign := a
	for range 60 {
		inverse := sign.inverse()
		sign = sign.apply(func(i, j int, v float64) float64 { return (v + inverse[i][j]) / 2 })
	}
	return a.times(sign)
}

// Pro-GNN (Jin et al. 2020): steps of a GCN on S, and between them steps of S: gradient descent
// with momentum on ‖S − A‖_F + γ·L_GCN + λ·tr(XᵀL̂X), the proximal operators of the nuclear norm
// and of the L1 norm, and the projection to [0, 1]. All pairs are candidates.
func TestProGNN(t *testing.T) {
	ds := tiny(t)
	addNoise(ds)
	const hidden, alpha, beta, gamma, lambda, lr, momentum = 6, 0.2, 6, 2, 0.3, 0.05, 0.5
	cfg := configure(t, "prognn", "candidates.k=39", "model.hidden=6", "model.dropout=0", "model.input_dropout=0", "model.norm=none", "model.edges.threshold=0",
		"model.prognn.sparse=0.2", "model.prognn.nuclear=6", "model.prognn.classifier=2", "model.prognn.smooth=0.3", "model.prognn.lr=0.05", "model.prognn.momentum=0.5", "model.prognn.rank=40",
		"train.joint_every=3", "train.lr=0.02", "model.weight_decay=0.01")
	tr := started(t, Job{Model: "prognn", Task: Nodes(ds)}, cfg, Options{})
	defer tr.close()
	for i, b := 0, tr.optim.Lookup("classifier.0.bias").Value.F32; i < len(b); i++ {
		b[i] = 0.05*float32(i) - 0.113 // no activation at its kink
	}
	r := newReference(tr, ds)
	n := ds.Graph.N
	s, velocity := r.a.plusDiagonal(0), newMatrix(n, n)
	logits := func() matrix {
		a := s.plusDiagonal(1).normalised()
		h := r.bias(a.times(r.x.times(r.matrix("classifier.0.weight", hidden))), "classifier.0.bias").relu()
		return r.bias(a.times(h.times(r.matrix("classifier.1.weight", ds.Classes))), "classifier.1.bias")
	}
	xent := func() float64 { return logits().crossEntropy(tr.split.Train, ds.Labels) }
	products := r.x.times(newMatrix(len(r.x[0]), n).apply(func(f, i int, _ float64) float64 { return r.x[i][f] }))
	smooth := func() float64 {
		fro, feature, degree := 0.0, 0.0, make([]float64, n)
		for i, row := range s {
			for j, v := range row {
				degree[i] += v
				fro += (v - r.a[i][j]) * (v - r.a[i][j])
			}
		}
		for i, row := range s {
			for j, v := range row {
				l := -v
				if i == j {
					l += degree[i]
				}
				feature += l * products[i][j] / math.Sqrt((degree[i]+0.001)*(degree[j]+0.001))
			}
		}
		return math.Sqrt(fro) + gamma*xent() + lambda*feature
	}
	step := func() {
		gradient := newMatrix(n, n)
		s.slopes(gradient, 1e-6, smooth)
		velocity = velocity.apply(func(i, j int, v float64) float64 { return momentum*v + gradient[i][j] })
		s = s.apply(func(i, j int, v float64) float64 { return v - lr*velocity[i][j] })
		above, below := s.plusDiagonal(lr*beta).absolute(), s.plusDiagonal(-lr*beta).absolute()
		s = s.apply(func(i, j int, v float64) float64 {
			v -= (above[i][j] - below[i][j]) / 2
			if i == j {
				return 0
			}
			return max(0, min(1, v-lr*alpha))
		})
	}
	alg := algorithm1{tr, tr.steps.(refiner)}
	names := []string{"classifier.0.weight", "classifier.0.bias", "classifier.1.weight", "classifier.1.bias"}
	for epoch, moves := 0, 0; epoch < 6; epoch++ {
		joint := (epoch+1)%3 == 0
		want := xent()
		if joint {
			step()
		} else {
			moves++
			r.update(xent, moves, names)
		}
		_, got, err := alg.epoch(epoch)
		if err != nil {
			t.Fatal(err)
		}
		tr.state.Epoch++
		if !(math.Abs(got-want) <= 5e-5*want) {
			t.Errorf("epoch %d: loss %.7f, want %.7f", epoch, got, want)
		}
		for _, name := range names {
			for i, v := range tr.optim.Lookup(name).Value.F32 {
				if want := r.params[name].p[i]; !(math.Abs(float64(v)-want) <= 1e-3*max(0.05, math.Abs(want))) {
					t.Fatalf("epoch %d: %s[%d] is %.7f, want %.7f", epoch, name, i, v, want)
				}
			}
		}
		if !joint {
			continue
		}
		checkProbabilities(t, tr, alg, epoch, s, 50)
	}
	checkLoss(t, tr, logits(), ds.Labels, 2e-4)
}

// IDGL (Chen et al. 2020): graph and embedding in turn, until the similarities change little. All
// pairs are candidates.
func TestIDGL(t *testing.T) {
	ds := tiny(t)
	addNoise(ds)
	const heads, hidden, epsilon, keep, update, smooth, degrees, sparse = 2, 6, 0.7, 0.6, 0.3, 5, 0.2, 3
	for _, c := range []struct {
		tolerance float64
		turns     int // behind the first
	}{{0, 3}, {1, 2}} {
		cfg := configure(t, "idgl", "candidates.k=39", "model.hidden=6", "model.dropout=0", "model.input_dropout=0", "model.norm=none", "model.edges.threshold=0", "model.weight_decay=0.01", "model.encoder.weight_decay=0.02",
			"model.idgl.heads=2", "model.idgl.drop_edges=0", "model.idgl.epsilon=0.7", "model.idgl.keep=0.6", "model.idgl.update=0.3", "model.idgl.smooth=5", "model.idgl.degree=0.2", "model.idgl.sparse=3", "model.idgl.steps=3",
			fmt.Sprintf("model.idgl.tolerance=%g", c.tolerance), "train.lr=0.02", "train.encoder_lr=0.01", "train.joint_every=1", "train.refresh_every=0", "train.pretrain_steps=0")
		tr := started(t, Job{Model: "idgl", Task: Nodes(ds)}, cfg, Options{})
		for i, b := 0, tr.optim.Lookup("classifier.0.bias").Value.F32; i < len(b); i++ {
			b[i] = 0.4 + 0.05*float32(i) // no activation at its kink
		}
		r := newReference(tr, ds)
		n := float64(ds.Graph.N)
		data := r.a.plusDiagonal(1).normalised()
		similar := func(x matrix, name string) matrix {
			s := newMatrix(len(x), len(x))
			for h := range heads {
				w := r.matrix(name, heads)
				cos := x.apply(func(_, j int, v float64) float64 { return v * w[j][h] }).cosines()
				s = s.apply(func(i, j int, v float64) float64 { return v + cos[i][j]/heads })
			}
			return s.apply(func(i, j int, v float64) float64 {
				if i != j && v <= epsilon {
					return 0
				}
				return v
			})
		}
		mixed := func(s matrix) matrix { // λ·L + (1 − λ)·D⁻¹S
			return s.apply(func(i, j int, v float64) float64 {
				sum := 0.0
				for _, w := range s[i] {
					sum += w
				}
				return keep*data[i][j] + (1-keep)*v/sum
			})
		}
		layer := func(a matrix) matrix {
			return r.bias(a.times(r.x.times(r.matrix("classifier.0.weight", hidden))), "classifier.0.bias").relu()
		}
		logits := func(a, h matrix) matrix {
			return r.bias(a.times(h.times(r.matrix("classifier.1.weight", ds.Classes))), "classifier.1.bias")
		}
		squared := func(s matrix) (sum float64) {
			for _, row := range s {
				for _, v := range row {
					sum += v * v
				}
			}
			return sum
		}
		turns, none := 0, 0
		var last matrix // logits
		loss := func() float64 {
			of := func(z, s matrix) float64 {
				unlike, few := 0.0, 0.0
				for i, row := range s {
					degree := 0.0
					for j, v := range row {
						degree += v
						for f, x := range r.x[i] {
							unlike += v * (x - r.x[j][f]) * (x - r.x[j][f]) / 2
						}
						if v == 0 {
							none++
						}
					}
					few += math.Log(degree)
				}
				return z.crossEntropy(tr.split.Train, ds.Labels) + smooth*unlike/(n*n) - degrees*few/n + sparse*squared(s)/(n*n)
			}
			s := similar(r.x, "metric.0.weight")
			first, start := mixed(s), s
			h := layer(first)
			total, others, before := of(logits(first, h), s), 0.0, s
			for turns = 0; turns < 3; {
				if turns > 0 && squared(s.apply(func(i, j int, v float64) float64 { return v - before[i][j] })) <= c.tolerance*squared(start) {
					break
				}
				turns++
				before, s = s, similar(h, "metric.1.weight")
				now := mixed(s)
				a := now.apply(func(i, j int, v float64) float64 { return update*v + (1-update)*first[i][j] })
				h = layer(a)
				last = logits(a, h)
				others += of(last, s)
			}
			return total + others/float64(turns)
		}
		alg := algorithm1{tr, tr.steps.(refiner)}
		compareSteps(t, tr, r, 2, []string{"encoder", "classifier"}, func(step int) float64 {
			_, loss, err := alg.epoch(step)
			if err != nil {
				t.Fatal(err)
			}
			tr.state.Epoch++
			return loss
		}, func(int) func() float64 { return loss })
		if err := alg.refresh(); err != nil {
			t.Fatal(err)
		}
		loss()
		checkLoss(t, tr, last, ds.Labels, 2e-4)
		if turns != c.turns || none == 0 {
			t.Errorf("%d turns, want %d; %d similarities are 0", turns, c.turns, none)
		}
		tr.close()
	}
}

// transposed is Aᵀ.
func (a matrix) transposed() matrix {
	return newMatrix(len(a[0]), len(a)).apply(func(i, j int, _ float64) float64 { return a[j][i] })
}

// LDS (Franceschi et al. 2019), Algorithms 1 and 2: steps of Adam on graphs that are drawn
// anew, then one of the probabilities, down the hypergradient through these steps with draws
// for probabilities. Gradients of the network are written out here; the hypergradient is
// central differences over all pairs, and over all draws at once.
func TestLDS(t *testing.T) {
	ds := tiny(t)
	addNoise(ds)
	const hidden, tau, lr, innerLR, decay, restart = 6, 3, 8, 0.05, 0.01, 2
	cfg := configure(t, "lds", "candidates.k=39", "model.hidden=6", "model.dropout=0", "model.input_dropout=0", "model.norm=none", "model.edges.threshold=0",
		"model.lds.steps=3", "model.lds.lr=8", "model.lds.inner_lr=0.05", "model.lds.restart=2", "model.weight_decay=0.01", "train.joint_every=1", "train.pretrain_steps=0", "train.refresh_every=0")
	tr := started(t, Job{Model: "lds", Task: Nodes(ds)}, cfg, Options{})
	defer tr.close()
	if n := len(tr.split.Val) + len(tr.split.Outer); len(tr.split.Outer) != n/2 || n != 12 {
		t.Fatalf("%d validation nodes, and %d of the outer problem", len(tr.split.Val), len(tr.split.Outer))
	}
	for i, b := 0, tr.optim.Lookup("classifier.0.bias").Value.F32; i < len(b); i++ {
		b[i] = 0.05*float32(i) - 0.113 // no activation at its kink
	}
	r := newReference(tr, ds)
	names := []string{"classifier.0.weight", "classifier.0.bias", "classifier.1.weight", "classifier.1.bias"}
	theta, n := r.a.plusDiagonal(0), ds.Graph.N

	// A network's weights, and a pass over it: the rows before and behind the activation.
	type weights [4]matrix
	forward := func(w weights, a matrix) (before, h, logits matrix) {
		before = a.times(r.x.times(w[0])).apply(func(_, j int, v float64) float64 { return v + w[1][0][j] })
		h = before.relu()
		return before, h, a.times(h.times(w[2])).apply(func(_, j int, v float64) float64 { return v + w[3][0][j] })
	}
	columns := func(a matrix) matrix {
		y := newMatrix(1, len(a[0]))
		for _, row := range a {
			for j, v := range row {
				y[0][j] += v
			}
		}
		return y
	}
	gradients := func(w weights, a matrix) weights {
		before, h, logits := forward(w, a)
		d := newMatrix(n, ds.Classes)
		for _, v := range tr.split.Train {
			sum := 0.0
			for _, x := range logits[v] {
				sum += math.Exp(x)
			}
			for j, x := range logits[v] {
				d[v][j] = math.Exp(x) / sum / float64(len(tr.split.Train))
			}
			d[v][ds.Labels[v]] -= 1 / float64(len(tr.split.Train))
		}
		up := a.transposed().times(d)
		dh := up.times(w[2].transposed()).apply(func(i, j int, v float64) float64 {
			if before[i][j] <= 0 {
				return 0
			}
			return v
		})
		g0 := r.x.transposed().times(a.transposed().times(dh)).apply(func(i, j int, v float64) float64 { return v + decay*w[0][i][j] })
		return weights{g0, columns(dh), h.transposed().times(up), columns(d)}
	}
	start := weights{r.matrix(names[0], hidden), {r.params[names[1]].p}, r.matrix(names[2], ds.Classes), {r.params[names[3]].p}}
	type state struct {
		w, m, v weights
		t       int
	}
	fresh := func(w weights) (s state) {
		for i, p := range w {
			s.w[i], s.m[i], s.v[i] = p, newMatrix(len(p), len(p[0])), newMatrix(len(p), len(p[0]))
		}
		return s
	}
	stepped := func(s state, a matrix) state {
		g := gradients(s.w, a)
		s.t++
		for i := range g {
			s.m[i] = s.m[i].apply(func(j, k int, v float64) float64 { return 0.9*v + 0.1*g[i][j][k] })
			s.v[i] = s.v[i].apply(func(j, k int, v float64) float64 { return 0.999*v + 0.001*g[i][j][k]*g[i][j][k] })
			s.w[i] = s.w[i].apply(func(j, k int, v float64) float64 {
				m, q := s.m[i][j][k]/(1-math.Pow(0.9, float64(s.t))), s.v[i][j][k]/(1-math.Pow(0.999, float64(s.t)))
				return v - innerLR*m/math.Sqrt(q+1e-8)
			})
		}
		return s
	}
	now := fresh(start)
	alg := algorithm1{tr, tr.steps.(refiner)}
	for epoch := range 4 {
		at := func(name string) rng.Stream { return tr.stream("train").Sub(name).At(uint64(epoch)) }
		if epoch == restart {
			again := start
			for i, name := range names {
				s, k := at("restart."+name), 0
				again[i] = start[i].apply(func(_, _ int, _ float64) float64 {
					if i%2 == 1 {
						return 0
					}
					k++
					return (2*float64(s.Uniform(uint64(k-1))) - 1) * math.Sqrt(6/float64(len(start[i])+len(start[i][0])))
				})
			}
			now = fresh(again)
		}
		var draws []matrix
		for k := range tau + 1 {
			s := at(fmt.Sprintf("edges.%d", k))
			if k == tau {
				s = at("outer.edges")
			}
			draws = append(draws, theta.apply(func(i, j int, p float64) float64 {
				if i != j && float64(s.UniformPair(uint32(i), uint32(j))) < p {
					return 1
				}
				return 0
			}))
		}
		outer := func() (float64, state) {
			s := now
			for _, a := range draws[:tau] {
				s = stepped(s, a.plusDiagonal(1).normalised())
			}
			_, _, logits := forward(s.w, draws[tau].plusDiagonal(1).normalised())
			return logits.crossEntropy(tr.split.Outer, ds.Labels), s
		}
		want, next := outer()
		moved := newMatrix(n, n)
		for i := range n {
			for j := range i {
				move := func(h float64) float64 {
					for _, a := range draws {
						a[i][j], a[j][i] = a[i][j]+h, a[j][i]+h
					}
					f, _ := outer()
					for _, a := range draws {
						a[i][j], a[j][i] = a[i][j]-h, a[j][i]-h
					}
					return f
				}
				const h = 1e-6
				g := (move(h) - move(-h)) / (2 * h)
				moved[i][j] = max(0, min(1, theta[i][j]-lr/(1+1e-3*float64(epoch))*g))
				moved[j][i] = moved[i][j]
			}
		}
		theta, now = moved, next
		_, got, err := alg.epoch(epoch)
		if err != nil {
			t.Fatal(err)
		}
		tr.state.Epoch++
		if !(math.Abs(got-want) <= 2e-5*want) {
			t.Errorf("epoch %d: loss %.7f, want %.7f", epoch, got, want)
		}
		for k, name := range names {
			flat := slices.Concat(now.w[k]...)
			for i, v := range tr.optim.Lookup(name).Value.F32 {
				if !(math.Abs(float64(v)-flat[i]) <= 1e-3*max(0.05, math.Abs(flat[i]))) {
					t.Fatalf("epoch %d: %s[%d] is %.7f, want %.7f", epoch, name, i, v, flat[i])
				}
			}
		}
		checkProbabilities(t, tr, alg, epoch, theta, 300)
	}
	_, _, logits := forward(now.w, theta.plusDiagonal(1).normalised())
	checkLoss(t, tr, logits, ds.Labels, 1e-4)
}

package infer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/rng"
)

// randomUpdate changes a version in every way there is.
func randomUpdate(s *Snapshot, stream rng.Stream) (u Update) {
	at := uint64(0)
	draw := func(n int) int { at++; return stream.Intn(at, n) }
	node := func() string {
		for {
			if v := draw(s.rows()); !s.deleted.has(v) {
				return s.name(v)
			}
		}
	}
	features := func() []float32 {
		row := slices.Clone(s.x.row(draw(s.rows())))
		if draw(3) > 0 { // else it is as another node's
			row[draw(len(row))] += 0.5
		}
		return row
	}
	fresh := ""
	if draw(2) == 0 {
		u.X = features()
		fresh = strconv.Itoa(s.Numbers())
		if draw(4) > 0 {
			u.Sources, u.Targets = append(u.Sources, fresh), append(u.Targets, node())
		}
	}
	for range draw(4) {
		u.Sources, u.Targets = append(u.Sources, node()), append(u.Targets, node())
	}
	for range draw(4) {
		if e := s.graph.Edges; len(e) > 0 {
			pair := e[draw(len(e))]
			u.DeleteSources, u.DeleteTargets = append(u.DeleteSources, s.name(int(pair[0]))), append(u.DeleteTargets, s.name(int(pair[1])))
		}
	}
	if draw(3) == 0 {
		u.ChangeNodes, u.ChangeX = []string{node()}, features()
	}
	if draw(3) == 0 {
		gone := node()
		if all := slices.Concat(u.Sources, u.Targets, u.DeleteSources, u.DeleteTargets, u.ChangeNodes); !slices.Contains(all, gone) {
			u.DeleteNodes = []string{gone}
		}
	}
	return u
}

// Whatever updates come, answers and refined edges are those of the whole graph computed
// again.
func TestIncrementalIsExact(t *testing.T) {
	defer func(edges, values int) { cutEdges, scoreValues = edges, values }(cutEdges, scoreValues)
	cutEdges, scoreValues = 100, 1<<13 // many parts
	updates := 8
	if n, err := strconv.Atoi(os.Getenv("GSRC_UPDATES")); err == nil { // a longer check
		updates = n
	}
	for name, c := range map[string]struct {
		model string
		set   []string
		build export.BuildOptions
	}{
		"gcn":       {"gcn", nil, export.BuildOptions{}},
		"directed":  {"sage", []string{"data.directed=true"}, export.BuildOptions{NoEdgeWeight: true}},
		"gat":       {"gat", nil, export.BuildOptions{SparseX: true}},
		"learned":   {"ecl-gsr", nil, export.BuildOptions{}},
		"judged":    {"ecl-gsr", []string{"model.edges.judge=evidence", "model.encoder.cut=0.3", "candidates.similarity=embedding"}, export.BuildOptions{}},
		"mutual":    {"ecl-gsr", []string{"candidates.mutual=true", "model.classifier=gat"}, export.BuildOptions{}},
		"threshold": {"ecl-gsr", []string{"model.edges.mode=threshold", "model.edges.threshold=0.35", "candidates.k=8"}, export.BuildOptions{}},
		"evidence":  {"ecl-gsr", []string{"model.edges.judge=evidence", "model.edges.disguised=true", "candidates.similarity=evidence", "candidates.two_step=4", "candidates.mutual=false", "candidates.k=3"}, export.BuildOptions{}},
		// So large that an update does not reach all answers.
		"both":      {"ecl-gsr", []string{"model.edges.judge=evidence", "synthetic.nodes=1000", "candidates.k=1", "candidates.mutual=true", "synthetic.degree=3"}, export.BuildOptions{Lowering: onnx.Scatter}},
		"two steps": {"ecl-gsr", []string{"candidates.two_step=3", "candidates.mutual=true"}, export.BuildOptions{Lowering: onnx.PrecomputedBuckets}},
		"grand":     {"ecl-gsr", []string{"model.classifier=propagation"}, export.BuildOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := residentBuilt(t, c.model, GraphOptions{}, c.build, append([]string{"model.edges.judge=embedding", "synthetic.nodes=200"}, c.set...)...)
			if r.inc == nil {
				t.Fatal("every version is computed as a whole")
			}
			stream := rng.New(3, name)
			apart, pieces := 0, 0
			for i := range updates {
				r.condense(2)
				s := r.Snapshot()
				before := r.refinedEntries(r.inc.links)
				if s.pending != nil {
					before = s.pending.entries()
				}
				if i == 0 || i == updates/2 { // a version that is refused leaves no trace
					advance := r.advance
					r.advance = failing(advance)
					u := randomUpdate(s, stream.At(uint64(1000+i)))
					if i == 0 { // all nodes have other features, some so large that the graph is classified whole
						u = Update{}
						for v := range s.Numbers() {
							u.ChangeNodes = append(u.ChangeNodes, strconv.Itoa(v))
							u.ChangeX = append(u.ChangeX, s.x.row((v+1)%s.Numbers())...)
						}
						u.ChangeX[0] = 50
					}
					if _, err := r.Update(t.Context(), u); err == nil {
						t.Fatal("the version was not refused")
					}
					r.advance = advance
				}
				u := randomUpdate(s, stream.At(uint64(i)))
				if len(u.X)+len(u.Sources)+len(u.DeleteSources)+len(u.ChangeNodes)+len(u.DeleteNodes) == 0 {
					continue
				}
				if _, err := r.Update(t.Context(), u); err != nil {
					t.Fatal(err)
				}
				old := s
				s = r.Snapshot()
				if s.pending != nil {
					after := s.pending.entries()
					for v := range min(old.rows(), s.rows()) {
						from, w := before(int32(v))
						now, p := after(int32(v))
						if other := !slices.Equal(from, now) || !slices.Equal(w, p); other && !s.pending.stale[v] {
							t.Fatalf("version %d: node %d has other edges, and its answer stays", s.Version, v)
						}
					}
				}
				n, compared := compareExact(t, s)
				apart += n
				if compared {
					pieces++
				}
				if i%5 == 4 && s.pending != nil { // once all are made
					all, err := s.pending.all()
					if err != nil {
						t.Fatal(err)
					}
					s.pending.full.Store(all)
				}
			}
			if pieces < updates/2 {
				t.Errorf("%d of %d versions have edges that either may choose (%d in all): the others are too few", updates-pieces, updates, apart)
			}
		})
	}
}

// Levels above the lowest read sums over neighbours where the model sums rows, and so are
// computed of the rows that an update reaches alone.
func TestLevelsReadSums(t *testing.T) {
	for name, c := range map[string]struct {
		model string
		set   []string
		build export.BuildOptions
	}{
		"weighted by the input":    {"gcn", nil, export.BuildOptions{}},
		"sparse features":          {"gcn", nil, export.BuildOptions{SparseX: true}},
		"not weighted":             {"ecl-gsr", []string{"model.edges.judge=embedding"}, export.BuildOptions{Lowering: onnx.PrecomputedBuckets}},
		"weighted by the evidence": {"ecl-gsr", []string{"model.edges.judge=evidence", "model.encoder.cut=0.2"}, export.BuildOptions{Lowering: onnx.Scatter}},
	} {
		r, _, _ := residentBuilt(t, c.model, GraphOptions{ReadOnly: true}, c.build, append([]string{"synthetic.nodes=200"}, c.set...)...)
		if err := r.prepare(r.Snapshot(), GraphOptions{}); err != nil {
			t.Fatal(name, err)
		}
		l := cmp.Or(r.inc.encoder, r.inc.classifier)
		for level := 1; level < l.levels(); level++ {
			if sums, edges := l.m.SumsOf(level); edges || len(sums) != 1 || sums[0].Weighted == (name == "not weighted") {
				t.Errorf("%s: level %d reads %v, edges: %v", name, level, sums, edges)
			}
		}
	}
}

// Pairs are scored by their cosines, and by the rows of the embedding where an export of an
// earlier version does not say that these are all that counts: both to what the whole graph has.
func TestScorersReadCosines(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		r, _, _ := resident(t, "ecl-gsr", GraphOptions{ReadOnly: true}, "model.edges.judge=embedding", "synthetic.nodes=200")
		if earlier {
			info := r.p.manifest.Models["scorer"]
			info.Stages = nil
			r.p.manifest.Models["scorer"] = info
		}
		if err := r.prepare(r.Snapshot(), GraphOptions{}); err != nil {
			t.Fatal(err)
		}
		if r.inc == nil || (r.inc.scorer == nil) != earlier {
			t.Fatalf("of an earlier version: %v: the scorer is %v", earlier, r.inc)
		}
		for i := range uint64(3) {
			if _, err := r.Update(t.Context(), randomUpdate(r.Snapshot(), rng.New(5, "cosines").At(i))); err != nil {
				t.Fatal(err)
			}
			compareExact(t, r.Snapshot())
		}
	}
}

// A model of an earlier version, which does not say how pairs are judged, has every version
// computed as a whole, and the server says why.
func TestEvidenceWithoutStages(t *testing.T) {
	r, _, _ := resident(t, "ecl-gsr", GraphOptions{ReadOnly: true}, "model.edges.judge=evidence", "synthetic.nodes=200")
	info := r.p.manifest.Models["scorer"]
	info.Stages = nil
	r.p.manifest.Models["scorer"] = info
	said := ""
	r.p.o.Log = func(format string, args ...any) { said += fmt.Sprintf(format, args...) }
	if err := r.prepare(r.Snapshot(), GraphOptions{}); err != nil {
		t.Fatal(err)
	}
	if r.inc != nil || !strings.Contains(said, "every update computes the whole graph") || !strings.Contains(said, string(errEarlier)) {
		t.Errorf("said %q", said)
	}
	if _, err := r.Update(t.Context(), Update{DeleteNodes: []string{"3"}}); err != nil {
		t.Fatal(err)
	}
	if s := r.Snapshot(); s.pending != nil || s.Nodes() != 199 {
		t.Errorf("version %d has %d nodes", s.Version, s.Nodes())
	}
}

// compareExact holds a version against the whole graph recomputed. It returns how many
// edges are in one of both only, for a similarity or a threshold that is nearer than 1e-6,
// and whether there are none, so that answers could be compared.
func compareExact(t *testing.T, s *Snapshot) (apart int, compared bool) {
	t.Helper()
	r := s.r
	exact := *s
	exact.pending, exact.logits, exact.probabilities = nil, nil, nil
	if err := r.exact(t.Context(), nil, &exact, nil); err != nil {
		t.Fatal(err)
	}
	if r.p.info.Graph == "refined" {
		if apart = edgesApart(t, s); apart > 0 {
			return apart, false
		}
	}
	c := len(r.p.manifest.Classes)
	for v := range s.rows() {
		if s.deleted.has(v) {
			continue
		}
		logits, p, err := s.Answer([]int{s.number(v)})
		if err != nil {
			t.Fatal(err)
		}
		for k := range c {
			if d := math.Abs(float64(p[k] - exact.probabilities[v*c+k])); !(d <= 1e-5) {
				t.Fatalf("version %d: probability %d of node %d is %v, want %v", s.Version, k, v, p[k], exact.probabilities[v*c+k])
			}
			if want := exact.logits[v*c+k]; !(math.Abs(float64(logits[k]-want)) <= 1e-5*max(1, math.Abs(float64(want)))) {
				t.Fatalf("version %d: logit %d of node %d is %v, want %v", s.Version, k, v, logits[k], want)
			}
		}
	}
	return 0, true
}

// edgesApart compares the refined graph of a version with that of the whole graph.
func edgesApart(t *testing.T, s *Snapshot) (apart int) {
	t.Helper()
	r := s.r
	p := *r.p
	var scratch []float32
	var number []int32
	p.ds, number = s.dataset(&scratch)
	p.x = Features(p.ds)
	refined, err := p.refined(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	have, want := map[[2]int32]float32{}, map[[2]int32]float32{}
	for i, e := range refined.Candidates.Edges {
		if number != nil {
			e = [2]int32{number[e[0]], number[e[1]]}
		}
		if refined.Probability[i] >= float32(refined.Threshold) {
			want[e] = refined.Probability[i]
		}
	}
	for v, row := range r.inc.links {
		for _, l := range row {
			if back := r.inc.at(l.to, int32(v)); back == nil || back.p != l.p || r.candidate(back) != r.candidate(&l) {
				t.Fatalf("version %d: the link %d-%d has two sides", s.Version, v, l.to)
			}
			if int(l.to) > v && r.kept(&l) {
				have[[2]int32{int32(v), l.to}] = l.p
			}
		}
	}
	// either tells whether a similarity or a probability is so near to what decides that
	// rounding may choose.
	either := func(e [2]int32) bool {
		for _, p := range []float32{have[e], want[e]} {
			if p != 0 && math.Abs(float64(p)-refined.Threshold) <= 1e-6 {
				return true
			}
		}
		sim := r.inc.near.Similarity(e[0], e[1])
		for _, v := range e {
			last := math.Inf(1)
			for _, u := range r.inc.near.Nearest(v) {
				last = min(last, r.inc.near.Similarity(v, u))
			}
			if math.Abs(sim-last) <= 1e-6 {
				return true
			}
		}
		return false
	}
	for e, p := range have {
		q, ok := want[e]
		switch {
		case !ok && !either(e):
			t.Fatalf("version %d has the edge %v, with %v, which the whole graph has not", s.Version, e, p)
		case !ok:
			apart++
		case !(math.Abs(float64(p-q)) <= 1e-5):
			t.Fatalf("version %d: edge %v has %v, want %v", s.Version, e, p, q)
		}
	}
	for e, q := range want {
		if _, ok := have[e]; !ok {
			if !either(e) {
				t.Fatalf("version %d lacks the edge %v, which has %v", s.Version, e, q)
			}
			apart++
		}
	}
	return apart
}

// failing makes versions that are refused when they are whole.
func failing(f advance) advance {
	return func(ctx context.Context, old, next *Snapshot, c *changes) error {
		return cmp.Or(f(ctx, old, next, c), errors.New("refused"))
	}
}

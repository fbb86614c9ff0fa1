package infer

import (
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// modelMemory bounds what the models that answer for a graph take in onnxruntime and for
// their inputs. They run one after the other.
type modelMemory struct {
	p     *predictor
	roles map[string]*dist.Scratch
}

// memoryOf measures models on small graphs.
func (p *predictor) memoryOf(roles ...string) (*modelMemory, error) {
	m := &modelMemory{p, map[string]*dist.Scratch{}}
	for _, role := range roles {
		var err error
		if m.roles[role], err = p.dist.Scratch(role); err != nil {
			return nil, fmt.Errorf("what the %s takes cannot be foreseen: %w", role, err)
		}
	}
	return m, nil
}

// bytes is for a graph whose edges count in both directions.
func (m *modelMemory) bytes(g *graph.Graph) int64 {
	if m == nil {
		return 0
	}
	nodes, edges := int64(g.N), int64(len(g.Edges))
	pairs, k, proposed := edges, int64(0), int64(0) // candidates of each node by similarity, and all
	if m.p.info.Graph == "refined" {
		k = min(int64(m.p.info.K), nodes)
		proposed = k + min(int64(m.p.info.TwoStep), nodes)
		pairs += budget.Mul(nodes, proposed)
	}
	asked := pairs
	if m.p.manifest.JudgesByEvidence() { // of all edges, and of some pairs at a time
		asked = max(2*edges, min(pairs, pairsAtOnce))
	}
	common := int64(-1) // not counted yet
	most := int64(0)
	for role, s := range m.roles {
		if s.Common() && common < 0 {
			common = m.common(g, proposed, s.Near)
		}
		entries := map[string]int64{"encoder": 2 * edges, "scorer": asked, "classifier": 2 * pairs, "pipeline": 2 * edges}[role]
		searched := int64(0)
		need := int64(0)
		if role == "pipeline" {
			searched, need = k, s.Walks(nodes, m.index(g))
		}
		need += s.Bytes(nodes, entries, searched, max(0, common))
		if role != "scorer" {
			need += m.p.dist.HostBytes(role, nodes, entries)
		}
		if need < 0 {
			return math.MaxInt64 / 4
		}
		most = max(most, need)
	}
	return most
}

// common is [dist.Dist.Common] of a graph whose edges count in both directions.
func (m *modelMemory) common(g *graph.Graph, k, near int64) int64 {
	of := dist.Dist{Manifest: m.p.manifest} // which is all that it reads: the models may not be open yet
	return of.Common(int64(g.N), m.index(g), nil, k, near)
}

// index lists the edges in both directions, [2,·].
func (m *modelMemory) index(g *graph.Graph) []int64 {
	e := len(g.Edges)
	list := make([]int64, 4*e)
	for i, pair := range g.Edges {
		u, v := int64(pair[0]), int64(pair[1])
		list[i], list[2*e+i] = u, v
		list[e+i], list[3*e+i] = v, u
	}
	return list
}

// refining and answering are the models that find the edges of another graph than the
// training's, and those that classify a graph whose edges are searched for if that is so.
func (p *predictor) refining() []string {
	if p.together() {
		return []string{"pipeline"}
	}
	return []string{"encoder", "scorer"}
}

func (p *predictor) answering(searched bool) []string {
	if searched {
		return append([]string{"classifier"}, p.refining()...)
	}
	return []string{"classifier"}
}

// fits refuses a graph for which models would take more memory than there may be. What is far
// from the limit is not measured.
func (p *predictor) fits(g *graph.Graph, roles ...string) error {
	if p.o.Provider != ort.CPU && p.o.Provider != ort.Auto && p.o.Provider != "" {
		return nil
	}
	limit := p.o.Load.MaxBytes
	if limit <= 0 {
		limit, _ = budget.Default()
	}
	nodes, edges := int64(g.N), int64(len(g.Edges))
	x := budget.Mul(4, nodes, int64(p.manifest.NumFeatures))
	few := p.few(g)
	if p.manifest.JudgesByEvidence() { // by lists of neighbours of the ends of edges
		few += budget.Mul(64, (&modelMemory{p: p}).common(g, int64(p.info.K+p.info.TwoStep), 0))
	}
	if few < limit/4 {
		return nil
	}
	m, err := p.memoryOf(roles...)
	if err != nil {
		p.o.Log("%v", err)
		return nil
	}
	if _, err := budget.New(limit).Reserve(fmt.Sprintf("running the models for %d nodes and %d edges in onnxruntime", nodes, edges), x+m.bytes(g)); err != nil {
		return fmt.Errorf("%w; raise the limit with --memory", err)
	}
	return nil
}

// fitsBatches returns how many nodes of a collection may be in a batch, by the batch with most
// features and edges. A graph that does not fit by itself is refused.
func (p *predictor) fitsBatches(c *data.Collection, roles ...string) (atOnce int, err error) {
	for atOnce = nodesAtOnce; ; atOnce /= 2 {
		var largest []int32
		most := int64(-1)
		for _, graphs := range batched(c, atOnce) {
			size := int64(0)
			for _, g := range graphs {
				size += p.few(c.Graphs[g])
			}
			if size > most {
				largest, most = graphs, size
			}
		}
		b, err := c.Batch(nil, largest)
		if err != nil {
			return 0, err
		}
		if err := p.fits(b.Graph, roles...); err == nil || len(largest) == 1 {
			return atOnce, err
		}
	}
}

// few is less than what models take for a graph in most cases, without measuring them.
func (p *predictor) few(g *graph.Graph) int64 {
	nodes := int64(g.N)
	return budget.Mul(4, nodes, int64(p.manifest.NumFeatures)) + budget.Mul(4<<10, nodes) + budget.Mul(512, int64(len(g.Edges)))
}

package train

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
)

// givenBack says which functions are given back before others are there, as [program.drop] does,
// and what else is needed before.
func (p *predictor) givenBack() error {
	p.once = !choosesAgain(p.cfg, p.prog)
	if p.searchedFirst() || p.inFiles() && p.prog.Func("rows") != nil {
		if err := p.run(running{"rows", "search"}); err != nil {
			return err
		}
	}
	// Twice as much as is large: with fewer candidates, too, it will be.
	if p.once && p.cfg.Train.JointEvery == 0 && p.trains("encode").Bytes()+p.trains("probability").Bytes() >= 2*large {
		p.settle()
	}
	return nil
}

// trains is the function as the phase train, or those that follow, hold it.
func (p *predictor) trains(name string) *FunctionMemory {
	i := slices.IndexFunc(p.f.Functions, func(f FunctionMemory) bool { return f.Name == name && f.Phase == "train" })
	if i < 0 {
		return &FunctionMemory{}
	}
	return &p.f.Functions[i]
}

// settle has the functions that give candidates their probabilities given back; see [settle].
func (p *predictor) settle() {
	p.settled = true
	end := []string{"end"}
	p.trains("refine").later, p.trains("classify").later = end, end
	if fit := p.trains("fit"); fit.Bytes() < 2*large {
		fit.later = end
	}
	p.trains("encode").later = end
	p.trains("encode").Phase, p.trains("probability").Phase = "candidates", "candidates"
}

// takeTurns has functions held in turns; see [turns].
func (p *predictor) takeTurns() {
	p.f.Turns = true
	p.settle()
	p.trains("fit").later = nil
	p.trains("joint").Phase = "joint"
	p.part("probabilities of candidates", 4*p.dims["M"])
	p.kept()
	p.peak()
}

// kept adds what the end reads of functions that were given back.
func (p *predictor) kept() {
	p.partOf("end", "embedding and predictions", 4*p.ds.Graph.N*p.embedding()[1]+8*p.ds.Graph.N*p.ds.Classes)
}

// searchedFirst reports whether candidates do not depend on the encoder, and what searched them is
// given back.
func (p *predictor) searchedFirst() bool {
	return p.once && p.prog.Func("rows") != nil && (p.prog.Func("encode") == nil || !slices.Contains(p.cfg.Similarities(), config.SimilarityEmbedding))
}

// chunks has evaluation run over chunks of nodes, in what a limit leaves for it, and all that a
// refining model computes of all nodes.
func (p *predictor) chunks(limit int) error {
	room := chunkRoom{degree: p.g.MostEntries()}
	if x := p.ds.X; x.IsSparse() {
		room.stored = len(x.Val)/max(1, x.Rows) + 1
	}
	names := []string{"classify"}
	if refines(p.prog) {
		names = append(names, "encode", "probability")
		room.degree += p.cfg.MostCandidates() // and who proposes the node, which no one knows
	}
	for _, name := range names {
		if p.prog.Func(name) == nil || p.embedding() == nil && name != "classify" {
			continue
		}
		if err := room.of(p.prog, name); err != nil && !refines(p.prog) {
			return nil // it reads more than neighbours: the whole graph it is
		} else if err != nil {
			return fmt.Errorf("%w; take train.sampler=full", err)
		}
	}
	judging := p.prog.Param(models.EvidenceProjection) != nil
	for i := range p.f.Functions {
		f := &p.f.Functions[i]
		ofNodes := f.Name
		if slices.Contains(slices.Concat(judges[:]...), f.Name) {
			ofNodes = p.prog.Func(f.Name).Attrs.Str(passes.Setup)
		} else if f.Name != "rows" {
			continue
		}
		if !judging {
			continue
		}
		if err := room.of(p.prog, ofNodes); err != nil {
			return err
		}
		if f.Setup = 0; f.Name == "rows" {
			f.Arena, f.Live, f.Unshared = 0, 0, 0
		}
	}
	weights := 0
	switch {
	case p.prog.Func("classify").Arg("w") == nil:
	case refines(p.prog): // in files, but for those of the graph
		if weights = 4 * max(p.g.E, p.dims["M"]); weighsEdges(p.cfg, p.prog) {
			weights -= 4 * p.g.E
		}
	case p.ds.Graph.Weights == nil: // ones, of a chunk's entries
		weights = 4 * p.g.E
	}
	for i := range p.f.Parts {
		if x := &p.f.Parts[i]; x.Name == graphsPart {
			x.Bytes -= weights
		}
	}
	if refines(p.prog) {
		p.part("weights of candidates", 4*4*min(weighedAtOnce, p.dims["M"]))
		for i := range p.f.Functions {
			switch f := &p.f.Functions[i]; {
			case f.Name == "joint":
				f.Phase = "joint"
			case f.Name != "fit" && f.Phase == "train":
				f.later = append(f.later, "joint", "search")
			}
		}
	}
	p.f.Functions = slices.DeleteFunc(p.f.Functions, func(f FunctionMemory) bool { return slices.Contains(names, f.Name) })
	p.peak() // of what is left
	least := max(room.least, min(leastChunk, 4096*p.g.N))
	p.f.Chunk = max(least, min(limit-p.f.Peak-Unforeseen, MostChunk))
	chunked := FunctionMemory{Name: "classify", Phase: "train", later: []string{"joint", "end"}, Arena: p.f.Chunk, Live: least, Unshared: p.f.Chunk}
	if judging {
		chunked.later = append(chunked.later, "evidence", "search")
	}
	p.f.Functions = append(p.f.Functions, chunked)
	p.peak()
	return nil
}

const (
	MostChunk  = 128 << 20 // what chunks of nodes take where there is more memory: larger ones are no faster
	Unforeseen = 32 << 20  // what chunks leave to the runtime of the language and its garbage

	leastChunk = 16 << 20 // what chunks of many nodes take at least: smaller ones read what others gave too often
)

package store

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/rng"
)

// Planted says how a graph with planted communities and planted wrong edges is drawn. It is
// drawn edge by edge and row by row, so that it may have any size.
type Planted struct {
	Nodes, Edges int64 // edges without the wrong ones; those drawn twice are dropped
	Classes      int
	// Community is about how many nodes a community has; classes consist of communities.
	Community int64
	// Homophily is the share of edges within a class, of which Locality are within a
	// community.
	Homophily, Locality float64
	// Wrong edges join nodes of different classes; their number is this share of Edges.
	Wrong float64

	Features int
	// Signal is how far the means of a class and of a community lie from 0, together, in
	// standard deviations of the noise of a feature.
	Signal float64
	Half   bool // features in float16

	// Train and Val are how many nodes have these parts in the split; all others are test
	// nodes.
	Train, Val int64
	Seed       uint64
}

// Check returns an error that names what is out of range.
func (o *Planted) Check() error {
	switch {
	case o.Nodes < 2 || o.Nodes >= 1<<31:
		return fmt.Errorf("%d nodes: 2 to 2³¹-1 are possible", o.Nodes)
	case o.Classes < 1 || int64(o.Classes) > o.Nodes || o.Classes > 1<<16:
		return fmt.Errorf("%d classes for %d nodes", o.Classes, o.Nodes)
	case o.Edges < 0 || float64(o.Edges) > float64(o.Nodes)*float64(o.Nodes-1)/4:
		return fmt.Errorf("%d edges for %d nodes: too many to be drawn", o.Edges, o.Nodes)
	case o.Community < 2:
		return fmt.Errorf("communities of %d nodes: give at least 2", o.Community)
	case o.Features < 1 || o.Features > 1<<16:
		return fmt.Errorf("%d features: 1 to 65536 are possible", o.Features)
	case !(o.Homophily >= 0 && o.Homophily <= 1 && o.Locality >= 0 && o.Locality <= 1 && o.Wrong >= 0 && o.Wrong <= 1):
		return fmt.Errorf("homophily %v, locality %v and wrong edges %v are shares from 0 to 1", o.Homophily, o.Locality, o.Wrong)
	case o.Classes == 1 && (o.Homophily < 1 || o.Wrong > 0):
		return fmt.Errorf("edges between classes need 2 of them")
	case !(o.Signal >= 0 && o.Signal <= 100):
		return fmt.Errorf("a signal of %v: give 0 to 100", o.Signal)
	case o.Train < 0 || o.Val < 0 || o.Train+o.Val > o.Nodes:
		return fmt.Errorf("%d training and %d validation nodes of %d", o.Train, o.Val, o.Nodes)
	}
	return nil
}

// bytes returns about what a store and the files that its edges are sorted in take.
func (o *Planted) bytes() int64 {
	width := sizes[Float32]
	if o.Half {
		width = sizes[Float16]
	}
	node := int64(o.Features)*width + sizes[Int64] + sizes[Int32] // and indptr and labels
	if o.Train > 0 {
		node += sizes[Int32]
	}
	edge := 4*sizes[Int32] + sizes[Uint8] + 12 + 8 // both nodes, entries in both directions, planted; records of both sorters
	return o.Nodes*node + int64(float64(o.Edges)*(1+o.Wrong))*edge
}

// groups cut the places 0..n-1 into equal parts.
type groups struct{ n, count int64 }

func (g groups) of(place int64) int64 { return ((place+1)*g.count - 1) / g.n }

// bounds are the first place of a group and that behind it.
func (g groups) bounds(i int64) (lo, hi int64) { return i * g.n / g.count, (i + 1) * g.n / g.count }

// Generate writes a generated graph into a store.
func Generate(dir string, o Planted, opts Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Clean(dir) + partial); err != nil { // or else some of it is there already
		if need, free := o.bytes(), scratch.Free(dir); need > free {
			return fmt.Errorf("%s: writing the store takes %s of the disk, sorting its edges included, and %s are free; take fewer nodes, edges or features, or another disk", dir, budget.Format(need), budget.Format(free))
		}
	}
	opts.Key = fmt.Sprintf("planted %+v", o)
	b, err := New(dir, opts)
	if err != nil {
		return err
	}
	defer b.Close()
	s := rng.New(o.Seed, "planted")
	order := newPermutation(s.Sub("nodes"), o.Nodes) // from nodes to places
	classes := groups{o.Nodes, int64(o.Classes)}
	communities := groups{o.Nodes, int64(o.Classes) * max(1, o.Nodes/int64(o.Classes)/o.Community)}
	if _, err := b.Stage("nodes", func() (string, error) {
		if err := b.generateLabels(&o, order, classes, s); err != nil {
			return "", err
		}
		return "", b.generateFeatures(&o, order, classes, communities, s)
	}); err != nil {
		return err
	}
	err = b.Edges(Edges{Nodes: o.Nodes, Planted: true, Total: o.Edges + int64(o.Wrong*float64(o.Edges))}, func(_ *Edges, add Add) error {
		return o.drawEdges(order, classes, communities, s.Sub("edges"), add)
	})
	if err != nil {
		return err
	}
	splits := 0
	if o.Train > 0 {
		splits = 1
	}
	return b.Finish(Header{Name: "planted", Nodes: o.Nodes, Features: o.Features, Classes: o.Classes, Splits: splits})
}

func (b *Builder) generateLabels(o *Planted, order permutation, classes groups, s rng.Stream) error {
	labels, err := b.Array("labels", Int32)
	if err != nil {
		return err
	}
	for v := range o.Nodes {
		if err := Put(labels, int32(classes.of(order.at(v)))); err != nil {
			return err
		}
	}
	if err := labels.Close(); err != nil || o.Train == 0 {
		return err
	}
	split := newPermutation(s.Sub("split"), o.Nodes)
	parts, err := b.arrays(Array{Name: "train_0", Type: Int32}, Array{Name: "val_0", Type: Int32}, Array{Name: "test_0", Type: Int32})
	if err != nil {
		return err
	}
	for v := range o.Nodes {
		part := 2
		switch at := split.at(v); {
		case at < o.Train:
			part = 0
		case at < o.Train+o.Val:
			part = 1
		}
		if err := Put(parts[part], int32(v)); err != nil {
			return err
		}
	}
	return closeAll(parts)
}

// generateFeatures writes noise around the mean of the class and that of the community,
// which differ from 0 by the same in every feature, up or down.
func (b *Builder) generateFeatures(o *Planted, order permutation, classes, communities groups, s rng.Stream) error {
	kind := Float32
	if o.Half {
		kind = Float16
	}
	x, err := b.Array("x", kind, int64(o.Features))
	if err != nil {
		return err
	}
	class, community, noise := s.Sub("class"), s.Sub("community"), s.Sub("noise")
	d := int64(o.Features)
	words := (d + 31) / 32
	row, half := make([]float32, d), make([]uint16, d)
	size := float32(o.Signal / math.Sqrt2)
	for v := range o.Nodes {
		if v&0xffff == 0 {
			if err := b.progress("features drawn", v, o.Nodes); err != nil {
				return err
			}
		}
		place := order.at(v)
		k, g := classes.of(place), communities.of(place)
		var up [2]uint32
		var random [4]uint32
		for j := range d {
			if j%32 == 0 {
				up[0], up[1] = class.Uint32(uint64(k*words+j/32)), community.Uint32(uint64(g*words+j/32))
			}
			if j%4 == 0 { // four sums of four uniform bytes: near enough to a normal
				random = noise.Block(uint64(v), uint64(j/4))
			}
			r := random[j%4]
			sum := int32(r&255+r>>8&255+r>>16&255+r>>24) - 510
			y := float32(float32(sum) * (1 / 147.8))
			for _, u := range up {
				if u>>(j%32)&1 == 1 {
					y += size
				} else {
					y -= size
				}
			}
			row[j] = y
		}
		if !o.Half {
			err = Put(x, row...)
		} else {
			for j, y := range row {
				half[j], _ = ToHalf(y)
			}
			err = Put(x, half...)
		}
		if err != nil {
			return err
		}
	}
	return x.Close()
}

// drawEdges draws the edges and then the wrong ones, marked by a 1.
func (o *Planted) drawEdges(order permutation, classes, communities groups, s rng.Stream, add Add) error {
	wrong := int64(math.Round(o.Wrong * float64(o.Edges)))
	between := func(r uint32, lo, hi int64) int64 { return lo + int64(uint64(r)*uint64(hi-lo)>>32) }
	for i := range o.Edges + wrong {
		r := s.Block(uint64(i), 0)
		u, v := between(r[0], 0, o.Nodes), int64(0)
		lo, hi := classes.bounds(classes.of(u))
		mark := float32(0)
		switch {
		case i >= o.Edges:
			mark = 1
			fallthrough
		case rng.Float32(r[2]) >= float32(o.Homophily):
			if v = between(r[1], 0, o.Nodes-(hi-lo)); v >= lo {
				v += hi - lo
			}
		case rng.Float32(r[3]) < float32(o.Locality):
			lo, hi = communities.bounds(communities.of(u))
			v = between(r[1], lo, hi)
		default:
			v = between(r[1], lo, hi)
		}
		if err := add(int32(order.of(u)), int32(order.of(v)), mark); err != nil {
			return err
		}
	}
	return nil
}

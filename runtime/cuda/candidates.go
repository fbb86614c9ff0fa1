package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/gsrc-dev/gsrc/runtime"
)

// choice is the choosing of candidates among the edges of a graph of n nodes and the
// pairs of each with its k neighbours: its sizes, and where its memory is.
type choice struct {
	edges, n, k, pairs int

	// [pairs] i32 each: the pairs' ends and origins; their order by upper, and by both
	// ends; which become candidates, and how many before each do.
	lower, upper, from, first, order, keep, place uintptr
	key, spare                                    uintptr
	count, work                                   uintptr
	bytes                                         int
}

func newChoice(edges, n, k int, at uintptr) choice {
	c := choice{edges: edges, n: n, k: k, pairs: edges + n*k}
	put := placing(at, &c.bytes)
	for _, p := range []*uintptr{&c.lower, &c.upper, &c.from, &c.first, &c.order, &c.keep, &c.place, &c.key, &c.spare} {
		*p = put(4 * c.pairs)
	}
	c.count, c.work = put(4), put(max(scanBytes(c.pairs), sortBytes(c.pairs)))
	return c
}

// placing returns what gives pieces their addresses from one on, and adds up their bytes.
func placing(at uintptr, bytes *int) func(n int) uintptr {
	return func(n int) uintptr {
		here := at + uintptr(*bytes)
		*bytes += (n + 255) &^ 255
		return here
	}
}

// choose queues the choice, of one pair at least. Behind it count is how many candidates there are.
func (c *choice) choose(q *steps, known, near uintptr, mutual bool) {
	q.every("gsrc_candidate_pairs", c.pairs, Ptr(c.lower), Ptr(c.upper), Ptr(c.from), Ptr(known), Ptr(near), Int(c.edges), Int(c.n), Int(c.k))
	ends := bits.Len(uint(c.n))
	sort{KeyTo: c.key, ValueTo: c.first, Key: c.upper, KeyTemp: c.keep, ValTemp: c.place, N: c.pairs, Bits: ends}.launch(q, c.work)
	q.every("gsrc_candidate_keys", c.pairs, Ptr(c.key), Ptr(c.lower), Ptr(c.first), Int(c.pairs))
	sort{KeyTo: c.keep, ValueTo: c.order, Key: c.key, Value: c.first, KeyTemp: c.place, ValTemp: c.spare, N: c.pairs, Bits: ends}.launch(q, c.work)
	q.every("gsrc_candidate_keep", c.pairs, Ptr(c.keep), Ptr(c.lower), Ptr(c.upper), Ptr(c.from), Ptr(c.order), Int(c.pairs), Int(c.n), flag(mutual))
	scan{Y: c.place, X: c.keep, Total: c.count, N: c.pairs}.launch(q, c.work)
}

// write queues the candidates' edges, for which there is room at dst.
func (c *choice) write(q *steps, dst uintptr) {
	q.every("gsrc_candidate_edges", c.pairs, Ptr(dst), Ptr(c.lower), Ptr(c.upper), Ptr(c.from), Ptr(c.order), Ptr(c.keep), Ptr(c.place), Int(c.pairs))
}

// joining is the building of the structure of n edges, and where its memory is.
type joining struct {
	n                                 int
	target, order, place, key, values uintptr // [2n] i32 each
	work                              uintptr
	bytes                             int
}

func newJoining(n int, at uintptr) joining {
	j := joining{n: n}
	put := placing(at, &j.bytes)
	for _, p := range []*uintptr{&j.target, &j.order, &j.place, &j.key, &j.values} {
		*p = put(4 * 2 * n)
	}
	j.work = put(sortBytes(2 * n))
	return j
}

// join queues the building of the structure, whose memory is there.
func (j *joining) join(q *steps, c *runtime.DeviceCandidates) {
	n, nodes := j.n, c.In.Rows
	edges := Ptr(c.Edges.Device.Elements)
	q.every("gsrc_candidate_targets", 2*n, Ptr(j.target), edges, Int(n))
	sort{KeyTo: c.In.Row, ValueTo: j.order, Key: j.target, KeyTemp: j.key, ValTemp: j.values, N: 2 * n, Bits: bits.Len(uint(nodes))}.launch(q, j.work)
	q.every("gsrc_candidate_inverse", 2*n, Ptr(j.place), Ptr(j.order), Int(2*n))
	q.every("gsrc_candidate_graph", max(2*n, nodes+1), Ptr(c.In.RowPtr), Ptr(c.In.Col), Ptr(c.Out.Perm), Ptr(c.Old.Device.Elements), Ptr(c.Entry.Device.Elements),
		edges, Ptr(c.In.Row), Ptr(j.order), Ptr(j.place), Int(n), Int(nodes))
}

// Candidates chooses candidates; see [runtime.Sampler].
func (d *Device) Candidates(all *runtime.Candidates, emb *runtime.Buffer, o runtime.CandidateOptions) error {
	n, k := emb.Dims[0], o.K
	switch exact := o.Index.ExactOnDevice(n); {
	case exact && o.OnHost:
		d.found = slices.Grow(d.found[:0], n*k)[:n*k]
		if err := d.Nearest(d.found, nil, emb, k); err != nil {
			return err
		}
		return all.Build(d.found, o)
	case !exact:
		h, err := d.Export(emb)
		if err != nil {
			return err
		}
		return d.cpu.Candidates(all, h, o)
	}
	near, err := d.searchNear(emb, k)
	if err != nil {
		return err
	}
	c, err := all.OnDevice(d.DeviceBuffers)
	if err != nil {
		return err
	}
	return d.choose(c, near, n, k, o.Mutual)
}

func (d *Device) choose(c *runtime.DeviceCandidates, near uintptr, n, k int, mutual bool) (err error) {
	edges := c.Known.Size()
	defer func() {
		if err != nil {
			err = fmt.Errorf("choosing candidates among %d edges and the %d nearest of %d nodes: %w", edges, k, n, err)
		}
	}()
	if pairs := edges + n*k; pairs > math.MaxInt32/4 {
		return fmt.Errorf("%d pairs are more than CUDA kernels count: lower candidates.k", pairs)
	}
	d.chosen.DType = c.Memory.DType
	reserve := func(bytes int) error { return d.Reserve(&d.chosen, bytes/8) }
	if err := reserve(newChoice(edges, n, k, 0).bytes); err != nil {
		return err
	}
	x, found := newChoice(edges, n, k, d.chosen.Device.Elements), 0
	if x.pairs > 0 {
		if err := queued(d, func(q *steps) { x.choose(q, c.Known.Device.Elements, near, mutual) }); err != nil {
			return err
		}
		var count [4]byte
		if err := d.Download(count[:], x.count); err != nil {
			return err
		}
		found = int(binary.LittleEndian.Uint32(count[:]))
	}
	if err := c.Place(found); err != nil {
		return err
	}
	if err := queued(d, func(q *steps) { x.write(q, c.Edges.Device.Elements) }); err != nil {
		return err
	}
	// What was for the choice has been read when this runs.
	if err := reserve(newJoining(found, 0).bytes); err != nil {
		return err
	}
	j := newJoining(found, d.chosen.Device.Elements)
	return queued(d, func(q *steps) { j.join(q, c) })
}

// CandidateBytes returns what Candidates takes of the device's memory itself.
func (d *Device) CandidateBytes(n, f, edges int, o runtime.CandidateOptions) int {
	k := o.K
	switch {
	case !o.Index.ExactOnDevice(n):
		return 0
	case o.OnHost:
		return d.NearestBytes(n, f, k)
	}
	return 8*edges + d.NearestBytes(n, f, k) + max(newChoice(edges, n, k, 0).bytes, newJoining(edges+n*k, 0).bytes)
}

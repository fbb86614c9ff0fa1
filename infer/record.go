package infer

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/lists"
)

// commit is what a journal's record holds: the updates that made a version together.
// One that has changed nothing, but has a key to be remembered, has the version that
// was there.
type commit struct {
	Applied
	time    int64 // seconds since 1970
	updates []committed
}

// committed is an update that was made.
type committed struct {
	key  string // of idempotency, or ""
	hash [sha256.Size]byte
	edit *edit // nil where only the key counts
}

// hashUpdate identifies the content of an update.
func hashUpdate(u *Update) (sum [sha256.Size]byte) {
	var b []byte
	for _, x := range [][]float32{u.X, u.ChangeX} {
		b = appendBits(binary.AppendUvarint(b, uint64(len(x))), x)
	}
	b = appendBits(b, u.Weights)
	for _, list := range [][]string{u.IDs, u.Sources, u.Targets, u.DeleteSources, u.DeleteTargets, u.ChangeNodes, u.DeleteNodes} {
		b = appendTexts(b, list)
	}
	return sha256.Sum256(b)
}

func appendBits(b []byte, x []float32) []byte {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func appendTexts(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendNodes(b []byte, list []int32) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, v := range list {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return b
}

func appendEdges(b []byte, list [][2]int32) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, e := range list {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(e[0])), uint64(e[1]))
	}
	return b
}

// appendFloats writes numbers as they are, or those that are not 0 with the distances
// between them, whichever is shorter.
func appendFloats(b []byte, x []float32) []byte {
	b = binary.AppendUvarint(b, uint64(len(x)))
	filled := 0
	for _, v := range x {
		if math.Float32bits(v) != 0 {
			filled++
		}
	}
	if filled*6 >= len(x)*4 {
		return appendBits(append(b, 0), x)
	}
	b = binary.AppendUvarint(append(b, 1), uint64(filled))
	last := 0
	for i, v := range x {
		if bits := math.Float32bits(v); bits != 0 {
			b = binary.LittleEndian.AppendUint32(binary.AppendUvarint(b, uint64(i-last)), bits)
			last = i
		}
	}
	return b
}

func (c *commit) append(b []byte) []byte {
	for _, n := range []int64{c.Version, int64(c.Nodes), int64(c.Edges), c.time, int64(len(c.updates))} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, u := range c.updates {
		if b = appendText(b, u.key); u.key != "" {
			b = append(b, u.hash[:]...)
		}
		if u.edit == nil {
			b = append(b, 0)
			continue
		}
		e := u.edit
		kind := byte(1)
		if e.weights != nil {
			kind = weighedEdit
		}
		b = appendTexts(appendFloats(append(b, kind), e.x), e.ids)
		b = appendEdges(appendEdges(b, e.add), e.remove)
		b = appendFloats(appendNodes(b, e.change), e.changeX)
		b = appendNodes(b, e.drop)
		if e.weights != nil {
			b = appendFloats(b, e.weights)
		}
	}
	return b
}

// weighedEdit marks an edit whose new edges have weights, which are at its end.
const weighedEdit = 2

// errRecord is returned for a record whose checksum is right and whose content is not
// what this version of gsrc writes.
var errRecord = errors.New("the record is not what this version of gsrc writes")

// decoder reads what the functions above append. After a fault it gives zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.b, d.bad = nil, true
		return make([]byte, min(max(n, 0), 64))
	}
	part := d.b[:n]
	d.b = d.b[n:]
	return part
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads the length of a list whose elements take that many bytes at least.
func (d *decoder) count(bytes int) int {
	n := d.uint()
	if n > uint64(len(d.b)/bytes) {
		d.b, d.bad = nil, true
		return 0
	}
	return int(n)
}

func (d *decoder) int() int64 {
	v := d.uint()
	if v > math.MaxInt64 {
		d.bad = true
	}
	return int64(v)
}

func (d *decoder) text() string { return string(d.take(d.count(1))) }

func (d *decoder) node() int32 {
	v := d.uint()
	if v > math.MaxInt32 {
		d.bad = true
	}
	return int32(v)
}

func (d *decoder) nodes() (list []int32) {
	for range d.count(1) {
		list = append(list, d.node())
	}
	return list
}

func (d *decoder) edges() (list [][2]int32) {
	for range d.count(2) {
		list = append(list, [2]int32{d.node(), d.node()})
	}
	return list
}

func (d *decoder) floats() []float32 {
	n := d.uint()
	if n > math.MaxInt32 {
		d.b, d.bad = nil, true
	}
	if d.bad || n == 0 {
		d.take(1)
		return nil
	}
	if d.take(1)[0] == 0 {
		raw := d.take(int(n) * 4)
		if d.bad {
			return nil
		}
		return lists.Of(int(n), func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])) })
	}
	x, at := make([]float32, n), uint64(0)
	for range d.count(5) {
		at += d.uint()
		v := math.Float32frombits(binary.LittleEndian.Uint32(d.take(4)))
		if at >= n || d.bad {
			d.bad = true
			return nil
		}
		x[at] = v
	}
	return x
}

func decodeCommit(b []byte) (*commit, error) {
	d := &decoder{b: b}
	c := &commit{Applied: Applied{Version: d.int(), Nodes: int(d.int()), Edges: int(d.int())}, time: d.int()}
	for range d.count(2) {
		u := committed{key: d.text()}
		if u.key != "" {
			copy(u.hash[:], d.take(len(u.hash)))
		}
		if kind := d.take(1)[0]; kind != 0 {
			u.edit = &edit{x: d.floats()}
			for range d.count(1) {
				u.edit.ids = append(u.edit.ids, d.text())
			}
			u.edit.add, u.edit.remove = d.edges(), d.edges()
			u.edit.change, u.edit.changeX = d.nodes(), d.floats()
			u.edit.drop = d.nodes()
			if kind == weighedEdit {
				u.edit.weights = d.floats()
			}
		}
		c.updates = append(c.updates, u)
	}
	if d.bad || len(d.b) > 0 {
		return nil, errRecord
	}
	return c, nil
}

// renumber gives all nodes of an edit other numbers, which ascend as the ones before do.
func (e *edit) renumber(to func(int32) int32) {
	for _, list := range [][][2]int32{e.add, e.remove} {
		for i, pair := range list {
			list[i] = [2]int32{to(pair[0]), to(pair[1])}
		}
	}
	for _, list := range [][]int32{e.change, e.drop} {
		for i, v := range list {
			list[i] = to(v)
		}
	}
}

// fits tells whether an edit that a record has, by numbers, can be applied to the draft as it is,
// and turns it into one by rows.
func (d *draft) fits(e *edit) bool {
	width := d.x.cols
	if e.weights != nil && len(e.weights) != len(e.add) || len(e.x)%width != 0 || len(e.changeX) != len(e.change)*width {
		return false
	}
	fresh := len(e.x) / width
	n := d.x.rows + fresh
	if (d.ids == nil) != (len(e.ids) == 0) && fresh > 0 || len(e.ids) > 0 && len(e.ids) != fresh || d.next+fresh > math.MaxInt32 {
		return false
	}
	e.renumber(func(v int32) int32 {
		if int(v) >= d.next {
			return v - int32(d.next-d.x.rows)
		}
		return int32(d.row(int(v)))
	})
	there := func(v int32) bool { return int(v) < n && !d.gone(v) }
	for _, pair := range slices.Concat(e.add, e.remove) {
		if pair[0] == pair[1] || pair[0] > pair[1] && !d.old.graph.Directed || !there(pair[0]) || !there(pair[1]) {
			return false
		}
	}
	gone := make(map[int32]bool, len(e.drop))
	for _, v := range e.drop {
		if !there(v) || gone[v] {
			return false
		}
		gone[v] = true
	}
	return !slices.ContainsFunc(e.change, func(v int32) bool { return !there(v) })
}

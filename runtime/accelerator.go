package runtime

import "github.com/gsrc-dev/gsrc/rng"

// Accelerator is a device with a memory of its own. What it is told to do is
// queued and done in that order; only reading back waits for it.
//
// # Who owns what
//
// A buffer that the caller binds belongs to the host: its contents are copied to
// the device before the next run, once, for all programs on the device. Binding
// it again says that they have changed; changing them in place without that is
// not seen. A buffer that was given away with [Remote.Own], such as a parameter
// while it is trained, belongs to the device: binding it copies nothing, and the
// host's copy is as old as the last [Remote.Fetch]. What programs compute stays on
// the device: [Executable.Result] binds it to another program there,
// [Executable.Read] copies it to the host.
type Accelerator interface {
	Device
	// Memory returns the device's memory with the buffers that lie in it.
	Memory() *Remote
	// SetStep writes the step number that random operations read.
	SetStep(step uint64) error
	// Record lets queue queue work, and returns what does that work, as often as
	// wanted, without a look at the host; the work itself is not done. A device
	// that cannot record returns nil.
	Record(queue func() error) (Recording, error)
	// Sync waits for what is queued, and returns the error that it ended with.
	Sync() error

	// Adam makes step t (from 1) of Adam; see [kernels.Pool.AdamStep].
	Adam(params []AdamParam, lr, b1, b2, eps float32, t int) error
	// Finite returns the position of the first buffer that holds a NaN or an
	// infinity, −1 if none does, and the values of scalars.
	Finite(scalars []*Buffer, values []float32, bs []*Buffer) (bad int, err error)
	// Follow makes dst ← dst + share·(src − dst).
	Follow(dst, src *Buffer, share float32) error
	// Score compares logits [N, classes] with the labels of some rows, and reports
	// whether all logits are finite.
	Score(logits *Buffer, sets []Scoring) (finite bool, err error)
}

// Scoring is rows of logits to be compared with their labels, and the outcome. Rows
// and Labels are [n] i64 tensors that the device owns, in the range of N and of the
// classes.
type Scoring struct {
	Rows, Labels *Buffer
	// Hits is how many rows have their largest logit, the first of equal ones, at the
	// label; Loss the sum of −ln softmax at the label, in nats.
	Hits int
	Loss float64
}

// AnchorDrawer is an [Accelerator] that draws samples of nodes itself.
type AnchorDrawer interface {
	// DrawAnchors makes dst, an i64 tensor [count] that the device owns, so many of n
	// nodes in ascending order: the first of a Fisher–Yates shuffle whose step i swaps
	// element i with element i + s.Intn(i, n−i). Its work grows with the square of count.
	DrawAnchors(dst *Buffer, n int, s rng.Stream) error
}

// NeighborSearcher is a device that can search nearest neighbours in its own memory, an
// [Accelerator], or one that plans for it.
type NeighborSearcher interface {
	// Nearest finds the k nearest neighbours of every row of emb, a f32 [n, f] on the
	// device, exactly, and copies them to the host: row numbers to idx [n, k], and
	// cosines to sim [n, k]; either may be nil and is not copied then. Both are as
	// graph.KNN has them: the nearest first and of equally near rows the lower number, no
	// row its own; rows without a direction have none and are nobody's; −1 and 0 where
	// there are fewer than k. Products of rows are summed in another order than on the
	// CPU, so that rows that are almost equally near may change places. An error may be that of
	// work queued before.
	Nearest(idx []int32, sim []float32, emb *Buffer, k int) error
	// NearestBytes returns what Nearest takes of the device's memory, which is kept
	// until [Remote.ReleaseAll].
	NearestBytes(n, f, k int) int
}

// Recording is work that a device has recorded.
type Recording interface {
	Replay() error
	Close() error
}

// AdamParam is one parameter of an optimizer step in a device's memory: weights,
// gradient, first and second moments.
type AdamParam struct {
	W, G, M, V  *Buffer
	WeightDecay float32
}

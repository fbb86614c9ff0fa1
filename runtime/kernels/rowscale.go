package kernels

import "math"

// The normalisations of rows first multiply a row whose largest magnitude is outside
// [rowLow, rowHigh] by a power of two, since its squares would overflow or vanish. The
// factors leave the squares of what they scale, subnormal numbers included, among the
// normal numbers, and their sum finite for up to 2³¹ columns.
const (
	rowLow, rowHigh = 1e-12, 1e12
	rowUp, rowDown  = 1 << 88, 1.0 / (1 << 80)
)

// rowNorm returns the norm of the kind's normalisation, l1Rows or l2Rows.
func rowNorm(kind softmaxKind, x []float32) float32 {
	if kind == l1Rows {
		return ks.sumAbs(x)
	}
	return sqrt32(ks.dot(x, x))
}

// rowScale returns the power of two that normalisation multiplies the row x with
// first, whose norm was computed: 1 for nearly all, for rows of zeros, and for those
// with an infinity or NaN. Where eps is above rowLow small rows are not scaled, since
// it says that they have no direction.
func rowScale(norm float32, x []float32, eps float32) float32 {
	if rowIsPlain(norm, len(x)) {
		return 1
	}
	return rowScaleOf(x, eps)
}

// RowScale returns the power of two that normalisation multiplies the row x with first, for
// what compares rows by other means: 1 for nearly all, since none but rows whose largest
// magnitude is outside [1e-12, 1e12] are scaled.
func RowScale(x []float32) float32 { return rowScaleOf(x, 0) }

func rowScaleOf(x []float32, eps float32) float32 {
	top := float32(0)
	for _, v := range x {
		top = max(top, abs32(v)) // NaN if any is
	}
	return scaleOf(top, eps)
}

// rowIsPlain tells from its norm that no element of a row of n is outside of
// [rowLow, rowHigh] as the largest, whatever the rounding: a norm is between the
// largest magnitude and n times that.
func rowIsPlain(norm float32, n int) bool {
	return norm >= 2*rowLow*float32(n) && norm <= rowHigh/2
}

func scaleOf(top, eps float32) float32 {
	switch {
	case top > rowHigh && top <= math.MaxFloat32:
		return rowDown
	case top > 0 && top < rowLow && eps <= rowLow:
		return rowUp
	}
	return 1
}

// sparseScale is [rowScale] of the entries lo ≤ e < hi.
func (j *sparseJob) sparseScale(norm float32, lo, hi int32) float32 {
	if rowIsPlain(norm, int(hi-lo)) || j.a == nil {
		return 1
	}
	top := float32(0)
	for e := lo; e < hi; e++ {
		top = max(top, abs32(j.a[j.s.value(e)]))
	}
	return scaleOf(top, j.scale)
}

// l2GradWide is the gradient of L2NormalizeRows for a row that rowScale scales down,
// in float64, in which nothing overflows. dst may be dy.
func l2GradWide(dst, x, dy []float32) {
	square, dot := 0.0, 0.0
	for i, v := range x {
		square += float64(float64(v) * float64(v))
		dot += float64(float64(v) * float64(dy[i]))
	}
	norm := math.Sqrt(square)
	for i, v := range x {
		dst[i] = float32((float64(dy[i]) - float64(float64(v)*(dot/square))) / norm)
	}
}

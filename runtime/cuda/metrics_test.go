//go:build darwin || linux

package cuda

import (
	"fmt"
	"math"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// scoredRows are n rows of that many classes with equal logits among them, every third
// of a row listed, some twice.
func scoredRows(n, classes int) (logits []float32, rows, labels []int64, hits int, loss float64) {
	s := rng.New(uint64(n), "score")
	logits = make([]float32, n*classes)
	for i := range logits {
		logits[i] = float32(s.Intn(uint64(i), 7)) - 3
	}
	for i := 0; i < n; i += 3 {
		r, c := int64(s.Intn(uint64(i), n)), int64(s.Intn(uint64(i+1), classes))
		row := logits[int(r)*classes:][:classes]
		if i%2 == 0 {
			c = int64(kernels.Top(row))
		}
		rows, labels = append(rows, r), append(labels, c)
		if kernels.Top(row) == int(c) {
			hits++
		}
		loss += kernels.NLL(row, int(c))
	}
	return logits, rows, labels, hits, loss
}

func TestScoreKernels(t *testing.T) {
	q := newQueue(t)
	for _, classes := range []int{1, 2, 7, 32, 40, 100} {
		for _, n := range []int{0, 1, 50, 3000} {
			logits, rows, labels, hits, loss := scoredRows(n, classes)
			dst, parts := make([]float64, 2), make([]float64, 2*scoreBlocks)
			if err := queued(q, func(s *steps) {
				score(s, place(t, q, dst), place(t, q, parts), place(t, q, logits), place(t, q, rows), place(t, q, labels), len(rows), classes)
			}); err != nil {
				t.Fatal(err)
			}
			if int(dst[0]) != hits || !(math.Abs(dst[1]-loss) <= 1e-6*(1+loss)) {
				t.Errorf("%d rows of %d classes: %v, want %d and %g", n, classes, dst, hits, loss)
			}
		}
	}
}

func TestDeviceScores(t *testing.T) {
	cudatest.Either(t)
	d := openDevice(t)
	for _, n := range []int{10, 400} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			logits, rows, labels, hits, loss := scoredRows(n, 5)
			x := runtime.F32(logits, n, 5)
			sets := []runtime.Scoring{{Rows: runtime.I64(rows, len(rows)), Labels: runtime.I64(labels, len(rows))}, {Rows: runtime.I64(nil, 0), Labels: runtime.I64(nil, 0)}}
			held := []*runtime.Buffer{x, sets[0].Rows, sets[0].Labels, sets[1].Rows, sets[1].Labels}
			for _, b := range held {
				if err := d.ToDevice(b); err != nil {
					t.Fatal(err)
				}
			}
			good := logits[n]
			for _, bad := range []float32{0, float32(math.NaN()), float32(math.Inf(-1)), 0} {
				logits[n] = good + bad
				if err := d.CopyToDevice(x); err != nil {
					t.Fatal(err)
				}
				finite, err := d.Score(x, sets)
				if err != nil {
					t.Fatal(err)
				}
				if finite != (bad == 0) {
					t.Errorf("with %g: finite is %v", bad, finite)
				}
			}
			if s := sets[0]; s.Hits != hits || !(math.Abs(s.Loss-loss) <= 1e-6*loss) {
				t.Errorf("%d hits and loss %g, want %d and %g", s.Hits, s.Loss, hits, loss)
			}
			if s := sets[1]; s.Hits != 0 || s.Loss != 0 {
				t.Errorf("no rows have %d hits and loss %g", s.Hits, s.Loss)
			}
			for _, b := range held {
				if err := d.Release(b); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

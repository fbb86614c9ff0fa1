package bench

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// PipelineOptions say what [Pipeline] times.
type PipelineOptions struct {
	Dist    string  // an export with pipeline.onnx
	Data    string  // the graph to run it on
	Threads int     // of onnxruntime, 0 is one for each processor
	Seconds float64 // that the rounds may take; 0 is 20
}

// PipelineReport compares pipeline.onnx with its own matrix products in onnxruntime,
// which no way of computing the same could do without. Times are the least of all
// rounds, and the median, in milliseconds.
type PipelineReport struct {
	Machine          Machine
	Nodes            int
	Edges            int // entries of edge_index
	K                int
	Rounds           int
	MS, MedianMS     float64 // of the file
	Products         int     // in number
	GFlop            float64 // of the products
	ProductsMS       float64
	ProductsMedianMS float64
	Ratio            float64 // of the least times
	MedianRatio      float64 // of the rounds' ratios
}

// Pipeline times pipeline.onnx of an export, in turn with its products.
func Pipeline(ctx context.Context, o PipelineOptions) (*PipelineReport, error) {
	if o.Seconds == 0 {
		o.Seconds = 20
	}
	ds, err := data.Load(o.Data, data.LoadOptions{})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(o.Dist, "pipeline.onnx")
	i, err := export.Inspect(path)
	if err != nil {
		return nil, err
	}
	k, err := strconv.ParseInt(i.Metadata["k"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s does not say its k in the metadata: %w", path, err)
	}
	st := ds.Graph.Structure()
	src, dst := st.EdgeIndex()
	r := &PipelineReport{Machine: ThisMachine(o.Threads), Nodes: ds.Graph.N, Edges: st.E, K: int(k)}
	in := map[string]ort.Tensor{"edge_index": ort.Int64s(append(src, dst...), 2, int64(st.E)), "k": ort.Int64s([]int64{k}, 1)}
	x := ort.Float32s(ds.X.ToDense().Dense, int64(ds.X.Rows), int64(ds.X.Cols))
	for _, input := range i.Inputs {
		switch input.Name {
		case "x":
			in["x"] = x
		case "x_indptr":
			sparse, err := export.Sparse(x)
			if err != nil {
				return nil, err
			}
			for name, t := range sparse {
				in[name] = t
			}
		case "edge_weight":
			in["edge_weight"] = ort.Float32s(slices.Repeat([]float32{1}, st.E), int64(st.E))
		}
	}
	options := ort.Options{Provider: ort.CPU, Threads: r.Machine.Threads}
	p, err := i.Products(in, options)
	if err != nil {
		return nil, err
	}
	r.Products, r.GFlop = p.Count, float64(p.Flops)/1e9
	whole, err := ort.Open(path, options)
	if err != nil {
		return nil, err
	}
	defer whole.Close()
	products, err := ort.OpenBytes(p.Model, options)
	if err != nil {
		return nil, err
	}
	defer products.Close()
	times, err := inTurn(ctx, o.Seconds, func() error { _, err := whole.Run(in); return err }, func() error { _, err := products.Run(p.Inputs); return err })
	if err != nil {
		return nil, err
	}
	var ratios []float64
	for k, t := range times[0] {
		ratios = append(ratios, t/times[1][k])
	}
	median := func(list []float64) float64 {
		list = slices.Sorted(slices.Values(list))
		return list[len(list)/2]
	}
	r.Rounds = len(ratios)
	r.MS, r.MedianMS = slices.Min(times[0]), median(times[0])
	r.ProductsMS, r.ProductsMedianMS = slices.Min(times[1]), median(times[1])
	r.Ratio, r.MedianRatio = r.MS/r.ProductsMS, median(ratios)
	return r, nil
}

// inTurn runs functions one after another, again and again, and returns the times of
// each in milliseconds. Each turn is two calls, of which the second counts: during the
// first the threads of the other file still wait actively for work.
func inTurn(ctx context.Context, seconds float64, run ...func() error) ([][]float64, error) {
	times := make([][]float64, len(run))
	begin := time.Now()
	for round := 0; round < 3 || time.Since(begin).Seconds() < seconds; round++ {
		for k, f := range run {
			var at time.Time
			for range 2 {
				at = time.Now()
				if err := f(); err != nil {
					return nil, err
				}
			}
			times[k] = append(times[k], time.Since(at).Seconds()*1e3)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// Write prints the comparison.
func (r *PipelineReport) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d nodes, %d entries of edge_index, k = %d, %d threads, %d rounds\n"+
		"pipeline.onnx       %8.2f ms (median %.2f)\nits %3d products    %8.2f ms (median %.2f), %.2f GFLOP\nratio               %8.2f    (median of rounds %.2f)\n",
		r.Nodes, r.Edges, r.K, r.Machine.Threads, r.Rounds, r.MS, r.MedianMS, r.Products, r.ProductsMS, r.ProductsMedianMS, r.GFlop, r.Ratio, r.MedianRatio)
	return err
}

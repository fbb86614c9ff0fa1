package serve

import (
	"context"
)

// TensorInfo describes an input or output; a dimension that varies is −1.
type TensorInfo struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
}

// Metadata describes a model.
type Metadata struct {
	Name     string       `json:"name"`
	Versions []string     `json:"versions"`
	Platform string       `json:"platform"`
	Inputs   []TensorInfo `json:"inputs"`
	Outputs  []TensorInfo `json:"outputs"`
}

// modelVersion is the one version of every model.
const modelVersion = "1"

func find(infos []TensorInfo, name string) *TensorInfo {
	for i := range infos {
		if infos[i].Name == name {
			return &infos[i]
		}
	}
	return nil
}

// model is something that can be asked.
type model interface {
	describe() *Metadata
	infer(ctx context.Context, r *Request) (*Result, error)
}

// ask has a model answer a request.
func ask(ctx context.Context, m model, r *Request) (*Result, error) {
	if err := r.fit(m.describe()); err != nil {
		return nil, err
	}
	res, err := m.infer(ctx, r)
	if err != nil {
		return nil, err
	}
	res.keep(r.Outputs)
	return res, nil
}

// gate lets so many through at a time.
type gate chan struct{}

func newGate(n int) gate { return make(gate, n) }

// do runs f, which cannot be stopped, on a goroutine of its own: where ctx ends before
// it does, do returns, and f keeps its place in the gate until it is done.
func (g gate) do(ctx context.Context, f func() (*Result, error)) (*Result, error) {
	select {
	case g <- struct{}{}:
	case <-ctx.Done():
		return nil, fail(kindBusy, "too many requests: there was no turn within the time limit")
	}
	type outcome struct {
		r   *Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-g }()
		r, err := f()
		done <- outcome{r, err}
	}()
	select {
	case o := <-done:
		return o.r, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

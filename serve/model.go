package serve

import (
	"context"
	"errors"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/budget"
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
	if i := slices.IndexFunc(infos, func(t TensorInfo) bool { return t.Name == name }); i >= 0 {
		return &infos[i]
	}
	return nil
}

// model is something that can be asked.
type model interface {
	describe() *Metadata
	// bound tells, before any work, what a request that fits takes and gives at most.
	bound(r *Request) (bound, error)
	infer(ctx context.Context, r *Request) (*Result, error)
}

// ask has a model answer a request within the limits of the server.
func (s *Server) ask(ctx context.Context, c *call, m model, r *Request, binary formats) (*Result, error) {
	if len(r.ID) > mostID {
		return nil, invalid("the request's id has %d bytes; it may have %d", len(r.ID), mostID)
	}
	c.id = r.ID
	meta := m.describe()
	if err := r.fit(meta); err != nil {
		return nil, err
	}
	b, err := m.bound(r)
	if err != nil {
		return nil, err
	}
	c.rows = b.rows
	answer := b.answerBytes(meta, r, binary)
	if answer > s.o.MaxAnswer {
		return nil, invalid("the answer would have up to %s, and this server gives %s (--max-answer); ask for fewer outputs, or for less at a time",
			budget.Format(answer), budget.Format(s.o.MaxAnswer))
	}
	// As tensors, as it is written, and what growing it leaves behind.
	if err := c.grow(plus(b.scratch, budget.Mul(3, answer))); err != nil {
		return nil, err
	}
	res, err := m.infer(ctx, r)
	if err != nil {
		return nil, err
	}
	res.keep(r.Outputs)
	return res, nil
}

// gate lets that many through at a time.
type gate chan struct{}

// do runs f, which ends soon after ctx does.
func (g gate) do(ctx context.Context, f func() (*Result, error)) (*Result, error) {
	select {
	case g <- struct{}{}:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		return nil, fail(kindBusy, "too many requests: there was no turn within the time limit")
	}
	defer func() { <-g }()
	return f()
}

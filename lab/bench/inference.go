package bench

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/models"
)

// inferenceCases time a forward pass over the whole graph. Exported files are timed by
// [Exports].
func inferenceCases() []Case {
	var cases []Case
	for _, c := range []struct {
		model, fn, data string
		hidden          int
	}{{"gcn", "classify", "cora", 16}, {"gcn", "classify", "cora", 128}, {"gcn", "classify", "actor", 16}, {"ecl-gsr", "encode", "cora", 128}} {
		name := fmt.Sprintf("inference/%s/%s/%d", c.model, c.data, c.hidden)
		job := func(e *env) Job {
			o := models.Default()
			if c.model == "gcn" {
				o.Hidden = c.hidden
			}
			return Job{Data: e.ds, Model: c.model, Options: o, Threads: e.Threads}
		}
		cases = append(cases, Case{Name: name + "/compiled", Doc: "@" + c.fn + " over the whole graph", workload: FindWorkload(c.data), run: func(e *env) (Result, error) {
			s, err := NewSession(job(e))
			if err != nil {
				return Result{}, err
			}
			defer s.Close()
			f, err := s.Function(c.fn)
			if err != nil {
				return Result{}, err
			}
			r, err := e.rounds(func() error { return f.Run(0) })
			r.PlannedMiB = plannedMiB(f)
			return r, err
		}})
	}
	return cases
}

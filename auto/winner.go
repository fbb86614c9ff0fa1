package auto

import (
	"context"
	"fmt"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/run"
	"github.com/gsrc-dev/gsrc/train"
)

// finish trains the winner, and judges refinement.
func (x *chooser) finish(ctx context.Context) (*Run, error) {
	winner, choice := x.upTo.choose(x.report.Candidates)
	if winner == nil {
		return nil, fmt.Errorf("no candidate could be trained; the first: %s", x.report.Candidates[0].Failed)
	}
	x.report.Status, x.report.Choice = "training", choice
	if x.Stage != nil {
		x.Stage("training " + winner.Name)
	}
	s, err := x.setup(winner)
	if err != nil {
		return nil, err
	}
	m, err := models.Lookup(winner.Model)
	if err != nil {
		return nil, err
	}
	transductive := m.Learner != nil && !m.Learner.Inductive
	encode := s.Module.Func("encode")
	places := s.Data.Structural || encode != nil && encode.Arg("x_struct") != nil && s.Config.Candidates.Structure != "raw"
	refused := s.Exportable()
	choice.NewNodes = refused == nil && !transductive && !places
	switch {
	case choice.NewNodes || x.Warn == nil:
	case transductive:
		x.Warn(fmt.Sprintf("%s cannot take new nodes: what it learns are the edges of this graph (it is transductive), and new nodes have none among them", winner.Name))
	case refused != nil:
		x.Warn(fmt.Sprintf("%s cannot take new nodes, and gsrc build refuses it: %v", winner.Name, refused))
	default:
		x.Warn(fmt.Sprintf("%s cannot take new nodes: it reads their places in this graph, which mean nothing in another", winner.Name))
	}
	if err := x.write(); err != nil {
		return nil, err
	}
	if err := x.keep(ctx, winner, choice.Restart); err != nil {
		return nil, err
	}
	if err := x.judge(ctx, winner); err != nil {
		return nil, err
	}
	x.report.Status = "done"
	if err := x.write(); err != nil {
		return nil, err
	}
	if x.Out != "" {
		if err := train.List(x.Out, File); err != nil {
			return nil, err
		}
	}
	return &Run{x.kept, x.report}, nil
}

// judge says what refinement brings to the winner, or if that leaves the graph as it is to the
// best candidate that does not.
func (x *chooser) judge(ctx context.Context, winner *Candidate) error {
	c := winner
	if c.Structure != refined {
		var in []*Candidate
		most := 1
		for _, c := range x.report.Candidates {
			switch n := len(c.Scores); {
			case c.Structure != refined || c.Failed != "" || n < most:
			case n > most:
				in, most = []*Candidate{c}, n
			default:
				in = append(in, c)
			}
		}
		if len(in) == 0 {
			return nil
		}
		c = ranked(in, most)[0]
	}
	if len(x.pool.judges) == 0 {
		return nil
	}
	if len(x.split.Test) == 0 { // the judges are validation nodes, by which the winner keeps its epoch
		x.judging = &data.Split{Train: x.pool.train, Val: x.pool.val, Test: x.pool.judges}
	}
	r := &Refinement{Candidate: c.Name, Undirected: x.report.Seen.Directed && c.plain == ""}
	with, err := x.correct(ctx, c)
	if err != nil {
		return err
	}
	without, err := x.correct(ctx, c.twin())
	if refused(err) { // there is nothing to hold it against
		return nil
	}
	if err != nil {
		return err
	}
	var chosen []bool
	if points, half := against(with, without); c != winner && points > half {
		if chosen, err = x.correct(ctx, winner); err != nil {
			return err
		}
	}
	r.compare(with, without, chosen, winner)
	x.report.Refinement = r
	return nil
}

// correct trains a candidate on the given split, unless it is what was kept, and returns for each
// judge whether it is classified correctly. All that is compared begins once, whatever was the best of the winner's
// beginnings: of its twin there are no others.
func (x *chooser) correct(ctx context.Context, c *Candidate) ([]bool, error) {
	r := x.kept
	if x.of != c || x.restart != 0 || x.judging != nil {
		s, err := x.setup(c)
		if err != nil {
			return nil, err
		}
		if s, err = s.On(x.ds, x.judging, nil); err != nil {
			return nil, err
		}
		if r, err = s.Train(ctx, run.TrainOptions{Memory: x.Memory, Executor: x.Executor, Observer: x.Observer}); err != nil {
			return nil, err
		}
	}
	predicted := metrics.Argmax(r.Trained.Logits, x.ds.Classes)
	out := make([]bool, len(x.pool.judges))
	for i, v := range x.pool.judges {
		out[i] = predicted[v] == x.ds.Labels[v]
	}
	return out, nil
}

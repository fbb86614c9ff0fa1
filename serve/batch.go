package serve

import (
	"context"
	"sync"

	"github.com/gsrc-dev/gsrc/infer"
)

// batcher gathers questions for nodes: those that come while one batch is worked on
// are the next, so that a batch is as large as the load makes it and no question waits for
// others. Every batch is answered from one version of the graph.
type batcher struct {
	graph   *infer.Graph
	most    int             // nodes in a batch, unless one question has more
	observe func(nodes int) // is called for every batch that has some

	mu      sync.Mutex
	waiting []*pending
	busy    bool
}

// answer is that to a question.
type answer struct {
	version               int64
	logits, probabilities []float32 // [nodes of the question, classes]
}

// pending is a question that waits.
type pending struct {
	q    *question
	ctx  context.Context
	done chan struct{}
	answer
	err error
}

// ask waits for the answer to a question.
func (b *batcher) ask(ctx context.Context, q *question) (*answer, error) {
	p := &pending{q: q, ctx: ctx, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, p)
	if !b.busy {
		b.busy = true
		go b.work()
	}
	b.mu.Unlock()
	select {
	case <-p.done:
		return &p.answer, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// work answers until nothing waits.
func (b *batcher) work() {
	for {
		b.mu.Lock()
		batch := b.next()
		b.busy = len(batch) > 0
		b.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		b.run(batch)
	}
}

// next takes the oldest questions, up to the size of a batch.
func (b *batcher) next() []*pending {
	n, size := 0, 0
	for ; n < len(b.waiting); n++ {
		size += len(b.waiting[n].q.names) + len(b.waiting[n].q.numbers)
		if n > 0 && size > b.most {
			break
		}
	}
	batch := b.waiting[:n:n]
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
	}
	return batch
}

// run answers a batch.
func (b *batcher) run(batch []*pending) {
	s := b.graph.Snapshot()
	var all []int
	count := make([]int, len(batch))
	for i, p := range batch {
		if p.err = p.ctx.Err(); p.err != nil {
			continue
		}
		var list []int
		if list, p.err = p.q.find(s); p.err != nil {
			continue
		}
		all, count[i] = append(all, list...), len(list)
	}
	var logits, probabilities []float32
	var err error
	if len(all) > 0 {
		b.observe(len(all))
		logits, probabilities, err = s.Answer(all)
	}
	c := len(b.graph.Manifest().Classes)
	at := 0
	for i, p := range batch {
		if p.err == nil {
			p.err = err
		}
		if p.err == nil {
			end := at + count[i]*c
			p.answer = answer{s.Version, logits[at:end:end], probabilities[at:end:end]}
		}
		at += count[i] * c
		close(p.done)
	}
}

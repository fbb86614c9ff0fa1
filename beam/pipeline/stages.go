package pipeline

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/gsrc-dev/gsrc/internal/rss"
)

// Stage says what functions of one stage took, those in this process.
type Stage struct {
	Name     string
	Calls    int64 // of an element, or a group of elements
	Messages int64 // elements that were grouped for them: what an engine shuffles
	Bytes    int64 // of these
	Largest  int64 // bytes of one call
	CPU      time.Duration
}

// metricsNamespace has the metrics of Beam, which engines show, of all workers: a distribution of the bytes
// that a call was sent, and counters.
const metricsNamespace = "gsrc"

// work is a call of a stage, which is measured.
type work struct {
	ctx             context.Context
	stage           string
	messages, bytes int64
	cpu             time.Duration
}

// running are the calls of this process that compute just now. What the process takes of processors is
// theirs in equal parts.
var running = struct {
	sync.Mutex
	calls []*work
	at    time.Duration // up to which it was divided
	ended map[string]Stage
}{ended: map[string]Stage{}}

// divide must be called with the lock, whenever calls begin, pause, go on or end.
func divide() {
	now := rss.CPU()
	for _, w := range running.calls {
		w.cpu += (now - running.at) / time.Duration(len(running.calls))
	}
	running.at = now
}

func (w *work) run() {
	running.Lock()
	defer running.Unlock()
	divide()
	running.calls = append(running.calls, w)
}

func (w *work) pause() {
	running.Lock()
	defer running.Unlock()
	divide()
	running.calls = slices.DeleteFunc(running.calls, func(x *work) bool { return x == w })
}

func begin(ctx context.Context, stage string) *work {
	w := &work{ctx: ctx, stage: stage}
	w.run()
	return w
}

func (w *work) end() {
	w.pause()
	beam.NewDistribution(metricsNamespace, w.stage+".bytes").Update(w.ctx, w.bytes)
	beam.NewCounter(metricsNamespace, w.stage+".messages").Inc(w.ctx, w.messages)
	beam.NewCounter(metricsNamespace, w.stage+".microseconds").Inc(w.ctx, w.cpu.Microseconds())
	running.Lock()
	defer running.Unlock()
	s := running.ended[w.stage]
	running.ended[w.stage] = Stage{w.stage, s.Calls + 1, s.Messages + w.messages, s.Bytes + w.bytes, max(s.Largest, w.bytes), s.CPU + w.cpu}
}

// reads counts what was grouped.
func (w *work) reads(next func(*[]byte) bool) func(*[]byte) bool {
	return func(b *[]byte) bool {
		w.pause() // the engine sends it
		defer w.run()
		more := next(b)
		if more {
			w.messages++
			w.bytes += int64(len(*b))
		}
		return more
	}
}

// each calls f with the tables of an iterator.
func (w *work) each(next func(*[]byte) bool, f func(*table) error) error {
	var b []byte
	for next = w.reads(next); next(&b); {
		t, err := parseTable(b)
		if err == nil {
			err = f(t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// all returns the tables of some iterators, one after another.
func (w *work) all(sent ...func(*[]byte) bool) (list []*table, err error) {
	for _, next := range sent {
		if err := w.each(next, func(t *table) error { list = append(list, t); return nil }); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// emit leaves out what the engine does with what is emitted, and other calls that it makes for that.
func (w *work) emit(emit func(int64, []byte), to int64, b []byte) {
	w.pause()
	defer w.run()
	emit(to, b)
}

// send emits a table.
func (w *work) send(emit func(int64, []byte), to int64, t *table) error {
	b, err := t.bytes()
	if err == nil {
		w.emit(emit, to, b)
	}
	return err
}

// toAll emits what all partitions are given beside what they are sent.
func toAll(emit func([]byte)) func(int64, []byte) { return func(_ int64, b []byte) { emit(b) } }

// stages returns what was measured in this process, by name, and forgets it.
func stages() []Stage {
	running.Lock()
	defer running.Unlock()
	defer clear(running.ended)
	return slices.SortedFunc(maps.Values(running.ended), func(a, b Stage) int { return strings.Compare(a.Name, b.Name) })
}

package runtime

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gsrc-dev/gsrc/ir"
)

// Trace records when the operations of functions ran, to be looked at on a time
// line. It may be shared by functions; each is recorded for its first Steps runs,
// so that a trace of a long training stays small. Make one with [NewTrace].
type Trace struct {
	steps int

	mu     sync.Mutex
	start  time.Time
	events []traceEvent
	tracks []string // functions, in the order of their first run
	of     map[string]*track
}

// track is one function's line.
type track struct {
	id   int
	runs int
}

type traceEvent struct {
	op     *ir.Op
	track  int
	step   uint64
	at     time.Duration // since the trace began
	took   time.Duration
	shapes string
}

// NewTrace begins a trace that records the first steps runs of every function.
func NewTrace(steps int) *Trace {
	return &Trace{steps: steps, start: time.Now(), of: map[string]*track{}}
}

// begin says that a function runs, and whether its operations are recorded.
func (t *Trace) begin(fn string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.of[fn]
	if k == nil {
		k = &track{id: len(t.tracks)}
		t.of[fn] = k
		t.tracks = append(t.tracks, fn)
	}
	k.runs++
	return k.runs <= t.steps
}

// add records one operation of a function that has begun.
func (t *Trace) add(fn string, c *Call, step uint64, start time.Time, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, traceEvent{op: c.Op, track: t.of[fn].id, step: step, at: start.Sub(t.start), took: took, shapes: shapes(c.In) + " → " + shapes(c.Out)})
}

// Write writes the trace in Chrome's trace event format, which ui.perfetto.dev and
// chrome://tracing open: one complete event for each operation that ran, one line
// for each function. The arguments of an event are step, shapes and the operation
// as the IR prints it.
func (t *Trace) Write(w io.Writer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	type event struct {
		Name string         `json:"name"`
		Ph   string         `json:"ph"`
		Ts   float64        `json:"ts"` // µs
		Dur  *float64       `json:"dur,omitempty"`
		Pid  int            `json:"pid"`
		Tid  int            `json:"tid"`
		Args map[string]any `json:"args"`
	}
	all := []event{{Name: "process_name", Ph: "M", Pid: 1, Args: map[string]any{"name": "gsrc"}}}
	for i, fn := range t.tracks {
		all = append(all, event{Name: "thread_name", Ph: "M", Pid: 1, Tid: i + 1, Args: map[string]any{"name": "@" + fn}})
	}
	const micro = float64(time.Microsecond)
	for _, e := range t.events {
		dur := float64(e.took) / micro
		all = append(all, event{Name: e.op.Name(), Ph: "X", Ts: float64(e.at) / micro, Dur: &dur, Pid: 1, Tid: e.track + 1,
			Args: map[string]any{"step": e.step, "shapes": e.shapes, "op": e.op.String()}})
	}
	b, before := bufio.NewWriter(w), `{"displayTimeUnit":"ms","traceEvents":[`
	for _, e := range all {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s\n%s", before, line)
		before = ","
	}
	fmt.Fprint(b, "\n]}\n")
	return b.Flush()
}

package gsrc

import (
	"context"
	"errors"
)

// Applied is what became of an [Update].
type Applied struct {
	Version      int64 // the first that has it
	Nodes, Edges int   // of that version
}

// attempt is an update that waits or is worked on.
type attempt struct {
	u    Update
	done chan struct{} // closed when the rest is set
	Applied
	err error
}

var errClosed = errors.New("the graph is closed")

// Update changes the graph, and returns the first version that has the change. Calls at
// the same time may share a version. The error is an *[UpdateError] where it is the
// caller's fault; nothing is then changed. When ctx ends while the new version is worked
// on, Update returns, and the version comes nevertheless. A change that leaves the graph
// as it is makes no version.
func (r *Resident) Update(ctx context.Context, u Update) (Applied, error) {
	if r.p.info.Graph == "refined" && !r.p.manifest.Inductive {
		return Applied{}, ErrFixedGraph
	}
	mine := &attempt{u: u, done: make(chan struct{})}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return Applied{}, errClosed
	}
	r.waiting = append(r.waiting, mine)
	if !r.busy {
		r.busy = true
		go r.updateAll()
	}
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.Applied, mine.err
	case <-ctx.Done():
		return Applied{}, ctx.Err()
	}
}

// updateAll makes versions until nothing waits.
func (r *Resident) updateAll() {
	for {
		r.mu.Lock()
		all := r.waiting
		r.waiting = nil
		if r.busy = len(all) > 0; !r.busy {
			r.idle.Broadcast()
		}
		r.mu.Unlock()
		if len(all) == 0 {
			return
		}
		r.update(all)
		for _, a := range all {
			close(a.done)
		}
	}
}

// update makes one version of all updates that can be made, or more where one of them
// spoils it for others.
func (r *Resident) update(all []*attempt) {
	old := r.current.Load()
	d := newDraft(old)
	var made []*attempt
	for _, a := range all {
		var e *edit
		if e, a.err = d.resolve(&a.u); a.err == nil {
			d.apply(e)
			made = append(made, a)
		}
	}
	if len(made) == 0 {
		return
	}
	next, c := d.finish()
	if next != nil {
		err := r.answer(context.Background(), old, next, c)
		var fault *FiniteError
		if errors.As(err, &fault) {
			if half := len(made) / 2; half > 0 { // not the fault of all
				r.update(made[:half])
				r.update(made[half:])
				return
			}
			err = &UpdateError{"the update is refused: " + err.Error()}
		}
		if err != nil {
			for _, a := range made {
				a.err = err
			}
			return
		}
		r.publish(d, next)
		old = next
	}
	for _, a := range made {
		a.Applied = Applied{old.Version, old.Nodes(), old.Edges()}
	}
}

// publish lets questions see a version.
func (r *Resident) publish(d *draft, s *Snapshot) {
	for name, v := range d.names {
		r.numbers.Store(name, v)
	}
	r.current.Store(s)
}

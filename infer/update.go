package infer

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"
)

// Applied is what became of an [Update].
type Applied struct {
	Version      int64 // the first that has it
	Nodes, Edges int   // of that version
}

// attempt is an update that waits or is worked on.
type attempt struct {
	u    Update
	hash [sha256.Size]byte // of its content, where it has a key
	done chan struct{}     // closed when the rest is set
	Applied
	err error

	edit *edit // while it is worked on
}

var errClosed = errors.New("the graph is closed")

// Update changes the graph, and returns the first version that has the change. Calls at
// the same time may share a version. A change that leaves the graph as it is makes no
// version, nor does one with a ctx that has ended. When ctx ends while the new version is worked on, Update returns, and the
// version comes nevertheless; to find out, call it again with the same key. The slices of u
// are the caller's again when Update returns.
//
// The error is an *[UpdateError] where it is the caller's fault, a *[KeyError] where the
// key was that of an update with other content, a *[GrowthError] where the graph would
// take more memory than it may, a *[JournalError] where the update could not be written
// down, [ErrReadOnly] or [ErrFixedGraph] where it takes no updates. Nothing is then changed.
func (r *Graph) Update(ctx context.Context, u Update) (Applied, error) {
	if r.fixed != nil {
		return Applied{}, r.fixed
	}
	if err := ctx.Err(); err != nil {
		return Applied{}, err
	}
	if ctx.Done() != nil { // it may return before they are read
		u = u.clone()
	}
	mine := &attempt{u: u, done: make(chan struct{})}
	if u.Key != "" {
		if err := checkName(u.Key); err != nil || len(u.Key) > MaxKey {
			return Applied{}, badUpdate("the idempotency key %.60q is not text of up to %d bytes without control characters or spaces around it", u.Key, MaxKey)
		}
		mine.hash = hashUpdate(&u)
	}
	if err := r.enter(&mine); err != nil {
		return Applied{}, err
	}
	select {
	case <-mine.done:
		return mine.Applied, mine.err
	case <-ctx.Done():
		return Applied{}, ctx.Err()
	}
}

// enter has an attempt waited for, or makes it the earlier one of the same key.
func (r *Graph) enter(a **attempt) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	mine := *a
	if mine.u.Key != "" {
		if have := r.keys.find(mine.u.Key); have != nil {
			if have.hash != mine.hash {
				return &KeyError{mine.u.Key}
			}
			*a = have
			return nil
		}
		r.keys.wait(mine)
	}
	r.waiting = append(r.waiting, mine)
	if !r.busy {
		r.busy = true
		go r.updateAll()
	}
	return nil
}

// updateAll makes versions until nothing waits.
func (r *Graph) updateAll() {
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
		r.mu.Lock()
		now := time.Now().Unix()
		for _, a := range all {
			switch {
			case a.u.Key == "":
			case a.err == nil:
				r.keys.make(a.u.Key, a, now)
			default: // the next one with the key tries anew
				delete(r.keys.attempts, a.u.Key)
			}
			a.u, a.edit = Update{}, nil
			close(a.done)
		}
		r.mu.Unlock()
		if r.journal != nil { // with the keys of what was just made
			r.journal.compactIfLarge(r, r.current.Load())
		}
	}
}

// update makes one version of all updates that can be made, or more where one of them
// spoils it for others.
func (r *Graph) update(all []*attempt) {
	old := r.current.Load()
	if r.condense(max(condenseAfter, old.Nodes())) {
		old = r.current.Load()
	}
	d := newDraft(old)
	var made []*attempt
	for _, a := range all {
		if a.edit, a.err = d.resolve(&a.u); a.err == nil {
			d.apply(a.edit)
			made = append(made, a)
		}
	}
	if len(made) == 0 {
		return
	}
	next, c := d.finish()
	if c.none(old, next) {
		next = old
	}
	err := r.commit(d, next, c, made)
	_, fault := errors.AsType[*FiniteError](err)
	_, growth := errors.AsType[*GrowthError](err)
	if growth && r.condense(old.rows()/8) {
		r.update(all)
		return
	}
	if fault || growth {
		if half := len(made) / 2; half > 0 { // not the fault of all
			r.update(made[:half])
			r.update(made[half:])
			return
		}
	}
	if fault {
		err = &UpdateError{"the update is refused: " + err.Error()}
	}
	for _, a := range made {
		if a.err = err; err == nil {
			a.Applied = next.applied()
		}
	}
}

func (s *Snapshot) applied() Applied { return Applied{s.Version, s.Nodes(), s.Edges()} }

// commit gives a version its answers, writes its updates down and lets it be seen, in
// this order. next is the version that is there where updates have changed nothing.
func (r *Graph) commit(d *draft, next *Snapshot, c *changes, made []*attempt) (err error) {
	held := r.memory.Bytes()
	defer func() {
		if err != nil {
			r.memory.Shrink(r.memory.Bytes() - held)
		}
	}()
	changed := next != d.old
	if changed {
		if err := r.answer(context.Background(), d.old, next, c); err != nil {
			return err
		}
	}
	if r.journal != nil {
		record := &commit{Applied: next.applied(), time: time.Now().Unix()}
		for _, a := range made {
			a.edit.renumber(func(row int32) int32 { return int32(d.number(int(row))) })
			if u := (committed{a.u.Key, a.hash, a.edit}); changed {
				record.updates = append(record.updates, u)
			} else if u.edit = nil; u.key != "" {
				record.updates = append(record.updates, u)
			}
		}
		if len(record.updates) > 0 {
			if err := r.journal.append(record); err != nil {
				return err
			}
		}
	}
	if changed {
		r.remember(d)
		r.show(next)
	}
	return nil
}

// remember lets the names of new nodes be found.
func (r *Graph) remember(d *draft) {
	for name, v := range d.names {
		r.numbers.Store(name, int32(d.number(int(v))))
	}
}

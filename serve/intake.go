package serve

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

const (
	// callBytes is what a request holds before anything of its body has come: its
	// headers, its goroutine, and the first part of its body.
	callBytes = 32 << 10
	firstPart = 8 << 10
	// connectionBytes is what a connection holds.
	connectionBytes = 48 << 10
	// patience is how long a transfer is left alone, however slow it is.
	patience = time.Second
)

// intake bounds the memory of what goes at a client's pace: bodies that come and
// answers that are read. They hold a part of the budget while they go. Where that is
// used up, the oldest is cut off, so that slow clients never keep quick ones out.
type intake struct {
	budget *budget.Budget
	free   int64 // bytes for requests
	most   int64 // of them for bodies that have not come whole
	// refused is called for what was cut off, large when a request that held much ends.
	refused func(why string)
	large   func()

	mu      sync.Mutex
	changed *sync.Cond
	going   list.List // of *call, the oldest first
	held    int64     // bytes of the bodies that are coming
	cutting int       // calls that were cut off and hold their memory still
}

func newIntake(b *budget.Budget, refused func(string), large func()) *intake {
	free := b.Total() - b.Used()
	in := &intake{budget: b, free: free, most: free / 2, refused: refused, large: large}
	in.changed = sync.NewCond(&in.mu)
	return in
}

// call is a request and the memory that it holds.
type call struct {
	in       *intake
	reserved *budget.Reservation
	rows     int64  // of the request, once it is known
	id       string // likewise
	model    string // likewise, if it is not known from the start

	// Of a transfer that goes on, held by the intake's lock.
	at     *list.Element
	since  time.Time
	cut    func() // has reads or writes fail
	coming bool   // a body, not an answer
	held   int64
	wasCut bool
	closed bool
}

// open begins a request whose body is about to come. cut has reads of it fail.
func (in *intake) open(cut func()) (*call, error) {
	r, _ := in.budget.Reserve("a request", 0)
	c := &call{in: in, reserved: r, coming: true}
	c.begin(cut)
	if err := c.grow(callBytes); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// begin enters a transfer among those that go on.
func (c *call) begin(cut func()) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.cut, c.since = cut, time.Now()
	c.at = c.in.going.PushBack(c)
}

// end takes it out again.
func (c *call) end() {
	in := c.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if c.at == nil {
		return
	}
	in.going.Remove(c.at)
	in.held -= c.held
	c.at, c.held, c.coming = nil, 0, false
	in.changed.Broadcast()
}

// close gives back what the request holds.
func (c *call) close() {
	if c == nil {
		return
	}
	c.end()
	if c.reserved.Bytes() > largeRequest {
		defer c.in.large()
	}
	c.reserved.Release()
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	if c.wasCut && !c.closed {
		c.in.cutting--
	}
	c.closed = true
	c.in.changed.Broadcast()
}

// errCut is what a transfer ends with that had to make room.
var errCut = fail(kindBusy, "the server is short of memory, and this request was the slowest to come")

// grow takes memory. Where there is none, transfers are cut off that have gone on for
// longest, and it waits for theirs.
func (c *call) grow(n int64) error {
	in := c.in
	in.mu.Lock()
	defer in.mu.Unlock()
	for {
		if c.wasCut {
			return errCut
		}
		full := c.coming && in.held+n > in.most
		var err error
		if !full {
			if err = c.reserved.Grow(n); err == nil {
				if c.coming {
					c.held += n
					in.held += n
				}
				return nil
			}
		}
		// What it holds already counts: it would be refused by an idle server, too.
		if need := plus(n, c.reserved.Bytes()); need > in.free || c.coming && plus(n, c.held) > in.most {
			return invalid("the request takes %s of memory; the server has %s for requests, and half of it for bodies (--memory)", budget.Format(need), budget.Format(in.free))
		}
		if in.cutting == 0 {
			cut, young := in.cutOldest(c)
			if !cut && young == 0 {
				return fail(kindBusy, "the server is short of memory; ask again later")
			}
			if !cut { // look again when it is old enough
				time.AfterFunc(young, func() {
					in.mu.Lock()
					defer in.mu.Unlock()
					in.changed.Broadcast()
				})
			}
		}
		in.changed.Wait()
	}
}

// cutOldest cuts off the transfer that has gone on for longest, other than c. Where that
// one is to be left alone for some time yet, it returns how long.
func (in *intake) cutOldest(c *call) (cut bool, young time.Duration) {
	for e := in.going.Front(); e != nil; e = e.Next() {
		o := e.Value.(*call)
		if o == c || o.wasCut || o.cut == nil {
			continue
		}
		if age := time.Since(o.since); age < patience {
			return false, patience - age
		}
		o.wasCut = true
		in.cutting++
		in.refused("slow")
		o.cut()
		in.changed.Broadcast() // it may wait for others
		return true, 0
	}
	return false, 0
}

// read reads a body of at most limit bytes, of length bytes where that is not
// negative, and ends the transfer.
func (c *call) read(body io.Reader, length, limit int64) ([]byte, error) {
	defer c.end()
	if length > limit {
		return nil, tooLarge(limit)
	}
	data := make([]byte, 0, firstPart)
	for {
		if len(data) == cap(data) {
			size := min(2*int64(cap(data)), limit+1)
			if length >= 0 {
				size = min(size, max(length, int64(len(data))+1))
			}
			if err := c.grow(size); err != nil { // the old part is garbage soon, and counts until the end
				return nil, err
			}
			data = append(make([]byte, 0, size), data...)
		}
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, tooLarge(limit)
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, c.broken(err)
		}
	}
}

func tooLarge(limit int64) error { return &http.MaxBytesError{Limit: limit} }

// broken says why a body did not come.
func (c *call) broken(err error) error {
	c.in.mu.Lock()
	cut := c.wasCut
	c.in.mu.Unlock()
	switch {
	case cut:
		return errCut
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fail(kindSlow, "the body did not come within the time limit (--timeout)")
	}
	return invalid("the body cannot be read: %v", err)
}

// unfinished counts the transfers that go on: bodies and answers.
func (in *intake) unfinished() (bodies, answers int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for e := in.going.Front(); e != nil; e = e.Next() {
		if e.Value.(*call).coming {
			bodies++
		} else {
			answers++
		}
	}
	return bodies, answers
}

// connections bounds how many there are. Where one more comes, that is closed which
// has kept the server waiting for longest.
type connections struct {
	most    int
	budget  *budget.Budget
	refused func(why string)

	mu  sync.Mutex
	all map[net.Conn]*connection
}

// connection is one, and since when it is in its state.
type connection struct {
	state     http.ConnState
	since     time.Time
	answering int // requests whose body is whole
	reserved  *budget.Reservation
}

type connectionKey struct{}

// with gives handlers the connection of their request.
func (cs *connections) with(ctx context.Context, c net.Conn) context.Context {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return context.WithValue(ctx, connectionKey{}, cs.all[c])
}

// answering notes that a request of a connection is being answered, until done.
func (cs *connections) answering(ctx context.Context) (done func()) {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	if c == nil {
		return func() {}
	}
	add := func(n int) {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		c.answering += n
		c.since = time.Now()
	}
	add(1)
	return func() { add(-1) }
}

// follow is net/http's hook for the states of connections.
func (cs *connections) follow(c net.Conn, state http.ConnState) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch state {
	case http.StateNew:
		r, err := cs.budget.Reserve("a connection", connectionBytes)
		if err != nil || len(cs.all) >= cs.most {
			cs.refused("connections")
			if !cs.closeOldest() {
				r.Release()
				hangUp(c)
				return
			}
			if err != nil {
				r, _ = cs.budget.Reserve("a connection", connectionBytes)
			}
		}
		cs.all[c] = &connection{state: state, since: time.Now(), reserved: r}
	case http.StateClosed, http.StateHijacked:
		if x := cs.all[c]; x != nil {
			x.reserved.Release()
			delete(cs.all, c)
		}
	default:
		if x := cs.all[c]; x != nil {
			x.state, x.since = state, time.Now()
		}
	}
}

// closeOldest closes the connection that keeps the server waiting for longest: with a
// request that does not come, or else with none.
func (cs *connections) closeOldest() bool {
	var oldest net.Conn
	var found *connection
	for c, x := range cs.all {
		if x.answering > 0 || time.Since(x.since) < patience {
			continue
		}
		if found == nil || x.waiting() && !found.waiting() || x.waiting() == found.waiting() && x.since.Before(found.since) {
			oldest, found = c, x
		}
	}
	if found == nil {
		return false
	}
	found.reserved.Release()
	delete(cs.all, oldest)
	hangUp(oldest)
	return true
}

// hangUp closes a connection without a farewell, for which TLS waits.
func hangUp(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	c.Close()
}

func (x *connection) waiting() bool { return x.state != http.StateIdle }

func (cs *connections) number() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.all)
}

// Package budget bounds the memory that a process takes. A [Budget] is a number of
// bytes that is shared by everything that holds much: what a file claims is reserved
// before it is read, so that it is refused with a sentence and not with Go's "out of
// memory", which ends the process.
package budget

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// ExceededError is returned for more memory than a budget has left.
type ExceededError struct {
	What  string // what the memory is for
	Need  int64  // bytes
	Free  int64  // bytes that are left
	Total int64  // bytes of the whole budget
	Least bool   // Need is a bound from below
}

func (e *ExceededError) Error() string {
	need, free := Format(e.Need), Format(e.Free)
	if need == free { // both rounded
		need, free = fmt.Sprintf("%d bytes", e.Need), fmt.Sprintf("%d bytes", e.Free)
	}
	if e.Least {
		need = "at least " + need
	}
	if e.Free < e.Total {
		return fmt.Sprintf("%s takes %s of memory, and %s of the %s that may be used are free", e.What, need, free, Format(e.Total))
	}
	return fmt.Sprintf("%s takes %s of memory, more than the %s that may be used", e.What, need, free)
}

// Budget is an amount of memory. Its methods may be called by many goroutines at
// once; a nil Budget has no limit.
type Budget struct {
	total int64

	mu   sync.Mutex
	used int64
}

// New returns a budget of total bytes.
func New(total int64) *Budget { return &Budget{total: total} }

// Total returns the size of the budget in bytes.
func (b *Budget) Total() int64 {
	if b == nil {
		return math.MaxInt64
	}
	return b.total
}

// Used returns how many bytes are reserved.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Reserve takes n bytes. The error is an *[ExceededError] that names what they are for;
// nothing is then taken.
func (b *Budget) Reserve(what string, n int64) (*Reservation, error) {
	r := &Reservation{b: b, what: what}
	if err := r.Grow(n); err != nil {
		return nil, err
	}
	return r, nil
}

// Reservation is a part of a budget.
type Reservation struct {
	b    *Budget
	what string
	n    int64
}

// Grow takes n bytes more. A nil Reservation, like that of a nil Budget, has no limit.
func (r *Reservation) Grow(n int64) error {
	if n < 0 { // a product that overflowed
		n = math.MaxInt64
	}
	if r == nil || r.b == nil {
		return nil
	}
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if free := b.total - b.used; n > free {
		need := n
		if need <= math.MaxInt64-r.n {
			need += r.n
		}
		return &ExceededError{What: r.what, Need: need, Free: max(0, free+r.n), Total: b.total}
	}
	b.used += n
	r.n += n
	return nil
}

// Shrink gives n bytes back, at most all of them.
func (r *Reservation) Shrink(n int64) {
	if r == nil || r.b == nil {
		return
	}
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	n = min(max(n, 0), r.n)
	r.b.used -= n
	r.n -= n
}

// Total returns the size of the budget in bytes.
func (r *Reservation) Total() int64 {
	if r == nil {
		return math.MaxInt64
	}
	return r.b.Total()
}

// Bytes returns the size of the reservation.
func (r *Reservation) Bytes() int64 {
	if r == nil || r.b == nil {
		return 0
	}
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	return r.n
}

// Release gives everything back. It may be called more than once, and of nil.
func (r *Reservation) Release() { r.Shrink(math.MaxInt64) }

// Mul returns the product of sizes, or math.MaxInt64 where it overflows or a factor is
// negative, which no budget has.
func Mul(factors ...int64) int64 {
	p := int64(1)
	for _, f := range factors {
		switch {
		case f < 0:
			return math.MaxInt64
		case f == 0:
			return 0
		}
	}
	for _, f := range factors {
		if p > math.MaxInt64/f {
			return math.MaxInt64
		}
		p *= f
	}
	return p
}

// units from the largest to the smallest; the first with a name is what [Format] writes.
var units = []struct {
	name  string
	bytes float64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// Parse reads a number of bytes with a unit, such as 4GiB, 512 MiB, 1.5GB or 1048576.
// It is at least one byte.
func Parse(text string) (int64, error) {
	number, scale := strings.TrimSpace(text), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, scale = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if v *= scale; err != nil || !(v >= 1 && v < math.MaxInt64) {
		return 0, fmt.Errorf("%.40q is no amount of memory; give a number with a unit, such as 4GiB or 512MiB", text)
	}
	return int64(v), nil
}

// Format writes a number of bytes with a binary unit, such as 1.5 GiB.
func Format(n int64) string {
	for _, u := range units[:4] {
		if v := float64(n) / u.bytes; v >= 1 {
			return strconv.FormatFloat(v, 'f', 1, 64) + " " + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// override is what [Set] says, 0 for nothing.
var override atomic.Int64

// Set makes n bytes what [Default] returns, for all of the process: its flag --memory. 0
// leaves what Default finds out. Either becomes Go's own limit on memory, too, unless
// GOMEMLIMIT says otherwise, so that garbage is collected before it comes on top of what
// is held.
func Set(n int64) {
	override.Store(n)
	if os.Getenv("GOMEMLIMIT") == "" {
		n, _ = Default()
		debug.SetMemoryLimit(n)
	}
}

// Default returns how much memory this process may take, and what says so: what [Set]
// was given, or else the limit
// of its cgroup (v1 or v2), that of its address space (ulimit -v, on Linux) or the
// machine's memory, a fifth of which is left to what is not counted, or GOMEMLIMIT where
// that is less.
func Default() (bytes int64, source string) {
	if n := override.Load(); n > 0 {
		return n, "--memory"
	}
	bytes, source = 4<<30, "this system does not tell its memory"
	if n, err := memlimit.FromSystem(); err == nil && n > 0 {
		bytes, source = usable(n), "four fifths of the machine's memory"
	}
	if n, err := memlimit.FromCgroup(); err == nil && usable(n) < bytes {
		bytes, source = usable(n), "four fifths of the limit of the process's cgroup"
	}
	// Go gives freed memory back, but not its addresses: lists that grow leave theirs behind.
	if n, ok := addressSpace(); ok && int64(n/2) < bytes {
		bytes, source = int64(n/2), "half of what ulimit -v leaves"
	}
	if n, err := goLimit(os.Getenv("GOMEMLIMIT")); err == nil && n < bytes {
		bytes, source = n, "GOMEMLIMIT"
	}
	return bytes, source
}

// ReadFile is os.ReadFile for a file of the user's: one that is no regular file, or would
// take more than a third of what the process may use, is refused before it is read.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() { // of a folder os.ReadFile says so
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	if total, _ := Default(); info.Size() > total/3 {
		return nil, fmt.Errorf("%w; raise the limit with --memory", &ExceededError{What: path, Need: Mul(3, info.Size()), Free: total, Total: total})
	}
	return os.ReadFile(path)
}

func usable(n uint64) int64 { return int64(min(n, math.MaxInt64) / 5 * 4) }

// goLimit reads GOMEMLIMIT, whose units are those of package runtime/debug.
func goLimit(text string) (int64, error) {
	if text == "" || text == "off" {
		return 0, errors.New("no limit")
	}
	return Parse(text)
}

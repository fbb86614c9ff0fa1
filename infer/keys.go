package infer

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// Keys of updates are remembered until there are that many later ones, or for so long.
const (
	KeysKept = 65536
	KeyLife  = 24 * time.Hour
	// MaxKey is how long a key may be, in bytes.
	MaxKey = 256
)

// KeyError says that the key of an update was that of another one.
type KeyError struct{ Key string }

func (e *KeyError) Error() string {
	return fmt.Sprintf("the idempotency key %q was that of an update with other content", e.Key)
}

// committedKey is the key of an update that was made, and what became of it.
type committedKey struct {
	key  string
	hash [sha256.Size]byte
	Applied
	time int64 // seconds since 1970
}

// keys are those of the updates that were made, and of those that wait.
type keys struct {
	attempts map[string]*attempt
	made     []committedKey // oldest first
}

// find returns the attempt of a key, nil if there is none.
func (k *keys) find(key string) *attempt {
	k.forget(time.Now().Unix())
	return k.attempts[key]
}

// wait enters an attempt that is not made yet.
func (k *keys) wait(a *attempt) {
	if k.attempts == nil {
		k.attempts = map[string]*attempt{}
	}
	k.attempts[a.u.Key] = a
}

// put enters an update that was made before this process.
func (k *keys) put(key string, hash [sha256.Size]byte, to Applied, at int64) {
	if have := k.attempts[key]; have != nil && have.Applied == to { // a record that a graph has too
		return
	}
	a := &attempt{u: Update{Key: key}, hash: hash, done: make(chan struct{}), Applied: to}
	close(a.done)
	k.wait(a)
	k.make(key, a, at)
}

// make notes that an attempt was made.
func (k *keys) make(key string, a *attempt, at int64) {
	k.made = append(k.made, committedKey{key, a.hash, a.Applied, at})
	k.forget(time.Now().Unix())
}

// forget drops what is too old.
func (k *keys) forget(now int64) {
	n := 0
	for n < len(k.made) && (len(k.made)-n > KeysKept || k.made[n].time+int64(KeyLife/time.Second) < now) {
		old := k.made[n]
		if a := k.attempts[old.key]; a != nil && a.Applied == old.Applied {
			delete(k.attempts, old.key)
		}
		n++
	}
	k.made = k.made[n:]
}

package data

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestCacheSharesWhatItRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"edges.csv": "source,target\na,b\nb,c\n",
		"nodes.csv": "id,label,x\na,p,1\nb,q,0\nc,q,1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := &Cache{Limit: 1}
	load := func(path string, o LoadOptions) *Dataset {
		t.Helper()
		ds, _, err := c.LoadAny(path, o)
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	first := load(dir, LoadOptions{Seed: 1})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if ds, _, err := c.LoadAny(dir, LoadOptions{Seed: 2}); err != nil || ds != first {
				t.Errorf("read again: %v", err)
			}
		})
	}
	wg.Wait()
	if load(dir, LoadOptions{Directed: true}) == first {
		t.Error("directed data are those that are not")
	}
	// That was the second: the least recently used one has gone.
	if load(dir, LoadOptions{}) == first {
		t.Error("more is kept than the limit")
	}
	if load(Synthetic, LoadOptions{Seed: 1}).Checksum == load(Synthetic, LoadOptions{Seed: 2}).Checksum {
		t.Error("generated data of two seeds are the same")
	}
	if load(dir, LoadOptions{Seed: 1, RemoveEdges: 0.5}).Graph == load(dir, LoadOptions{Seed: 2, RemoveEdges: 0.5}).Graph {
		t.Error("graphs corrupted with two seeds are the same")
	}
	var none *Cache
	if ds, _, err := none.LoadAny(dir, LoadOptions{}); err != nil || ds == first {
		t.Errorf("a nil cache keeps data: %v", err)
	}
	if _, _, err := c.LoadAny(filepath.Join(dir, "absent"), LoadOptions{}); err == nil {
		t.Error("data that are not there were read")
	}
}

package data

import (
	"path/filepath"
	"testing"
)

// BenchmarkLoadCollection reads and checks whole collections of graphs.
func BenchmarkLoadCollection(b *testing.B) {
	root := datasets(b)
	for _, name := range []string{"MUTAG", "PROTEINS", "COLLAB"} {
		path := filepath.Join(root, "graph-classification", name+".zip")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := LoadCollection(path, LoadOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

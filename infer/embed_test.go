package infer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// The columns of an embedding's table are in its order, also in Parquet.
func TestEmbeddingColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e.parquet")
	e := Embedding{Width: 12, Values: make([]float32, 24)}
	for i := range e.Values {
		e.Values[i] = float32(i)
	}
	if err := e.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	names := f.Schema().Columns()
	if len(names) != 13 || names[0][0] != "id" || names[1][0] != "e0" || names[3][0] != "e2" || names[12][0] != "e11" {
		t.Errorf("the columns are %q", names)
	}
	rows := make([]parquet.Row, 2)
	if n, _ := f.RowGroups()[0].Rows().ReadRows(rows); n != 2 || rows[1][0].Int64() != 1 || rows[1][3].Float() != 14 || rows[1][12].Float() != 23 {
		t.Errorf("%d rows: %v", n, rows)
	}
}

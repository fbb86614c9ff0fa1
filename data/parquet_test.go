package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

type parquetNode struct {
	ID    string  `parquet:"id"`
	Label *string `parquet:"label,optional"`
	Split string  `parquet:"split"`
	Age   int32   `parquet:"age"`
	Share float64 `parquet:"share"`
	Small float32 `parquet:"small"`
	Chess bool    `parquet:"chess"`
}

type parquetEdge struct {
	Source string  `parquet:"source"`
	Target string  `parquet:"target"`
	Weight float32 `parquet:"weight"`
}

// parquetText reads a whole table; it returns its cells in quotes, a line for each row.
func parquetText(b []byte, mem *budget.Reservation) (text []byte, err error) {
	p, err := openParquet(b, mem)
	if err != nil {
		return nil, err
	}
	defer p.close()
	for {
		row, err := p.Read()
		if err == io.EOF {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, "%q\n", row)
	}
}

// Dates and timestamps are read as CSV has them, in UTC.
func TestParquetTimes(t *testing.T) {
	at := time.Date(2021, 3, 4, 5, 6, 7, 8_000_000, time.UTC)
	type row struct {
		ID     string     `parquet:"id"`
		Day    int32      `parquet:"day,date"`
		Millis time.Time  `parquet:"ms,timestamp(millisecond)"`
		Micros int64      `parquet:"us,timestamp(microsecond)"`
		Nanos  time.Time  `parquet:"ns,timestamp"`
		Gap    *time.Time `parquet:"gap,optional"`
	}
	path := filepath.Join(t.TempDir(), "nodes.parquet")
	if err := parquet.WriteFile(path, []row{{"a", int32(at.Unix() / 86400), at, at.UnixMicro(), at, nil}}); err != nil {
		t.Fatal(err)
	}
	text, err := parquetText(mustRead(t, path), nil)
	if want := "[\"id\" \"day\" \"ms\" \"us\" \"ns\" \"gap\"]\n[\"a\" \"2021-03-04\" \"2021-03-04T05:06:07.008Z\" \"2021-03-04T05:06:07.008Z\" \"2021-03-04T05:06:07.008Z\" \"\"]\n"; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

// Columns that are not read may be ignored, and one of type NULL is of gaps.
func TestParquetUnread(t *testing.T) {
	type pair struct{ A, B int32 }
	type row struct {
		ID    string           `parquet:"id"`
		List  []int64          `parquet:"list,list"`
		Pair  pair             `parquet:"pair"`
		X     int32            `parquet:"x"`
		Price int32            `parquet:"price,decimal(2:9)"`
		Bytes [4]byte          `parquet:"bytes"`
		Map   map[string]int64 `parquet:"map"`
		None  *int32           `parquet:"none,optional"`
		Y     float32          `parquet:"y"`
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "nodes.parquet")
	if err := parquet.WriteFile(path, []row{{ID: "a", List: []int64{1, 2}, X: 5, Map: map[string]int64{"k": 1}, Y: 0.5}, {ID: "b", X: 7, Price: 3, Y: 2}}); err != nil {
		t.Fatal(err)
	}
	b := mustRead(t, path)
	size := int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	var meta format.FileMetaData
	if err := unmarshalThrift(b[len(b)-8-size:len(b)-8], &meta); err != nil {
		t.Fatal(err)
	}
	for i := range meta.Schema {
		if meta.Schema[i].Name == "none" {
			meta.Schema[i].LogicalType, meta.Schema[i].ConvertedType = &format.LogicalType{Unknown: new(format.NullType)}, nil
		}
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &meta)
	if err != nil {
		t.Fatal(err)
	}
	b = append(binary.LittleEndian.AppendUint32(append(b[:len(b)-8-size:len(b)-8-size], footer...), uint32(len(footer))), "PAR1"...)
	if err := errors.Join(os.WriteFile(path, b, 0o644), os.WriteFile(filepath.Join(dir, "edges.csv"), []byte("source,target\na,b\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	text, err := parquetText(b, nil)
	if want := `["id" "list" "pair" "x" "price" "bytes" "map" "none" "y"]
["a" "" "" "5" "" "" "" "" "0.5"]
["b" "" "" "7" "" "" "" "" "2"]
`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	var ignore []string
	for _, x := range [][2]string{{"list", "is nested"}, {"pair", "is nested"}, {"price", "is of type DECIMAL"}, {"bytes", "is of type FIXED_LEN_BYTE_ARRAY"}, {"map", "is nested"}} {
		_, err := Load(dir, LoadOptions{Tables: Tables{Ignore: ignore}})
		wantError(t, err, fmt.Sprintf("the column %q %s", x[0], x[1]), "--ignore "+x[0]+" leaves it out")
		ignore = append(ignore, x[0])
	}
	ds := mustLoad(t, dir, LoadOptions{Tables: Tables{Ignore: ignore}})
	if got := columnNames(ds); got != "x y" || !strings.Contains(fmt.Sprint(ds.Warnings(Split{})), `the column "none" is left out: it is empty`) {
		t.Errorf("the features are %s, warnings %q", got, ds.Warnings(Split{}))
	}
	said := "[nodes.columns]\n"
	for _, name := range ignore {
		said += name + " = \"ignore\"\n"
	}
	if err := os.WriteFile(filepath.Join(dir, SchemaFile), []byte(said), 0o644); err != nil {
		t.Fatal(err)
	}
	mustLoad(t, dir, LoadOptions{})

	for i := range b { // damaged anywhere, it is an error or a table, and no panic
		broken := append([]byte{}, b...)
		broken[i] ^= 0x15
		_, _ = parquetText(broken, nil)
		_, _ = parquetText(b[:i], nil)
	}
}

// Unsigned integers have no sign at the borders of signed ones.
func TestParquetUnsigned(t *testing.T) {
	type row struct {
		A uint32 `parquet:"a"`
		B uint64 `parquet:"b"`
		C int32  `parquet:"c"`
	}
	path := filepath.Join(t.TempDir(), "nodes.parquet")
	if err := parquet.WriteFile(path, []row{{1<<31 - 1, 1<<63 - 1, 1<<31 - 1}, {1 << 31, 1 << 63, -1 << 31}, {1<<32 - 1, 1<<64 - 1, -1}}); err != nil {
		t.Fatal(err)
	}
	text, err := parquetText(mustRead(t, path), nil)
	if want := "[\"a\" \"b\" \"c\"]\n[\"2147483647\" \"9223372036854775807\" \"2147483647\"]\n[\"2147483648\" \"9223372036854775808\" \"-2147483648\"]\n[\"4294967295\" \"18446744073709551615\" \"-1\"]\n"; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

// A folder of Parquet files is the same graph as one of CSV files.
func TestParquetFolder(t *testing.T) {
	cat, dog := "cat", "dog"
	dir := t.TempDir()
	nodes := []parquetNode{{"a,nn", &cat, "train", 31, 1.0 / 3, 0.1, true}, {"bob", &dog, "train", -4, 0, 3e-9, false}, {"cleo \"c\"", nil, "test", 28, 1e12, 7, true}}
	edges := []parquetEdge{{"a,nn", "bob", 1}, {"bob", "cleo \"c\"", 0.25}}
	write := func(name string, f func(string) error) {
		t.Helper()
		if err := f(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("nodes.parquet", func(p string) error { return parquet.WriteFile(p, nodes) })
	write("edges.parquet", func(p string) error { return parquet.WriteFile(p, edges) })
	got, err := Load(dir, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := t.TempDir()
	for name, content := range map[string]string{
		"nodes.csv": "id,label,split,age,share,small,chess\n\"a,nn\",cat,train,31,0.3333333333333333,0.1,1\nbob,dog,train,-4,0,3e-9,0\n\"cleo \"\"c\"\"\",,test,28,1000000000000,7,1\n",
		"edges.csv": "source,target,weight\n\"a,nn\",bob,1\nbob,\"cleo \"\"c\"\"\",0.25\n",
	} {
		if err := os.WriteFile(filepath.Join(text, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := Load(text, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want.Name, want.Source, want.Checksum, want.Notes = got.Name, got.Source, got.Checksum, got.Notes
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Parquet gives %+v, CSV %+v", got, want)
	}

	for what, x := range map[string]struct {
		name string
		f    func(string) error
	}{
		"nested": {"nodes.parquet", func(p string) error { return parquet.WriteFile(p, []struct{ ID []string }{{[]string{"x"}}}) }},
		"of type": {"nodes.parquet", func(p string) error {
			return parquet.WriteFile(p, []struct {
				ID string
				At int32 `parquet:"at,decimal(2:9)"`
			}{{"x", 1}})
		}},
		"no id column": {"nodes.parquet", func(p string) error { return parquet.WriteFile(p, []struct{ Name string }{{"x"}}) }},
		"not a table":  {"nodes.parquet", func(p string) error { return os.WriteFile(p, []byte("PAR1 and no more"), 0o644) }},
		"nodes.parquet:3: \"\\xfc\": column 2 is not text in UTF-8": {"nodes.parquet", func(p string) error {
			return parquet.WriteFile(p, []struct{ ID, Label string }{{"x", "ü"}, {"y", "\xfc"}})
		}},
		"has both":        {"nodes.csv", func(p string) error { return os.WriteFile(p, []byte("id,f\nx,1\n"), 0o644) }},
		"no node of this": {"edges.parquet", func(p string) error { return parquet.WriteFile(p, []parquetEdge{{"a,nn", "nobody", 1}}) }},
	} {
		write("nodes.parquet", func(p string) error { return parquet.WriteFile(p, nodes) })
		write(x.name, x.f)
		if _, err := Load(dir, LoadOptions{}); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		if x.name == "nodes.csv" {
			os.Remove(filepath.Join(dir, x.name))
		}
		write("edges.parquet", func(p string) error { return parquet.WriteFile(p, edges) })
	}

	// Damaged anywhere, it is an error or a graph, and no panic.
	whole, err := os.ReadFile(filepath.Join(dir, "edges.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		broken := append([]byte{}, whole...)
		broken[i] ^= 0x15
		_, _ = parquetText(broken, nil)
		_, _ = parquetText(whole[:i], nil)
	}
}

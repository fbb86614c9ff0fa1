package infer

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/sbinet/npyio/npz"
)

// prediction is a row as every format holds it.
type prediction struct {
	id, label string
	p         [2]float32
}

// readPredictions reads a file by its extension, as its users would.
func readPredictions(t *testing.T, path string, named bool) (rows []prediction) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	switch filepath.Ext(path) {
	case ".csv":
		f, err := os.Open(path)
		check(err)
		defer f.Close()
		all, err := csv.NewReader(f).ReadAll()
		check(err)
		if want := []string{"id", "label", "p_a b", `p_"c"`}; !reflect.DeepEqual(all[0], want) {
			t.Errorf("header %q, want %q", all[0], want)
		}
		for _, row := range all[1:] {
			x, err := strconv.ParseFloat(row[2], 32)
			check(err)
			y, err := strconv.ParseFloat(row[3], 32)
			check(err)
			rows = append(rows, prediction{row[0], row[1], [2]float32{float32(x), float32(y)}})
		}
	case ".json":
		text, err := os.ReadFile(path)
		check(err)
		var all []struct {
			ID            any
			Label         string
			Probabilities map[string]float32
		}
		check(json.Unmarshal(text, &all))
		for _, row := range all {
			rows = append(rows, prediction{fmt.Sprint(row.ID), row.Label, [2]float32{row.Probabilities["a b"], row.Probabilities[`"c"`]}})
		}
	case ".parquet":
		if named {
			all, err := parquet.ReadFile[struct {
				ID    string  `parquet:"id"`
				Label string  `parquet:"label"`
				A     float32 `parquet:"p_a b"`
				C     float32 `parquet:"p_\"c\""`
			}](path)
			check(err)
			for _, row := range all {
				rows = append(rows, prediction{row.ID, row.Label, [2]float32{row.A, row.C}})
			}
			return rows
		}
		all, err := parquet.ReadFile[struct {
			ID    int64   `parquet:"id"`
			Label string  `parquet:"label"`
			A     float32 `parquet:"p_a b"`
			C     float32 `parquet:"p_\"c\""`
		}](path)
		check(err)
		for _, row := range all {
			rows = append(rows, prediction{strconv.FormatInt(row.ID, 10), row.Label, [2]float32{row.A, row.C}})
		}
	case ".npz":
		z, err := npz.Open(path)
		check(err)
		defer z.Close()
		var ids, labels, classes []string
		var numbers, class []int64
		var p []float32
		if named {
			check(z.Read("id.npy", &ids))
		} else {
			check(z.Read("id.npy", &numbers))
			for _, n := range numbers {
				ids = append(ids, strconv.FormatInt(n, 10))
			}
		}
		check(z.Read("label.npy", &labels))
		check(z.Read("classes.npy", &classes))
		check(z.Read("class.npy", &class))
		check(z.Read("probability.npy", &p))
		if shape := z.Header("probability.npy").Descr.Shape; !reflect.DeepEqual(shape, []int{len(ids), 2}) {
			t.Errorf("probability has shape %v", shape)
		}
		for _, list := range [][]string{labels, classes, ids} { // the library reads four bytes a letter
			for i, text := range list {
				list[i] = strings.ReplaceAll(text, "\x00", "")
			}
		}
		for i, id := range ids {
			if classes[class[i]] != labels[i] {
				t.Errorf("class %d and label %q", class[i], labels[i])
			}
			rows = append(rows, prediction{id, labels[i], [2]float32{p[2*i], p[2*i+1]}})
		}
	}
	return rows
}

// Every format holds the same rows, all of them or those that were asked for.
func TestPredictionFiles(t *testing.T) {
	const n = rowsAtOnce + 3
	classes := []string{"a b", `"c"`}
	for _, named := range []bool{false, true} {
		for _, selected := range [][]int{nil, {n - 1, 0, 7}, {}} {
			r := &Prediction{Classes: classes, Selected: selected}
			var want []prediction
			for i := range n {
				p := float32(i) / n
				c := 0
				if p < 0.5 {
					c = 1
				}
				r.Predicted, r.Probabilities = append(r.Predicted, c), append(r.Probabilities, p, 1-p)
				id := strconv.Itoa(i)
				if named {
					id = fmt.Sprintf("node, \"%d\"", i)
					r.IDs = append(r.IDs, id)
				}
				want = append(want, prediction{id, classes[c], [2]float32{p, 1 - p}})
			}
			if selected != nil {
				all := want
				want = nil
				for _, i := range selected {
					want = append(want, all[i])
				}
			}
			for _, format := range GraphFormats {
				if format == "npz" && len(want) == 0 {
					continue // the library of the test reads no empty arrays
				}
				path := filepath.Join(t.TempDir(), "p."+format)
				last := 0
				err := r.WriteFile(path, func(done, total int) {
					if done <= last || total != len(want) {
						t.Errorf("%d of %d rows after %d", done, total, last)
					}
					last = done
				})
				if err != nil {
					t.Fatal(format, err)
				}
				if last != len(want) {
					t.Errorf("%s: progress ends at %d of %d", format, last, len(want))
				}
				if got := readPredictions(t, path, named); !reflect.DeepEqual(got, want) {
					at := 0
					for at < min(len(got), len(want)) && got[at] == want[at] {
						at++
					}
					t.Errorf("%s, named %v: %d rows, want %d; they differ from row %d on: %v", format, named, len(got), len(want), at, got[at:min(at+1, len(got))])
				}
			}
		}
	}
	r := &Prediction{Classes: classes}
	var format *FormatError
	if err := r.WriteFile(filepath.Join(t.TempDir(), "p.xls"), nil); !errors.As(err, &format) || !strings.Contains(err.Error(), "csv, npz, parquet, json") {
		t.Errorf("an unknown format: %v", err)
	}
}

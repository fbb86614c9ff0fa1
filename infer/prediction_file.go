package infer

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/parquet-go/parquet-go"
	"github.com/sbinet/npyio"
)

// WriteFile writes the predictions to a file in one of [GraphFormats], by its
// extension, row after row; a file is there whole or not at all.
//
//   - csv: a header, and a row for each node or graph: id, label (the predicted class)
//     and the probability of each class, in columns called p_ and the class.
//   - parquet: the same columns, in alphabetical order; id is a string where the data
//     name their nodes, int64 elsewhere; probabilities are float32.
//   - npz: arrays for NumPy: id [n], class [n] (its number, int64), label [n],
//     probability float32 [n, C], and classes [C].
//   - json: an array of objects: id, label, and probabilities, an object by class.
//
// progress, which may be nil, hears how many rows are done.
func (r *Prediction) WriteFile(path string, progress func(done, total int)) error {
	format, err := GraphFormat(path)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<18)
		if err := r.write(b, format, progress); err != nil {
			return err
		}
		return b.Flush()
	})
}

// rowsAtOnce is how many rows are written between two words on progress.
const rowsAtOnce = 1 << 10

func (r *Prediction) write(w io.Writer, format string, progress func(done, total int)) error {
	rows := r.Selected
	if rows == nil {
		rows = make([]int, len(r.Predicted))
		for i := range rows {
			rows[i] = i
		}
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	// each hands rows to a writer, some at a time.
	each := func(write func(part []int) error) error {
		done := 0
		for part := range slices.Chunk(rows, rowsAtOnce) {
			if err := write(part); err != nil {
				return err
			}
			done += len(part)
			progress(done, len(rows))
		}
		return nil
	}
	switch format {
	case "csv":
		return r.writeCSV(w, each)
	case "parquet":
		return r.writeParquet(w, each)
	case "npz":
		return r.writeNPZ(w, rows, each)
	case "json":
		return r.writeJSON(w, each)
	}
	return &FormatError{format}
}

// id is what a row is called.
func (r *Prediction) id(i int) string {
	if r.IDs != nil {
		return r.IDs[i]
	}
	return strconv.Itoa(i)
}

func (r *Prediction) row(i int) []float32 {
	return r.Probabilities[i*len(r.Classes) : (i+1)*len(r.Classes)]
}

type eachRow = func(func(part []int) error) error

func (r *Prediction) writeCSV(w io.Writer, each eachRow) error {
	c := csv.NewWriter(w)
	row := []string{"id", "label"}
	for _, class := range r.Classes {
		row = append(row, "p_"+class)
	}
	if err := c.Write(row); err != nil {
		return err
	}
	err := each(func(part []int) error {
		for _, i := range part {
			row = append(row[:0], r.id(i), r.Classes[r.Predicted[i]])
			for _, v := range r.row(i) {
				row = append(row, strconv.FormatFloat(float64(v), 'g', -1, 32))
			}
			if err := c.Write(row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.Flush()
	return c.Error()
}

func (r *Prediction) writeParquet(w io.Writer, each eachRow) error {
	group := parquet.Group{"id": parquet.String(), "label": parquet.Encoded(parquet.String(), &parquet.RLEDictionary)}
	if r.IDs == nil {
		group["id"] = parquet.Leaf(parquet.Int64Type)
	}
	for _, class := range r.Classes {
		group["p_"+class] = parquet.Leaf(parquet.FloatType)
	}
	schema := parquet.NewSchema("predictions", group)
	column := map[string]int{}
	for i, path := range schema.Columns() {
		column[path[0]] = i
	}
	p := parquet.NewWriter(w, schema, parquet.Compression(&parquet.Snappy))
	rows := make([]parquet.Row, 0, rowsAtOnce)
	err := each(func(part []int) error {
		rows = rows[:0]
		for _, i := range part {
			row := make(parquet.Row, len(column))
			set := func(name string, v parquet.Value) { row[column[name]] = v.Level(0, 0, column[name]) }
			if r.IDs != nil {
				set("id", parquet.ByteArrayValue([]byte(r.IDs[i])))
			} else {
				set("id", parquet.Int64Value(int64(i)))
			}
			set("label", parquet.ByteArrayValue([]byte(r.Classes[r.Predicted[i]])))
			for k, v := range r.row(i) {
				set("p_"+r.Classes[k], parquet.FloatValue(v))
			}
			rows = append(rows, row)
		}
		_, err := p.WriteRows(rows)
		return err
	})
	if err != nil {
		return err
	}
	return p.Close()
}

func (r *Prediction) writeNPZ(w io.Writer, rows []int, each eachRow) error {
	ids, numbers, classes, labels := []string{}, []int64{}, []int64{}, []string{}
	for _, i := range rows {
		classes, labels = append(classes, int64(r.Predicted[i])), append(labels, r.Classes[r.Predicted[i]])
		if r.IDs != nil {
			ids = append(ids, r.IDs[i])
		} else {
			numbers = append(numbers, int64(i))
		}
	}
	type array struct {
		name  string
		value any
	}
	arrays := []array{{"id", numbers}, {"class", classes}, {"label", labels}, {"classes", r.Classes}}
	if r.IDs != nil {
		arrays[0].value = ids
	}
	z := zip.NewWriter(w)
	for _, a := range arrays {
		f, err := z.Create(a.name + ".npy")
		if err != nil {
			return err
		}
		if err := npyio.Write(f, a.value); err != nil {
			return err
		}
	}
	f, err := z.Create("probability.npy")
	if err != nil {
		return err
	}
	// A matrix of float32, for which the library has no form.
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", len(rows), len(r.Classes))
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	start := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	if _, err := f.Write(append(start, header...)); err != nil {
		return err
	}
	var b []byte
	err = each(func(part []int) error {
		b = b[:0]
		for _, i := range part {
			for _, v := range r.row(i) {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
		}
		_, err := f.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	return z.Close()
}

func (r *Prediction) writeJSON(w io.Writer, each eachRow) error {
	separator := "[\n"
	err := each(func(part []int) error {
		for _, i := range part {
			row := struct {
				ID            any                `json:"id"`
				Label         string             `json:"label"`
				Probabilities map[string]float32 `json:"probabilities"`
			}{i, r.Classes[r.Predicted[i]], map[string]float32{}}
			if r.IDs != nil {
				row.ID = r.IDs[i]
			}
			for k, v := range r.row(i) {
				row.Probabilities[r.Classes[k]] = v
			}
			text, err := json.Marshal(row)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s%s", separator, text); err != nil {
				return err
			}
			separator = ",\n"
		}
		return nil
	})
	if err != nil {
		return err
	}
	if separator == "[\n" {
		_, err = io.WriteString(w, "[]\n")
		return err
	}
	_, err = io.WriteString(w, "\n]\n")
	return err
}

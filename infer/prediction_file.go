package infer

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/lists"
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
	return atomicfile.Write(path, func(w io.Writer) error { return r.write(w, format, progress) })
}

func (r *Prediction) write(w io.Writer, format string, progress func(done, total int)) error {
	n, row := len(r.Predicted), func(i int) int { return i }
	if r.Selected != nil {
		n, row = len(r.Selected), func(i int) int { return r.Selected[i] }
	}
	id := numbers("id", func(i int) int64 { return int64(row(i)) })
	if r.IDs != nil {
		id = texts("id", func(i int) string { return r.IDs[row(i)] })
	}
	columns := []column{id, texts("label", func(i int) string { return r.Classes[r.Predicted[row(i)]] })}
	for c, class := range r.Classes {
		columns = append(columns, floats("p_"+class, func(i int) float32 { return r.Probabilities[row(i)*len(r.Classes)+c] }))
	}
	probabilities := func(i int) []float32 { i = row(i); return r.Probabilities[i*len(r.Classes) : (i+1)*len(r.Classes)] }
	switch format {
	case "csv":
		return writeCSV(w, n, columns, progress)
	case "parquet":
		slices.SortFunc(columns, func(a, b column) int { return strings.Compare(a.name, b.name) })
		return writeParquet(w, n, columns, "label", progress)
	case "npz":
		return writeNPZ(w, []array{id.arrayOf(n),
			{name: "class", value: lists.Of(n, func(i int) int64 { return int64(r.Predicted[row(i)]) })},
			columns[1].arrayOf(n), {name: "classes", value: r.Classes},
			{name: "probability", write: func(w io.Writer) error { return writeMatrix(w, n, len(r.Classes), probabilities, progress) }}})
	case "json":
		return r.writeJSON(w, n, row, probabilities, progress)
	}
	return &FormatError{format}
}

func (r *Prediction) writeJSON(w io.Writer, n int, row func(i int) int, probabilities func(i int) []float32, progress func(done, total int)) error {
	separator := "[\n"
	err := eachRow(n, progress, func(first, end int) error {
		for i := first; i < end; i++ {
			x := struct {
				ID            any                `json:"id"`
				Label         string             `json:"label"`
				Probabilities map[string]float32 `json:"probabilities"`
			}{row(i), r.Classes[r.Predicted[row(i)]], map[string]float32{}}
			if r.IDs != nil {
				x.ID = r.IDs[row(i)]
			}
			for k, v := range probabilities(i) {
				x.Probabilities[r.Classes[k]] = v
			}
			text, err := json.Marshal(x)
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
	if n == 0 {
		_, err = io.WriteString(w, "[]\n")
		return err
	}
	_, err = io.WriteString(w, "\n]\n")
	return err
}

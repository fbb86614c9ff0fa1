package pipeline

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/safetensors"
)

// table is what an element of a pipeline holds: named arrays with as many rows each as their
// first dimension says, and a few texts. Elements travel as its bytes, a safetensors file,
// whose checksum is held against it when it is read.
type table struct {
	safetensors.File
}

func newTable() *table { return &table{safetensors.File{Metadata: map[string]string{}}} }

func parseTable(b []byte) (*table, error) {
	f, err := safetensors.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("an element of the pipeline: %w", err)
	}
	return &table{*f}, nil
}

func (t *table) bytes() ([]byte, error) {
	var b bytes.Buffer
	err := t.Write(&b)
	return b.Bytes(), err
}

// put enters an array, in the place of one of the same name. The shape may change later.
func (t *table) put(name string, data any, shape ...int) {
	t.drop(name)
	t.Tensors = append(t.Tensors, safetensors.Tensor{Name: name, Shape: slices.Clone(shape), Data: data})
}

func (t *table) drop(names ...string) {
	t.Tensors = slices.DeleteFunc(t.Tensors, func(x safetensors.Tensor) bool { return slices.Contains(names, x.Name) })
}

// dropWith drops the arrays whose names begin with one of some prefixes.
func (t *table) dropWith(prefixes ...string) {
	for _, prefix := range prefixes {
		t.Tensors = slices.DeleteFunc(t.Tensors, func(x safetensors.Tensor) bool { return strings.HasPrefix(x.Name, prefix) })
	}
}

// with lists the arrays whose names begin with a prefix, by name.
func (t *table) with(prefix string) (list []safetensors.Tensor) {
	for _, x := range t.Tensors {
		if strings.HasPrefix(x.Name, prefix) {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b safetensors.Tensor) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// array returns an array of a table, nil where it has none of that name and type.
func array[T float32 | int64 | int32 | uint8](t *table, name string) []T {
	if x := t.Lookup(name); x != nil {
		data, _ := x.Data.([]T)
		return data
	}
	return nil
}

// putTexts enters a list of texts, which [table.texts] returns.
func (t *table) putTexts(name string, list []string) {
	ends, all := make([]int64, len(list)), []byte{}
	for i, s := range list {
		all = append(all, s...)
		ends[i] = int64(len(all))
	}
	t.put(name, all, len(all))
	t.put(name+".ends", ends, len(ends))
}

func (t *table) texts(name string) []string {
	all, ends := string(array[uint8](t, name)), array[int64](t, name+".ends")
	list, at := make([]string, len(ends)), int64(0)
	for i, end := range ends {
		list[i], at = all[at:end], end
	}
	return list
}

// width is the number of elements in a row.
func width(shape []int) int {
	w := 1
	for _, d := range shape[1:] {
		w *= d
	}
	return w
}

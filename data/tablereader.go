package data

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/nearest"
)

// tableReader reads the tables of a folder.
type tableReader struct {
	asked     Tables
	file      *tableSchema   // schema.toml; never nil
	want      *schema.Schema // columns of a model that the features are for; nil fits new ones
	noPrepare bool
	matrix    bool // features are in a file of their own
	mem       *budget.Reservation

	roles Roles
	notes []string
	seen  map[string]bool // names of all columns, in lower case
}

func (r *tableReader) note(file, format string, args ...any) {
	r.notes = append(r.notes, filepath.Base(file)+": "+printable(fmt.Sprintf(format, args...)))
}

// column finds the column of a role: by the option, by schema.toml, by what the model's
// training data called it, or by its usual names. usual[0] needs no word.
func (r *tableReader) column(t *table, header []string, role, option, inFile string, usual []string) (int, error) {
	for _, name := range []string{option, inFile} {
		if i, err := t.asked(header, name, role); err != nil || i >= 0 {
			return i, err
		}
	}
	if r.want != nil {
		if i := slices.Index(header, r.want.Roles[role]); i >= 0 {
			return i, nil
		}
	}
	i := byName(header, usual)
	if i >= 0 && r.want != nil && slices.ContainsFunc(r.want.Columns, func(c schema.Column) bool { return c.Name == header[i] }) {
		return -1, nil // a feature of the model
	}
	if i >= 0 && !strings.EqualFold(header[i], usual[0]) {
		r.note(t.file, "the column %s is taken as the %s, by its name; --%s says otherwise", quote(header[i]), role, role)
	}
	return i, nil
}

// header checks the first row of a table, which is read and is one.
func (r *tableReader) header(t *table) ([]string, error) {
	if len(t.row) > maxCols {
		return nil, t.fault(0, "the header has %d columns; at most %d are supported", len(t.row), maxCols)
	}
	// Names, a map of them, and what is found of each column.
	if err := r.mem.Grow(700 * int64(len(t.row))); err != nil {
		return nil, fileFault(t.file, err)
	}
	header := slices.Clone(t.row)
	own := map[string]bool{}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	for i, name := range header {
		header[i] = strings.Clone(name)
		low := strings.ToLower(name)
		if name == "" {
			return nil, t.fault(i, "column %d of the header has no name", i+1).hint("nodes.csv starts with a header such as id,label,split,f0,f1")
		}
		if own[low] {
			return nil, t.fault(i, "the header names this column twice")
		}
		own[low], r.seen[low] = true, true
	}
	return header, nil
}

// ignored reports whether a column is to be left out.
func (r *tableReader) ignored(name string) bool {
	return slices.ContainsFunc(r.asked.Ignore, func(s string) bool { return strings.EqualFold(s, name) })
}

// nodeColumns are where the roles stand in the table of nodes, -1 where they do not.
type nodeColumns struct {
	id, label, split int
	features         []int
}

func (r *tableReader) nodeColumns(t *table, header []string, from, edges tableFile) (c nodeColumns, err error) {
	x := &r.file.Nodes
	if c.id, err = r.column(t, header, "id", r.asked.ID, x.ID, idNames); err != nil {
		return c, err
	}
	if c.label, err = r.column(t, header, "label", r.asked.Label, x.Label, labelNames); err != nil {
		return c, err
	}
	if c.split, err = r.column(t, header, "split", r.asked.Split, x.Split, splitNames); err != nil {
		return c, err
	}
	if c.id < 0 {
		if c.id, err = guessID(from, edges, r.mem); err != nil {
			return c, err
		}
		if c.id < 0 {
			e := t.fault(0, "the header has no id column").hint("nodes.csv starts with a header such as id,label,split,f0,f1; --id says which column holds the ids")
			if len(header) == 1 {
				e.Hint = separatorHint(header[0])
			}
			return c, e
		}
		r.note(t.file, "the column %s is taken as the id: it differs in every row, and edges refer to it; --id says otherwise", quote(header[c.id]))
	}
	if c.id == c.label || c.id == c.split || c.label >= 0 && c.label == c.split {
		return c, t.fault(max(c.label, c.split), "the column is to be two things at once").hint("id, label and split are three columns")
	}
	r.roles.ID = header[c.id]
	if c.label >= 0 {
		r.roles.Label = header[c.label]
	}
	if c.split >= 0 {
		r.roles.Split = header[c.split]
	}
	for name := range x.Columns {
		if !slices.Contains(header, name) {
			return c, badFile(filepath.Join(filepath.Dir(t.file), SchemaFile), "%s has no column %s", filepath.Base(t.file), quote(name)).hint("gsrc data init --force writes it anew")
		}
	}
	for i, name := range header {
		if i != c.id && i != c.label && i != c.split && !r.ignored(name) {
			c.features = append(c.features, i)
		}
	}
	return c, nil
}

// sampleRows returns the first rows of a table, as far as they can be read.
func sampleRows(f tableFile, mem *budget.Reservation) (rows [][]string) {
	const most = 100
	t, err := newTable(f, mem)
	if err != nil {
		return nil
	}
	defer t.close()
	for len(rows) < most {
		if ok, err := t.next(); !ok || err != nil {
			break
		}
		if len(t.row) > 1000 { // no table of edges
			break
		}
		rows = append(rows, slices.Clone(t.row))
	}
	return rows
}

// guessID returns the column of a table of nodes that has another text in every row, and
// to which the first edges refer; -1 if there is none.
func guessID(nodes, edges tableFile, mem *budget.Reservation) (int, error) {
	const most = 32 // columns that are looked at
	sample := sampleRows(edges, mem)
	t, err := newTable(nodes, mem)
	if err != nil {
		return -1, err
	}
	defer t.close()
	if _, err := t.next(); err != nil {
		return -1, err
	}
	sets := make([]map[string]bool, min(len(t.row), most))
	for j := range sets {
		sets[j] = map[string]bool{}
	}
	claimed := int64(0)
	defer func() { mem.Shrink(claimed) }()
	for {
		ok, err := t.next()
		if err != nil || !ok {
			break // faults are reported when the table is read
		}
		for j, set := range sets {
			if set == nil || j >= len(t.row) {
				continue
			}
			s := t.row[j]
			if s == "" || set[s] {
				sets[j] = nil
				continue
			}
			if err := mem.Grow(64 + int64(len(s))); err != nil {
				return -1, fileFault(nodes.path, err)
			}
			claimed += 64 + int64(len(s))
			set[strings.Clone(s)] = true
		}
	}
	best, hits := -1, 0
	for j, set := range sets {
		n := 0
		for _, row := range sample {
			ends := 0
			for _, s := range row {
				if set[s] {
					ends++
				}
			}
			if ends >= 2 {
				n++
			}
		}
		if n > hits {
			best, hits = j, n
		}
	}
	if 2*hits <= len(sample)-1 {
		return -1, nil
	}
	return best, nil
}

// nodes reads the table of nodes, in two passes: what there is, and the values. edges is
// looked at where the column of the ids has to be guessed.
func (r *tableReader) nodes(from, edges tableFile) (*nodeTable, error) {
	t, err := newTable(from, r.mem)
	if err != nil {
		return nil, err
	}
	var header []string
	var at nodeColumns
	if _, err = t.next(); err == nil {
		header, err = r.header(t)
	}
	if err == nil {
		at, err = r.nodeColumns(t, header, from, edges)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	faults := &Faults{}
	nt := &nodeTable{ids: []string{}, index: map[string]int32{}}
	profiles, form, err := r.firstPass(t, nt, header, at, faults)
	t.close()
	if err != nil {
		return nil, err
	}
	if len(at.features) > 0 || r.want != nil && !r.matrix {
		columns, out, err := r.choose(from.path, header, at, profiles, form)
		if err != nil {
			return nil, err
		}
		if err := r.values(from, nt, header, at, columns, out, faults); err != nil {
			return nil, err
		}
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	if len(nt.ids) == 0 {
		return nil, badFile(from.path, "has a header but no nodes")
	}
	if at.label >= 0 && r.file.Nodes.LabelKind != "class" {
		if err := checkLabels(from.path, header[at.label], nt.labels); err != nil {
			return nil, err
		}
	}
	return nt, nil
}

// firstPass reads ids, labels and split, and looks at the columns of features.
func (r *tableReader) firstPass(t *table, nt *nodeTable, header []string, at nodeColumns, faults *Faults) ([]profile, rowForm, error) {
	form := newRowForm()
	profiles := make([]profile, len(at.features))
	if at.label >= 0 {
		nt.labels = []string{}
	}
	if at.split >= 0 {
		nt.split = &Split{}
	}
	lines := []int{}
	for {
		ok, err := t.next()
		if err != nil {
			return nil, form, endFaults(faults, err)
		}
		if !ok {
			return profiles, form, nil
		}
		if len(t.row) != len(header) {
			faults.add(t.fault(min(len(t.row), len(header)), "the row has %d fields, the header has %d", len(t.row), len(header)).hint("a last row that is too short means a truncated file"))
			continue
		}
		id := t.row[at.id]
		if id == "" {
			faults.add(t.fault(at.id, "the id is empty"))
			continue
		}
		// The id, as a string, in a list and in the map of them; its line, its place in
		// the split, and where its features begin. Lists have room to grow.
		claim := 200 + 2*int64(len(id))
		if at.label >= 0 {
			claim += 64 + 2*int64(len(t.row[at.label]))
		}
		if err := r.mem.Grow(claim); err != nil {
			e := fileFault(t.file, err)
			e.Line = t.line()
			return nil, form, e
		}
		id = strings.Clone(id) // the reader's buffer holds the whole row
		if prev, ok := nt.index[id]; ok {
			faults.add(t.fault(at.id, "the same id as in line %d", lines[prev]))
			continue
		}
		if len(nt.ids) >= math.MaxInt32 {
			return nil, form, badFile(t.file, "more than %d nodes", math.MaxInt32)
		}
		v := int32(len(nt.ids))
		nt.index[id] = v
		nt.ids = append(nt.ids, id)
		lines = append(lines, t.line())
		if at.label >= 0 {
			nt.labels = append(nt.labels, strings.Clone(t.row[at.label]))
		}
		if at.split >= 0 {
			if e := nt.split.add(t, at.split, v); e != nil {
				faults.add(e)
			}
		}
		if r.noPrepare || r.want != nil {
			continue
		}
		for j, c := range at.features {
			if err := profiles[j].add(t.row[c], r.mem); err != nil {
				return nil, form, fileFault(t.file, err)
			}
			form.add(t.row[c])
		}
		form.end()
	}
}

// endFaults adds a fault behind which nothing can be read.
func endFaults(faults *Faults, err error) error {
	var fe *FileError
	if faults.Total == 0 || !errors.As(err, &fe) {
		return err
	}
	faults.add(fe)
	return faults.err()
}

// choose decides which columns are features, and of what kind.
func (r *tableReader) choose(file string, header []string, at nodeColumns, profiles []profile, form rowForm) (columns []columnValues, out []schema.LeftOut, err error) {
	if r.want != nil {
		columns, err = r.match(file, header, at)
		return columns, nil, err
	}
	add := func(j int, k schema.Kind) {
		c := columnValues{at: at.features[j], column: schema.Column{Name: header[at.features[j]], Kind: k}}
		if k == schema.Category {
			c.code = map[string]int32{}
		}
		columns = append(columns, c)
	}
	names := make([]string, len(at.features))
	for j, c := range at.features {
		names[j] = header[c]
	}
	same := r.noPrepare || len(r.file.Nodes.Columns) == 0 && form.prepared(len(names))
	var family []bool
	if !same {
		family = families(names, profiles)
	}
	for j, name := range names {
		kind, reason := schema.Value, ""
		switch said := schema.Kind(r.file.Nodes.Columns[name]); {
		case said == schema.Ignore:
			kind = said
		case same:
		case said != "":
			kind = said
		case family[j]:
		default:
			kind, reason = profiles[j].kind(name)
		}
		switch {
		case kind != schema.Ignore:
			add(j, kind)
		case reason != "":
			out = append(out, schema.LeftOut{Name: name, Reason: reason})
		}
	}
	return columns, out, nil
}

// match finds the columns of a model in the header, by their names.
func (r *tableReader) match(file string, header []string, at nodeColumns) (columns []columnValues, err error) {
	var missing, unknown []string
	known := map[string]bool{}
	for _, c := range r.want.Columns {
		i := slices.Index(header, c.Name)
		known[c.Name] = true
		if i < 0 || !slices.Contains(at.features, i) {
			missing = append(missing, quote(c.Name))
			continue
		}
		v := columnValues{at: i, column: c}
		if c.Kind == schema.Category {
			v.code = map[string]int32{}
		}
		columns = append(columns, v)
	}
	if missing != nil {
		return nil, badFile(file, "lacks the column %s that the model reads", nameSome(missing)).hint("the model takes %d columns by their names, in any order", len(r.want.Columns))
	}
	out := map[string]bool{}
	for _, x := range r.want.LeftOut {
		out[x.Name] = true
	}
	for _, i := range at.features {
		if !known[header[i]] && !out[header[i]] {
			unknown = append(unknown, quote(header[i]))
		}
	}
	if unknown != nil {
		r.note(file, "the model does not know the column %s; left out", nameSome(unknown))
	}
	return columns, nil
}

// values reads the columns of features and prepares them.
func (r *tableReader) values(from tableFile, nt *nodeTable, header []string, at nodeColumns, columns []columnValues, out []schema.LeftOut, faults *Faults) error {
	t, err := newTable(from, r.mem)
	if err != nil {
		return err
	}
	defer t.close()
	if _, err := t.next(); err != nil {
		return err
	}
	raw := &Features{RowPtr: []int32{0}}
	for j := range columns {
		if columns[j].column.Kind == schema.Value {
			raw.Cols++
		}
	}
	for {
		ok, err := t.next()
		if err != nil {
			return endFaults(faults, err)
		}
		if !ok {
			break
		}
		if len(t.row) != len(header) {
			continue // a fault of the first pass
		}
		k := int32(0)
		for j := range columns {
			c := &columns[j]
			s := t.row[c.at]
			ok := true
			if c.column.Kind == schema.Value {
				var x float64
				if x, ok = cellValue(schema.Value, s); float32(x) != 0 {
					if raw.Col, err = room(r.mem, raw.Col, 1); err == nil {
						raw.Val, err = room(r.mem, raw.Val, 1)
					}
					raw.Col, raw.Val = append(raw.Col, k), append(raw.Val, float32(x))
				}
				k++
			} else {
				ok, err = c.add(s, r.mem)
			}
			if err != nil {
				return fileFault(t.file, err)
			}
			if !ok {
				faults.add(r.cellFault(t, c, t.row[at.id]))
			}
		}
		if len(raw.Col) > math.MaxInt32 {
			return badFile(t.file, "more than %d values", math.MaxInt32)
		}
		raw.RowPtr = append(raw.RowPtr, int32(len(raw.Col)))
	}
	for j := range columns {
		if c := &columns[j]; r.want != nil && c.otherKind() {
			faults.add(badFile(t.file, "the column %s holds numbers; the model was trained on a category such as %s", quote(c.column.Name), quote(c.column.Categories[len(c.column.Categories)-1])))
		}
	}
	if faults.Total > 0 || len(nt.ids) == 0 {
		return nil
	}
	return r.prepare(from.path, nt, columns, raw, out)
}

// cellFault says what is wrong with a cell that is not of its column's kind.
func (r *tableReader) cellFault(t *table, c *columnValues, id string) *FileError {
	name := quote(c.column.Name)
	if c.column.Kind == schema.Value {
		e := t.fault(c.at, "the feature %s of node %s is not a finite number", name, quote(id))
		if r.noPrepare {
			return e.hint("write a number; without preparation text columns other than id, label and split have to be encoded as numbers first")
		}
		return e.hint("write a number, or call the column something else than %q in %s", schema.Value, SchemaFile)
	}
	e := t.fault(c.at, "the column %s of node %s is not a %s", name, quote(id), wants[c.column.Kind])
	if r.want != nil {
		e.Msg += ", which the model was trained on"
		return e.hint("a value that is not known is left empty")
	}
	return e.hint("a value that is not known is left empty; --ignore leaves the column out, and %s, which gsrc data init writes, says of what kind it is", SchemaFile)
}

// prepare fits the columns, unless they are a model's, and makes features of them.
func (r *tableReader) prepare(file string, nt *nodeTable, columns []columnValues, raw *Features, out []schema.LeftOut) (err error) {
	rows := len(nt.ids)
	nt.schema = &schema.Schema{Version: schema.Version, Nodes: rows, LeftOut: out}
	if r.want != nil {
		*nt.schema = *r.want
	} else {
		for j := range columns {
			c := &columns[j]
			if err := taking(r.mem, 8*int64(len(c.Numbers)), func() error { c.column.Fit(c.Values); return nil }); err != nil {
				return fileFault(file, err)
			}
			nt.schema.Columns = append(nt.schema.Columns, c.column)
		}
	}
	if len(columns) == 0 {
		return nil
	}
	if nt.features, err = assemble(rows, columns, raw, r.mem); err != nil {
		return fileFault(file, err)
	}
	for j := range columns {
		r.mem.Shrink(8*int64(cap(columns[j].Numbers)) + 4*int64(cap(columns[j].Codes)))
	}
	if nt.schema.Prepared() && r.want == nil {
		r.note(file, "%s", nt.schema.Summary())
	}
	return nil
}

// checkLabels refuses a label that is no class.
func checkLabels(file, name string, labels []string) error {
	const (
		fewest  = 30  // values up to which numbers pass as classes in any case
		most    = 100 // whole numbers from 0 or 1 on
		support = 10  // nodes of a class, below which classes cannot be meant
	)
	distinct := map[string]bool{}
	counts := map[string]bool{} // whether a text has several values
	parts := map[string]struct {
		cells  int  // different texts that have the value
		beside bool // one of them has others too
	}{}
	known, numbers, several := 0, 0, 0
	whole, low := true, math.Inf(1)
	for _, s := range labels {
		if unknownLabel(s) {
			continue
		}
		known++
		first := !distinct[s]
		distinct[s] = true
		if x, err := strconv.ParseFloat(s, 64); err == nil {
			numbers++
			whole, low = whole && x == math.Trunc(x), min(low, x)
			continue
		}
		if !first {
			if counts[s] {
				several++
			}
			continue
		}
		list := strings.FieldsFunc(strings.Trim(s, "[](){}"), func(r rune) bool { return strings.ContainsRune("|;,", r) })
		counts[s] = len(list) > 1 || strings.HasPrefix(s, "[")
		if counts[s] {
			several++
		}
		for _, p := range list {
			p = strings.Trim(p, ` '"`)
			x := parts[p]
			x.cells++
			x.beside = x.beside || counts[s]
			parts[p] = x
		}
	}
	hint := "the label is a class, one for each node; leave the column out with --ignore, or name another with --label; if these are classes, " + SchemaFile + `, which gsrc data init writes, says so with label_kind = "class"`
	shared, all := 0, 0
	for _, x := range parts {
		if x.beside {
			all++
			if x.cells > 1 {
				shared++
			}
		}
	}
	switch k := len(distinct); {
	case known == 0:
		return nil
	case 20*several >= known && 2*shared > all:
		return badFile(file, "the label %s has several values in one cell, in %d of %d rows, such as %s: it looks like several labels for each node, which are not supported", quote(name), several, known, quote(sampleOf(labels))).hint("%s", hint)
	case numbers == known && k > fewest && (!whole || low > 1 || low < 0 || k > most && known < support*k):
		return badFile(file, "the label %s is a number with %d different values: it looks like a quantity to predict (regression), which is not supported", quote(name), k).hint("%s", hint)
	}
	return nil
}

// sampleOf returns a label with several values.
func sampleOf(labels []string) string {
	i := slices.IndexFunc(labels, func(s string) bool { return strings.ContainsAny(s, "|;,[") })
	return labels[max(i, 0)]
}

// edges reads the table of edges: source, target and optionally weight, with or
// without a header. Ids are those of the nodes, or 0..n-1 without a table of them.
func (r *tableReader) edges(from tableFile, nodes *nodeTable, n int) (*edgeList, error) {
	file := from.path
	sample := sampleRows(from, r.mem)
	t, err := newTable(from, r.mem)
	if err != nil {
		var fe *FileError
		if errors.As(err, &fe) && fe.Line == 0 && !from.parquet {
			fe.hint("a graph without edges has the header line source,target alone")
		}
		return nil, err
	}
	defer t.close()
	e := &edgeList{}
	if e.src, err = room(r.mem, e.src, t.most); err == nil {
		e.dst, err = room(r.mem, e.dst, t.most)
	}
	if err != nil {
		return nil, fileFault(file, err)
	}
	e.merge = r.asked.Merge
	if e.merge == "" {
		e.merge = r.file.Edges.Merge
	}
	faults := &Faults{}
	col := [3]int{0, 1, -1}
	fields := 0
	for first := true; ; first = false {
		ok, err := t.next()
		if err != nil {
			return nil, endFaults(faults, err)
		}
		if !ok {
			return e, faults.err()
		}
		if first {
			fields = len(t.row)
			if fields < 2 {
				return nil, t.fault(0, "expected source,target or source,target,weight").hint("%s", separatorHint(t.row[0]))
			}
			isHeader, err := r.edgeHeader(t, nodes, sample, &col)
			if err != nil {
				return nil, err
			}
			if isHeader {
				if col[2] >= 0 {
					e.w = []float32{}
				}
				continue
			}
			r.roles.Source, r.roles.Target = "column 1", "column 2"
			if fields > 3 {
				return nil, t.fault(3, "expected source,target or source,target,weight").hint("give a header if there are other columns")
			}
			if fields == 3 {
				col[2] = 2
				e.w, r.roles.Weight = []float32{}, "column 3"
			}
		}
		if len(t.row) != fields {
			faults.add(t.fault(min(len(t.row), fields), "the row has %d fields, the first has %d", len(t.row), fields).hint("a last row that is too short means a truncated file"))
			continue
		}
		u, bad := nodeOf(t, col[0], nodes, n, first)
		if bad != nil {
			faults.add(bad)
		}
		v, bad := nodeOf(t, col[1], nodes, n, first)
		if bad != nil {
			faults.add(bad)
		}
		e.src, e.dst = append(e.src, u), append(e.dst, v)
		if col[2] >= 0 {
			w, err := strconv.ParseFloat(t.row[col[2]], 32)
			if err != nil || checkWeight(float32(w)) != nil {
				faults.add(t.fault(col[2], "a weight is a finite number of 0 or more"))
			}
			if e.w, err = room(r.mem, e.w, 1); err != nil {
				return nil, fileFault(file, err)
			}
			e.w = append(e.w, float32(w))
		}
	}
}

// edgeHeader decides whether the first row is a header, and if so fills in which columns
// hold source, target and weight. It is one if an option says how a column is called, if
// two of its fields or more are usual names and its first two not both known ids, or if
// no field is an id and those below it are in two columns.
func (r *tableReader) edgeHeader(t *table, nodes *nodeTable, sample [][]string, col *[3]int) (bool, error) {
	x := &r.file.Edges
	asked := r.asked.Source != "" || r.asked.Target != "" || r.asked.Weight != "" || x.Source != "" || x.Target != "" || x.Weight != ""
	usual := [3][]string{sourceNames, targetNames, weightNames}
	known := 0
	for _, s := range t.row {
		for _, names := range usual {
			if byName([]string{s}, names) >= 0 {
				known++
			}
		}
	}
	_, id0 := nodes.index[t.row[0]]
	_, id1 := nodes.index[t.row[1]]
	model := r.want != nil && slices.Contains(t.row, r.want.Roles["source"]) && slices.Contains(t.row, r.want.Roles["target"])
	guess := guessEnds(t.row, nodes, sample)
	if !asked && !model && (known < 2 || id0 && id1) && guess == nil {
		return false, nil
	}
	header, err := r.header(t)
	if err != nil {
		return false, err
	}
	if !asked && !model {
		for i := range header {
			for _, names := range usual {
				if byName(header[i:i+1], names) >= 0 && slices.ContainsFunc(header[:i], func(s string) bool { return byName([]string{s}, names) >= 0 }) {
					return false, t.fault(i, "the header has two columns for the same thing")
				}
			}
		}
	}
	for p, c := range [3]struct{ role, option, file string }{{"source", r.asked.Source, x.Source}, {"target", r.asked.Target, x.Target}, {"weight", r.asked.Weight, x.Weight}} {
		if col[p], err = r.column(t, header, c.role, c.option, c.file, usual[p]); err != nil {
			return false, err
		}
	}
	if col[0] < 0 && col[1] < 0 && guess != nil {
		col[0], col[1] = guess[0], guess[1]
		r.note(t.file, "the columns %s and %s are taken as source and target: they hold ids of nodes; --source and --target say otherwise", quote(header[col[0]]), quote(header[col[1]]))
	}
	if col[0] < 0 || col[1] < 0 {
		return false, t.fault(0, "the header needs the columns source and target").hint("--source and --target say how they are called; it has %s", nameSome(header))
	}
	if col[0] == col[1] || col[2] == col[0] || col[2] == col[1] {
		return false, t.fault(col[1], "the column is to be two things at once").hint("source, target and weight are three columns")
	}
	if col[2] >= 0 && r.ignored(header[col[2]]) {
		col[2] = -1
	}
	r.roles.Source, r.roles.Target = header[col[0]], header[col[1]]
	if col[2] >= 0 {
		r.roles.Weight = header[col[2]]
	}
	r.listExtra(t.file, header, col, sample)
	return true, nil
}

// guessEnds returns the first two columns that hold ids below a first row that has none;
// nil if there are not two, or the table has no more columns.
func guessEnds(row []string, nodes *nodeTable, sample [][]string) []int {
	if len(row) < 3 || len(sample) < 2 || slices.ContainsFunc(row, func(s string) bool { _, ok := nodes.index[s]; return ok }) {
		return nil
	}
	var ends []int
	for i := range row {
		if !slices.ContainsFunc(sample[1:], func(cells []string) bool {
			if i >= len(cells) {
				return true
			}
			_, ok := nodes.index[cells[i]]
			return !ok
		}) {
			ends = append(ends, i)
		}
	}
	if len(ends) < 2 {
		return nil
	}
	return ends[:2]
}

// listExtra tells which columns of the edges are left out, and what they seem to hold.
func (r *tableReader) listExtra(file string, header []string, col *[3]int, sample [][]string) {
	var list []string
	weight := ""
	for i, name := range header {
		if slices.Contains(col[:], i) || r.ignored(name) || r.file.Edges.Columns[name] == columnIgnored {
			continue
		}
		var p profile
		for _, row := range sample[min(1, len(sample)):] {
			if i < len(row) {
				_ = p.add(row[i], nil) // without a limit it cannot fail
			}
		}
		kind := "text"
		switch {
		case p.rows == p.missing:
			kind = "empty"
		case p.numbers+p.missing == p.rows:
			kind = "numbers"
			if weight == "" && p.low >= 0 {
				weight = name
			}
		case p.times+p.missing == p.rows:
			kind = "times"
		}
		text := fmt.Sprintf("%s (%s", quote(name), kind)
		if near := nearest.Of(name, []string{"weight"}); near != "" && kind == "numbers" {
			text += "; is it the weight?"
		}
		list = append(list, text+")")
	}
	if list == nil {
		return
	}
	hint := ""
	if col[2] < 0 && weight != "" {
		hint = fmt.Sprintf("; --weight %s takes %s as weight", weight, quote(weight))
	}
	r.note(file, "left out: %s%s", nameSome(list), hint)
}

// nodeOf returns the node that a field names.
func nodeOf(t *table, i int, nodes *nodeTable, n int, first bool) (int32, *FileError) {
	s := t.row[i]
	if nodes.ids != nil {
		if v, ok := nodes.index[s]; ok {
			return v, nil
		}
		e := t.fault(i, "%s has no node of this id", nodesFile).hint("add a row for it to %s, or remove the edge", nodesFile)
		if first {
			e.Hint += "; a header line would be source,target"
		}
		if s == "" {
			e.Msg = "the id is empty"
		}
		return 0, e
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, t.fault(i, "not a node number").hint("without %s nodes are called 0 to %d, by the rows of the features", nodesFile, n-1)
	}
	if v < 0 || v >= int64(n) {
		return 0, t.fault(i, "there is no such node: the features have %d rows, so nodes are called 0 to %d", n, n-1)
	}
	return int32(v), nil
}

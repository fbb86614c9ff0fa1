package data

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
)

// nodeColumns are where the roles stand in the table of nodes, -1 where they do not.
type nodeColumns struct {
	id, label, split int
	masks            [3]int // of the parts of the split, where there are such columns in its place
	time             int    // of the times that nodes are split by
	features         []int
	ignored          []string
}

func (r *tableReader) nodeColumns(t *table, header []string, from, edges tableFile) (c nodeColumns, err error) {
	x := &r.file.Nodes
	if c.id, err = r.column(t, header, "id", r.asked.ID, x.ID, x.Columns, idNames); err != nil {
		return c, err
	}
	if c.label, err = r.column(t, header, "label", r.asked.Label, x.Label, x.Columns, labelNames); err != nil {
		return c, err
	}
	if c.split, err = r.column(t, header, "split", r.asked.Split, x.Split, x.Columns, splitNames); err != nil {
		return c, err
	}
	if c.id < 0 {
		ids, near, err := guessID(from, edges, func(i int) bool {
			name := header[i]
			return i != c.label && i != c.split && name != r.asked.time && x.Columns[name] == "" && !r.ignored(name) && !r.reads(name)
		}, r.mem)
		if err != nil {
			return c, err
		}
		if len(ids) == 0 {
			e := t.fault(0, "the header has no id column").hint("nodes.csv starts with a header such as id,label,split,f0,f1; --id says which column holds the ids%s", near)
			if len(header) == 1 {
				e.Hint = separatorHint(header[0])
			}
			return c, e
		}
		if c.id = ids[0]; len(ids) > 1 {
			return c, t.fault(c.id, "the columns %s all differ in every row, edges may refer to any of them, and no name says which is the id", quoteSome(namesAt(header, ids))).hint("say which with --id, or leave the others out with --ignore")
		}
		r.note(t.file, "the column %s is taken as the id: it differs in every row, and edges refer to it; --id says otherwise", quote(header[c.id]))
	}
	if c.id == c.label || c.id == c.split || c.label >= 0 && c.label == c.split {
		return c, t.fault(max(c.label, c.split), "the column is to be two things at once").hint("id, label and split are three columns")
	}
	r.masks(t.file, header, &c)
	c.time = -1
	if name := r.asked.time; name != "" {
		if c.time = slices.Index(header, name); c.time < 0 || c.time == c.id || c.time == c.label {
			return c, badFile(t.file, "there is no column of times called %s to split by", quote(name)).hint("it has %s", nameSome(header))
		}
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
	var parts []string
	for i, name := range header {
		switch {
		case i == c.id || i == c.label || i == c.split || slices.Contains(c.masks[:], i):
		case r.ignored(name) || r.want == nil && x.Columns[name] == columnIgnored:
			c.ignored = append(c.ignored, name)
		case !r.file.none["split"] && x.Columns[name] == "" && !r.reads(name) && byName(header[i:i+1], append(maskNames[:], splitNames...)) >= 0:
			c.ignored, parts = append(c.ignored, name), append(parts, quote(name))
		default:
			c.features = append(c.features, i)
		}
	}
	if parts != nil && r.want == nil {
		r.note(t.file, "left out, since they say by their names which part of a split a node is in, and another split is taken or none: %s; a kind under [nodes.columns] in %s makes a feature of such a column", nameSome(parts), SchemaFile)
	}
	return c, nil
}

// masks finds the columns that say of each part of the split which nodes are in it.
func (r *tableReader) masks(file string, header []string, c *nodeColumns) {
	c.masks = [3]int{-1, -1, -1}
	named := c.split >= 0 && byName(maskNames[:], header[c.split:c.split+1]) >= 0
	if r.file.none["split"] || c.split >= 0 && !named {
		return
	}
	var list []string
	for p, name := range maskNames {
		i := byName(header, []string{name})
		if i < 0 || r.ignored(header[i]) || !named && (r.file.Nodes.Columns[header[i]] != "" || r.reads(header[i])) {
			continue
		}
		c.masks[p], list = i, append(list, quote(header[i]))
	}
	if c.masks[0] < 0 {
		c.masks = [3]int{-1, -1, -1}
		return
	}
	c.split = -1
	r.note(file, "the columns %s are taken as the split; --ignore leaves them out", nameSome(list))
}

// guessID returns the column of a table of nodes that has another text in every row, and to which the
// first edges refer; none if there is none, and what speaks against the one that comes nearest. One with a few empty
// cells is taken where no fuller one qualifies. There are several where as many of all edges refer to each, and
// they are not free alone.
func guessID(nodes, edges tableFile, free func(i int) bool, mem *budget.Reservation) (ids []int, near string, err error) {
	const most = 32 // columns that are looked at
	sample := sampleRows(edges, mem)
	t := newTable(nodes, mem)
	defer t.close()
	if t.next(); t.err != nil {
		return nil, "", t.err
	}
	header := slices.Clone(t.row)
	gaps, rows := make([]int, min(len(t.row), most)), 0
	sets, twice := make([]map[string]int, len(gaps)), make([]string, len(gaps))
	for j := range sets {
		sets[j] = map[string]int{} // rows
	}
	claimed := int64(0)
	defer func() { mem.Shrink(claimed) }()
	for ; t.next(); rows++ {
		for j, set := range sets {
			if set == nil || j >= len(t.row) {
				continue
			}
			s := t.row[j]
			if s == "" { // an id that is missing is told as one
				gaps[j]++
				continue
			}
			if _, ok := set[s]; ok {
				sets[j], twice[j] = nil, strings.Clone(s)
				continue
			}
			claim(mem, 64+int64(len(s)))
			claimed += 64 + int64(len(s))
			set[strings.Clone(s)] = rows
		}
	}
	if t.err != nil {
		return nil, "", t.err
	}
	refers := func(j int, row []string) int { // 1 where the row has two texts of the column
		ends := 0
		for _, s := range row {
			if _, ok := sets[j][s]; ok {
				ends++
			}
		}
		return min(ends/2, 1)
	}
	hits := 0
	for _, j := range byGaps(gaps) {
		n := 0
		if gaps[j] > max(1, rows/10) || ids != nil && gaps[j] > gaps[ids[0]] && 2*hits > len(sample)-1 {
			break
		}
		for _, row := range sample {
			n += refers(j, row)
		}
		if n > hits {
			ids, hits = nil, n
		}
		if n > 0 && n == hits {
			ids = append(ids, j)
		}
	}
	if 2*hits > len(sample)-1 {
		return chooseID(ids, edges, free, refers, func(i, j int) bool { return maps.Equal(sets[i], sets[j]) }, mem), "", nil
	}
	j := slices.IndexFunc(header[:len(sets)], identifier)
	if j < 0 {
		j = slices.IndexFunc(sets, func(set map[string]int) bool { return len(set) > 0 })
	}
	switch {
	case j < 0:
	case sets[j] == nil:
		near = fmt.Sprintf("; %s has %s in two rows", quote(header[j]), quote(twice[j]))
	case gaps[j] > max(1, rows/10):
		near = fmt.Sprintf("; %s is empty in %d of %d rows", quote(header[j]), gaps[j], rows)
	case len(sample) > 1:
		near = fmt.Sprintf("; %s differs in every row, but few edges refer to it: their first row is %s", quote(header[j]), quoteSome(sample[1]))
	}
	return nil, near, nil
}

// chooseID returns those of the columns to which most edges refer, of all of them: the free ones, if there
// are any, and one of those that are the same.
func chooseID(ids []int, edges tableFile, free func(i int) bool, refers func(i int, row []string) int, same func(i, j int) bool, mem *budget.Reservation) []int {
	if slices.ContainsFunc(ids, free) {
		ids = slices.DeleteFunc(ids, func(i int) bool { return !free(i) })
	}
	if ids = slices.CompactFunc(ids, same); len(ids) < 2 {
		return ids
	}
	t := newTable(edges, mem)
	defer t.close()
	hits := make([]int, len(ids))
	for t.next() {
		for k, i := range ids {
			hits[k] += refers(i, t.row)
		}
	}
	most, k := slices.Max(hits), -1
	return slices.DeleteFunc(ids, func(int) bool { k++; return hits[k] < most })
}

// byGaps are the numbers of columns, those with fewer empty cells first.
func byGaps(gaps []int) []int {
	order := lists.Of(len(gaps), func(j int) int { return j })
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(gaps[a], gaps[b]) })
	return order
}

// nodes reads the table of nodes, in two passes: what there is, and the values.
func (r *tableReader) nodes(from, edges tableFile) (*nodeTable, error) {
	faults := &Faults{}
	nt, err := r.firstPass(from, edges, faults)
	if err != nil {
		return nil, err
	}
	if len(nt.at.features) > 0 || r.want != nil && !r.matrix {
		columns, out, err := r.choose(from.path, nt)
		if err != nil {
			return nil, err
		}
		nt.profiles = nil
		if err := r.values(from, nt, columns, out, faults); err != nil {
			return nil, err
		}
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	if len(nt.ids) == 0 {
		return nil, badFile(from.path, "has a header but no nodes")
	}
	if nt.at.label >= 0 && r.file.Nodes.LabelKind != "class" {
		if err := checkLabels(from.path, r.roles.Label, nt.labels, r.want != nil); err != nil {
			return nil, err
		}
	}
	return nt, nil
}

// firstPass reads ids, labels and split, and looks at the columns of features. edges is
// looked at where the column of the ids has to be guessed.
func (r *tableReader) firstPass(from, edges tableFile, faults *Faults) (_ *nodeTable, err error) {
	defer within(from.path, &err)
	t := newTable(from, r.mem)
	defer t.close()
	if t.next(); t.err != nil {
		return nil, t.err
	}
	header, err := r.header(t, "id,label,split,f0,f1", r.file.Nodes.Columns)
	if err != nil {
		return nil, err
	}
	at, err := r.nodeColumns(t, header, from, edges)
	if err != nil {
		return nil, err
	}
	nt := &nodeTable{ids: []string{}, index: map[string]int32{}, header: header, at: at, profiles: make([]profile, len(at.features)), form: newRowForm()}
	if at.label >= 0 {
		nt.labels = []string{}
	}
	if at.split >= 0 || at.masks[0] >= 0 {
		nt.split = &Split{}
	}
	lines, before := []int{}, r.mem.Bytes()
	for t.next() {
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
		held := 200 + 2*int64(len(id))
		if at.time >= 0 {
			held += 16
		}
		if at.label >= 0 {
			held += 64 + 2*int64(len(t.row[at.label]))
		}
		if err := r.mem.Grow(held); err != nil {
			if x, ok := errors.AsType[*budget.ExceededError](err); ok && from.parquet && t.line() > t.most/16 { // all rows, by those so far
				x.Need = before + int64(float64(x.Need-before)/float64(t.line())*float64(t.most))
			}
			e := fileFault(t.file, err)
			e.Line = t.line()
			return nil, e
		}
		id = strings.Clone(id) // the reader's buffer holds the whole row
		if prev, ok := nt.index[id]; ok {
			faults.add(t.fault(at.id, "the same id as in line %d", lines[prev]))
			continue
		}
		if len(nt.ids) >= math.MaxInt32 {
			return nil, badFile(t.file, "more than %d nodes", math.MaxInt32)
		}
		v := int32(len(nt.ids))
		nt.index[id] = v
		nt.ids = append(nt.ids, id)
		lines = append(lines, t.line())
		if at.label >= 0 {
			nt.labels = append(nt.labels, strings.Clone(t.row[at.label]))
		}
		if at.split >= 0 {
			faults.add(nt.split.add(t, at.split, v))
		}
		if at.masks[0] >= 0 {
			faults.add(nt.split.mark(t, at.masks, v))
		}
		if at.time >= 0 {
			x, ok := timeOf(t.row[at.time])
			if !ok {
				faults.add(t.fault(at.time, "the column %s of node %s is neither a time nor a number, by which nodes could be split", quote(header[at.time]), quote(id)).hint("%s", zoneFault(t.row[at.time])))
			}
			nt.times = append(nt.times, x)
		}
		if r.noPrepare || r.want != nil {
			continue
		}
		for j, c := range at.features {
			nt.profiles[j].add(t.row[c], r.mem)
			nt.form.add(t.row[c])
		}
		nt.form.end()
	}
	if t.err != nil {
		return nil, endFaults(faults, t.err)
	}
	return nt, nil
}

// timeOf reads a cell of a column that nodes are split by; NaN is a gap.
func timeOf(s string) (x float64, ok bool) {
	if gap(s) {
		return math.NaN(), true
	}
	if x, ok = seconds(s); ok {
		return x, true
	}
	return number(s)
}

// endFaults returns the faults, with err, if it is not nil, as one behind which nothing can be read.
func endFaults(faults *Faults, err error) error {
	var fe *FileError
	if faults.Total > 0 && errors.As(err, &fe) {
		faults.add(fe)
		err = nil
	}
	return cmp.Or(err, faults.err())
}

// choose decides which columns are features, and of what kind.
func (r *tableReader) choose(file string, nt *nodeTable) (columns []columnValues, out []schema.LeftOut, err error) {
	if r.want != nil {
		columns, err = r.match(file, nt)
		return columns, nil, err
	}
	names := namesAt(nt.header, nt.at.features)
	same := r.noPrepare || len(r.file.Nodes.Columns) == 0 && nt.form.prepared(len(names))
	var family []bool
	if !same {
		family = families(names, nt.profiles)
	}
	for j, name := range names {
		kind, reason := schema.Value, ""
		switch said := schema.Kind(r.file.Nodes.Columns[name]); {
		case same:
		case said != "":
			kind = said
		case family[j]:
		default:
			p := &nt.profiles[j]
			codes := ""
			switch kind, reason = p.kind(name); {
			case kind != schema.Number:
			case p.padded > 1:
				codes = fmt.Sprintf("%d begin with a zero, such as %s", p.padded, p.padding)
			case p.merged != "":
				codes = "some beyond 2^53 become equal, such as " + p.merged
			}
			if codes != "" {
				r.note(file, "the column %s is taken as numbers, of which %s: where they are codes, %s = \"category\" in %s says so", quote(name), codes, quote(name), SchemaFile)
			}
		}
		switch {
		case kind != schema.Ignore:
			columns = append(columns, columnValues{at: nt.at.features[j], column: schema.Column{Name: name, Kind: kind}})
		case reason != "":
			out = append(out, schema.LeftOut{Name: name, Reason: reason})
		}
	}
	return columns, out, nil
}

// match finds the columns of a model in the header, by their names.
func (r *tableReader) match(file string, nt *nodeTable) (columns []columnValues, err error) {
	var missing, unknown []string
	known := map[string]bool{}
	for _, c := range r.want.Columns {
		i := slices.Index(nt.header, c.Name)
		known[c.Name] = true
		if i < 0 || !slices.Contains(nt.at.features, i) {
			missing = append(missing, quote(c.Name))
			continue
		}
		columns = append(columns, columnValues{at: i, column: c})
	}
	if missing != nil {
		return nil, badFile(file, "lacks the column %s that the model reads", nameSome(missing)).hint("the model takes %d columns by their names, in any order", len(r.want.Columns))
	}
	out := map[string]bool{}
	for _, x := range r.want.LeftOut {
		out[x.Name] = true
	}
	for _, i := range nt.at.features {
		if name := nt.header[i]; !known[name] && !out[name] {
			unknown = append(unknown, quote(name))
		}
	}
	if unknown != nil {
		r.note(file, "the model does not know the column %s; left out", nameSome(unknown))
	}
	return columns, nil
}

func (r *tableReader) values(from tableFile, nt *nodeTable, columns []columnValues, out []schema.LeftOut, faults *Faults) (err error) {
	defer within(from.path, &err)
	t := newTable(from, r.mem)
	defer t.close()
	if t.next(); t.err != nil {
		return t.err
	}
	raw := &Features{RowPtr: []int32{0}}
	for j := range columns {
		if columns[j].column.Kind == schema.Value {
			raw.Cols++
		}
	}
	for t.next() {
		if len(t.row) != len(nt.header) {
			continue // a fault of the first pass
		}
		k := int32(0)
		for j := range columns {
			c := &columns[j]
			s := t.row[c.at]
			var ok bool
			if c.column.Kind == schema.Value {
				var x float64
				if x, ok = cellValue(schema.Value, s); float32(x) != 0 {
					push(r.mem, &raw.Col, k)
					push(r.mem, &raw.Val, float32(x))
				}
				k++
			} else {
				ok = c.add(s, r.mem)
			}
			if !ok {
				faults.add(r.cellFault(t, c, t.row[nt.at.id]))
			}
		}
		if len(raw.Col) > math.MaxInt32 {
			return badFile(t.file, "more than %d values", math.MaxInt32)
		}
		raw.RowPtr = append(raw.RowPtr, int32(len(raw.Col)))
	}
	if t.err != nil {
		return endFaults(faults, t.err)
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
	name, kind, most := quote(c.column.Name), wants[c.column.Kind], largestNumber
	if c.column.Kind == schema.Value {
		most = math.MaxFloat32
	}
	if (c.column.Kind == schema.Value || c.column.Kind == schema.Number) && tooLarge(t.row[c.at], most) {
		kind = fmt.Sprintf("finite number within ±%.2g", most)
	}
	if c.column.Kind == schema.Value {
		e := t.fault(c.at, "the feature %s of node %s is not a %s", name, quote(id), kind)
		if r.noPrepare {
			return e.hint("write a number; without preparation text columns other than id, label and split have to be encoded as numbers first")
		}
		return e.hint("write a number, or call the column something else than %q in %s", schema.Value, SchemaFile)
	}
	e := t.fault(c.at, "the column %s of node %s is not a %s", name, quote(id), kind)
	if r.want != nil {
		e.Msg += ", which the model was trained on"
		return e.hint("a value that is not known is left empty")
	}
	if c.column.Kind == schema.Time && zoneFault(t.row[c.at]) != "" {
		return e.hint("%s", zoneFault(t.row[c.at]))
	}
	return e.hint("a value that is not known is left empty; --ignore leaves the column out, and %s, which gsrc data init writes, says of what kind it is", SchemaFile)
}

// prepare fits the columns, unless they are a model's, and makes features of them.
func (r *tableReader) prepare(file string, nt *nodeTable, columns []columnValues, raw *Features, out []schema.LeftOut) (err error) {
	rows := len(nt.ids)
	nt.schema = &schema.Schema{Version: schema.Version, Nodes: rows, Columns: []schema.Column{}, LeftOut: out}
	if r.want != nil {
		*nt.schema = *r.want
		r.noteUnlike(file, rows, columns)
	} else {
		for j := range columns {
			c := &columns[j]
			held := 8 * int64(len(c.Numbers))
			claim(r.mem, held)
			c.column.Fit(c.Values)
			r.mem.Shrink(held)
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

package data

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/nearest"
)

// unnamed are what source, target and weight are called of a table without a header.
var unnamed = [3]string{"column 1", "column 2", "column 3"}

// edges reads the table of edges into e: source, target and optionally weight, with or
// without a header. into is called when e.w and e.merge are known, and calls rows for the edges themselves,
// unless a store has them from before an interruption. Ids are those of the nodes, or 0..n-1 without a table of them.
func (r *tableReader) edges(from tableFile, nodes *nodeTable, n int, e *edgeList, into func(rows func() error) error) (err error) {
	defer within(from.path, &err)
	sample := sampleRows(from, r.mem)
	t := newTable(from, r.mem)
	defer t.close()
	var fe *FileError
	if errors.As(t.err, &fe) && fe.Line == 0 && !from.parquet {
		fe.hint("a graph without edges has the header line source,target alone")
	}
	e.merge = cmp.Or(r.asked.Merge, r.file.Edges.Merge, r.merged)
	col := [3]int{0, 1, -1}
	fields := 0
	more, isHeader := t.next(), false
	if more {
		fields = len(t.row)
		if fields < 2 {
			return t.fault(0, "expected source,target or source,target,weight").hint("%s", separatorHint(t.row[0]))
		}
		if isHeader, err = r.edgeHeader(t, nodes, sample, &col); err != nil {
			return err
		}
		if !isHeader {
			r.roles.Source, r.roles.Target = unnamed[0], unnamed[1]
			if fields > 3 {
				e := t.fault(3, "expected source,target or source,target,weight").hint("give a header if there are other columns")
				if !slices.ContainsFunc(t.row, nodes.has) {
					e.Hint += ", or say with --source and --target which of its columns are the ends of an edge" + nearEnds(t.row, nodes, sample, func(int) bool { return true })
				}
				return e
			}
			if fields == 3 {
				col[2], r.roles.Weight = 2, unnamed[2]
			}
		}
		if col[2] >= 0 {
			e.w = []float32{}
		}
	}
	if !more && t.err != nil {
		return t.err
	}
	return into(func() error {
		if e.sink == nil {
			e.src = room(r.mem, e.src, t.most)
			e.dst = room(r.mem, e.dst, t.most)
		}
		faults := &Faults{}
		first := !isHeader
		if isHeader {
			more = t.next()
		}
		for ; more; first, more = false, t.next() {
			if len(t.row) != fields {
				faults.add(t.fault(min(len(t.row), fields), "the row has %d fields, the first has %d", len(t.row), fields).hint("a last row that is too short means a truncated file"))
				continue
			}
			u, bad := nodeOf(t, col[0], nodes, n, first)
			faults.add(bad)
			v, bad := nodeOf(t, col[1], nodes, n, first)
			faults.add(bad)
			w := 1.0
			if col[2] >= 0 {
				var err error
				w, err = strconv.ParseFloat(t.row[col[2]], 32)
				if r.noWeights {
					w = 1
				} else if err != nil || checkWeight(float32(w)) != nil {
					bad := t.fault(col[2], "a weight is a number of 0 or more").hint("--ignore-weights leaves weights out")
					if tooLarge(t.row[col[2]], graph.MaxWeight) {
						bad.Msg += fmt.Sprintf(", up to %g, since float32 has to hold the sum of those at a node", graph.MaxWeight)
						bad.Hint = "give weights in a larger unit; " + bad.Hint
					}
					faults.add(bad)
				}
			}
			if err := e.add(u, v, float32(w), r.mem); err != nil {
				return fileFault(from.path, err)
			}
		}
		return endFaults(faults, t.err)
	})
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
	model := r.was.Source != "" && slices.Contains(t.row, r.was.Source) && slices.Contains(t.row, r.was.Target)
	free := func(i int) bool {
		name := t.row[i]
		return name != r.asked.Weight && name != x.Weight && byName([]string{name}, weightNames) < 0 && !r.leavesOut(name)
	}
	ends := guessEnds(t.row, nodes, sample, free)
	if !asked && !model && (known < 2 || nodes.has(t.row[0]) && nodes.has(t.row[1])) && len(ends) < 2 {
		return false, nil
	}
	header, err := r.header(t, "source,target,weight", x.Columns)
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
		if col[p], err = r.column(t, header, c.role, c.option, c.file, x.Columns, usual[p]); err != nil {
			return false, err
		}
	}
	switch {
	case col[0] >= 0 || col[1] >= 0 || len(ends) < 2:
	case len(ends) > 2:
		return false, t.fault(ends[0], "the columns %s all hold ids of nodes, or do so in most rows, and no name says which two are the ends of an edge", quoteSome(namesAt(header, ends))).hint("say which with --source and --target, or leave the others out with --ignore")
	default:
		col[0], col[1] = ends[0], ends[1]
		r.note(t.file, "the columns %s and %s are taken as source and target: they hold ids of nodes; --source and --target say otherwise", quote(header[col[0]]), quote(header[col[1]]))
	}
	if col[0] < 0 || col[1] < 0 {
		return false, t.fault(0, "the header needs the columns source and target").hint("--source and --target say how they are called; it has %s%s", nameSome(header), nearEnds(header, nodes, sample, free))
	}
	if col[0] == col[1] || col[2] == col[0] || col[2] == col[1] {
		return false, t.fault(col[1], "the column is to be two things at once").hint("source, target and weight are three columns")
	}
	r.roles.Source, r.roles.Target = header[col[0]], header[col[1]]
	if col[2] >= 0 {
		r.roles.Weight = header[col[2]]
	}
	r.listExtra(t.file, header, col, sample)
	return true, nil
}

// leavesOut reports whether a column of the edges is to be left out.
func (r *tableReader) leavesOut(name string) bool {
	return r.ignored(name) || r.file.Edges.Columns[name] == columnIgnored
}

// guessEnds returns the columns, of those that are free, that hold ids below a first row that has none: in all rows
// of the sample or in most, so that ids that no node has are told row by row. Two that hold them in all
// are the ends by themselves, unless another lies left of the second. Columns where the first row has
// numbers as those below are none.
func guessEnds(row []string, nodes *nodeTable, sample [][]string, free func(i int) bool) []int {
	if len(sample) < 2 || slices.ContainsFunc(row, nodes.has) {
		return nil
	}
	var all, most []int
	for i := range row {
		numbers := isNumber(row[i]) && slices.ContainsFunc(sample[1:], func(cells []string) bool { return i < len(cells) && isNumber(cells[i]) })
		if !free(i) || numbers {
			continue
		}
		ids, _ := nodes.among(i, sample[1:])
		if ids == len(sample)-1 {
			all = append(all, i)
		}
		if ids > (len(sample)-1)/2 {
			most = append(most, i)
		}
	}
	if len(all) == 2 && slices.Equal(all, most[:2]) {
		return all
	}
	return most
}

// among counts the rows that have an id in a column; other is the first cell there that is none.
func (nt *nodeTable) among(i int, rows [][]string) (ids int, other string) {
	for _, cells := range rows {
		switch {
		case i < len(cells) && nt.has(cells[i]):
			ids++
		case i < len(cells):
			other = cmp.Or(other, cells[i])
		}
	}
	return ids, other
}

// nearEnds says which two columns, of those that are free, come nearest to those of the ends, and what speaks against them.
func nearEnds(row []string, nodes *nodeTable, sample [][]string, free func(i int) bool) string {
	rows := sample[min(1, len(sample)):]
	ids, others, order := make([]int, len(row)), make([]string, len(row)), []int{}
	for i := range row {
		if free(i) {
			ids[i], others[i] = nodes.among(i, rows)
			order = append(order, i)
		}
	}
	if nodes.ids == nil || len(rows) == 0 || len(order) == 0 {
		return ""
	}
	slices.SortStableFunc(order, func(a, b int) int { return ids[b] - ids[a] })
	if 10*ids[order[0]] < len(rows) {
		return fmt.Sprintf("; no column has ids of nodes, which are such as %s: below the header is %s", quote(nodes.ids[0]), quoteSome(rows[0]))
	}
	var list []string
	for _, i := range order[:min(2, len(order))] {
		text := fmt.Sprintf("%s has ids of nodes in %d of the first %d rows", quote(row[i]), ids[i], len(rows))
		if ids[i] < len(rows) {
			text += ", and " + quote(others[i]) + " is none"
		}
		list = append(list, text)
	}
	return "; " + strings.Join(list, "; ")
}

// listExtra tells which columns of the edges are left out, and what they seem to hold.
func (r *tableReader) listExtra(file string, header []string, col *[3]int, sample [][]string) {
	var list []string
	weight := ""
	for i, name := range header {
		if slices.Contains(col[:], i) || r.leavesOut(name) {
			continue
		}
		var p profile
		for _, row := range sample[min(1, len(sample)):] {
			if i < len(row) {
				p.add(row[i], nil)
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

func (nt *nodeTable) has(id string) bool { _, ok := nt.index[id]; return ok }

func nodeOf(t *table, i int, nodes *nodeTable, n int, first bool) (int32, *FileError) {
	s := t.row[i]
	if nodes.ids != nil {
		if v, ok := nodes.index[s]; ok {
			return v, nil
		}
		e := t.fault(i, "%s has no node of this id", nodesFile).hint("add a row for it to %s, or remove the edge", nodesFile)
		if first {
			e.Hint += "; a header line would be source,target, or --source and --target say how its columns are called"
		}
		if s == "" {
			e.Msg = "the id is empty"
		}
		if s == nodes.header[nodes.at.id] && slices.ContainsFunc(t.row, nodes.has) {
			e.Hint = fmt.Sprintf("it stands in the first line of %s, which is taken for a header and looks like data: put a header such as id,label,split,f0,f1 above it", nodesFile)
		}
		whole := strings.TrimSuffix(s, ".0")
		spelled := []string{whole, s + ".0", strings.TrimLeft(s, "0"), strings.ToLower(s), strings.ToUpper(s)}
		if short := len(nodes.ids[0]) - len(s); short > 0 && isNumber(s) {
			spelled = append(spelled, strings.Repeat("0", short)+s) // numbers of one width
		}
		if i := slices.IndexFunc(spelled, nodes.has); i >= 0 {
			e.Hint = "the node is called " + spelled[i] + " there: write ids alike in both tables"
			if i < 2 {
				e.Hint += "; pandas makes such numbers of a column with gaps, and astype(\"Int64\") does not"
			}
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

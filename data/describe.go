package data

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/internal/tomltext"
)

// DescribeTables returns the text of a schema.toml for the tables in a folder: what they
// and their columns are found to be. It does not look at a schema.toml that is there.
func DescribeTables(dir string, opts LoadOptions) (_ string, err error) {
	defer limited(dir, &err)
	l, err := newLoading(opts)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	names := lists.Map(entries, os.DirEntry.Name)
	r := &tableReader{asked: l.opts.Tables, file: &tableSchema{}, noPrepare: opts.NoPrepare, mem: l.mem}
	nodesName, edgesName, err := l.findTables(dir, names)
	if err != nil {
		return "", err
	}
	edges, err := l.tableFile(dir, names, edgesName, "edges")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# What the tables of this folder are, as gsrc data init found it. Edit it where it is wrong.\n# Lines that begin with # do not count.\n")
	field := func(name, value, comment string) {
		line := name + " = " + tomltext.Quote(value)
		if value == "" { // not found, which is not to say that there is none
			line = "# " + line
		}
		if comment != "" {
			line += "  # " + printable(comment)
		}
		b.WriteString(line + "\n")
	}
	nt := &nodeTable{}
	if nodesName != "" {
		nodes, err := l.tableFile(dir, names, nodesName, "nodes")
		if err != nil {
			return "", err
		}
		if nt, err = r.describeNodes(nodes, edges, field, &b); err != nil {
			return "", err
		}
	}
	if err := r.describeEdges(edges, nt, field, &b); err != nil {
		return "", err
	}
	return b.String(), nil
}

func (r *tableReader) describeEdges(from tableFile, nt *nodeTable, field func(name, value, comment string), b *strings.Builder) (err error) {
	defer within(from.path, &err)
	t := newTable(from, r.mem)
	defer t.close()
	if t.next(); t.err != nil {
		return t.err
	}
	sample := sampleRows(from, r.mem)
	var col [3]int
	isHeader := false
	if len(t.row) > 1 {
		if isHeader, err = r.edgeHeader(t, nt, sample, &col); err != nil {
			return err
		}
	}
	b.WriteString("\n[edges]\n")
	field("file", filepath.Base(from.path), "")
	if isHeader {
		field("source", r.roles.Source, "")
		field("target", r.roles.Target, "")
		field("weight", r.roles.Weight, "a column of numbers of 0 or more, or nothing: \"\"")
	}
	field("merge", r.asked.Merge, "of edges that are listed more than once: sum, mean, max or first; without, what a model remembers, or first")
	if isHeader && len(t.row) > 3 || isHeader && len(t.row) == 3 && col[2] < 0 {
		b.WriteString("\n[edges.columns]\n")
		for i, name := range t.row {
			if !slices.Contains(col[:], i) {
				field(tomltext.Quote(name), columnIgnored, "")
			}
		}
	}
	return nil
}

func (r *tableReader) describeNodes(from, edges tableFile, field func(name, value, comment string), b *strings.Builder) (*nodeTable, error) {
	faults := &Faults{}
	nt, err := r.firstPass(from, edges, faults)
	if err == nil {
		err = faults.err()
	}
	if err != nil {
		return nil, err
	}
	b.WriteString("\n[nodes]\n")
	field("file", filepath.Base(from.path), "")
	field("id", r.roles.ID, "")
	comment := "the class of a node, or nothing: \"\""
	if nt.at.label >= 0 && checkLabels(from.path, r.roles.Label, nt.labels, false) != nil {
		comment = `does not look like a class; label_kind = "class" says that it is one`
	}
	field("label", r.roles.Label, comment)
	field("split", r.roles.Split, "a column with train, val and test, or nothing: \"\"")
	if len(nt.at.features)+len(nt.at.ignored) == 0 {
		return nt, nil
	}
	columns, out, err := r.choose(from.path, nt)
	if err != nil {
		return nil, err
	}
	kinds := map[string]schema.Kind{}
	prepared := false
	for _, c := range columns {
		kinds[c.column.Name] = c.column.Kind
		prepared = prepared || c.column.Kind != schema.Value
	}
	if !prepared && len(out)+len(nt.at.ignored) == 0 {
		fmt.Fprintf(b, "# The %d columns of features are prepared already and stay as they are.\n", len(columns))
		return nt, nil
	}
	reasons := map[string]string{}
	for _, x := range out {
		reasons[x.Name] = x.Reason
	}
	fmt.Fprintf(b, "\n[nodes.columns]  # number, boolean, category, time, value (a number that stays as it is) or ignore\n")
	for j, c := range nt.at.features {
		name, p := nt.header[c], nt.profiles[j]
		kind, comment := kinds[name], reasons[name]
		kind = cmp.Or(kind, schema.Ignore)
		if comment == "" {
			switch {
			case p.numbers > 0 && kind == schema.Number:
				comment = fmt.Sprintf("%.6g to %.6g", p.low, p.high)
			case kind == schema.Category:
				comment = fmt.Sprintf("%d values", len(p.counted))
			}
			if p.missing > 0 {
				comment = strings.TrimPrefix(fmt.Sprintf("%s, %.1f %% missing", comment, 100*float64(p.missing)/float64(p.rows)), ", ")
			}
			if bad := p.rows - p.missing - p.numbers; kind == schema.Number && bad > 0 {
				comment += fmt.Sprintf(", and %d that are no numbers", bad)
			}
		}
		field(tomltext.Quote(name), string(kind), comment)
	}
	for _, name := range nt.at.ignored {
		field(tomltext.Quote(name), columnIgnored, "")
	}
	return nt, nil
}

// findTables returns the names of the tables of nodes and edges in a folder; nodes is empty
// if there is none. Of two tables of other names, that whose header has usual names of the
// ends of edges is the edges.
func (l *loader) findTables(dir string, names []string) (nodes, edges string, err error) {
	if nodes, err = tableNamed(dir, names, "nodes"); err != nil {
		return "", "", err
	}
	if edges, err = tableNamed(dir, names, "edges"); err != nil || edges != "" {
		return nodes, edges, err
	}
	var tables []string
	for _, n := range names {
		if tableBase(n) != "" && n != nodes {
			tables = append(tables, n)
		}
	}
	for _, n := range tables {
		f, err := l.tableFile(dir, names, n, "")
		if err != nil {
			return "", "", err
		}
		if rows := sampleRows(f, l.mem); len(rows) > 0 && byName(rows[0], sourceNames) >= 0 && byName(rows[0], targetNames) >= 0 {
			if edges != "" {
				return "", "", badFile(dir, "both %s and %s look like edges", edges, n).hint("call the table of edges edges.csv, or write %s", SchemaFile)
			}
			edges = n
		}
		l.done(f.bytes)
	}
	tables = slices.DeleteFunc(tables, func(n string) bool { return n == edges })
	switch {
	case edges == "":
		return "", "", badFile(dir, "no table of edges: it has %s", nameList(names)).hint("call it edges.csv (or .csv.gz, .csv.zst, .parquet), or have columns source and target in it")
	case nodes == "" && len(tables) == 1:
		nodes = tables[0]
	case nodes == "" && len(tables) > 1:
		return "", "", badFile(dir, "%s could all be the nodes", nameList(tables)).hint("call the table of nodes nodes.csv")
	}
	return nodes, edges, nil
}

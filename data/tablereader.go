package data

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
)

// tableReader reads the tables of a folder.
type tableReader struct {
	asked     Tables
	file      *tableSchema   // schema.toml; never nil
	want      *schema.Schema // columns of a model that the features are for; nil fits new ones
	was       Roles          // in what that was trained on
	merged    string         // likewise, what was made of equal edges
	left      []string       // likewise, columns that were left out
	noPrepare bool
	noWeights bool // weights are not read
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
// training data called it, or by its usual names; -1 is none. usual[0] needs no word. A label, a
// split or a weight is there only if schema.toml does not say that it is not, nor --ignore;
// kinds is what schema.toml says of columns, which usual names give way to.
func (r *tableReader) column(t *table, header []string, role, option, inFile string, kinds map[string]string, usual []string) (int, error) {
	if i, err := t.asked(header, option, role); err != nil || i >= 0 {
		return i, err
	}
	if r.file.none[role] {
		return -1, nil
	}
	i, err := t.asked(header, inFile, role)
	if err != nil {
		return i, err
	}
	if was := r.was.byName()[role]; i < 0 && was != "" {
		i = slices.Index(header, was)
	}
	named := i >= 0
	if !named {
		i = byName(header, usual)
	}
	optional := slices.Contains(optionalRoles, role)
	switch {
	case i < 0 || optional && (r.ignored(header[i]) || !named && kinds[header[i]] == columnIgnored):
		return -1, nil
	case named:
	case r.reads(header[i]):
		return -1, nil
	case !strings.EqualFold(header[i], usual[0]):
		r.note(t.file, "the column %s is taken as the %s, by its name; --%s says otherwise", quote(header[i]), role, role)
	}
	return i, nil
}

// reads reports whether a column is a feature of the model that the features are for.
func (r *tableReader) reads(name string) bool {
	return r.want != nil && slices.ContainsFunc(r.want.Columns, func(c schema.Column) bool { return c.Name == name })
}

// header checks the first row of a table, which is read and is one such as usual; kinds is what
// schema.toml says of its columns.
func (r *tableReader) header(t *table, usual string, kinds map[string]string) ([]string, error) {
	if len(t.row) > maxCols {
		return nil, t.fault(0, "the header has %d columns; at most %d are supported", len(t.row), maxCols)
	}
	// Names, a map of them, and what is found of each column.
	claim(r.mem, 700*int64(len(t.row)))
	header := slices.Clone(t.row)
	own := map[string]bool{}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	for i, name := range header {
		header[i] = strings.Clone(name)
		low := strings.ToLower(name)
		if name == "" {
			return nil, t.fault(i, "column %d of the header has no name", i+1).hint("%s starts with a header such as %s; pandas writes no column for its index with to_csv(…, index=False)", filepath.Base(t.file), usual)
		}
		if own[low] {
			return nil, t.fault(i, "the header names this column twice")
		}
		own[low], r.seen[low] = true, true
		if p, ok := t.r.(*parquetRows); ok && p.unread[i] != "" && !r.ignored(name) && kinds[name] != columnIgnored {
			return nil, badFile(t.file, "%s", p.unread[i]).hint("--ignore %s leaves it out", name)
		}
	}
	return header, nil
}

func (r *tableReader) ignored(name string) bool {
	is := func(s string) bool { return strings.EqualFold(s, name) }
	return slices.ContainsFunc(r.asked.Ignore, is) || !r.reads(name) && slices.ContainsFunc(r.left, is)
}

// namesAt returns the names of columns.
func namesAt(header []string, columns []int) []string {
	return lists.Map(columns, func(i int) string { return header[i] })
}

// sampleRows returns the first rows of a table, as far as they can be read.
func sampleRows(f tableFile, mem *budget.Reservation) (rows [][]string) {
	const most = 100
	t := newTable(f, mem)
	defer t.close()
	for len(rows) < most && t.next() {
		if len(t.row) > 1000 { // no table of edges
			break
		}
		rows = append(rows, slices.Clone(t.row))
	}
	return rows
}

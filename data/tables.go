package data

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
	"github.com/klauspost/compress/zstd"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/internal/nearest"
)

// Tables says how tables of nodes and edges are read. What is empty says schema.toml in
// the folder of the tables, or is found by name, or guessed; [Dataset.Notes] tells.
type Tables struct {
	ID, Label, Split       string   // columns of the nodes
	Source, Target, Weight string   // columns of the edges
	Ignore                 []string // columns of either that are left out
	// Merge says what weight edges have that are listed more than once: [MergeFirst] if
	// empty.
	Merge string

	time string // column of times that a split goes by
}

// SplitNames splits names at commas; nothing gives none.
func SplitNames(text string) (list []string) {
	for _, s := range strings.Split(text, ",") {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// JoinNames is the inverse of [SplitNames].
func JoinNames(names []string) string { return strings.Join(names, ",") }

// What is made of the weights of equal edges. An edge without a weight weighs 1.
const (
	MergeFirst = "first"
	MergeSum   = "sum"
	MergeMean  = "mean"
	MergeMax   = "max"
)

// CheckMerge returns an error unless s is empty or one of the constants above.
func CheckMerge(s string) error {
	if s != "" && !slices.Contains([]string{MergeFirst, MergeSum, MergeMean, MergeMax}, s) {
		return fmt.Errorf("no way to merge edges is called %q: choose sum, mean, max or first", s)
	}
	return nil
}

// Roles says which columns of the tables are what; empty are those that there are not.
type Roles struct {
	ID     string `json:"id,omitempty"`
	Label  string `json:"label,omitempty"`
	Split  string `json:"split,omitempty"`
	Source string `json:"source,omitempty"`
	Target string `json:"target,omitempty"`
	Weight string `json:"weight,omitempty"`
}

// String lists the roles.
func (r Roles) String() string {
	var list []string
	for _, x := range [][2]string{{"id", r.ID}, {"label", r.Label}, {"split", r.Split}, {"source", r.Source}, {"target", r.Target}, {"weight", r.Weight}} {
		if x[1] != "" {
			list = append(list, x[0]+" = "+printable(x[1]))
		}
	}
	return strings.Join(list, ", ")
}

func (r Roles) byName() map[string]string {
	m := map[string]string{"id": r.ID, "label": r.Label, "split": r.Split, "source": r.Source, "target": r.Target, "weight": r.Weight}
	maps.DeleteFunc(m, func(_, name string) bool { return name == "" })
	return m
}

// has reports whether a column has a role.
func (r Roles) has(name string) bool {
	for _, column := range r.byName() {
		if strings.EqualFold(column, name) {
			return true
		}
	}
	return false
}

// rolesOf is the inverse of byName.
func rolesOf(m map[string]string) Roles {
	return Roles{ID: m["id"], Label: m["label"], Split: m["split"], Source: m["source"], Target: m["target"], Weight: m["weight"]}
}

// SchemaFile is the file in a folder that says what its tables and their columns are.
const SchemaFile = "schema.toml"

// tableSchema is schema.toml.
type tableSchema struct {
	Nodes struct {
		File  string `toml:"file"`
		ID    string `toml:"id"`
		Label string `toml:"label"`
		// LabelKind is "class" where a label that does not look like one is one.
		LabelKind string            `toml:"label_kind"`
		Split     string            `toml:"split"`
		Columns   map[string]string `toml:"columns"`
	} `toml:"nodes"`
	Edges struct {
		File    string            `toml:"file"`
		Source  string            `toml:"source"`
		Target  string            `toml:"target"`
		Weight  string            `toml:"weight"`
		Merge   string            `toml:"merge"`
		Columns map[string]string `toml:"columns"`
	} `toml:"edges"`

	none map[string]bool // of optionalRoles, those that are there and empty
}

// optionalRoles are those that tables may lack.
var optionalRoles = []string{"label", "split", "weight"}

const columnIgnored = string(schema.Ignore)

// readSchema reads schema.toml of a folder, if there is one.
func (l *loader) readSchema(dir string, names []string) (*tableSchema, error) {
	s := &tableSchema{}
	if !slices.Contains(names, SchemaFile) {
		return s, nil
	}
	path := filepath.Join(dir, SchemaFile)
	b, err := l.file(path)
	if err != nil {
		return nil, err
	}
	defer l.done(b)
	if err := parseSchema(path, b, s); err != nil {
		return nil, err
	}
	return s, nil
}

func parseSchema(path string, b []byte, s *tableSchema) error {
	meta, err := toml.Decode(string(b), s)
	if err != nil {
		e := badFile(path, "not TOML that can be read")
		var at toml.ParseError
		if errors.As(err, &at) {
			e.Line, e.Msg = at.Position.Line, at.Message
		} else {
			e.Err = err
		}
		return e.hint("gsrc data init --force writes it anew")
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return badFile(path, "%s is not an option", quote(unknown[0].String())).hint("[nodes] has file, id, label, label_kind, split and columns, [edges] file, source, target, weight, merge and columns")
	}
	if err := CheckMerge(s.Edges.Merge); err != nil {
		return fileFault(path, err)
	}
	s.none = map[string]bool{}
	for i, name := range []string{s.Nodes.Label, s.Nodes.Split, s.Edges.Weight} {
		role := optionalRoles[i]
		s.none[role] = name == "" && (meta.IsDefined("nodes", role) || meta.IsDefined("edges", role))
	}
	if k := s.Nodes.LabelKind; k != "" && k != "class" {
		return badFile(path, "label_kind is %s", quote(k)).hint(`write "class", or leave it out`)
	}
	for _, f := range []string{s.Nodes.File, s.Edges.File} {
		if f != "" && (filepath.Base(f) != f || tableBase(f) == "") {
			return badFile(path, "%s is not the name of a table in this folder", quote(f)).hint("a table ends in %s", strings.Join(tableEndings, ", "))
		}
	}
	for name, kind := range s.Edges.Columns {
		if kind != columnIgnored {
			return badFile(path, "the column %s of the edges is %s", quote(name), quote(kind)).hint("columns of edges other than source, target and weight can only be %q", columnIgnored)
		}
	}
	for name, kind := range s.Nodes.Columns {
		if !slices.Contains(schema.Kinds, schema.Kind(kind)) {
			return badFile(path, "the column %s is %s, which is no kind", quote(name), quote(kind)).hint("kinds are %v", schema.Kinds)
		}
	}
	return nil
}

// tableEndings are those of files that are read as tables.
var tableEndings = []string{".csv", ".csv.gz", ".csv.zst", ".parquet"}

// tableBase returns a table's name without its ending, empty if it is no table.
func tableBase(name string) string {
	for _, e := range tableEndings {
		if base, ok := strings.CutSuffix(name, e); ok {
			return base
		}
	}
	return ""
}

// tableNamed returns the file of a folder that holds the table called base, such as
// "edges"; empty if there is none.
func tableNamed(dir string, names []string, base string) (string, error) {
	var found []string
	for _, e := range tableEndings {
		if slices.Contains(names, base+e) {
			found = append(found, base+e)
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", badFile(dir, "has both %s and %s", found[0], found[1]).hint("keep one of them, or name it in %s", SchemaFile)
}

// tableFile reads a table of a folder: the one that schema.toml names, or else that of
// the name base.
func (l *loader) tableFile(dir string, names []string, named, base string) (f tableFile, err error) {
	name := named
	if name == "" {
		if name, err = tableNamed(dir, names, base); err != nil || name == "" {
			return f, err
		}
	}
	f.path, f.parquet = filepath.Join(dir, name), strings.HasSuffix(name, ".parquet")
	if f.bytes, err = l.file(f.path); err != nil {
		return f, err
	}
	if strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".zst") {
		packed := f.bytes
		f.bytes, err = l.unpack(f.path, packed)
		l.done(packed)
	}
	return f, err
}

// unpack returns what a gzip or Zstandard file holds, in memory that it has claimed.
func (l *loader) unpack(path string, b []byte) (_ []byte, err error) {
	defer within(path, &err)
	var r io.Reader
	kind := "gzip"
	if strings.HasSuffix(path, ".zst") {
		kind = "Zstandard"
		var h zstd.Header
		if err = h.Decode(b); err == nil {
			size := h.WindowSize
			if h.SingleSegment { // as the zstd command packs files: all of the content is the window
				size = h.FrameContentSize
			}
			window := 2 * int64(min(size, 1<<40))
			claim(l.mem, window)
			defer l.mem.Shrink(window)
			var z *zstd.Decoder
			if z, err = zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(min(max(size, 1<<10), 1<<40))); err == nil {
				defer z.Close()
				r = z
			}
		}
	} else {
		r, err = gzip.NewReader(bytes.NewReader(b))
	}
	if err != nil {
		return nil, badFile(path, "not a %s file", kind).because(err).hint("the file is incomplete, or was unpacked without being renamed")
	}
	if l.spill != nil {
		return l.spill.unpacked(path, r)
	}
	var out []byte
	for {
		out = room(l.mem, out, 1)
		n, err := r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, badFile(path, "cannot be unpacked").because(err).hint("the file is truncated or damaged")
		}
	}
}

// Names by which the columns are known; the first is what they are called here.
var (
	idNames     = []string{"id", "node_id", "nodeid", "node", "_id", ":id", "~id"}
	labelNames  = []string{"label", "labels", "class", "target"}
	splitNames  = []string{"split"}
	maskNames   = [3]string{"train_mask", "val_mask", "test_mask"}
	sourceNames = []string{"source", "src", "from", "u", "source_id", "src_id", "from_id", "from_node", "start_id", ":start_id", "_start", "~from"}
	targetNames = []string{"target", "dst", "to", "v", "target_id", "dst_id", "to_id", "to_node", "end_id", ":end_id", "_end", "~to"}
	weightNames = []string{"weight", "w", "edge_weight"}
)

// byName returns the column of a header that has the first of the names, -1 if none has.
func byName(header, names []string) int {
	for _, n := range names {
		if i := slices.IndexFunc(header, func(h string) bool { return strings.EqualFold(h, n) }); i >= 0 {
			return i
		}
	}
	return -1
}

// asked finds a column that an option or schema.toml names; -1 if they name none. It is an
// error where the header lacks it.
func (t *table) asked(header []string, option, role string) (int, error) {
	if option == "" {
		return -1, nil
	}
	if i := slices.Index(header, option); i >= 0 {
		return i, nil
	}
	if i := byName(header, []string{option}); i >= 0 {
		return i, nil
	}
	e := badFile(t.file, "has no column %s, which is to be the %s", quote(option), role)
	e.Line = t.line()
	return -1, e.hint("%s", strings.TrimPrefix(nearest.Hint(option, header[:min(len(header), 50)]), "; "))
}

// identifier reports whether a name says that its column tells rows apart.
func identifier(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) })
	return len(words) > 0 && slices.Contains([]string{"id", "uuid", "guid", "key"}, words[len(words)-1])
}

// Faults is all that is wrong with a file: the first of its faults, and how many there
// are.
type Faults struct {
	List  []*FileError
	Total int
}

// mostFaults is how many faults of a file are listed.
const mostFaults = 20

// add notes a fault; nil is none.
func (f *Faults) add(e *FileError) {
	if e == nil {
		return
	}
	if f.Total++; len(f.List) < mostFaults {
		f.List = append(f.List, e)
	}
}

// err returns the faults as an error; nil if there are none.
func (f *Faults) err() error {
	switch f.Total {
	case 0:
		return nil
	case 1:
		return f.List[0]
	}
	slices.SortStableFunc(f.List, func(a, b *FileError) int { return a.Line - b.Line })
	return f
}

// Error lists the faults, a line each, and says how many there are.
func (f *Faults) Error() string {
	var b strings.Builder
	for _, e := range f.List {
		b.WriteString(e.Error() + "\n")
	}
	fmt.Fprintf(&b, "%s: %d faults", printable(f.List[0].File), f.Total)
	if n := f.Total - len(f.List); n > 0 {
		fmt.Fprintf(&b, ", of which %d are not shown", n)
	}
	return b.String()
}

// Unwrap returns the faults that are listed.
func (f *Faults) Unwrap() []error {
	return lists.Map(f.List, func(e *FileError) error { return e })
}

package data

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
)

// Bounds of what columns may be.
const (
	mostDistinct  = 10_000 // values of a category
	largestNumber = 1e150  // squares of numbers are summed
	fewRows       = 20     // with fewer, nothing is told from how often values repeat
	familyWidth   = 8      // columns of one name and a number that are an embedding
	bagWidth      = 16     // columns of counts that are a bag of words
	unitSlack     = 1e-3   // of the length of a row that is normalised
)

// profile is what a first pass over a column finds.
type profile struct {
	rows, missing, numbers, booleans, times, spaced int
	commas, foreign                                 int    // numbers and dates of forms that are not read
	timelike, dressed                               int    // others that seem to be times and numbers
	dress                                           string // what the first of these has beside a number
	zone                                            string // what is wrong with that of a time

	first           string // value
	constant        bool   // all are first
	whole           bool   // all numbers are
	increasing      bool   // by one, from row to row
	last, low, high float64
	zeros           int
	padded          int            // whole numbers that begin with a zero, as codes do
	padding         string         // the first of them
	counted         map[string]int // values that are no numbers, and how often they are there
	overflow        bool           // too many of them

	long   int                // whole numbers beyond 2^53, of which float64 has not all
	longs  map[string]bool    // different texts of them
	firsts map[float64]string // the first of each number
	merged string             // two texts of one number
}

// Gaps are what a cell holds, in any case, where its value is missing.
var Gaps = []string{"", "?", "na", "n/a", "#n/a", "nan", "none", "null", `\n`, "nat"}

func gap(s string) bool { return len(s) <= 4 && slices.Contains(Gaps, strings.ToLower(s)) }

// yesNo reads a boolean that is a word.
func yesNo(s string) (v float64, ok bool) {
	if len(s) > 5 {
		return 0, false
	}
	switch strings.ToLower(s) {
	case "true", "t", "yes", "y":
		return 1, true
	case "false", "f", "no", "n":
		return 0, true
	}
	return 0, false
}

// timeLayouts are the forms of times that are read, after spellings became one; without a zone
// they are UTC.
var (
	timeLayouts   = []string{time.DateOnly, "2006-01-02T15:04:05", time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04", "2006-01-02T15:04Z07:00"}
	timeSpellings = strings.NewReplacer("/", "-", " UTC", "Z", " GMT", "Z", "UTC", "Z", "GMT", "Z", " Z", "Z", " +", "+", " -", "-", " ", "T")
	namedZone     = regexp.MustCompile(`^\d{4}[-/].*\d ?([A-Za-z]{3,5})$`)
)

// seconds reads a time as seconds since 1970.
func seconds(s string) (float64, bool) {
	if len(s) < 10 || len(s) > 40 || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	if len(s) > 14 && s[8] == 'T' { // ISO 8601 without signs between
		s = s[:4] + "-" + s[4:6] + "-" + s[6:11] + ":" + s[11:13] + ":" + s[13:]
	}
	if s[4] != '-' && s[4] != '/' {
		return 0, false
	}
	s = timeSpellings.Replace(s)
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return float64(t.Unix()) + float64(float64(t.Nanosecond())/1e9), true
		}
	}
	return 0, false
}

// zoneFault says that a time has a zone by a name, which stands for another offset from place to
// place; it is empty where it has none.
func zoneFault(s string) string {
	if m := namedZone.FindStringSubmatch(s); m != nil && m[1] != "UTC" && m[1] != "GMT" {
		return fmt.Sprintf("the zone %s is not read: write its offset, as in 2006-01-31T15:04:05+01:00, or UTC", m[1])
	}
	return ""
}

// Numbers with commas and dates that do not begin with the year: which of their parts is what
// is not certain, so they are not read.
var (
	commaForm   = regexp.MustCompile(`^[-+]?(\d+,\d+|\d{1,3}(,\d{3})+(\.\d+)?)$`)
	foreignForm = regexp.MustCompile(`^\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})\b`)
	timeForm    = regexp.MustCompile(`(?i)^(\d{4}[-./]\d\d?[-./]\d|\d{8}T\d|\d\d?:\d\d|([a-z]{3,9},? )?(\d\d?[- .]+)?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-,. ]+\d)`)
)

// number reads a number that preparation can take.
func number(s string) (float64, bool) {
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && math.Abs(x) <= largestNumber // false for NaN
}

// tooLarge reports whether a cell is a number beyond ±most, or infinite.
func tooLarge(s string, most float64) bool {
	x, err := strconv.ParseFloat(s, 64)
	return (err == nil || errors.Is(err, strconv.ErrRange)) && math.Abs(x) > most
}

// dressing returns the signs that a cell has beside a number, empty where it is something else;
// commas and spaces alone may make a list.
func dressing(s string) (signs string) {
	rest := strings.Map(func(r rune) rune {
		if strings.ContainsRune("%‰$€£¥₹()−'’\u00a0\u202f ,", r) {
			signs += string(r)
			return -1
		}
		return r
	}, s)
	if signs = strings.Trim(signs, " ,"); signs != "" && !isNumber(rest) {
		return ""
	}
	return signs
}

// padded reports whether a text is a whole number that begins with a zero, as codes do.
func padded(s string) bool { return len(s) > 1 && s[0] == '0' && strings.Trim(s, "0123456789") == "" }

func isNumber(s string) bool { _, ok := number(s); return ok }

func (p *profile) add(s string, mem *budget.Reservation) {
	row := p.rows
	p.rows++
	if gap(s) {
		p.missing++
		return
	}
	if row == p.missing { // the first value
		p.first, p.constant, p.whole, p.increasing = strings.Clone(s), true, true, true
	}
	p.constant = p.constant && s == p.first
	if x, err := strconv.ParseFloat(s, 64); err == nil {
		if p.numbers == 0 {
			p.low, p.high = x, x
		} else if x != p.last+1 {
			p.increasing = false
		}
		p.numbers++
		p.low, p.high, p.last = min(p.low, x), max(p.high, x), x
		p.whole = p.whole && x == math.Trunc(x)
		if x == 0 {
			p.zeros++
		}
		if padded(s) {
			p.padded++
			p.padding = cmp.Or(p.padding, strings.Clone(s))
		}
		if math.Abs(x) >= 1<<53 && strings.Trim(s, "0123456789-") == "" {
			p.addLong(s, x, mem)
		}
		return
	}
	if _, ok := yesNo(s); ok {
		p.booleans++
	}
	if _, ok := seconds(s); ok {
		p.times++
		return
	}
	if strings.Contains(s, " ") {
		p.spaced++
	}
	if len(s) <= 40 {
		switch {
		case commaForm.MatchString(s):
			p.commas++
		case foreignForm.MatchString(s):
			p.foreign++
		case zoneFault(s) != "":
			p.foreign++
			p.zone = cmp.Or(p.zone, zoneFault(s))
		case timeForm.MatchString(s):
			p.timelike++
		case dressing(s) != "":
			p.dressed++
			p.dress = cmp.Or(p.dress, dressing(s))
		}
	}
	if p.overflow {
		return
	}
	if p.counted == nil {
		p.counted = map[string]int{}
	}
	if _, ok := p.counted[s]; !ok {
		if len(p.counted) >= mostDistinct {
			p.overflow = true
			return
		}
		claim(mem, 100+int64(len(s)))
		p.counted[strings.Clone(s)] = 0
	}
	p.counted[s]++
}

// addLong notes a whole number beyond 2^53.
func (p *profile) addLong(s string, x float64, mem *budget.Reservation) {
	p.long++
	if p.longs[s] || len(p.longs) >= mostDistinct {
		return
	}
	if p.longs == nil {
		p.longs, p.firsts = map[string]bool{}, map[float64]string{}
	}
	claim(mem, 200+int64(len(s)))
	s = strings.Clone(s)
	p.longs[s] = true
	if first := p.firsts[x]; first != "" {
		p.merged = cmp.Or(p.merged, first+" and "+s)
	} else {
		p.firsts[x] = s
	}
}

// codes reports whether a column of numbers is a category, since their texts tell more of them apart than numbers
// do, and have rows enough.
func (p *profile) codes() bool {
	n := p.rows - p.missing
	return p.merged != "" && p.numbers == n && 2*p.long > n && len(p.longs) < mostDistinct && (n < fewRows || 2*len(p.longs) <= p.long)
}

// kind says what a column is, or why it is left out.
func (p *profile) kind(name string) (k schema.Kind, out string) {
	n := p.rows - p.missing
	texts := n - p.numbers - p.times
	many := n >= fewRows
	switch {
	case n == 0:
		return schema.Ignore, "it is empty"
	case p.constant && p.missing == 0 && p.rows > 1:
		return schema.Ignore, "every row has the same value, " + quote(p.first)
	case p.booleans > 0 && p.booleans+p.numbers == n && p.whole && p.low >= 0 && p.high <= 1: // numbers are 0 and 1
		return schema.Boolean, ""
	case p.codes():
		return schema.Category, ""
	case 2*p.numbers > n:
		switch {
		case p.numbers < n: // the others are faults
		case p.whole && p.increasing && many && (p.low == 0 || p.low == 1), p.whole && identifier(name) && many && p.high-p.low > float64(n)/2:
			return schema.Ignore, "it numbers the rows, or tells them apart, and says nothing of others"
		case p.whole && p.low >= 0 && p.high <= 1:
			return schema.Boolean, ""
		}
		return schema.Number, ""
	case 2*p.times > n:
		return schema.Time, ""
	case p.commas > 0 && 2*(p.commas+p.numbers) > n:
		return schema.Ignore, "its numbers have commas, which are not read: write them as 1234.5"
	case 2*(p.foreign+p.times) > n && p.zone != "":
		return schema.Ignore, "its times have a zone that has only a name; " + p.zone
	case 2*(p.foreign+p.times) > n:
		return schema.Ignore, "its dates are of a form that is not read: write them as 2021-06-14"
	case p.overflow || many && 2*len(p.counted) > texts:
		switch {
		case 2*p.timelike > texts:
			return schema.Ignore, "it looks like times of a form that is not read: write them as 2021-06-14T08:38:05Z"
		case 2*p.dressed > texts:
			return schema.Ignore, "its numbers are written with " + quote(p.dress) + ", which is not read: write them as 1234.5 or -1234.5"
		case 2*p.spaced > texts:
			return schema.Ignore, "it is free text"
		case !p.overflow && 10*len(p.counted) < 9*texts:
			return schema.Ignore, fmt.Sprintf("it has %d different values in %d rows, too few rows of each to learn from; %s = \"category\" in %s takes it", len(p.counted), texts, strconv.Quote(name), SchemaFile)
		case 2*len(p.counted) > texts || identifier(name):
			return schema.Ignore, "nearly every row has a value of its own, so it tells rows apart and says nothing of others"
		}
		return schema.Ignore, fmt.Sprintf("it has more than %d different values", mostDistinct)
	}
	return schema.Category, ""
}

// rowForm follows whether the rows of a table are prepared already.
type rowForm struct {
	binary           bool // 0 and 1 alone
	counts           bool // whole numbers of 0 or more
	unit1, unit2     bool // rows have length 1, by the sum of magnitudes or of squares, or 0
	sum, squares     float64
	entries, nonzero int
}

func newRowForm() rowForm { return rowForm{binary: true, counts: true, unit1: true, unit2: true} }

func (f *rowForm) add(s string) {
	if !f.binary && !f.counts && !f.unit1 && !f.unit2 {
		return
	}
	x, ok := number(s)
	if !ok {
		f.binary, f.counts, f.unit1, f.unit2 = false, false, false, false
		return
	}
	f.entries++
	if x != 0 {
		f.nonzero++
	}
	f.binary = f.binary && (x == 0 || x == 1)
	f.counts = f.counts && x >= 0 && x == math.Trunc(x)
	f.sum += math.Abs(x)
	f.squares += float64(x * x)
}

func (f *rowForm) end() {
	near := func(v float64) bool { return v == 0 || math.Abs(v-1) <= unitSlack }
	f.unit1 = f.unit1 && near(f.sum)
	f.unit2 = f.unit2 && near(f.squares)
	f.sum, f.squares = 0, 0
}

// prepared reports whether a table of that many columns is to be left as it is.
func (f *rowForm) prepared(columns int) bool {
	return f.binary || columns > 1 && (f.unit1 || f.unit2) || f.counts && columns >= bagWidth && float64(f.nonzero) < sparseBelow*float64(f.entries)
}

// families returns which columns are of an embedding or a bag of words among others: many
// of one name and a number, that are numbers of like size, or counts, without gaps.
func families(names []string, profiles []profile) []bool {
	stem := func(i int) string { return strings.TrimRight(names[i], "0123456789") }
	members := map[string][]int{}
	for i := range names {
		if s := stem(i); s != names[i] {
			members[s] = append(members[s], i)
		}
	}
	in := make([]bool, len(names))
	for _, list := range members {
		small, counts, entries, zeros := true, true, 0, 0
		for _, i := range list {
			p := &profiles[i]
			all := p.numbers == p.rows
			small = small && all && p.low >= -10 && p.high <= 10
			counts = counts && all && p.whole && p.low >= 0
			entries, zeros = entries+p.rows, zeros+p.zeros
		}
		if len(list) >= familyWidth && (small || counts && float64(entries-zeros) < sparseBelow*float64(entries)) {
			for _, i := range list {
				in[i] = true
			}
		}
	}
	return in
}

// columnValues are the cells of one column of features as they are read.
type columnValues struct {
	at     int // in the table's rows
	column schema.Column
	schema.Values
	code map[string]int32
}

// wants says what a cell of a kind should be, for errors.
var wants = map[schema.Kind]string{
	schema.Number:  "number",
	schema.Value:   "finite number",
	schema.Boolean: "boolean (true and false, yes and no, or 1 and 0)",
	schema.Time:    "date or time such as 2006-01-31 or 2006-01-31T15:04:05Z",
}

// value reads a cell of a column that is no category; NaN is a gap.
func cellValue(k schema.Kind, s string) (x float64, ok bool) {
	switch {
	case k == schema.Value:
		x, err := strconv.ParseFloat(s, 32)
		return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
	case gap(s):
		return math.NaN(), true
	case k == schema.Time:
		return seconds(s)
	case k == schema.Boolean:
		if x, ok := yesNo(s); ok {
			return x, true
		}
		x, ok := number(s)
		return x, ok && (x == 0 || x == 1)
	}
	return number(s)
}

// add appends a cell. ok is false where it is not of the column's kind.
func (c *columnValues) add(s string, mem *budget.Reservation) (ok bool) {
	if c.column.Kind != schema.Category {
		x, ok := cellValue(c.column.Kind, s)
		push(mem, &c.Numbers, x)
		return ok
	}
	if gap(s) {
		s = ""
	}
	if c.code == nil {
		c.code = map[string]int32{}
	}
	k, ok := c.code[s]
	if !ok {
		claim(mem, 120+int64(len(s)))
		k = int32(len(c.Texts))
		s = strings.Clone(s)
		c.code[s], c.Texts = k, append(c.Texts, s)
	}
	push(mem, &c.Codes, k)
	return true
}

// otherKind reports whether a category of a model was read that holds nothing but numbers,
// where the model knows none.
func (c *columnValues) otherKind() bool {
	isText := func(s string) bool { return s != "" && !isNumber(s) }
	return c.column.Kind == schema.Category && slices.ContainsFunc(c.Texts, isNumber) && !slices.ContainsFunc(c.Texts, isText) &&
		slices.ContainsFunc(c.column.Categories, isText) && !slices.ContainsFunc(c.column.Categories, isNumber)
}

// unlike tells of what share of a table, in which a model's columns were read, it is nothing like its training:
// gaps where that had none, categories that it hardly had, numbers far from its median, and dates alone where it
// had times of day. rare is the first of those categories. The training had so many nodes.
func (c *columnValues) unlike(trained int, mem *budget.Reservation) (gaps, unseen, far, dates int, rare string) {
	timed := !slices.Contains(c.column.Cycles, "day")
	for _, x := range c.Numbers {
		timed = timed || math.Mod(x, schema.Periods["day"]) != 0 && !math.IsNaN(x)
		switch {
		case math.IsNaN(x):
			gaps++
		case (c.column.Kind == schema.Number || c.column.Kind == schema.Time) && math.Abs(x-c.column.Center) > schema.Clip*c.column.Scale:
			far++
		}
	}
	if !timed {
		dates = len(c.Numbers) - gaps
	}
	claimed := 12 * int64(len(c.Texts))
	claim(mem, claimed)
	defer mem.Shrink(claimed)
	count, codes := make([]int, len(c.Texts)), c.column.Codes(c.Values)
	share, none := c.column.RareShare(trained), true // of the frequent values of the training
	for _, k := range c.Codes {
		count[k]++
		none = none && (c.Texts[k] == "" || int(codes[k]) == len(c.column.Categories))
	}
	single := slices.ContainsFunc(c.column.Categories, func(s string) bool { return s != "" }) && (none || share == 0)
	// Most of the training may have had values that are too rare for a feature; these are not among the frequent ones here.
	for k, n := range count {
		switch {
		case c.Texts[k] == "":
			gaps = n
		case int(codes[k]) == len(c.column.Categories) && (n > 1 && float64(n) > 2*share*float64(len(c.Codes)) || n > 0 && single):
			unseen += n
			rare = cmp.Or(rare, c.Texts[k])
		}
	}
	if c.column.Missing {
		gaps = 0
	}
	return gaps, unseen, far, dates, rare
}

// noteUnlike tells of columns of a model most of whose cells are nothing like those of its training.
func (r *tableReader) noteUnlike(file string, rows int, columns []columnValues) {
	if rows < fewRows {
		return
	}
	var names [4][]string
	for i := range columns {
		c := &columns[i].column
		gaps, unseen, far, dates, rare := columns[i].unlike(r.want.Nodes, r.mem)
		such := "such as " + quote(rare)
		if known := c.Categories; len(known) > 0 {
			such += ", where it had such as " + quote(known[len(known)-1])
		}
		about := [4]string{fmt.Sprintf("%d of %d rows", gaps, rows), such, "in training " + c.About(), "midnight in all rows"}
		for k, n := range [4]int{gaps, unseen, far, dates} {
			if 2*n > rows {
				names[k] = append(names[k], quote(c.Name)+" ("+about[k]+")")
			}
		}
	}
	for k, what := range [4]string{
		"gaps, of which training had none",
		"values that training hardly had, which count as one",
		fmt.Sprintf("values more than %d scales from the median of the training, which count as the farthest that the model knows", schema.Clip),
		"dates without a time of day, which training had",
	} {
		if names[k] != nil {
			r.note(file, "most cells are %s, in the column %s", what, nameSome(names[k]))
		}
	}
}

// assemble makes the features of columns that were read. raw has the columns that stay as
// they are, in their order among all.
func assemble(rows int, columns []columnValues, raw *Features, mem *budget.Reservation) (*Features, error) {
	if raw.Cols == len(columns) {
		raw.Rows = rows
		return raw.compact(mem)
	}
	f := &Features{Rows: rows, RowPtr: []int32{0}}
	start := make([]int32, len(columns)) // of each column's features
	codes := make([][]int32, len(columns))
	var rawStart []int32
	for j := range columns {
		c := &columns[j].column
		start[j] = int32(f.Cols)
		f.Cols += c.Width()
		if f.Cols > maxCols {
			return nil, fmt.Errorf("the columns become more than %d features", maxCols)
		}
		switch c.Kind {
		case schema.Value:
			rawStart = append(rawStart, start[j])
		case schema.Category:
			codes[j] = c.Codes(columns[j].Values)
		}
	}
	put := func(j int32, v float32) {
		if v != 0 {
			push(mem, &f.Col, j)
			push(mem, &f.Val, v)
		}
	}
	var out []float32
	for i := range rows {
		k := raw.RowPtr[i]
		for j := range columns {
			c := &columns[j]
			switch c.column.Kind {
			case schema.Category:
				put(start[j]+codes[j][c.Codes[i]], 1)
			case schema.Value:
				if k < raw.RowPtr[i+1] && rawStart[raw.Col[k]] == start[j] {
					put(start[j], raw.Val[k])
					k++
				}
			default:
				out = append(out[:0], make([]float32, c.column.Width())...)
				c.column.Put(out, c.Numbers[i])
				for d, v := range out {
					put(start[j]+int32(d), v)
				}
			}
		}
		if len(f.Col) > math.MaxInt32 {
			return nil, fmt.Errorf("more than %d values", math.MaxInt32)
		}
		f.RowPtr = append(f.RowPtr, int32(len(f.Col)))
	}
	mem.Shrink(raw.bytes())
	return f.compact(mem)
}

// leftOut reports columns that are no features, by reason.
func leftOut(list []schema.LeftOut) []string {
	var reasons []string
	names := map[string][]string{}
	for _, x := range list {
		if names[x.Reason] == nil {
			reasons = append(reasons, x.Reason)
		}
		names[x.Reason] = append(names[x.Reason], quote(x.Name))
	}
	var lines []string
	for _, r := range reasons {
		text := "the column %s is left out: %s"
		if len(names[r]) > 1 {
			text = "the columns %s are left out, each for this: %s"
		}
		lines = append(lines, fmt.Sprintf(text, nameSome(names[r]), r))
	}
	return lines
}

// nameSome lists names, the first of many.
func nameSome(names []string) string {
	const most = 10
	if n := len(names); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

// quoteSome is nameSome of texts from a file.
func quoteSome(texts []string) string { return nameSome(lists.Map(texts, quote)) }

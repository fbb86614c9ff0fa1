package data

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/data/schema"
)

// checkLabels refuses labels that look like no classes; of a model that is trained, texts may be many.
func checkLabels(file, name string, labels []string, trained bool) error {
	const (
		fewest  = 30  // values up to which numbers pass as classes in any case
		most    = 100 // whole numbers from 0 or 1 on
		support = 10  // nodes of a class, below which classes cannot be meant by numbers
		few     = 2   // and by texts
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
		i := slices.IndexFunc(labels, func(s string) bool { return strings.ContainsAny(s, "|;,[") })
		return badFile(file, "the label %s has several values in one cell, in %d of %d rows, such as %s: it looks like several labels for each node, which are not supported", quote(name), several, known, quote(labels[max(i, 0)])).hint("%s", hint)
	case numbers == known && k > fewest && (!whole || low > 1 || low < 0 || k > most && known < support*k):
		return badFile(file, "the label %s is a number with %d different values: it looks like a quantity to predict (regression), which is not supported", quote(name), k).hint("%s", hint)
	case k > most && known < few*k && numbers < known && !trained:
		return badFile(file, "the label %s has %d different values in %d rows: it tells rows apart, and classes need rows to learn from", quote(name), k, known).hint("%s", hint)
	}
	return nil
}

// noteSpellings tells of classes that are one but for how it is spelled: by case, spaces around it, or as a boolean or number.
func (r *tableReader) noteSpellings(file string, classes []string) {
	truth := func(s string) string {
		if x, ok := cellValue(schema.Boolean, strings.ToLower(strings.TrimSpace(s))); ok {
			return strconv.FormatFloat(x, 'f', 0, 64)
		}
		return ""
	}
	booleans := !slices.ContainsFunc(classes, func(s string) bool { return truth(s) == "" })
	alike, order := map[string][]string{}, []string{}
	for _, s := range classes {
		key := strings.ToLower(strings.TrimSpace(s))
		if x, ok := number(key); booleans {
			key = truth(s)
		} else if ok && math.Abs(x) < 1<<53 {
			key = strconv.FormatFloat(x+0, 'g', -1, 64) // 0 of -0
		}
		if alike[key] == nil {
			order = append(order, key)
		}
		alike[key] = append(alike[key], s)
	}
	var list []string
	unless := ""
	for _, key := range order {
		if names := alike[key]; len(names) > 1 {
			list = append(list, quoteSome(names))
			if slices.ContainsFunc(names, padded) {
				unless = ", unless those that begin with a zero are codes"
			}
		}
	}
	if list != nil {
		r.note(file, "classes that seem to be one by another spelling count as different ones: %s; write the label in one way%s", strings.Join(list[:min(len(list), 10)], "; "), unless)
	}
}

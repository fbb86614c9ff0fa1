package config

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Key describes one option.
type Key struct {
	Name    string // such as "model.ecl.tau"
	Doc     string
	Type    string // integer, number, text, or true or false
	Default string // value of defaults/default.toml, as TOML
	Source  string // where that value comes from
	OneOf   []string

	// Neutral is the value, as TOML, with which the option does what was done before
	// it existed: Hash leaves it out then, so that earlier runs keep their names.
	Neutral string
	// Range is what a number must be, such as "at least 1"; empty where Validate has
	// another rule or none. Those of the model are in package models.
	Range string

	index []int // field of Config
}

// table holds the options in order of declaration.
var table = sync.OnceValue(func() (t struct {
	keys  map[string]Key
	names []string
}) {
	t.keys = map[string]Key{}
	var walk func(prefix string, index []int, typ reflect.Type)
	walk = func(prefix string, index []int, typ reflect.Type) {
		// A section's own options precede its subsections, as TOML wants it.
		for _, subsections := range []bool{false, true} {
			for i := range typ.NumField() {
				f := typ.Field(i)
				name := f.Tag.Get("toml")
				if name == "" || name == "-" || (f.Type.Kind() == reflect.Struct) != subsections {
					continue
				}
				at := append(slices.Clone(index), i)
				if subsections {
					walk(prefix+name+".", at, f.Type)
					continue
				}
				k := Key{Name: prefix + name, Doc: f.Tag.Get("doc"), Type: typeName(f.Type), Neutral: f.Tag.Get("neutral"), Range: f.Tag.Get("range"), index: at}
				if s := f.Tag.Get("oneof"); s != "" {
					k.OneOf = strings.Split(s, ",")
				}
				t.keys[k.Name] = k
				t.names = append(t.names, k.Name)
			}
		}
	}
	walk("", nil, reflect.TypeFor[Config]())
	return t
})

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	}
	panic(fmt.Sprintf("config: options of type %s are not supported", t))
}

// Keys returns all options by name, without their defaults; [Config.List] has
// these too.
func Keys() map[string]Key { return table().keys }

// KeyNames returns the names of all options in order of declaration, those of
// one section together.
func KeyNames() []string { return table().names }

// List returns all options, each with the value here as its default.
func (c *Config) List() []Key {
	var list []Key
	for _, name := range KeyNames() {
		k := Keys()[name]
		k.Default, k.Source = c.Value(name), c.sources[name]
		list = append(list, k)
	}
	return list
}

// sections returns the paths that have options below them.
func sections() []string {
	var out []string
	for _, n := range KeyNames() {
		for i, c := range n {
			if c == '.' && !slices.Contains(out, n[:i]) {
				out = append(out, n[:i])
			}
		}
	}
	return out
}

// isSection reports whether options lie below a path.
func isSection(path string) bool {
	below := func(n string) bool { return strings.HasPrefix(n, path+".") }
	return slices.ContainsFunc(KeyNames(), below) || slices.ContainsFunc(frozen(), func(n frozenName) bool { return below(n.hashed) })
}

// frozenName is an option as Hash writes it, and its name now; removed is the neutral value of
// one that is no more.
type frozenName struct{ hashed, now, removed string }

//go:embed hash_names.txt
var hashNames string

// frozen is the table of hash_names.txt.
var frozen = sync.OnceValue(func() []frozenName { return parseFrozen(hashNames) })

func parseFrozen(table string) (names []frozenName) {
	for line := range strings.Lines(table) {
		text, removed, _ := strings.Cut(line, " = ")
		if words := strings.Fields(text); len(words) > 0 && words[0] != "#" {
			names = append(names, frozenName{words[0], words[len(words)-1], strings.TrimSpace(removed)})
		}
	}
	return names
}

var renamed = sync.OnceValue(func() map[string]string {
	now := map[string]string{}
	for _, n := range frozen() {
		if n.hashed != n.now {
			now[n.hashed] = n.now
		}
	}
	return now
})

// Canonical returns the name that an option has now: key itself, unless the option had
// that name in an earlier version.
func Canonical(key string) string {
	if now, ok := renamed()[key]; ok {
		return now
	}
	return key
}

// removed returns the neutral value of an option that is no more; "" of others.
func removed(key string) string {
	for _, n := range frozen() {
		if n.removed != "" && (key == n.hashed || key == n.now) {
			return n.removed
		}
	}
	return ""
}

// field returns the field of an option.
func (c *Config) field(path string) (reflect.Value, Key, error) {
	k, ok := Keys()[Canonical(path)]
	if !ok {
		if isSection(path) {
			return reflect.Value{}, k, fmt.Errorf("%s is a section, not an option; it has %s", path, strings.Join(below(path), ", "))
		}
		return reflect.Value{}, k, unknownKey(path)
	}
	return reflect.ValueOf(c).Elem().FieldByIndex(k.index), k, nil
}

// below lists the options of a section.
func below(path string) []string {
	var names []string
	for _, n := range KeyNames() {
		if strings.HasPrefix(n, path+".") {
			names = append(names, n)
		}
	}
	return names
}

// commentSources reads the comment behind each "key = value" of a TOML text in
// the plain form of the built-in files: one option a line, sections in brackets.
func commentSources(text string) map[string]string {
	out := map[string]string{}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[] ") + "."
			continue
		}
		key, rest, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if at := commentStart(rest); at >= 0 {
			out[section+strings.TrimSpace(key)] = strings.TrimSpace(rest[at+1:])
		}
	}
	return out
}

// commentStart finds the # that begins a comment, outside of quotes.
func commentStart(s string) int {
	quoted := byte(0)
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; {
		case quoted == '"' && ch == '\\':
			i++
		case quoted != 0:
			if ch == quoted {
				quoted = 0
			}
		case ch == '"' || ch == '\'':
			quoted = ch
		case ch == '#':
			return i
		}
	}
	return -1
}

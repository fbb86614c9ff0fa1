package sweep

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/internal/nearest"
)

// Grid is a cross product of options. Its TOML form is a file of options with a
// section of lists:
//
//	[train]
//	epochs = 100
//
//	[sweep]
//	"model.edges.mu" = [0.001, 0.01, 0.1]
//	"candidates.k" = [2, 5]
//	seeds = 10                      # 0 to 9; or a list
//
//	[[sweep.zip]]                   # lists that go together, of equal length
//	"model.edges.old_lo" = [0.5, 0.7]
//	"model.edges.old_hi" = [0.9, 0.99]
//
// Any option can be swept over, also those whose keys are written without quotes.
// The settings are in the order of the file, the last list varying fastest, and
// within a setting in the order of the seeds.
type Grid struct {
	Base  []string // options of all jobs, as key=value
	Axes  []Axis
	Seeds []int // at least one
}

// Axis is one list of a grid, or several that go together: Values[i][k] is the
// i-th value of Keys[k], as text that config.Config.Set reads.
type Axis struct {
	Keys   []string
	Values [][]string
}

// ReadGrid reads a grid from a TOML file. A file without a [sweep] section is a
// grid of one setting.
func ReadGrid(path string) (*Grid, error) { return readFile("configuration", path, ParseGrid) }

// readFile parses a file; what says what it is, for messages.
func readFile[T any](what, path string, parse func(text string) (*T, error)) (*T, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	x, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", what, path, err)
	}
	return x, nil
}

// ParseGrid reads a grid from a TOML text.
func ParseGrid(text string) (*Grid, error) {
	tree, meta, err := config.Decode(text)
	if err != nil {
		return nil, err
	}
	r, err := newOptionReader("list")
	if err != nil {
		return nil, err
	}
	section, ok := tree["sweep"].(map[string]any)
	if !ok && tree["sweep"] != nil {
		return nil, errors.New(`sweep must be a section: write [sweep], and below it lines such as "train.lr" = [0.01, 0.02]`)
	}
	delete(tree, "sweep")
	base, err := r.flatten(tree)
	if err != nil {
		return nil, err
	}
	g := &Grid{Seeds: []int{0}}
	for _, key := range slices.Sorted(maps.Keys(base)) {
		text, err := r.value(key, base[key])
		if err != nil {
			return nil, err
		}
		if key == "train.seed" {
			g.Seeds = []int{int(base[key].(int64))} // value has checked the type
			continue
		}
		g.Base = append(g.Base, key+"="+text)
	}
	lists, err := r.flatten(section)
	if err != nil {
		return nil, fmt.Errorf("[sweep]: %w", err)
	}
	// Go's maps have no order; the file's is in the decoder's list of keys.
	for _, path := range meta.Keys() {
		if path[0] != "sweep" || len(path) == 1 {
			continue
		}
		key := config.Canonical(strings.Join(path[1:], "."))
		if v, ok := lists[key]; ok {
			delete(lists, key) // each table of zip has an entry
			if err := g.entry(r, key, v); err != nil {
				return nil, fmt.Errorf("[sweep]: %w", err)
			}
		}
	}
	for _, a := range g.Axes {
		for _, key := range a.Keys {
			if _, ok := base[key]; ok {
				return nil, fmt.Errorf("%s has both a value and a list in [sweep]; leave one out", key)
			}
		}
	}
	return g, nil
}

// entry takes an option's list, the seeds, or the lists that go together.
func (g *Grid) entry(r *optionReader, key string, v any) error {
	if tables, ok := v.([]map[string]any); ok {
		if key != "zip" {
			return fmt.Errorf("[[sweep.%s]]: lists that go together are written below [[sweep.zip]]", key)
		}
		for i, table := range tables {
			if err := g.zip(r, table); err != nil {
				return fmt.Errorf("zip %d: %w", i+1, err)
			}
		}
		return nil
	}
	if key == "seeds" || key == "train.seed" {
		return g.seeds(r, key, v)
	}
	if n := nearest.Of(key, []string{"seeds"}); n != "" && !strings.Contains(key, ".") {
		return fmt.Errorf("there is no %s; did you mean seeds?", key)
	}
	if _, ok := v.([]any); !ok { // one of one
		v = []any{v}
	}
	values, err := r.values(key, v)
	if err != nil {
		return err
	}
	axis := Axis{Keys: []string{key}}
	for _, x := range values {
		axis.Values = append(axis.Values, []string{x})
	}
	g.Axes = append(g.Axes, axis)
	return r.once(key)
}

func (g *Grid) zip(r *optionReader, table map[string]any) error {
	lists, err := r.flatten(table)
	if err != nil {
		return err
	}
	keys, err := r.known(lists)
	if lists["seeds"] != nil || lists["train.seed"] != nil {
		return errors.New("seeds cannot go together with other lists: every setting is run with each")
	}
	if err != nil {
		return err
	}
	var axis Axis
	for _, key := range keys {
		list, ok := lists[key].([]any)
		if !ok || len(list) == 0 {
			return fmt.Errorf("%s must be a list of values", key)
		}
		if err := r.once(key); err != nil {
			return err
		}
		if axis.Keys == nil {
			axis.Values = make([][]string, len(list))
		}
		if len(list) != len(axis.Values) {
			return fmt.Errorf("%s has %d values and %s has %d; lists that go together are equally long", axis.Keys[0], len(axis.Values), key, len(list))
		}
		axis.Keys = append(axis.Keys, key)
		for i, x := range list {
			text, err := r.value(key, x)
			if err != nil {
				return err
			}
			axis.Values[i] = append(axis.Values[i], text)
		}
	}
	if axis.Keys != nil {
		g.Axes = append(g.Axes, axis)
	}
	return nil
}

func (g *Grid) seeds(r *optionReader, key string, v any) error {
	if r.once("train.seed") != nil {
		return errors.New("the seeds are given twice: leave seeds or train.seed out")
	}
	wrong := fmt.Errorf("%s must be how many seeds there are, 1 at least, or a list of seeds, 0 or greater, got %v", key, v)
	if n, ok := v.(int64); ok && key == "seeds" {
		if n < 1 || n > MaxSeeds {
			return wrong
		}
		g.Seeds = FirstSeeds(int(n))
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return wrong
	}
	g.Seeds = nil
	for _, x := range list {
		n, ok := x.(int64)
		if !ok || n < 0 || n > 1<<31-1 || slices.Contains(g.Seeds, int(n)) {
			return wrong
		}
		g.Seeds = append(g.Seeds, int(n))
	}
	return nil
}

// optionReader reads the options of a grid or a space from decoded TOML.
type optionReader struct {
	scratch *config.Config // that values are checked on
	what    string         // list or range: what an option has, for messages
	bounded bool           // values must be within the option's bounds, too
	seen    map[string]bool
}

func newOptionReader(what string) (*optionReader, error) {
	c, err := config.Load("", "", "", nil)
	return &optionReader{scratch: c, what: what, seen: map[string]bool{}}, err
}

// flatten returns what stands in nested sections by option. Ranges are not sections.
func (r *optionReader) flatten(tree map[string]any) (map[string]any, error) {
	out := map[string]any{}
	var walk func(prefix string, tree map[string]any) error
	walk = func(prefix string, tree map[string]any) error {
		for _, k := range slices.Sorted(maps.Keys(tree)) {
			key := config.Canonical(prefix + k)
			sub, section := tree[k].(map[string]any)
			if _, option := config.Keys()[key]; section && !option && !isRange(sub) {
				if err := walk(key+".", sub); err != nil {
					return err
				}
				continue
			}
			if _, twice := out[key]; twice {
				return r.twice(key)
			}
			out[key] = tree[k]
		}
		return nil
	}
	return out, walk("", tree)
}

func (r *optionReader) twice(key string) error { return fmt.Errorf("%s has two %ss", key, r.what) }

// once is an error where it is called with an option again.
func (r *optionReader) once(key string) error {
	if r.seen[key] {
		return r.twice(key)
	}
	r.seen[key] = true
	return nil
}

// known returns the keys in the order of config.KeyNames. One that is no option is an
// error, which says what may be meant.
func (r *optionReader) known(flat map[string]any) (keys []string, err error) {
	for key := range flat {
		if !slices.Contains(config.KeyNames(), key) {
			err = r.scratch.SetValue(key, "", "")
		}
	}
	return slices.DeleteFunc(slices.Clone(config.KeyNames()), func(key string) bool { return flat[key] == nil }), err
}

// value checks a value and returns its text, as TOML.
func (r *optionReader) value(key string, v any) (string, error) {
	c := r.scratch.Clone()
	if err := c.SetValue(key, v, ""); err != nil {
		return "", err
	}
	// One that is said of another option is of how the two go together, and that one may change, too.
	if err := c.Validate(); r.bounded && err != nil && strings.HasPrefix(err.Error(), key+" ") {
		return "", err
	}
	return c.Value(key), nil
}

// values reads a list of values of an option.
func (r *optionReader) values(key string, v any) ([]string, error) {
	list, _ := v.([]any)
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: the list of values is empty", key)
	}
	var out []string
	for _, x := range list {
		text, err := r.value(key, x)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, text) {
			return nil, fmt.Errorf("%s: %s stands in the list twice", key, text)
		}
		out = append(out, text)
	}
	return out, nil
}

// MaxSeeds is the most that [FirstSeeds] is asked for.
const MaxSeeds = 1 << 20

// FirstSeeds are the seeds 0 to n-1.
func FirstSeeds(n int) []int {
	seeds := make([]int, n)
	for i := range seeds {
		seeds[i] = i
	}
	return seeds
}

// Fix gives all jobs an option, as key=value. It is an error if the grid has a
// list of it.
func (g *Grid) Fix(option string) error {
	key, _ := splitOption(option)
	for _, a := range g.Axes {
		if slices.Contains(a.Keys, key) {
			return fmt.Errorf("%s has a list in [sweep]; leave it out there, or in --set", key)
		}
	}
	if key == "train.seed" {
		return errors.New("the seeds are not set as an option: give --seeds n, or seeds in [sweep]")
	}
	r, err := newOptionReader("list")
	if err == nil {
		err = r.scratch.Set(option)
	}
	if err != nil {
		return err
	}
	g.Base = append(g.Base, key+"="+r.scratch.Value(key)) // written as the values of a file are
	return nil
}

// Jobs returns a job for each setting and seed.
func (g *Grid) Jobs(model, data string) []Job {
	settings := [][]string{g.Base}
	for _, a := range g.Axes {
		var next [][]string
		for _, s := range settings {
			for _, values := range a.Values {
				set := slices.Clone(s)
				for k, v := range values {
					set = append(set, a.Keys[k]+"="+v)
				}
				next = append(next, set)
			}
		}
		settings = next
	}
	var jobs []Job
	for _, set := range settings {
		for _, seed := range g.Seeds {
			jobs = append(jobs, Job{Model: model, Data: data, Set: set, Seed: seed})
		}
	}
	return jobs
}

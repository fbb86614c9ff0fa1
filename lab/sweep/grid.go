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
func ReadGrid(path string) (*Grid, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	g, err := ParseGrid(string(text))
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return g, nil
}

// ParseGrid reads a grid from a TOML text.
func ParseGrid(text string) (*Grid, error) {
	tree, meta, err := config.Decode(text)
	if err != nil {
		return nil, err
	}
	// The values are checked one by one on a scratch configuration.
	c, err := config.Load("", "", "", nil)
	if err != nil {
		return nil, err
	}
	p := gridParser{scratch: c, grid: &Grid{Seeds: []int{0}}, seen: map[string]bool{}}
	section, ok := tree["sweep"].(map[string]any)
	if !ok && tree["sweep"] != nil {
		return nil, errors.New(`sweep must be a section: write [sweep], and below it lines such as "train.lr" = [0.01, 0.02]`)
	}
	delete(tree, "sweep")
	if err := p.base("", tree); err != nil {
		return nil, err
	}
	// Go's maps have no order; the file's is in the decoder's list of keys.
	for _, key := range meta.Keys() {
		if len(key) > 1 && key[0] == "sweep" {
			if err := p.entry(section, key[1:]); err != nil {
				return nil, fmt.Errorf("[sweep]: %w", err)
			}
		}
	}
	for _, s := range p.grid.Base {
		if key, _, _ := strings.Cut(s, "="); p.seen[key] {
			return nil, fmt.Errorf("%s has both a value and a list in [sweep]; leave one out", key)
		}
	}
	return p.grid, nil
}

type gridParser struct {
	scratch *config.Config
	grid    *Grid
	seen    map[string]bool // options that have a list
	zips    bool
}

// base takes the options outside of [sweep].
func (p *gridParser) base(prefix string, tree map[string]any) error {
	for _, k := range slices.Sorted(maps.Keys(tree)) {
		key := config.Canonical(prefix + k)
		if sub, ok := tree[k].(map[string]any); ok {
			if err := p.base(key+".", sub); err != nil {
				return err
			}
			continue
		}
		text, err := p.value(key, tree[k])
		if err != nil {
			return err
		}
		if key == "train.seed" {
			p.grid.Seeds = []int{int(tree[k].(int64))} // value has checked the type
			continue
		}
		p.grid.Base = append(p.grid.Base, key+"="+text)
	}
	return nil
}

// entry takes the value at a path below [sweep].
func (p *gridParser) entry(section map[string]any, path []string) error {
	var v any = section
	for _, k := range path {
		sub, ok := v.(map[string]any)
		if !ok { // inside of [[sweep.zip]], which is taken whole
			return nil
		}
		v = sub[k]
	}
	key := config.Canonical(strings.Join(path, "."))
	switch list := v.(type) {
	case map[string]any: // the head of a section; its options have entries of their own
		return nil
	case []map[string]any:
		if key != "zip" {
			return fmt.Errorf("[[sweep.%s]]: lists that go together are written below [[sweep.zip]]", key)
		}
		if p.zips { // each table has an entry
			return nil
		}
		p.zips = true
		for i, table := range list {
			if err := p.zip(table); err != nil {
				return fmt.Errorf("zip %d: %w", i+1, err)
			}
		}
		return nil
	}
	if key == "seeds" || key == "train.seed" {
		return p.seeds(key, v)
	}
	if n := nearest.Of(key, []string{"seeds"}); n != "" && !strings.Contains(key, ".") {
		return fmt.Errorf("there is no %s; did you mean seeds?", key)
	}
	values, err := p.list(key, v)
	if err != nil {
		return err
	}
	axis := Axis{Keys: []string{key}}
	for _, x := range values {
		axis.Values = append(axis.Values, []string{x})
	}
	p.grid.Axes = append(p.grid.Axes, axis)
	return nil
}

// list reads the values of one option; a value that is no list is one of one.
func (p *gridParser) list(key string, v any) ([]string, error) {
	if p.seen[key] {
		return nil, fmt.Errorf("%s has two lists", key)
	}
	p.seen[key] = true
	if _, ok := v.([]any); !ok {
		v = []any{v}
	}
	values, err := optionValues(p.scratch, key, v)
	if err != nil && !strings.HasPrefix(err.Error(), key) { // that of a value names the option
		err = fmt.Errorf("%s: %w", key, err)
	}
	return values, err
}

// optionValues reads a list of different values of an option.
func optionValues(scratch *config.Config, key string, v any) ([]string, error) {
	list, _ := v.([]any)
	if len(list) == 0 {
		return nil, errors.New("the list is empty")
	}
	var values []string
	for _, x := range list {
		if err := scratch.SetValue(key, x, ""); err != nil {
			return nil, err
		}
		text := scratch.Value(key)
		if slices.Contains(values, text) {
			return nil, fmt.Errorf("%s stands in the list twice", text)
		}
		values = append(values, text)
	}
	return values, nil
}

// value checks a value and returns its text.
func (p *gridParser) value(key string, v any) (string, error) {
	if err := p.scratch.SetValue(key, v, ""); err != nil {
		return "", err
	}
	return p.scratch.Value(key), nil
}

// zip reads a table of lists that go together.
func (p *gridParser) zip(table map[string]any) error {
	flat := map[string]any{}
	flatten("", table, flat)
	var axis Axis
	for _, key := range config.KeyNames() {
		if _, ok := flat[key]; ok {
			axis.Keys = append(axis.Keys, key)
		}
	}
	for key := range flat {
		if key == "seeds" || key == "train.seed" {
			return errors.New("seeds cannot go together with other lists: every setting is run with each")
		}
		if !slices.Contains(axis.Keys, key) { // SetValue says what is meant
			_, err := p.value(key, flat[key])
			return err
		}
	}
	for k, key := range axis.Keys {
		list, ok := flat[key].([]any)
		if !ok || len(list) == 0 {
			return fmt.Errorf("%s must be a list of values", key)
		}
		if p.seen[key] {
			return fmt.Errorf("%s has two lists", key)
		}
		p.seen[key] = true
		if k == 0 {
			axis.Values = make([][]string, len(list))
		}
		if len(list) != len(axis.Values) {
			return fmt.Errorf("%s has %d values and %s has %d; lists that go together are equally long", axis.Keys[0], len(axis.Values), key, len(list))
		}
		for i, x := range list {
			text, err := p.value(key, x)
			if err != nil {
				return err
			}
			axis.Values[i] = append(axis.Values[i], text)
		}
	}
	if len(axis.Keys) > 0 {
		p.grid.Axes = append(p.grid.Axes, axis)
	}
	return nil
}

func flatten(prefix string, tree map[string]any, out map[string]any) {
	for k, v := range tree {
		if sub, ok := v.(map[string]any); ok {
			flatten(prefix+k+".", sub, out)
		} else {
			out[config.Canonical(prefix+k)] = v
		}
	}
}

// seeds reads how many seeds there are, or which.
func (p *gridParser) seeds(key string, v any) error {
	if p.seen["train.seed"] {
		return errors.New("the seeds are given twice: leave seeds or train.seed out")
	}
	p.seen["train.seed"] = true
	wrong := fmt.Errorf("%s must be how many seeds there are, 1 at least, or a list of seeds, 0 or greater, got %v", key, v)
	if n, ok := v.(int64); ok && key == "seeds" {
		if n < 1 || n > 1<<20 {
			return wrong
		}
		p.grid.Seeds = FirstSeeds(int(n))
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return wrong
	}
	p.grid.Seeds = nil
	for _, x := range list {
		n, ok := x.(int64)
		if !ok || n < 0 || n > 1<<31-1 || slices.Contains(p.grid.Seeds, int(n)) {
			return wrong
		}
		p.grid.Seeds = append(p.grid.Seeds, int(n))
	}
	return nil
}

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
	key, _, _ := strings.Cut(option, "=")
	key = config.Canonical(strings.TrimSpace(key))
	for _, a := range g.Axes {
		if slices.Contains(a.Keys, key) {
			return fmt.Errorf("%s has a list in [sweep]; leave it out there, or the single value here", key)
		}
	}
	if key == "train.seed" {
		return errors.New("the seeds are not set as an option: give --seeds n, or seeds in [sweep]")
	}
	g.Base = append(g.Base, option)
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

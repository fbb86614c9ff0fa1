package sweep

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/internal/nearest"
	"github.com/gsrc-dev/gsrc/rng"
)

//go:embed spaces/*.toml
var spaces embed.FS

// Space is a set of settings to search in: a range for each of several options.
// Its TOML form names an option and what it may be:
//
//	"train.lr" = { log = [0.001, 0.1] }                   # log-uniform, to two digits
//	"model.dropout" = { uniform = [0.0, 0.8], step = 0.1 }
//	"candidates.k" = { integer = [1, 10] }
//	"model.hidden" = [16, 32, 64]                         # one of these
//	"model.propagation.order" = { integer = [1, 10], when = { "model.classifier" = ["propagation"] } }
//
// A range with when counts only in settings whose other options have one of the
// values listed; elsewhere the option keeps its default. Without step, uniform has
// one of a twentieth of the range. All values are ones that the options can have.
type Space struct{ ranges []valueRange }

// valueRange is what one option may be. Values are made of a number u in [0, 1),
// so that neighbours can be found in any range alike.
type valueRange struct {
	key     string
	kind    string // log, uniform, integer or choice
	lo, hi  float64
	step    float64
	choices []string // as TOML
	whole   bool     // the option is an integer
	when    []condition
}

type condition struct {
	key    string
	values []string // as TOML
}

var rangeKinds = []string{"log", "uniform", "integer", "choice"}

// DefaultSpace returns the space that is searched for a model, on a collection of
// graphs or on one graph: its own, or the one for all classifiers. The ranges are in
// lab/sweep/spaces, with the reason for each.
func DefaultSpace(model string, graphs bool) (*Space, error) {
	prefix, general := "spaces/", "default"
	if graphs {
		prefix, general = "spaces/graphs.", "graphs"
	}
	name := prefix + modelName(model) + ".toml"
	text, err := spaces.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		name = "spaces/" + general + ".toml"
		text, err = spaces.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	s, err := ParseSpace(string(text))
	if err != nil {
		return nil, fmt.Errorf("built-in %s: %w", name, err)
	}
	return s, nil
}

// ReadSpace reads a space from a TOML file.
func ReadSpace(path string) (*Space, error) { return readFile("search space", path, ParseSpace) }

// ParseSpace reads a space from a TOML text.
func ParseSpace(text string) (*Space, error) {
	tree, _, err := config.Decode(text)
	if err != nil {
		return nil, err
	}
	p, err := newOptionReader("range")
	if err != nil {
		return nil, err
	}
	p.bounded = true
	flat, err := p.flatten(tree)
	if err != nil {
		return nil, err
	}
	keys, err := p.known(flat)
	if err != nil {
		return nil, err
	}
	s := &Space{}
	for _, key := range keys {
		r, err := p.valueRange(key, flat[key])
		if err != nil {
			return nil, err
		}
		s.ranges = append(s.ranges, r)
	}
	for _, r := range s.ranges {
		if err := s.checkConditions(r.key, nil); err != nil {
			return nil, err
		}
	}
	if len(s.ranges) == 0 {
		return nil, errors.New(`there is no option in it; write lines such as "train.lr" = { log = [0.001, 0.1] }`)
	}
	return s, nil
}

func (s *Space) of(key string) *valueRange {
	if i := slices.IndexFunc(s.ranges, func(r valueRange) bool { return r.key == key }); i >= 0 {
		return &s.ranges[i]
	}
	return nil
}

// checkConditions follows the conditions of an option's range, from those that lead to it,
// which it must not lead back to, and holds their values against what the space gives.
func (s *Space) checkConditions(key string, from []string) error {
	from = append(from, key)
	if i := slices.Index(from, key); i < len(from)-1 {
		return fmt.Errorf("%s: when: its range depends on itself: %s", key, strings.Join(from[i:], " on "))
	}
	r := s.of(key)
	if r == nil {
		return nil
	}
	for _, c := range r.when {
		if err := s.checkConditions(c.key, from); err != nil {
			return err
		}
		for _, v := range c.values {
			if o := s.of(c.key); o != nil && !o.gives(v) {
				return fmt.Errorf("%s: when: the range of %s does not give it the value %s", key, c.key, v)
			}
		}
	}
	return nil
}

func (r *valueRange) gives(value string) bool {
	u, ok := r.unit(value)
	return ok && r.value(u) == value
}

// Without returns the space without some options.
func (s *Space) Without(keys []string) *Space {
	return &Space{slices.DeleteFunc(slices.Clone(s.ranges), func(r valueRange) bool { return slices.Contains(keys, r.key) })}
}

func isRange(table map[string]any) bool {
	return slices.ContainsFunc(rangeKinds, func(kind string) bool { return table[kind] != nil })
}

func (p *optionReader) valueRange(key string, v any) (valueRange, error) {
	r := valueRange{key: key}
	if text, err := p.value(key, v); err == nil {
		return r, fmt.Errorf("%s must be a range or a list of values; a single value belongs into --set %s=%s", key, key, text)
	}
	k := config.Keys()[key]
	if key == "train.seed" || key == "train.threads" {
		return r, fmt.Errorf("%s cannot be searched for", key)
	}
	r.whole = k.Type == "integer"
	if list, ok := v.([]any); ok {
		v = map[string]any{"choice": list}
	}
	table, ok := v.(map[string]any)
	if !ok {
		return r, fmt.Errorf("%s must be a list of values or a table such as { uniform = [0.0, 0.5] }", key)
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		var err error
		switch name {
		case "when":
			err = p.conditions(&r, table[name])
		case "step":
			if r.step, ok = number(table[name]); !ok || r.step <= 0 {
				err = errors.New("step must be a number greater than 0")
			}
		case "choice":
			if r.choices, err = p.values(key, table[name]); err != nil {
				return r, err
			}
			fallthrough
		case "log", "uniform", "integer":
			if err == nil && r.kind != "" {
				err = fmt.Errorf("it has both %s and %s", r.kind, name)
			}
			if r.kind = name; err == nil && name != "choice" {
				err = r.bounds(table[name], k.Type)
			}
		default:
			err = fmt.Errorf("there is no %s in a range%s", name, nearest.Hint(name, append(slices.Clone(rangeKinds), "step", "when")))
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", key, err)
		}
	}
	if r.kind == "" {
		return r, fmt.Errorf("%s: a range has one of log, uniform, integer and choice", key)
	}
	if r.step > 0 && r.kind != "uniform" {
		return r, fmt.Errorf("%s: only uniform has a step", key)
	}
	if r.step == 0 {
		r.step = (r.hi - r.lo) / 20
	}
	for _, x := range []float64{r.lo, r.hi} {
		var end any = x
		if r.whole {
			end = int64(x)
		}
		if _, err := p.value(key, end); r.kind != "choice" && err != nil {
			return r, err
		}
	}
	return r, nil
}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	return 0, false
}

func (r *valueRange) bounds(v any, optionType string) error {
	list, _ := v.([]any)
	if len(list) != 2 {
		return fmt.Errorf("%s must be two numbers, such as [1, 10]", r.kind)
	}
	lo, ok := number(list[0])
	hi, ok2 := number(list[1])
	switch {
	case !ok || !ok2 || lo >= hi:
		return fmt.Errorf("%s must be two numbers, the lesser one first", r.kind)
	case r.kind == "log" && lo <= 0:
		return errors.New("log needs numbers greater than 0")
	case optionType != "integer" && optionType != "number":
		return fmt.Errorf("the option is %s; list its values", optionType)
	case r.kind == "integer" && !r.whole, r.kind == "uniform" && r.whole:
		return fmt.Errorf("the option is of type %s; use %s", optionType, map[bool]string{true: "integer", false: "uniform or log"}[r.whole])
	case r.whole && (lo != math.Trunc(lo) || hi != math.Trunc(hi)):
		return errors.New("the option is an integer, and so are the ends of its range")
	}
	r.lo, r.hi = lo, hi
	return nil
}

func (p *optionReader) conditions(r *valueRange, v any) error {
	table, ok := v.(map[string]any)
	if !ok || len(table) == 0 {
		return errors.New(`when must be a table such as { "model.classifier" = ["gcn"] }`)
	}
	flat, err := p.flatten(table)
	if err != nil {
		return err
	}
	keys, err := p.known(flat)
	if err != nil {
		return err
	}
	for _, key := range keys {
		values, err := p.values(key, flat[key])
		if err != nil {
			return fmt.Errorf("when: %w", err)
		}
		r.when = append(r.when, condition{key, values})
	}
	return nil
}

// value returns the value at u in [0, 1), as TOML.
func (r *valueRange) value(u float64) string {
	switch r.kind {
	case "choice":
		return r.choices[min(int(u*float64(len(r.choices))), len(r.choices)-1)]
	case "integer":
		return strconv.Itoa(int(r.lo) + min(int(u*(r.hi-r.lo+1)), int(r.hi-r.lo)))
	case "uniform":
		steps := r.steps()
		return float(math.Min(r.lo+float64(r.step*math.Min(math.Floor(u*(steps+1)), steps)), r.hi), 6)
	}
	v := fmath.Exp(fmath.Log(r.lo) + float64(u*(fmath.Log(r.hi)-fmath.Log(r.lo))))
	if r.whole {
		return strconv.Itoa(int(math.Round(v)))
	}
	text := float(v, 2)
	if x, err := strconv.ParseFloat(text, 64); err != nil || x < r.lo || x > r.hi {
		text = float(math.Max(r.lo, math.Min(v, r.hi)), 6)
	}
	return text
}

// steps is how many steps a uniform range has.
func (r *valueRange) steps() float64 { return math.Floor((r.hi-r.lo)/r.step + 1e-9) }

// float writes a number as config.Config.Value does, with that many significant
// digits at most.
func float(v float64, digits int) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	if err != nil {
		rounded = v
	}
	text := strconv.FormatFloat(rounded, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// unit returns a u that gives the value, or the nearest one of the range; false
// for a text that is none of the choices.
func (r *valueRange) unit(value string) (float64, bool) {
	if r.kind == "choice" {
		i := slices.Index(r.choices, value)
		return (float64(i) + 0.5) / float64(len(r.choices)), i >= 0
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, false
	}
	v = math.Max(r.lo, math.Min(v, r.hi))
	switch r.kind {
	case "integer":
		return (v - r.lo + 0.5) / (r.hi - r.lo + 1), true
	case "uniform":
		return (math.Round((v-r.lo)/r.step) + 0.5) / (r.steps() + 1), true
	}
	return (fmath.Log(v) - fmath.Log(r.lo)) / (fmath.Log(r.hi) - fmath.Log(r.lo)), true
}

// point is a setting, as the u of each option.
type point map[string]float64

// random draws a point. Every option has a stream of its own, so that a range
// more or less changes no other.
func (s *Space) random(st rng.Stream) point {
	p := point{}
	for _, r := range s.ranges {
		p[r.key] = uniform(st.Sub(r.key), 0)
	}
	return p
}

// near draws a point near another: each option stays with probability one half;
// numbers move by a seventh of their range or so, choices are redrawn. At least
// one option changes.
func (s *Space) near(st rng.Stream, from point) point {
	p := point{}
	must := st.Sub("must").Intn(0, len(s.ranges))
	for i, r := range s.ranges {
		draw := st.Sub(r.key)
		u, known := from[r.key]
		switch {
		case !known:
			u = uniform(draw, 0)
		case i != must && uniform(draw, 0) < 0.5:
		case r.kind == "choice":
			u = uniform(draw, 1)
		default:
			u = reflect(u + float64(0.15*draw.Normal(2)))
		}
		p[r.key] = u
	}
	return p
}

// reflect folds a number back into [0, 1).
func reflect(u float64) float64 {
	u = math.Mod(math.Abs(u), 2)
	if u >= 1 {
		u = 2 - u
	}
	return math.Min(u, math.Nextafter(1, 0))
}

// uniform is element i of a stream in [0, 1), with 53 bits.
func uniform(s rng.Stream, i uint64) float64 { return float64(s.Uint64(i)>>11) / (1 << 53) }

// settings are the options at a point, as key=value, in the order of the space.
// base has the values of what the point does not decide.
func (s *Space) settings(p point, base *config.Config) []string {
	values := map[string]string{}
	for _, r := range s.ranges {
		values[r.key] = r.value(p[r.key])
	}
	var set []string
	for _, r := range s.ranges {
		counts := !slices.ContainsFunc(r.when, func(c condition) bool {
			v, ok := values[c.key]
			if !ok {
				v = base.Value(c.key)
			}
			return !slices.Contains(c.values, v)
		})
		if counts {
			set = append(set, r.key+"="+values[r.key])
		}
	}
	return set
}

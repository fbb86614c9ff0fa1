package train

import "fmt"

// step runs a function at a step of the run and moves the parameters along its
// gradients. It returns the loss; nothing has changed where it fails.
func (t *trainer) step(f *function, step int) (float64, error) {
	if err := f.Run(uint64(step)); err != nil {
		return 0, err
	}
	r := &f.results
	if r.values == nil {
		f.findResults()
	}
	if f.ahead != nil {
		if err := f.ahead(step + 1); err != nil {
			return 0, err
		}
	}
	bad, err := t.device.Finite(r.terms, r.values, r.grads)
	if err != nil {
		return 0, fmt.Errorf("@%s at step %d: %w", f.Name(), step, err)
	}
	for i, v := range r.values {
		f.terms[i].value = v
	}
	for i := range f.terms { // the total comes last, since it follows the others
		if x := f.terms[(i+1)%len(f.terms)]; x.value-x.value != 0 {
			return 0, t.nonFinite(f, step, x.name)
		}
	}
	if bad >= 0 {
		return 0, t.nonFinite(f, step, "the gradient of $"+r.names[bad])
	}
	t.prog.outdate(f)
	for _, u := range f.updates {
		if err := u.group.Step(t.device, u.adam); err != nil {
			return 0, err
		}
	}
	for i, m := range f.moved {
		if err := t.device.EMAUpdate(m.p.Value, r.moved[i], 0.1); err != nil {
			return 0, err
		}
	}
	if len(f.terms) == 0 {
		return 0, fmt.Errorf("train: @%s has no loss", f.Name())
	}
	return float64(f.terms[0].value), nil
}

// findResults enters where the function's results lie, which has run.
func (f *function) findResults() {
	r := &f.results
	r.values = make([]float32, len(f.terms))
	for _, x := range f.terms {
		r.terms = append(r.terms, f.Result(x.name))
	}
	for _, u := range f.updates {
		for i, name := range u.names {
			u.adam[i].G = f.Result(name)
			r.grads, r.names = append(r.grads, u.adam[i].G), append(r.names, u.params[i].Name)
		}
	}
	for _, m := range f.moved {
		r.moved = append(r.moved, f.Result(m.result))
	}
}

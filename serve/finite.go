package serve

// notFinite returns the first element that is no finite number, −1 if there is none.
func (t *Tensor) notFinite() int {
	for i, v := range t.F32 {
		if v-v != 0 {
			return i
		}
	}
	return -1
}

// finite refuses a request with a number that is not finite.
func (r *Request) finite() error {
	for i := range r.Inputs {
		t := &r.Inputs[i]
		if k := t.notFinite(); k >= 0 {
			return invalid("element %d of the input %.60q of shape %v is %v; numbers are finite", k, t.Name, t.Shape, t.F32[k])
		}
	}
	return nil
}

// finite refuses a result of finite inputs that is not finite: they were too large.
func (r *Result) finite() error {
	for i := range r.Outputs {
		t := &r.Outputs[i]
		if k := t.notFinite(); k >= 0 {
			return invalid("element %d of the output %.60q of shape %v would be %v: the inputs are too large for the model", k, t.Name, t.Shape, t.F32[k])
		}
	}
	return nil
}

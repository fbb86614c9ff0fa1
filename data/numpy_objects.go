package data

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/gsrc-dev/gsrc/data/pickle"
	"github.com/gsrc-dev/gsrc/internal/budget"
)

// The objects that pickles of NumPy and SciPy build up in two steps: made
// empty by a constructor, then filled by BUILD.
type (
	npDtype struct{ dtype }
	npArray struct{ *array } // nil until BUILD
)

func (*npDtype) Describe() string { return "a NumPy type" }
func (*npArray) Describe() string { return "a NumPy array" }

// What a known global builds.
const (
	gReconstruct = "numpy.core.multiarray._reconstruct"
	gNDArray     = "numpy.ndarray"
	gDtype       = "numpy.dtype"
	gScalar      = "numpy.core.multiarray.scalar"
	gCSR         = "scipy.sparse.csr_matrix"
	gDefaultDict = "collections.defaultdict"
	gList        = "list"
	gDict        = "dict"
	gObject      = "object"
	gEncode      = "_codecs.encode"
	gRebuild     = "copyreg._reconstructor"
)

// knownGlobals maps the names that Python 2 and 3, and old and new versions of
// NumPy and SciPy, write to what they mean. Only these are read.
var knownGlobals = map[string]pickle.Global{
	"numpy.core.multiarray._reconstruct":  gReconstruct,
	"numpy._core.multiarray._reconstruct": gReconstruct,
	"numpy.core.multiarray.scalar":        gScalar,
	"numpy._core.multiarray.scalar":       gScalar,
	"numpy.ndarray":                       gNDArray,
	"numpy.dtype":                         gDtype,
	"scipy.sparse.csr.csr_matrix":         gCSR,
	"scipy.sparse._csr.csr_matrix":        gCSR,
	"scipy.sparse._csr.csr_array":         gCSR,
	"collections.defaultdict":             gDefaultDict,
	"collections.OrderedDict":             gDict,
	"__builtin__.list":                    gList,
	"builtins.list":                       gList,
	"__builtin__.dict":                    gDict,
	"builtins.dict":                       gDict,
	"__builtin__.object":                  gObject,
	"builtins.object":                     gObject,
	"_codecs.encode":                      gEncode,
	"copy_reg._reconstructor":             gRebuild,
	"copyreg._reconstructor":              gRebuild,
}

// arguments is how many the globals are called with that always have as many.
var arguments = map[pickle.Global]int{gReconstruct: 3, gScalar: 2, gEncode: 2, gRebuild: 3, gCSR: 0, gDict: 0, gList: 0}

// unpickle reads a file's pickled object: numbers, texts, lists and dicts, arrays of NumPy
// and sparse matrices of SciPy.
func unpickle(file string, b []byte, mem *budget.Reservation) (any, error) {
	if len(b) == 0 {
		return nil, badFile(file, "the file is empty")
	}
	v, err := pickle.Read(b, numpyObjects{mem}, mem)
	var exceeded *budget.ExceededError
	if errors.As(err, &exceeded) {
		return nil, fileFault(file, exceeded)
	}
	var fault *pickle.Error
	if errors.As(err, &fault) {
		e := badFile(file, "not a pickle that can be read").hint("expected NumPy arrays, SciPy csr_matrix objects or a dict of lists, as in Planetoid's files")
		e.Offset, e.Err = fault.Offset, fault.Err
		return nil, e
	}
	return v, err
}

// numpyObjects makes the arrays in a pickle.
type numpyObjects struct{ mem *budget.Reservation }

// Global looks up a name.
func (numpyObjects) Global(name string) (pickle.Global, bool) {
	g, ok := knownGlobals[name]
	return g, ok
}

// New builds what a call of g stands for.
func (numpyObjects) New(r *pickle.Reader, g pickle.Global, t pickle.Tuple) (any, error) {
	n, fixed := arguments[g]
	switch {
	case fixed && len(t) != n:
	case g == gReconstruct && t[0] == pickle.Global(gNDArray): // (ndarray, (0,), b'b')
		return &npArray{}, nil
	case g == gDtype && len(t) > 0: // ('f4', align, copy)
		if s, ok := pickle.Text(t[0]); ok {
			d, err := parseDtype(s)
			return &npDtype{d}, err
		}
	case g == gScalar: // (dtype, bytes)
		d, isType := t[0].(*npDtype)
		if b, ok := t[1].(pickle.Bytes); ok && isType {
			return scalar(d.dtype, b)
		}
	case g == gEncode: // (text, 'latin1'): how Python 3 writes bytes in protocol 2
		s, isText := t[0].(string)
		if enc, ok := pickle.Text(t[1]); ok && isText && (enc == "latin1" || enc == "latin-1") {
			if err := r.Spend(len(s)); err != nil {
				return nil, err
			}
			return latin1(s)
		}
	case g == gCSR, g == gRebuild && t[0] == pickle.Global(gCSR) && t[1] == pickle.Global(gObject) && t[2] == nil: // (csr_matrix, object, None)
		return &csrMatrix{}, nil
	case g == gDict, g == gDefaultDict && (len(t) == 0 || len(t) == 1 && t[0] == pickle.Global(gList)): // (list,)
		return &pickle.Dict{}, nil
	case g == gList:
		return &pickle.List{}, nil
	}
	return nil, fmt.Errorf("calls %s with unexpected arguments", string(g))
}

// SetState fills an object that New made.
func (n numpyObjects) SetState(r *pickle.Reader, obj, state any) error {
	switch o := obj.(type) {
	case *npDtype: // (3, '<', None, None, None, -1, -1, 0)
		t, ok := state.(pickle.Tuple)
		if !ok || len(t) < 5 {
			return errors.New("a NumPy type has an unexpected state")
		}
		order, ok := pickle.Text(t[1])
		if !ok || t[2] != nil || t[3] != nil || t[4] != nil {
			return errors.New("structured NumPy types are not supported")
		}
		o.big = order == ">"
		return nil
	case *npArray: // (1, shape, dtype, fortran_order, data)
		t, ok := state.(pickle.Tuple)
		if !ok || len(t) != 5 {
			return errors.New("a NumPy array has an unexpected state")
		}
		shape, err := dims(t[1])
		if err != nil {
			return err
		}
		d, ok1 := t[2].(*npDtype)
		data, ok2 := t[4].(pickle.Bytes)
		if !ok1 || !ok2 {
			return fmt.Errorf("a NumPy array holds %s, not plain numbers", pickle.Describe(t[4]))
		}
		if o.array, err = newArray(d.dtype, shape, truth(t[3]), data); err == nil {
			o.mem = n.mem
		}
		return err
	case *csrMatrix:
		d, ok := state.(*pickle.Dict)
		if !ok {
			return errors.New("a csr_matrix has an unexpected state")
		}
		// The same state may be set many times over.
		if err := r.Spend(len(d.Keys)); err != nil {
			return err
		}
		return o.fill(d)
	}
	return fmt.Errorf("sets the state of %s", pickle.Describe(obj))
}

func scalar(d dtype, b []byte) (any, error) {
	a, err := newArray(d, nil, false, b)
	if err != nil {
		return nil, err
	}
	if read := a.intReader(); read != nil {
		return read(b), nil
	}
	if d.kind == 'f' {
		f, err := a.float32s()
		if err != nil {
			return nil, err
		}
		return float64(f[0]), nil
	}
	return nil, fmt.Errorf("a NumPy scalar of type %s is not a number", d)
}

// latin1 turns text into the bytes it stands for, one for each character.
func latin1(s string) (pickle.Bytes, error) {
	out := make(pickle.Bytes, 0, utf8.RuneCountInString(s))
	for _, r := range s {
		if r > math.MaxUint8 {
			return nil, errors.New("text is not Latin-1")
		}
		out = append(out, byte(r))
	}
	return out, nil
}

func dims(v any) ([]int, error) {
	t, ok := v.(pickle.Tuple)
	if !ok || len(t) > 8 {
		return nil, fmt.Errorf("a shape is %s", pickle.Describe(v))
	}
	out := make([]int, len(t))
	for i, x := range t {
		n, ok := x.(int64)
		if !ok || n < 0 || n > math.MaxInt32 {
			return nil, fmt.Errorf("a dimension is %s", pickle.Describe(x))
		}
		out[i] = int(n)
	}
	return out, nil
}

func truth(v any) bool {
	switch b := v.(type) {
	case bool:
		return b
	case int64:
		return b != 0
	}
	return false
}

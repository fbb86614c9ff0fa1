package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of what a request names, far above what any model has.
const (
	mostTensors    = 64
	mostDimensions = 16
	mostID         = 1 << 10 // bytes; it is repeated in the answer and the log
)

// parser reads the JSON of an inference request, token by token: what it takes is
// known before it is taken, and it ends when the client is gone.
type parser struct {
	ctx  context.Context
	dec  *jsontext.Decoder
	grow func(n int64) error // takes memory
	n    int                 // tokens so far
}

// parseRequest reads the body of an inference request. header is the length of its
// JSON where binary tensors follow, −1 where it is JSON alone.
// grow is asked before memory is taken for what is read.
func parseRequest(ctx context.Context, body []byte, header int, grow func(n int64) error) (r *Request, binary formats, err error) {
	rest := []byte{}
	if header >= 0 {
		if header > len(body) {
			return nil, nil, invalid("the header %s says %d, and the body has %d bytes", lengthHeader, header, len(body))
		}
		body, rest = body[:header], body[header:]
	}
	p := &parser{ctx: ctx, grow: grow, dec: jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))}
	q := &Request{}
	binary = formats{}
	var outputs []jsonOutput
	var all parameters
	var inputs []*jsonInput
	err = p.object("the body", func(name string) (err error) {
		switch name {
		case "id":
			q.ID, err = p.text("id")
		case "parameters":
			err = p.parameters(&all)
		case "inputs":
			err = p.array("inputs", func() error {
				if len(inputs) == mostTensors {
					return invalid("the request has more than %d inputs", mostTensors)
				}
				in, err := p.input(body)
				inputs = append(inputs, in)
				return err
			})
		case "outputs":
			err = p.array("outputs", func() error {
				if len(outputs) == mostTensors {
					return invalid("the request names more than %d outputs; each is named once", mostTensors)
				}
				out, err := p.output()
				outputs = append(outputs, out)
				return err
			})
		default:
			err = p.dec.SkipValue()
		}
		return err
	})
	if err == nil {
		if _, end := p.dec.ReadToken(); end != io.EOF {
			return nil, nil, invalid("the body goes on after the inference request")
		}
	}
	if err != nil {
		return nil, nil, p.fault(err)
	}
	for _, in := range inputs {
		if err := p.finish(in, &rest); err != nil {
			return nil, nil, p.fault(err)
		}
		q.Inputs = append(q.Inputs, in.Tensor)
	}
	if len(rest) > 0 {
		return nil, nil, invalid("%d bytes follow that belong to no input", len(rest))
	}
	q.IdempotencyKey = all.key
	binary[""] = all.binaryOutput
	for _, out := range outputs {
		q.Outputs = append(q.Outputs, out.name)
		if out.binary != nil {
			binary[out.name] = *out.binary
		}
	}
	return q, binary, nil
}

// fault makes an error of the decoder the client's.
func (p *parser) fault(err error) error {
	if is[*failure](err) || p.ctx.Err() != nil {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = errors.New("it ends too early")
	}
	text := strings.TrimPrefix(err.Error(), "jsontext: ")
	return invalid("the body is no inference request in JSON: %.200s", text)
}

// jsonInput is an input, and what of it is read when all is known.
type jsonInput struct {
	Tensor
	parameters
	known  int    // of datatype and shape
	data   []byte // JSON that is not read yet; nil if there is none
	filled bool
}

// jsonOutput is an output that is wanted.
type jsonOutput struct {
	name string
	parameters
}

// formats tells which outputs are wanted in binary form, by name; the entry "" is for those that
// have none of their own.
type formats map[string]bool

func (f formats) of(output string) bool {
	binary, named := f[output]
	if !named {
		binary = f[""]
	}
	return binary
}

// parameters of the protocol are free; those here are read.
type parameters struct {
	binarySize   *int64
	binary       *bool
	binaryOutput bool
	key          string
}

// object reads an object; null is one without fields.
func (p *parser) object(what string, field func(name string) error) error {
	return p.each('{', what+" is no object", func() error {
		name, err := p.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := field(name.String()); err != nil {
			return err
		}
		return p.ctx.Err()
	})
}

// array reads an array; null is an empty one.
func (p *parser) array(what string, element func() error) error {
	return p.each('[', what+" is no array", element)
}

// each reads what an object or an array holds, one after another.
func (p *parser) each(kind jsontext.Kind, wrong string, read func() error) error {
	switch p.dec.PeekKind() {
	case 'n':
		return p.dec.SkipValue()
	case kind, 0: // 0 is an error, which ReadToken returns
	default:
		return invalid("the body is no inference request in JSON: %s", wrong)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	for end := kind + 2; p.dec.PeekKind() != end; { // } is two behind {, and ] behind [
		if err := read(); err != nil {
			return err
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

func (p *parser) text(what string) (string, error) {
	switch p.dec.PeekKind() {
	case 'n':
		return "", p.dec.SkipValue()
	case '"', 0:
	default:
		return "", invalid("the body is no inference request in JSON: %s is no text", what)
	}
	t, err := p.dec.ReadToken()
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

func (p *parser) integer(what string) (int64, error) {
	v, err := p.dec.ReadValue()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, invalid("the body is no inference request in JSON: %s is %.40s, want an integer", what, v)
	}
	return n, nil
}

func (p *parser) truth(what string) (bool, error) {
	v, err := p.dec.ReadValue()
	if err == nil && v.Kind() != 't' && v.Kind() != 'f' && v.Kind() != 'n' {
		err = invalid("the body is no inference request in JSON: %s is %.40s, want true or false", what, v)
	}
	return v.Kind() == 't', err
}

func (p *parser) parameters(to *parameters) error {
	return p.object("parameters", func(name string) (err error) {
		switch name {
		case "binary_data_size":
			var n int64
			n, err = p.integer(name)
			to.binarySize = &n
		case "binary_data":
			var b bool
			b, err = p.truth(name)
			to.binary = &b
		case "binary_data_output":
			to.binaryOutput, err = p.truth(name)
		case idempotencyParameter:
			if to.key, err = p.text(name); err == nil && to.key == "" {
				err = invalid("the parameter %s is empty", name)
			}
		default:
			err = p.dec.SkipValue()
		}
		return err
	})
}

func (p *parser) output() (out jsonOutput, err error) {
	err = p.object("an output", func(name string) (err error) {
		switch name {
		case "name":
			out.name, err = p.text("the name of an output")
		case "parameters":
			err = p.parameters(&out.parameters)
		default:
			err = p.dec.SkipValue()
		}
		return err
	})
	return out, err
}

// input reads an input; its data, where they come before its shape, later.
func (p *parser) input(body []byte) (*jsonInput, error) {
	in := &jsonInput{}
	return in, p.object("an input", func(name string) (err error) {
		switch name {
		case "name":
			in.Name, err = p.text("the name of an input")
		case "datatype":
			in.known |= 1
			in.Datatype, err = p.text("datatype")
		case "shape":
			in.known |= 2
			in.Shape = nil
			err = p.array("shape", func() error {
				if len(in.Shape) == mostDimensions {
					return invalid("the input %.60q has more than %d dimensions", in.Name, mostDimensions)
				}
				d, err := p.integer("shape")
				in.Shape = append(in.Shape, d)
				return err
			})
		case "parameters":
			err = p.parameters(&in.parameters)
		case "data":
			switch {
			case in.filled || in.data != nil:
				err = invalid("the input %.60q has its data twice", in.Name)
			case in.known == 3:
				in.filled = true
				err = p.data(&in.Tensor, len(body))
			default:
				var v jsontext.Value
				if v, err = p.dec.ReadValue(); err == nil {
					end := int(p.dec.InputOffset())
					in.data = body[end-len(v) : end]
				}
			}
		default:
			err = p.dec.SkipValue()
		}
		return err
	})
}

// finish reads what is left of an input: data that came before the shape, or that
// follow in binary form.
func (p *parser) finish(in *jsonInput, rest *[]byte) error {
	t := &in.Tensor
	size := in.binarySize
	switch {
	case size != nil && (in.filled || in.data != nil):
		return invalid("the input %.60q has both data and binary_data_size", in.Name)
	case size != nil && (*size < 0 || *size > int64(len(*rest))):
		return invalid("the input %.60q has %d bytes of binary data, and %d follow", in.Name, *size, len(*rest))
	case size != nil:
		data := (*rest)[:*size]
		*rest = (*rest)[*size:]
		if err := p.grow(t.decoded(len(data))); err != nil {
			return err
		}
		return t.setBytes(data)
	case in.data != nil:
		late := &parser{ctx: p.ctx, grow: p.grow, dec: jsontext.NewDecoder(bytes.NewBuffer(in.data))}
		return late.data(t, len(in.data))
	case !in.filled:
		return invalid("the input %.60q has no data", in.Name)
	}
	return nil
}

// decoded bounds the memory of a tensor's elements that are given in n bytes.
func (t *Tensor) decoded(n int) int64 {
	if t.Datatype == BYTES {
		return int64(n) + 16*int64(n/4+1) // a length of 4 bytes each
	}
	return int64(n)
}

// data reads elements: an array that is flat or nested as the shape says. length is
// that of the text that they are part of.
func (p *parser) data(t *Tensor, length int) error {
	n, err := elements(t.Name, t.Shape)
	if err != nil {
		return err
	}
	if p.dec.PeekKind() != '[' {
		return invalid("the data of the input %.60q are no array", t.Name)
	}
	hold := min(n, length/2) // what is claimed need not be there
	switch t.Datatype {
	case FP32:
		err = p.grow(4 * int64(hold))
		t.F32 = make([]float32, 0, hold)
	case INT64:
		err = p.grow(8 * int64(hold))
		t.I64 = make([]int64, 0, hold)
	case BYTES:
		err = p.grow(16*int64(hold) + int64(length))
		t.Text = make([]string, 0, hold)
	default:
		return t.check() // which says what is wrong with the data type
	}
	if err != nil {
		return err
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	if p.dec.PeekKind() == '[' && len(t.Shape) > 0 {
		return p.nested(t, n, 0)
	}
	_, err = p.row(t, n)
	return err
}

// nested reads what is behind the bracket of a dimension.
func (p *parser) nested(t *Tensor, n, axis int) error {
	wrong := func() error {
		return invalid("the data of the input %.60q are nested otherwise than its shape %v; nest them as it says, or give them flat", t.Name, t.Shape)
	}
	if axis == len(t.Shape)-1 {
		count, err := p.row(t, n)
		if err == nil && int64(count) != t.Shape[axis] {
			err = wrong()
		}
		return err
	}
	count := int64(0)
	for ; ; count++ {
		switch p.dec.PeekKind() {
		case ']':
			if count != t.Shape[axis] {
				return wrong()
			}
			_, err := p.dec.ReadToken()
			return err
		case '[':
			if count == t.Shape[axis] {
				return wrong()
			}
			if _, err := p.dec.ReadToken(); err != nil {
				return err
			}
			if err := p.nested(t, n, axis+1); err != nil {
				return err
			}
		case 0:
			_, err := p.dec.ReadToken()
			return err
		default:
			return wrong()
		}
	}
}

// row reads elements up to the end of an array and counts them.
func (p *parser) row(t *Tensor, n int) (count int, err error) {
	for ; ; count++ {
		if p.n++; p.n%4096 == 0 {
			if err := p.ctx.Err(); err != nil {
				return 0, err
			}
		}
		switch kind := p.dec.PeekKind(); kind {
		case ']':
			_, err := p.dec.ReadToken()
			return count, err
		case '[', '{':
			return 0, invalid("the data of the input %.60q are nested otherwise than its shape %v; nest them as it says, or give them flat", t.Name, t.Shape)
		}
		v, err := p.dec.ReadValue()
		if err != nil {
			return 0, err
		}
		if t.Length() == n {
			return 0, invalid("the input %.60q has more elements than its shape %v says", t.Name, t.Shape)
		}
		if err := t.appendJSON(v); err != nil {
			return 0, err
		}
	}
}

// appendJSON adds one element.
func (t *Tensor) appendJSON(v jsontext.Value) error {
	wrong := func() error {
		return invalid("the input %.60q of type %s has the element %.40q", t.Name, t.Datatype, []byte(v))
	}
	switch t.Datatype {
	case FP32:
		f, err := strconv.ParseFloat(string(v), 32)
		if err != nil || v.Kind() != '0' {
			return wrong()
		}
		t.F32 = append(t.F32, float32(f))
	case INT64:
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return wrong()
		}
		t.I64 = append(t.I64, n)
	case BYTES:
		if v.Kind() != '"' {
			return wrong()
		}
		text, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return wrong()
		}
		t.Text = append(t.Text, string(text))
	}
	return nil
}

const (
	// versionParameter names the version of the graph in a reply.
	versionParameter = "graph_version"
	// idempotencyParameter names a request, so that it takes effect once.
	idempotencyParameter = "idempotency_key"
)

// writeResponse gives the body of a reply, and the length of its JSON where binary
// tensors follow, else −1.
func writeResponse(name, id string, res *Result, binary formats) (body []byte, header int, err error) {
	quote := func(b []byte, text string) []byte {
		b, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(text, "\uFFFD")) // which fails on other text alone
		return b
	}
	field := func(b []byte, name, value string) []byte {
		b = append(quote(b, name), ':')
		return quote(b, value)
	}
	b := field([]byte{'{'}, "model_name", name)
	b = field(append(b, ','), "model_version", modelVersion)
	if id != "" {
		b = field(append(b, ','), "id", id)
	}
	if res.GraphVersion > 0 {
		b = fmt.Appendf(b, `,"parameters":{%q:%d}`, versionParameter, res.GraphVersion)
	}
	b = append(b, `,"outputs":[`...)
	header = -1
	var rest []*Tensor
	for i := range res.Outputs {
		t := &res.Outputs[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = field(append(b, '{'), "name", t.Name)
		b = field(append(b, ','), "datatype", t.Datatype)
		b = append(b, `,"shape":[`...)
		for k, d := range t.Shape {
			if k > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, d, 10)
		}
		b = append(b, ']')
		if binary.of(t.Name) {
			b = fmt.Appendf(b, `,"parameters":{"binary_data_size":%d}`, t.binaryBytes())
			rest = append(rest, t)
		} else if b, err = t.appendToJSON(append(b, `,"data":`...), quote); err != nil {
			return nil, 0, err
		}
		b = append(b, '}')
	}
	b = append(b, "]}"...)
	if len(rest) == 0 {
		return b, -1, nil
	}
	header = len(b)
	for _, t := range rest {
		b = t.appendBytes(b)
	}
	return b, header, nil
}

// appendToJSON adds the elements as an array.
func (t *Tensor) appendToJSON(b []byte, quote func([]byte, string) []byte) ([]byte, error) {
	b = append(b, '[')
	for i := range t.Length() {
		if i > 0 {
			b = append(b, ',')
		}
		switch t.Datatype {
		case FP32:
			v := float64(t.F32[i])
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("the output %.60q has the element %v, which JSON cannot say; ask for binary data", t.Name, v)
			}
			format := byte('f')
			if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
				format = 'e'
			}
			b = strconv.AppendFloat(b, v, format, -1, 32)
		case INT64:
			b = strconv.AppendInt(b, t.I64[i], 10)
		case BYTES:
			b = quote(b, t.Text[i])
		}
	}
	return append(b, ']'), nil
}

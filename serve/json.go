package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// parameters of the protocol are free; those here are read.
type parameters struct {
	BinarySize   *int64 `json:"binary_data_size"`
	Binary       *bool  `json:"binary_data"`
	BinaryOutput bool   `json:"binary_data_output"`
}

type jsonRequest struct {
	ID         string     `json:"id"`
	Parameters parameters `json:"parameters"`
	Inputs     []struct {
		Name       string          `json:"name"`
		Datatype   string          `json:"datatype"`
		Shape      []int64         `json:"shape"`
		Parameters parameters      `json:"parameters"`
		Data       json.RawMessage `json:"data"`
	} `json:"inputs"`
	Outputs []struct {
		Name       string     `json:"name"`
		Parameters parameters `json:"parameters"`
	} `json:"outputs"`
}

// parseRequest reads the body of an inference request. header is the length of its
// JSON where binary tensors follow, −1 where it is JSON alone. binary tells which
// outputs are wanted in binary form; its entry "" is for those that are not named.
func parseRequest(body []byte, header int) (r *Request, binary map[string]bool, err error) {
	var rest []byte
	if header >= 0 {
		if header > len(body) {
			return nil, nil, invalid("the header %s says %d, and the body has %d bytes", lengthHeader, header, len(body))
		}
		body, rest = body[:header], body[header:]
	}
	var j jsonRequest
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&j); err != nil {
		return nil, nil, invalid("the body is no inference request in JSON: %v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, nil, invalid("the body goes on after the inference request")
	}
	r = &Request{ID: j.ID}
	for _, in := range j.Inputs {
		t := Tensor{Name: in.Name, Datatype: in.Datatype, Shape: in.Shape}
		n, err := elements(t.Name, t.Shape)
		if err != nil {
			return nil, nil, err
		}
		switch size := in.Parameters.BinarySize; {
		case size != nil && in.Data != nil:
			return nil, nil, invalid("the input %q has both data and binary_data_size", in.Name)
		case size != nil && (*size < 0 || *size > int64(len(rest))):
			return nil, nil, invalid("the input %q has %d bytes of binary data, and %d follow", in.Name, *size, len(rest))
		case size != nil:
			err = t.setBytes(rest[:*size])
			rest = rest[*size:]
		case in.Data == nil:
			return nil, nil, invalid("the input %q has no data", in.Name)
		default:
			err = t.setJSON(in.Data, n)
		}
		if err != nil {
			return nil, nil, err
		}
		r.Inputs = append(r.Inputs, t)
	}
	if len(rest) > 0 {
		return nil, nil, invalid("%d bytes follow that belong to no input", len(rest))
	}
	binary = map[string]bool{"": j.Parameters.BinaryOutput}
	for _, out := range j.Outputs {
		r.Outputs = append(r.Outputs, out.Name)
		binary[out.Name] = j.Parameters.BinaryOutput
		if out.Parameters.Binary != nil {
			binary[out.Name] = *out.Parameters.Binary
		}
	}
	return r, binary, nil
}

// setJSON reads elements from valid JSON: an array, which may be nested. n are
// expected.
func (t *Tensor) setJSON(data []byte, n int) error {
	n = min(n, len(data)/2) // what is claimed need not be there
	switch t.Datatype {
	case FP32:
		t.F32 = make([]float32, 0, n)
	case INT64:
		t.I64 = make([]int64, 0, n)
	case BYTES:
		t.Text = make([]string, 0, n)
	}
	if len(data) == 0 || data[0] != '[' {
		return invalid("the data of the input %q are no array", t.Name)
	}
	for i := 0; i < len(data); {
		switch c := data[i]; c {
		case '[', ']', ',', ' ', '\t', '\n', '\r':
			i++
		default:
			end := i + 1
			if c == '"' {
				for ; data[end] != '"'; end++ {
					if data[end] == '\\' {
						end++
					}
				}
				end++
			} else {
				for end < len(data) && !bytes.ContainsRune([]byte(",] \t\r\n"), rune(data[end])) {
					end++
				}
			}
			if err := t.appendJSON(data[i:end]); err != nil {
				return err
			}
			i = end
		}
	}
	return nil
}

// appendJSON adds one element.
func (t *Tensor) appendJSON(text []byte) error {
	var err error
	switch t.Datatype {
	case FP32:
		var v float64
		if v, err = strconv.ParseFloat(string(text), 32); err == nil {
			t.F32 = append(t.F32, float32(v))
		}
	case INT64:
		var v int64
		if v, err = strconv.ParseInt(string(text), 10, 64); err == nil {
			t.I64 = append(t.I64, v)
		}
	case BYTES:
		var v *string // nil for null
		if err = json.Unmarshal(text, &v); err == nil && v == nil {
			err = errors.New("null is no text")
		}
		if err == nil {
			t.Text = append(t.Text, *v)
		}
	default:
		return t.check() // which says what is wrong with the data type
	}
	if err != nil {
		return invalid("the input %q of type %s has the element %.40q", t.Name, t.Datatype, text)
	}
	return nil
}

type jsonOutput struct {
	Name       string           `json:"name"`
	Datatype   string           `json:"datatype"`
	Shape      []int64          `json:"shape"`
	Parameters map[string]int64 `json:"parameters,omitempty"`
	Data       any              `json:"data,omitempty"`
}

type jsonResponse struct {
	ModelName    string           `json:"model_name"`
	ModelVersion string           `json:"model_version"`
	ID           string           `json:"id,omitempty"`
	Parameters   map[string]int64 `json:"parameters,omitempty"`
	Outputs      []jsonOutput     `json:"outputs"`
}

// versionParameter names the version of the graph in a reply.
const versionParameter = "graph_version"

// writeResponse gives the body of a reply, and the length of its JSON where binary
// tensors follow, else −1.
func writeResponse(name, id string, res *Result, binary map[string]bool) (body []byte, header int, err error) {
	j := jsonResponse{ModelName: name, ModelVersion: modelVersion, ID: id, Outputs: []jsonOutput{}}
	if res.GraphVersion > 0 {
		j.Parameters = map[string]int64{versionParameter: res.GraphVersion}
	}
	var rest []byte
	header = -1
	for i := range res.Outputs {
		t := &res.Outputs[i]
		o := jsonOutput{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape}
		want, named := binary[t.Name]
		if !named {
			want = binary[""]
		}
		if want {
			before := len(rest)
			rest = t.appendBytes(rest)
			o.Parameters = map[string]int64{"binary_data_size": int64(len(rest) - before)}
			header = 0
		} else if o.Data, err = t.forJSON(); err != nil {
			return nil, 0, err
		}
		j.Outputs = append(j.Outputs, o)
	}
	if body, err = json.Marshal(j); err != nil {
		return nil, 0, err
	}
	if header == 0 {
		header = len(body)
	}
	return append(body, rest...), header, nil
}

// forJSON returns the elements as JSON takes them: an array, though it be empty.
func (t *Tensor) forJSON() (any, error) {
	switch t.Datatype {
	case INT64:
		return append([]int64{}, t.I64...), nil
	case BYTES:
		return append([]string{}, t.Text...), nil
	}
	for _, v := range t.F32 {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("the output %q has the element %v, which JSON cannot say; ask for binary data", t.Name, v)
		}
	}
	return append([]float32{}, t.F32...), nil
}

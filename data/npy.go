package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const npyMagic = "\x93NUMPY"

// npyHeader is what stands before the elements of a .npy file.
type npyHeader struct {
	dtype   dtype
	shape   []int
	fortran bool
	size    int // bytes up to the first element
}

// parseNPY reads a .npy file, versions 1 to 3 of the format (NumPy enhancement
// proposal 1 and its amendments). The array aliases b.
func parseNPY(b []byte) (*array, error) {
	h, err := parseNPYHeader(b)
	if err != nil {
		return nil, err
	}
	return newArray(h.dtype, h.shape, h.fortran, b[h.size:])
}

// parseNPYHeader reads the header of a .npy file.
func parseNPYHeader(b []byte) (npyHeader, error) {
	var h npyHeader
	if len(b) == 0 {
		return h, errors.New("empty")
	}
	if len(b) < 10 || string(b[:6]) != npyMagic {
		return h, errors.New("not a NumPy .npy file: the magic bytes are missing")
	}
	var n, at int
	switch b[6] {
	case 1:
		n, at = int(binary.LittleEndian.Uint16(b[8:])), 10
	case 2, 3:
		if len(b) < 12 {
			return h, errors.New("header is truncated")
		}
		l := binary.LittleEndian.Uint32(b[8:])
		if l > 1<<20 {
			return h, fmt.Errorf("header claims %d bytes", l)
		}
		n, at = int(l), 12
	default:
		return h, fmt.Errorf("version %d of the .npy format is not supported", b[6])
	}
	if n > len(b)-at {
		return h, fmt.Errorf("header of %d bytes is truncated", n)
	}
	h.size = at + n
	p := literal(b[at:h.size])
	if err := p.header(&h); err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	return h, nil
}

// literal is what is left of the Python dictionary in a .npy header: the three keys that
// the format defines, in any order, and nothing else.
type literal string

// literalToken is a string without escapes, a word or number, or another sign.
var literalToken = regexp.MustCompile(`^('[^']*'|"[^"]*"|[0-9A-Za-z]+|.)`)

func (p *literal) header(h *npyHeader) error {
	if err := p.expect("{"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.peek() != "}" {
		key, err := p.str()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("key %s appears twice", quote(key))
		}
		seen[key] = true
		if err := p.expect(":"); err != nil {
			return err
		}
		switch key {
		case "descr":
			if c := p.peek(); c == "[" || c == "(" {
				return errors.New("structured types are not supported: save plain arrays")
			}
			s, err := p.str()
			if err != nil {
				return err
			}
			if h.dtype, err = parseDtype(s); err != nil {
				return err
			}
		case "fortran_order":
			word := p.next()
			if word != "True" && word != "False" {
				return fmt.Errorf("fortran_order is %s", quote(word))
			}
			h.fortran = word == "True"
		case "shape":
			if h.shape, err = p.tuple(); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown key %s", quote(key))
		}
		if p.peek() != "," {
			break
		}
		p.next()
	}
	if err := p.expect("}"); err != nil {
		return err
	}
	if p.peek() != "" {
		return errors.New("text after the dictionary")
	}
	if len(seen) != 3 {
		return errors.New("needs the keys descr, fortran_order and shape")
	}
	return nil
}

// peek returns the next token, empty at the end.
func (p *literal) peek() string {
	*p = literal(strings.TrimLeft(string(*p), " \t\r\n"))
	return literalToken.FindString(string(*p))
}

// next takes the next token.
func (p *literal) next() string {
	t := p.peek()
	*p = (*p)[len(t):]
	return t
}

func (p *literal) expect(token string) error {
	if got := p.next(); got != token {
		return fmt.Errorf("expected '%s', found %s", token, quote(got))
	}
	return nil
}

// str takes a quoted string.
func (p *literal) str() (string, error) {
	t := p.next()
	switch {
	case t == "'" || t == `"`:
		return "", errors.New("a string does not end")
	case t == "" || t[0] != '\'' && t[0] != '"':
		return "", fmt.Errorf("expected a string, found %s", quote(t))
	}
	return t[1 : len(t)-1], nil
}

// tuple takes a tuple of whole numbers; Python 2 wrote some with a final L.
func (p *literal) tuple() ([]int, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var out []int
	for p.peek() != ")" {
		word := p.next()
		n, err := strconv.ParseInt(strings.TrimSuffix(word, "L"), 10, strconv.IntSize)
		if err != nil || len(out) == 8 {
			return nil, fmt.Errorf("shape is not a short tuple of whole numbers, but has %s", quote(word))
		}
		out = append(out, int(n))
		if p.peek() != "," {
			break
		}
		p.next()
	}
	return out, p.expect(")")
}

package data

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	p := literal{s: string(b[at:h.size])}
	if err := p.header(&h); err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	return h, nil
}

// literal parses the Python dictionary in a .npy header: the three keys that
// the format defines, in any order, and nothing else.
type literal struct {
	s string
	i int
}

func (p *literal) header(h *npyHeader) error {
	if err := p.expect('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.peek() != '}' {
		key, err := p.str()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("key %s appears twice", quote(key))
		}
		seen[key] = true
		if err := p.expect(':'); err != nil {
			return err
		}
		switch key {
		case "descr":
			if c := p.peek(); c == '[' || c == '(' {
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
			word := p.word()
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
		if p.peek() != ',' {
			break
		}
		p.i++
	}
	if err := p.expect('}'); err != nil {
		return err
	}
	if p.peek() != 0 {
		return errors.New("text after the dictionary")
	}
	if len(seen) != 3 {
		return errors.New("needs the keys descr, fortran_order and shape")
	}
	return nil
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *literal) peek() byte {
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.i]) >= 0 {
		p.i++
	}
	if p.i == len(p.s) {
		return 0
	}
	return p.s[p.i]
}

func (p *literal) expect(c byte) error {
	if got := p.peek(); got != c {
		return fmt.Errorf("expected %q at byte %d", c, p.i)
	}
	p.i++
	return nil
}

// str reads a quoted string without escapes.
func (p *literal) str() (string, error) {
	q := p.peek()
	if q != '\'' && q != '"' {
		return "", fmt.Errorf("expected a string at byte %d", p.i)
	}
	n := strings.IndexByte(p.s[p.i+1:], q)
	if n < 0 {
		return "", errors.New("a string does not end")
	}
	s := p.s[p.i+1 : p.i+1+n]
	p.i += n + 2
	return s, nil
}

// word reads letters and digits.
func (p *literal) word() string {
	p.peek()
	from := p.i
	for p.i < len(p.s) {
		c := p.s[p.i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			break
		}
		p.i++
	}
	return p.s[from:p.i]
}

// tuple reads a tuple of whole numbers; Python 2 wrote some with a final L.
func (p *literal) tuple() ([]int, error) {
	if err := p.expect('('); err != nil {
		return nil, err
	}
	var out []int
	for p.peek() != ')' {
		w := p.word()
		n, err := strconv.ParseInt(strings.TrimSuffix(w, "L"), 10, strconv.IntSize)
		if err != nil || len(out) == 8 {
			return nil, fmt.Errorf("shape is not a short tuple of whole numbers at byte %d", p.i)
		}
		out = append(out, int(n))
		if p.peek() != ',' {
			break
		}
		p.i++
	}
	return out, p.expect(')')
}

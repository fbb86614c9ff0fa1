package driver

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"unsafe"
)

// Module is a text of PTX, compiled by the driver for the device.
type Module struct {
	c      *Context
	handle uintptr
	params map[string]int // of each entry
}

// Function is a kernel of a module.
type Function struct {
	Name   string
	Params int // how many arguments a launch gives

	m      *Module
	handle uintptr
}

// Options of the driver's compiler, by their numbers in cuda.h.
const (
	jitErrorLog      = 5
	jitErrorLogBytes = 6
)

// LoadModule has the driver compile PTX. The error is [ErrModule] where it refuses
// the text, with the compiler's log. The driver keeps what it compiled in a cache on
// disk, so that only the first process waits for it.
func (c *Context) LoadModule(ptx string) (*Module, error) {
	m := &Module{c: c, params: entries(ptx)}
	image := append([]byte(ptx), 0)
	log := make([]byte, 8<<10)
	var pin runtime.Pinner // values holds its address as a number
	pin.Pin(&log[0])
	defer pin.Unpin()
	options := []int32{jitErrorLog, jitErrorLogBytes}
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log))}
	r := c.code(c.d.fn["cuModuleLoadDataEx"], uintptr(unsafe.Pointer(&m.handle)), uintptr(unsafe.Pointer(&image[0])),
		uintptr(len(options)), uintptr(unsafe.Pointer(&options[0])), uintptr(unsafe.Pointer(&values[0])))
	if r == 0 {
		return m, nil
	}
	e := c.d.fail(c.d.fn["cuModuleLoadDataEx"], r)
	log[len(log)-1] = 0
	e.Detail = strings.TrimSpace(cString(&log[0]))
	return nil, e
}

var (
	entryPattern = regexp.MustCompile(`\.entry\s+([A-Za-z_$][\w$]*)\s*(?:\(([^)]*)\))?`)
	comment      = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
)

// entries counts the parameters of each kernel of a text of PTX. The driver does not
// tell how many there are, and reads as many as there are.
func entries(ptx string) map[string]int {
	m := map[string]int{}
	for _, x := range entryPattern.FindAllStringSubmatch(comment.ReplaceAllString(ptx, " "), -1) {
		m[x[1]] = strings.Count(x[2], ".param")
	}
	return m
}

// Function finds a kernel of the module by name.
func (m *Module) Function(name string) (*Function, error) {
	n, ok := m.params[name]
	if !ok {
		return nil, fmt.Errorf("%w: the module has no kernel %s", ErrModule, name)
	}
	f := &Function{Name: name, Params: n, m: m}
	text := append([]byte(name), 0)
	if err := m.c.call(m.c.d.fn["cuModuleGetFunction"], uintptr(unsafe.Pointer(&f.handle)), m.handle, uintptr(unsafe.Pointer(&text[0]))); err != nil {
		return nil, err
	}
	return f, nil
}

// Close unloads the module; its functions are of no use then.
func (m *Module) Close() error {
	return m.c.destroy(m.c.d.fn["cuModuleUnload"], &m.handle)
}

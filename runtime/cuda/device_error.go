package cuda

import (
	"encoding/binary"
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
)

// IndexError is what an operation met on a device that found an index of its operands
// outside of its range. Kernels do not wait for each other, so that it comes when the
// host next reads from the device; results of that run are not to be used.
type IndexError struct{ Op *ir.Op }

func (e *IndexError) Error() string {
	line := ""
	if p := e.Op.Place; p != nil {
		line = fmt.Sprintf(" (line %d)", p.Line)
	}
	return fmt.Sprintf("%s%s: an index is outside of its range; run with --device cpu to see which", e.Op, line)
}

// faults numbers the operations that may note one.
type faults struct {
	ops    []*ir.Op // by number, from 1
	number map[*ir.Op]int
}

// faultAt is where the word lies behind the step number.
const faultAt = 8

// Fault returns where an operation notes a fault, and its number; see [Stream].
func (d *Device) Fault(op *ir.Op) (word uintptr, number int) {
	f := &d.faults
	n, ok := f.number[op]
	if !ok {
		if f.number == nil {
			f.number = map[*ir.Op]int{}
		}
		f.ops = append(f.ops, op)
		n = len(f.ops)
		f.number[op] = n
	}
	return d.step + faultAt, n
}

// fault returns the error of what was noted, as it was just read, and has the device
// forget it.
func (d *Device) fault(word []byte) error {
	n := int(binary.LittleEndian.Uint32(word))
	if n == 0 {
		return nil
	}
	if err := d.stream.Fill(d.step+faultAt, 0, 4); err != nil {
		return err
	}
	if n > len(d.faults.ops) {
		return fmt.Errorf("%s: the device's memory was overwritten", d.name)
	}
	return &IndexError{d.faults.ops[n-1]}
}

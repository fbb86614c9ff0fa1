package passes

import "github.com/gsrc-dev/gsrc/ir"

// dce deletes operations that no result depends on.
func dce(m *ir.Module, _ DataInfo) error {
	for _, f := range m.Funcs {
		pruneBody(f)
	}
	return nil
}

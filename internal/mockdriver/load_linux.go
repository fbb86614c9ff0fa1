package mockdriver

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// Load loads what Build made. The process has one mock driver, however often it is loaded
// and whoever opens it.
func Load(path string) (*Library, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	l := &Library{}
	for name, f := range map[string]any{
		"gsrc_mockdriver_set": &l.set, "gsrc_mockdriver_count": &l.count, "gsrc_mockdriver_live": &l.live, "gsrc_mockdriver_violations": &l.violations, "gsrc_mockdriver_reset": &l.reset,
	} {
		if _, err := purego.Dlsym(h, name); err != nil {
			return nil, fmt.Errorf("%s is not the mock driver: %w", path, err)
		}
		purego.RegisterLibFunc(f, h, name)
	}
	return l, nil
}

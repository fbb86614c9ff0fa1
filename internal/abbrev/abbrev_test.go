package abbrev

import (
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{[]string{"short", "Neural networks", "Theory"}, []string{"short", "Neural netw…", "Theory"}},
		{[]string{"Department A", "Department of A", "Department of B"}, []string{"Department A", "Depar…t of A", "Depar…t of B"}},
		{[]string{"Departments of A and B", "Departments or A and B", "Café"}, []string{"0: Departme…", "1: Departme…", "Café"}},
		{nil, nil},
	} {
		if got := Names(c.names, 12); !slices.Equal(got, c.want) {
			t.Errorf("%q became %q, want %q", c.names, got, c.want)
		}
	}
}

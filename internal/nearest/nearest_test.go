package nearest

import "testing"

func TestOf(t *testing.T) {
	names := []string{"ecl-gsr", "gcn", "mlp", "edges.old_lo", "edges.old_hi"}
	for name, want := range map[string]string{
		"gcm": "gcn", "GCN": "gcn", "eclgsr": "ecl-gsr", "ecl-grs": "ecl-gsr", "edges.old_l": "edges.old_lo",
		"edgs.old_hi": "edges.old_hi", "transformer": "", "": "", "x": "",
	} {
		if got := Of(name, names); got != want {
			t.Errorf("nearest of %q is %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance of %q and %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestHint(t *testing.T) {
	if got := Hint("gcm", []string{"gcn"}); got != `; did you mean "gcn"?` {
		t.Error(got)
	}
	if got := Hint("unlike", []string{"gcn", "mlp"}); got != "; there are gcn, mlp" {
		t.Error(got)
	}
	if got := Hint("unlike", nil); got != "" {
		t.Error(got)
	}
}

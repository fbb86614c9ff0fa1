package version

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"dependency", debug.BuildInfo{Main: debug.Module{Path: "example.org/x", Version: "v2.0.0"}, Deps: []*debug.Module{{Path: modulePath, Version: "v0.1.0"}}, Settings: vcs}, "v0.1.0"},
		{"installed", debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "v0.2.0"}}, "v0.2.0"},
		{"source tree", debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "(devel)"}, Settings: vcs}, "devel-0123456789ab+dirty"},
		{"clean tree", debug.BuildInfo{Main: debug.Module{Path: modulePath}, Settings: vcs[:1]}, "devel-0123456789ab"},
		{"no revision", debug.BuildInfo{Main: debug.Module{Path: modulePath}}, "devel"},
		{"replaced", debug.BuildInfo{Main: debug.Module{Path: "example.org/x"}, Deps: []*debug.Module{{Path: modulePath, Version: "(devel)"}}, Settings: vcs}, "devel"},
	} {
		if got := of(&c.info); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

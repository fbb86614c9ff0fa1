// Package version tells the version of gsrc that a program is built with.
package version

import "runtime/debug"

// String returns the version of gsrc that this program is built with: the
// module's version where it is a dependency or was installed by version, else
// the revision of the source tree, "devel" where neither is known.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return of(info)
}

const modulePath = "github.com/gsrc-dev/gsrc"

func of(info *debug.BuildInfo) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == modulePath && m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	if info.Main.Path != modulePath {
		return "devel" // a revision would be that of the program around it
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if revision == "" {
		return "devel"
	}
	return "devel-" + revision + dirty
}

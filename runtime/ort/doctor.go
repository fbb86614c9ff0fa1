package ort

import (
	"context"
	"runtime"

	"github.com/gsrc-dev/gsrc/internal/download"
)

// Doctor gathers the facts about onnxruntime on this machine. It downloads
// nothing; it opens the library, if there is one, to ask for its version.
func Doctor(ctx context.Context) Facts {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	facts := Facts{Platform: platform, Cgo: haveCgo, Wanted: Version}
	lib, err := Locate(ctx)
	if err != nil {
		facts.Problem = err.Error()
		return facts
	}
	facts.Library = lib
	sum, err := download.SHA256(lib.Path)
	if err != nil {
		facts.Problem = err.Error()
		return facts
	}
	facts.SHA256 = sum.SHA256
	for _, o := range catalog[platform] {
		if o.librarySHA256 == facts.SHA256 {
			facts.Pinned = string(o.kind)
			break
		}
	}
	if !haveCgo {
		facts.Problem = ErrNoCgo.Error()
		return facts
	}
	facts.Loaded, err = load(lib)
	if err != nil {
		facts.Problem = err.Error()
		return facts
	}
	facts.Providers = []ProviderFact{{Provider: CPU, Works: true}, {Provider: CUDA}}
	if err := probeCUDA(); err != nil {
		facts.Providers[1].Reason = err.Error()
	} else {
		facts.Providers[1].Works = true
	}
	return facts
}

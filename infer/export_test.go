package infer

import (
	"testing"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
)

// Exported is a run and its export.
type Exported struct {
	Dist   string
	Data   *data.Dataset
	Config *config.Config
	Load   data.LoadOptions // how the run has read its data
}

// Train makes a run in dir and its export beside it. Training builds on this package, so
// that tests inside it cannot import it; train_test.go sets this.
var Train func(t testing.TB, dir, model, path string, b export.BuildOptions, set ...string) *Exported

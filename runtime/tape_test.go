package runtime_test

import (
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/gorgonia"
)

func init() { runtime.TapeExecutor = gorgonia.NewTapeExecutor }

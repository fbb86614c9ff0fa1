package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gsrc-dev/gsrc/data/catalog"
	"github.com/gsrc-dev/gsrc/internal/cudaemulator"
	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/internal/mockdriver"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gsrc": func() { os.Exit(mainCode()) }})
}

// TestScripts runs the command line as a user does; testdata/script has one
// file for each subject.
func TestScripts(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	pyg, err := filepath.Abs(filepath.Join("..", "..", "models", "pyg", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	earlier, err := filepath.Abs(filepath.Join("..", "..", "testdata", "earlier"))
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	python := cmp.Or(os.Getenv("GSRC_PYTHON"), "python3")
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			// The user's cache holds onnxruntime; a script's home is empty.
			env.Setenv("XDG_CACHE_HOME", cache)
			env.Setenv(catalog.EnvVar, "")
			env.Setenv(catalog.MirrorVar, "")
			env.Setenv("PYG", pyg)
			env.Setenv("EARLIER", earlier)
			env.Setenv("EXAMPLES", examples)
			env.Setenv("PYTHON", python)
			for _, name := range []string{ort.EnvVar, "LD_LIBRARY_PATH"} {
				env.Setenv(name, os.Getenv(name))
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "mock":
				_, err := cudatest.Build()
				if errors.Is(err, mockdriver.ErrNoCompiler) || errors.Is(err, cudaemulator.ErrNoCompiler) {
					return false, nil
				}
				return err == nil, err
			case "pandas": // GSRC_PYTHON or python3 has it, and onnxruntime
				return exec.Command(python, "-c", "import pandas, onnxruntime").Run() == nil, nil
			case "onnxruntime":
			default:
				return false, fmt.Errorf("no condition %q", name)
			}
			return ort.Doctor(context.Background()).Problem == "", nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":      exits,
			"jsonlines":  jsonLines,
			"swap":       swap,
			"interrupt":  interrupt,
			"timeline":   timeline,
			"cpuprofile": cpuprofile,
			"mirror":     mirror,
			"untimed":    untimed,
			"mock":       useMockDriver,
		},
	})
}

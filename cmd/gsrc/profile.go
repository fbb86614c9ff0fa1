package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"runtime/pprof"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/spf13/pflag"
)

// profileFlags are those of train that look at where time goes.
type profileFlags struct {
	file  string
	steps int
}

func (f *profileFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "profile", "", "write a CPU profile (FILE.pprof) and a time line of operations (FILE.json, for ui.perfetto.dev); with one of these endings only that")
	numberFlag(flags, &f.steps, "profile-steps", 20, 1, "with --profile: runs of each function on the time line, and classifier steps in the CPU profile")
}

// profile watches a training run: the first steps of every function on a time
// line, and the processor until that many steps of the last phase are done. Without
// --profile it is the observer alone.
type profile struct {
	app      *app
	observer train.Observer
	trace    *runtime.Trace // nil: not asked for

	next          train.Observer
	steps         int
	cpu           bytes.Buffer
	sampling      bool
	cpuFile, line string // empty: not asked for
}

func (a *app) startProfile(f *profileFlags, next train.Observer) (*profile, error) {
	p := &profile{app: a, observer: next, next: next, steps: f.steps}
	if f.file == "" {
		return p, nil
	}
	switch ext := filepath.Ext(f.file); ext {
	case ".pprof":
		p.cpuFile = f.file
	case ".json":
		p.line = f.file
	default:
		p.cpuFile, p.line = f.file+".pprof", f.file+".json"
	}
	if p.line != "" {
		p.trace = runtime.NewTrace(f.steps)
	}
	if p.cpuFile != "" {
		if err := pprof.StartCPUProfile(&p.cpu); err != nil {
			return nil, err
		}
		p.sampling, p.observer = true, p
	}
	return p, nil
}

// Observe counts the steps of the last phase.
func (p *profile) Observe(e train.Event) {
	if (e.Phase == "train" || e.Phase == "fit") && p.sampling {
		if p.steps--; p.steps <= 0 {
			p.stop()
		}
	}
	p.next.Observe(e)
}

// stop ends the CPU profile.
func (p *profile) stop() {
	if p.sampling {
		pprof.StopCPUProfile()
		p.sampling = false
	}
}

// failed ends the profile of work that ended in an error, and writes it where that was stopped by the
// user, who may have seen enough.
func (p *profile) failed(ctx context.Context, err error) error {
	p.stop()
	if gsrc.IsInterrupted(ctx, err) {
		return errors.Join(err, p.write())
	}
	return err
}

// write writes what was asked for.
func (p *profile) write() error {
	p.stop()
	var wrote []string
	if p.cpuFile != "" {
		if err := atomicfile.WriteBytes(p.cpuFile, p.cpu.Bytes()); err != nil {
			return err
		}
		wrote = append(wrote, p.cpuFile+" (look at it with: go tool pprof -http=: "+p.cpuFile+")")
	}
	if p.line != "" {
		if err := atomicfile.Write(p.line, p.trace.Write); err != nil {
			return err
		}
		wrote = append(wrote, p.line+" (open it in ui.perfetto.dev)")
	}
	if len(wrote) > 0 {
		p.app.logf("wrote %s", strings.Join(wrote, " and "))
	}
	return nil
}

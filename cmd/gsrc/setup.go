package main

import (
	"errors"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/spf13/pflag"
)

// setupFlags are what train and build share: the data and the options.
type setupFlags struct {
	split    string
	preset   string
	directed bool
	tables   tableFlags
}

func (f *setupFlags) register(flags *pflag.FlagSet, o *gsrc.TrainOptions) {
	flags.StringVar(&o.Data, "data", "", "data set: a folder, a file, the name of a fetched one, or synthetic")
	flags.StringVar(&o.Config, "config", "", "TOML file of options")
	flags.StringVar(&f.preset, "preset", "", "a built-in file of options in the place of --config: paper, ecl-gsr as the paper has it (docs/paper.md), or general, the defaults of all data without those of a data set, of few labels or of your own graphs (docs/auto.md)")
	// An array, not a slice: a value may hold commas.
	flags.StringArrayVar(&o.Set, "set", nil, "set one option, key=value; may be repeated")
	numberFlag(flags, &o.Seed, "seed", 0, 0, "seed of every random stream and of the split")
	splitFlag(flags, &f.split, splitHelp)
	flags.BoolVar(&f.directed, "directed", false, "keep the direction of edges")
}

// apply enters the flags that are names for options.
func (f *setupFlags) apply(o *gsrc.TrainOptions) error {
	if o.Model != "" && o.Model != autoModel {
		if err := models.Check(o.Model); err != nil {
			return asUsage(err)
		}
	}
	if f.preset != "" {
		if o.Config != "" {
			return usage("--preset and --config both name a file of options: give one of them")
		}
		o.Config = config.Preset + f.preset
	}
	if f.split != "" {
		o.Set = append(o.Set, "data.split="+f.split)
	}
	if err := f.tables.check(); err != nil {
		return err
	}
	o.Set = append(o.Set, f.tables.set()...)
	if f.directed {
		o.Set = append(o.Set, "data.directed=true")
	}
	return nil
}

// optionFault marks a fault in --set as the command line's.
func optionFault(err error) error {
	if _, ok := errors.AsType[*gsrc.OptionError](err); ok {
		return asUsage(err)
	}
	return err
}

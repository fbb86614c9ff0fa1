package main

import (
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data/catalog"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/spf13/cobra"
)

// completions lists what a shell may put in the place of an argument or of a flag's value.
var completions = map[string]func() []string{
	"--data": dataNames, "--set": optionNames,
	"--lowering": func() []string {
		return []string{string(onnx.DegreeBuckets), string(onnx.PrecomputedBuckets), string(onnx.Scatter), string(onnx.Dense), string(onnx.Auto)}
	},
	"--func": func() []string {
		return []string{"classify", "train", "encode", "score", "pretrain", "joint", "fit", "refine"}
	},
	"ops": func() (names []string) {
		for _, op := range ir.Ops() {
			names = append(names, op.Name)
		}
		return names
	},
	"data fetch": dataNames, "data info": dataNames, "data plant": dataNames,
	"train": modelNames, "sweep": modelNames, "tune": modelNames,
}

func modelNames() (names []string) {
	for _, m := range models.All {
		names = append(names, m.Name+"\t"+m.Doc)
	}
	return names
}

func dataNames() []string { return catalog.Names() }

func optionNames() (names []string) {
	for _, n := range config.KeyNames() {
		names = append(names, n+"=\t"+config.Keys()[n].Doc)
	}
	return names
}

// complete has a command's arguments and flags completed; files stay a choice where a name
// may be a file's.
func complete(c *cobra.Command) {
	of := func(list func() []string, rest cobra.ShellCompDirective) cobra.CompletionFunc {
		return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			names := slices.DeleteFunc(list(), func(n string) bool { return !strings.HasPrefix(n, begun) })
			return names, rest
		}
	}
	if list := completions[strings.TrimPrefix(c.CommandPath(), "gsrc ")]; list != nil {
		c.ValidArgsFunction = of(list, cobra.ShellCompDirectiveDefault)
	}
	for _, flag := range []string{"data", "set", "lowering", "func"} {
		if c.Flags().Lookup(flag) == nil {
			continue
		}
		rest := cobra.ShellCompDirectiveDefault
		if flag == "set" {
			rest = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		_ = c.RegisterFlagCompletionFunc(flag, of(completions["--"+flag], rest)) // fails for flags that there are not
	}
}

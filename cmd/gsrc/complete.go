package main

import (
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data/catalog"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/spf13/cobra"
)

// completions lists what a shell may put in the place of an argument or of a flag's value.
var completions = map[string]func() []string{
	"--data": catalog.Names,
	"--lowering": func() []string {
		return []string{string(onnx.DegreeBuckets), string(onnx.PrecomputedBuckets), string(onnx.Scatter), string(onnx.Dense), string(onnx.Auto)}
	},
	"--func": func() []string {
		return []string{"classify", "train", "encode", "score", "pretrain", "joint", "fit", "refine"}
	},
	"ops":        opNames,
	"data fetch": catalog.Names, "data info": catalog.Names, "data plant": catalog.Names,
	"models": modelNames, "train": modelNames, "sweep": modelNames, "tune": modelNames,
}

func modelNames() []string {
	return lists.Map(models.All, func(m models.Model) string { return m.Name + "\t" + m.Doc })
}

func opNames() []string { return lists.Map(ir.Ops(), func(op *ir.OpDef) string { return op.Name }) }

// optionValues are values of options of which there are few, but for those that config knows.
var optionValues = map[string]func() []string{
	"model.classifier":   models.Classifiers,
	"model.encoder.kind": func() []string { return append(models.Encoders(), models.EncoderDiagonal, models.EncoderFGP) },
	"model.norm":         func() []string { return []string{"l1", "l2", "none"} },
	"model.edges.judge":  func() []string { return []string{models.JudgeEmbedding, models.JudgeEvidence} },
	"candidates.similarity": func() []string {
		return []string{config.SimilarityEmbedding, config.SimilarityFeatures, config.SimilarityEvidence}
	},
	"train.device": func() []string { return []string{"cpu", "cuda"} },
}

// settings lists what the value of --set may be that has begun so: options, and behind = the
// values of those that have few.
func settings(begun string) (list []string) {
	name, _, hasValue := strings.Cut(begun, "=")
	if !hasValue {
		return lists.Map(config.KeyNames(), func(n string) string { return n + "=\t" + config.Keys()[n].Doc })
	}
	k := config.Keys()[name]
	values := k.OneOf
	switch spec := ir.Attr(k.Range); {
	case optionValues[name] != nil:
		values = optionValues[name]()
	case k.Type == "true or false":
		values = []string{"true", "false"}
	case values == nil && spec != nil:
		values = spec.OneOf
	}
	for _, v := range values {
		if v != "" {
			list = append(list, name+"="+v)
		}
	}
	return list
}

// complete has a command's arguments and flags completed; files stay a choice where a name
// may be a file's.
func complete(c *cobra.Command) {
	always := func(list func() []string) func(string) []string {
		return func(string) []string { return list() }
	}
	of := func(list func(begun string) []string, rest cobra.ShellCompDirective) cobra.CompletionFunc {
		return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			names := slices.DeleteFunc(list(begun), func(n string) bool { return !strings.HasPrefix(n, begun) })
			if strings.Contains(begun, "=") { // the word ends with the value
				return names, rest &^ cobra.ShellCompDirectiveNoSpace
			}
			return names, rest
		}
	}
	if list := completions[strings.TrimPrefix(c.CommandPath(), "gsrc ")]; list != nil {
		c.ValidArgsFunction = of(always(list), cobra.ShellCompDirectiveDefault)
	}
	for _, flag := range []string{"data", "set", "lowering", "func"} {
		if c.Flags().Lookup(flag) == nil {
			continue
		}
		f := of(settings, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
		if flag != "set" {
			f = of(always(completions["--"+flag]), cobra.ShellCompDirectiveDefault)
		}
		_ = c.RegisterFlagCompletionFunc(flag, f) // fails for flags that there are not
	}
}

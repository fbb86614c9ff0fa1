package main

import (
	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/internal/shell"
	"github.com/spf13/cobra"
)

func (a *app) importCommand() *cobra.Command {
	var o gsrc.ImportOptions
	var setup setupFlags
	c := &cobra.Command{
		Use: "import WEIGHTS --data PATH --out RUN", Short: "Import weights trained in PyTorch Geometric as a run", Args: cobra.ExactArgs(1),
		Long: `Make a run directory of a model that was trained elsewhere, which gsrc build
exports. WEIGHTS is a safetensors file. In Python:

  from safetensors.torch import save_file
  save_file({k: v.contiguous() for k, v in model.state_dict().items()}, "model.safetensors")

Layers are recognised by the names and shapes of their tensors: GCNConv, GATConv,
SAGEConv, Linear and BatchNorm, in the order of the numbers in their names, with
ReLU between them and nothing behind the last. Other settings are given by --layer,
for all layers that have the argument or for one, or in a TOML file:

  --layer activation=elu --layer conv2.add_self_loops=false --layer features=l1

  activation      none, relu, elu, leaky_relu (slope 0.01), sigmoid, tanh
  normalize       of GCNConv (true) and SAGEConv (false)
  add_self_loops  of GCNConv (true)
  improved        of GCNConv (false)
  concat          of GATConv, where neither bias nor the next layer determines it
  negative_slope  of GATConv (0.2)
  aggr            of SAGEConv: mean, sum, max
  eps             of BatchNorm (1e-5)
  features        row normalisation before the first layer: none, l1, l2

A tensor that belongs to no such layer is an error. --expect FILE proves the import:
a safetensors file with logits [nodes, classes], which the model gave for the same
data in Python. With --model NAME, WEIGHTS is the weights.safetensors of a gsrc run.`,
		RunE: func(c *cobra.Command, args []string) error {
			o.Weights, o.Log = args[0], a.logf
			if err := required(c, "data", "out"); err != nil {
				return err
			}
			if err := setup.apply(&o.Train); err != nil {
				return err
			}
			run, err := gsrc.Import(c.Context(), o)
			if err != nil {
				return optionFault(err)
			}
			r := run.Result
			if r.TestAcc != nil {
				a.logf("validation accuracy %.2f %%, test accuracy %.2f %%", r.ValAcc, *r.TestAcc)
			}
			a.logf("wrote %s; next: gsrc build %s --out DIR", run.Dir, shell.Quote(run.Dir))
			return nil
		},
	}
	flags := c.Flags()
	setup.register(flags, &o.Train)
	setup.tables.registerPrepare(flags)
	flags.StringVar(&o.Train.Out, "out", "", "run directory to write")
	flags.BoolVar(&o.Train.Force, "force", false, "replace a run in --out")
	flags.StringVar(&o.Train.Model, "model", "", "WEIGHTS are of this gsrc model, not of PyTorch Geometric")
	flags.StringArrayVar(&o.Settings, "layer", nil, "setting of the layers, key=value or LAYER.key=value; may be repeated")
	flags.StringVar(&o.Spec, "spec", "", "TOML file of the same settings, a table for a layer; order = [...] lists the layers")
	flags.StringSliceVar(&o.Order, "order", nil, "layers in the order in which they run, where their names do not tell")
	flags.StringVar(&o.Expect, "expect", "", "safetensors file with the expected logits")
	return c
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/shell"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/spf13/cobra"
)

// buildFlags are those of a build of a run.
type buildFlags struct {
	gsrc.BuildOptions
	out, triton string
	fp16, int8  bool
	provider    ort.Provider
}

func (a *app) buildCommand() *cobra.Command {
	var compile compileFlags
	var opts gsrc.TrainOptions
	var setup setupFlags
	var f buildFlags
	c := &cobra.Command{
		Use:   "build RUN --out DIR | build MODEL --emit ir|dot",
		Short: "Export a run as ONNX and verify it, or show the compiler at work",
		Long: `Export the run in a directory as ONNX. Every model is run in onnxruntime on the
training graph and on others, and compared with the compiled forward pass; where
they differ by more than 1e-5 + 1e-4·max|b| nothing is written and the exit code
is 3. --triton also writes the files into a model repository of NVIDIA Triton.

With --emit ir, print the program of a model (for the sizes of --data, or of the
synthetic graph) or of a .gsr file after the compiler's passes, and to standard
error a table of their times and operation counts, and one of the memory that
training will take: for each function the arena that its values share, the smallest
possible arena, and what the values would take without sharing; then other memory,
and the peak. With --emit dot the program is written as
gorgonia graphs for Graphviz, one for each function; --func chooses.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := compile.check(); err != nil {
				return err
			}
			if compile.emit == "ir" || compile.emit == "dot" {
				if name := given(c, "out", "lowering", "no-edge-weight", "sparse-x", "symmetrize", "pipeline", "with-columns", "opset", "fp16", "int8", "external-data", "uncalibrated", "unverified", "test-cases", "provider", "triton"); name != "" {
					return usage("--%s is for the export of a run; with --emit %s the program goes to standard output", name, compile.emit)
				}
				opts.Model = args[0]
				return a.buildIR(&opts, &setup, &compile)
			}
			if name := given(c, "print-after", "passes", "without", "func", "target", "html", "config", "preset", "set", "seed", "split", "directed"); name != "" {
				return usage("--%s goes with --emit ir or dot", name)
			}
			return a.buildRun(c, args[0], opts.Data, &f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.out, "out", "", "folder of the export; an earlier export in it is replaced")
	flags.StringVar(&f.triton, "triton", "", "folder of a Triton model repository that the models are also written to; other models there stay")
	parsedFlag(flags, &f.Lowering, "lowering", string(onnx.DegreeBuckets), onnx.ParseLowering, "message passing: degree-buckets, precomputed-buckets (tables are inputs; fastest on large graphs), scatter, dense (an adjacency matrix; small graphs), or auto (scatter for small work, else degree-buckets)")
	flags.BoolVar(&f.NoEdgeWeight, "no-edge-weight", false, "leave out the classifier's edge weights: every edge counts the same")
	flags.BoolVar(&f.SparseX, "sparse-x", false, "take the features in CSR (x_indptr, x_indices, x_values): faster where most are zero")
	flags.BoolVar(&f.Symmetrize, "symmetrize", false, "make the graph undirected inside the files: edge_index may list each edge in one direction, and more than once")
	parsedFlag(flags, &f.Pipeline, "pipeline", string(export.PipelineAuto), export.ParsePipelineMode, "pipeline.onnx, which refines a graph and classifies its nodes in one: auto (where the model allows it), on (or else fail) or off")
	flags.BoolVar(&f.WithColumns, "with-columns", false, "for your own tables: write "+export.WithColumnsFile+" too, which takes the columns in place of x")
	flags.IntVar(&f.Opset, "opset", onnx.OpsetVersion, "version of ONNX's operator set, 17 to 21")
	flags.BoolVar(&f.fp16, "fp16", false, "store weights in fp16, half the size; sums stay in float32")
	flags.BoolVar(&f.int8, "int8", false, "store and multiply the weights of linear layers in 8 bits, a quarter of the size; what goes into them is rounded too")
	parsedFlag(flags, &f.ExternalData, "external-data", fmt.Sprintf("%dMiB", onnx.DefaultExternalData>>20), parseExternal, "weights of at least this size go to a file beside their model, such as encoder.data: bytes, KiB, MiB or GiB, or none for one file")
	flags.BoolVar(&f.Uncalibrated, "uncalibrated", false, "do not calibrate: probabilities are the softmax of the trained logits")
	flags.BoolVar(&f.Unverified, "unverified", false, "write the export without running it; the manifest says so")
	flags.BoolVar(&f.TestCases, "test-cases", false, "include the test data of every graph of the check, and of invalid ones, for checks in other runtimes (tools/conformance/engines)")
	parsedFlag(flags, &f.provider, "provider", string(ort.CPU), ort.ParseProvider, "verify the export on cpu, auto or cuda")
	compile.register(flags)
	setup.register(flags, &opts)
	return c
}

func (f *buildFlags) precision() (onnx.Precision, error) {
	switch {
	case f.fp16 && f.int8:
		return "", usage("--fp16 and --int8 exclude each other")
	case f.fp16:
		return onnx.FP16, nil
	case f.int8:
		return onnx.INT8, nil
	}
	return onnx.FP32, nil
}

// parseExternal reads --external-data.
func parseExternal(text string) (int, error) {
	if text == "none" {
		return onnx.NoExternalData, nil
	}
	if n, err := budget.Parse(text); err == nil && n <= math.MaxInt32 {
		return int(n), nil
	}
	return 0, fmt.Errorf("%s: give a size of at least a byte and below 2 GiB, such as 64MiB, or none", text)
}

// buildRun exports a run.
func (a *app) buildRun(c *cobra.Command, dir, dataPath string, f *buildFlags) error {
	if f.Opset < onnx.OpsetVersion || f.Opset > onnx.MaxOpset {
		return usage("--opset %d: choose %d to %d", f.Opset, onnx.OpsetVersion, onnx.MaxOpset)
	}
	var err error
	if f.Precision, err = f.precision(); err != nil {
		return err
	}
	switch dense := f.Lowering == onnx.Dense; {
	case dense && f.Precision != onnx.FP32:
		return usage("--%s does not go with --lowering dense: the dense form is for runtimes with few operators, and stores float32", f.Precision)
	case dense && f.SparseX:
		return usage("--sparse-x does not go with --lowering dense: it takes gathers, which the dense form does without")
	case dense && f.Symmetrize:
		return usage("--symmetrize does not go with --lowering dense, which takes an adjacency matrix: make that symmetric")
	}
	if _, statErr := os.Stat(dir); statErr != nil {
		if models.IsFile(dir) || models.Check(dir) == nil {
			return usage("%s is a model, and an export needs a run: train it first (gsrc train %s --data PATH --out DIR), or add --emit ir to see its program", dir, shell.Quote(dir))
		}
	}
	if err := required(c, "out"); err != nil {
		return err
	}
	run, err := gsrc.OpenRun(dir)
	if err != nil {
		return err
	}
	a.unchecked(run.Unchecked())
	if f.triton != "" {
		if err := export.CheckTriton(f.triton, &manifest.Manifest{Model: run.Trained.Model, Dataset: run.Result.Data, ConfigHash: run.Trained.Config.Hash()}); err != nil {
			return err
		}
	}
	f.Data, f.Log = dataPath, a.logf
	_, err = run.Build(c.Context(), f.out, f.BuildOptions)
	var missing *ort.NotFoundError
	if errors.Is(err, ort.ErrNoCgo) || errors.As(err, &missing) {
		return fmt.Errorf("%w\n--unverified writes the export without running it", err)
	}
	if err != nil {
		return err
	}
	if f.triton != "" {
		if err := export.WriteTriton(f.out, f.triton); err != nil {
			return err
		}
		a.logf("wrote %s, a model repository for Triton", f.triton)
	}
	// The check of the build itself runs on the CPU, so that its report is the
	// same everywhere.
	if f.provider != ort.CPU && !f.Unverified {
		return a.verify(c, f.out, gsrc.VerifyOptions{Provider: f.provider})
	}
	return nil
}

// buildIR compiles a model for a data set, or a .gsr file by itself, and prints
// the program.
func (a *app) buildIR(opts *gsrc.TrainOptions, setup *setupFlags, f *compileFlags) error {
	if models.IsFile(opts.Model) && opts.Data == "" {
		model, err := models.Open(opts.Model)
		if err != nil {
			return err
		}
		if program, named := model.IsProgram(); program && !named {
			m, err := models.Read(opts.Model)
			if err != nil {
				return err
			}
			return a.emitIR(m, passes.DataInfo{}, f, nil)
		}
	}
	if _, err := os.Stat(filepath.Join(opts.Model, "module.gsr")); err == nil {
		return usage("%s is a run; its program is %s", opts.Model, filepath.Join(opts.Model, "module.gsr"))
	}
	opts.Data = cmp.Or(opts.Data, data.Synthetic) // its sizes are as good as any
	if err := setup.apply(opts); err != nil {
		return err
	}
	s, err := gsrc.Prepare(*opts)
	if err != nil {
		return optionFault(err)
	}
	return a.emitIR(s.Module, s.DataInfo(), f, s)
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"text/tabwriter"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/spf13/cobra"
)

func (a *app) doctorCommand() *cobra.Command {
	var offline bool
	c := &cobra.Command{
		Use: "doctor", Short: "Check this machine: processors, GPUs and onnxruntime, which is fetched if missing", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			line := func(name, format string, args ...any) {
				fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
			}
			line("gsrc", "%s, %s, %s/%s", gsrc.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			line("processors", "%d", runtime.GOMAXPROCS(0))
			line("kernels", "%s", kernels.ISA())
			gpus(line)
			var problem error
			if !offline {
				if _, err := ort.Ensure(c.Context(), a.logf); err != nil {
					if c.Context().Err() != nil {
						return c.Context().Err()
					}
					problem = err
				}
			}
			f := ort.Doctor(c.Context())
			if f.Problem != "" && problem == nil {
				problem = errors.New(f.Problem)
			}
			if f.Library.Path != "" {
				origin := "not one of the pinned releases"
				if f.Pinned != "" {
					origin = "checksum of the " + f.Pinned
				}
				line("onnxruntime", "%s (%s, %s)", f.Library.Path, f.Library.Found, origin)
				version := cmp.Or(f.Loaded, f.Library.Version) // it could not be opened; this is what its file says
				line("", "version %s, gsrc is tested with %s", version, f.Wanted)
			} else {
				line("onnxruntime", "not found; gsrc is tested with %s", f.Wanted)
			}
			reasons := ""
			for _, p := range f.Providers {
				state := "works"
				if !p.Works {
					state = "cannot be used"
					reasons += wrapped("  ", 88, p.Reason) + "\n"
				}
				line("provider "+string(p.Provider), "%s", state)
			}
			w.Flush()
			fmt.Fprint(a.stdout, reasons)
			return problem
		},
	}
	c.Flags().BoolVar(&offline, "offline", false, "look only, fetch nothing")
	return c
}

// gpus writes a line for the driver, one for each GPU and one for cuBLAS, or one that
// says why there is no GPU.
func gpus(line func(name, format string, args ...any)) {
	d, err := driver.Open("")
	if err != nil {
		line("cuda", "%v", err)
		return
	}
	line("cuda", "driver %s for CUDA %s", d.Path(), d.Version())
	for _, v := range d.Devices() {
		note := ""
		if v.Supported() != nil {
			note = ", too old: gsrc's kernels need 7.0 or later"
		}
		line(fmt.Sprintf("GPU %d", v.Ordinal), "%s, %s, compute capability %s%s", v.Name, driver.Bytes(v.Memory), v.Capability(), note)
	}
	if l, err := d.OpenBLAS(""); err == nil {
		line("cublas", "%s, version %s", l.Path, l.Version)
	} else {
		line("cublas", "%v; matrix products take gsrc's own kernels", err)
	}
}

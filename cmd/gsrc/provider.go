package main

import (
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/spf13/pflag"
)

// providerFlags say where onnxruntime runs models.
type providerFlags struct {
	name   string
	device int
	memory int64 // MiB
}

func (f *providerFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "provider", string(ort.Auto), "auto, cpu or cuda")
	flags.IntVar(&f.device, "device-id", 0, "number of the GPU, for cuda")
	flags.Int64Var(&f.memory, "memory-limit", 0, "MiB of the GPU's memory for tensors at most, for cuda; 0 for no limit")
}

// apply sets what was asked for; bytes is the limit of memory.
func (f *providerFlags) apply(provider *ort.Provider, device *int, bytes *int64) error {
	p, err := ort.ParseProvider(f.name)
	if err != nil {
		return asUsage(err)
	}
	switch {
	case f.device < 0:
		return usage("--device-id %d: GPUs are numbered from 0", f.device)
	case f.memory < 0:
		return usage("--memory-limit %d: give MiB, or 0 for no limit", f.memory)
	case p == ort.CPU && (f.device != 0 || f.memory != 0):
		return usage("--device-id and --memory-limit are for --provider cuda")
	}
	*provider, *device, *bytes = p, f.device, f.memory<<20
	return nil
}

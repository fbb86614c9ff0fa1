package main

import (
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/spf13/pflag"
)

// providerFlags say where onnxruntime runs models.
type providerFlags struct {
	provider ort.Provider
	device   int
	memory   int64 // MiB
}

func (f *providerFlags) register(flags *pflag.FlagSet) {
	parsedFlag(flags, &f.provider, "provider", string(ort.Auto), ort.ParseProvider, "auto, cpu or cuda")
	numberFlag(flags, &f.device, "device-id", 0, 0, "index of the GPU, for cuda")
	numberFlag(flags, &f.memory, "memory-limit", 0, 0, "limit in MiB of GPU memory for tensors, for cuda; 0 for none")
}

// apply sets what was asked for; bytes is the limit of memory.
func (f *providerFlags) apply(provider *ort.Provider, device *int, bytes *int64) error {
	if f.provider == ort.CPU && (f.device != 0 || f.memory != 0) {
		return usage("--device-id and --memory-limit are for --provider cuda")
	}
	*provider, *device, *bytes = f.provider, f.device, f.memory<<20
	return nil
}

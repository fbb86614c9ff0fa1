// Package runtime runs compiled programs: a function of the IR whose operations
// are all of the tensor level (package ir; the passes get there) gets kernels for
// its operations and memory for its values, and an executor runs it on buffers that
// the caller binds by name.
//
//	fn, err := runtime.NewFunction(module, "loss", runtime.Options{Seed: rng.New(seed, "train")})
//	defer fn.Close()
//	fn.Bind("x", runtime.F32(features, n, d))
//	fn.Bind("g", runtime.Graph(g.Structure()))
//	fn.Bind("w1", w1) // a parameter: its slice may be changed between runs
//	for step := range steps {
//		err := fn.Run(step)
//		loss := fn.Output("loss").F32[0]
//	}
//
// # A newcomer's map
//
//   - [Buffer] is a value: a dense tensor, a sparse matrix or a graph structure.
//   - [Executable] is one function, ready to run; [Function] pairs it with the
//     set-up function that the hoist pass split off, which runs only when one of
//     its inputs is bound again.
//   - arena_executor.go is the default executor. It lays values out in one arena
//     (memory.go), where those whose lifetimes do not meet share memory, and then
//     only calls kernels in the order of the program: after the first step a run
//     allocates nothing. [PredictMemory] tells beforehand what that takes.
//   - executor.go is what an executor of another package sees. Package
//     runtime/gorgonia has one, which runs the function as a gorgonia graph on
//     gorgonia's TapeMachine: the reference that the arena executor is held against.
//   - [Device] is where kernels and memory come from. The cpu_*.go files are the
//     table from operation to kernel for the CPU (package runtime/kernels).
//   - runner.go runs a program on the host, or on a device that queues work in a memory of
//     its own, such as a GPU. devicemem.go keeps buffers there; graph_cache.go has the device
//     record a run and replay it, padding.go makes sizes that vary few; block_sampler.go samples
//     blocks there, and candidates.go has the candidate edges. Package internal/fakedevice is a strict one for
//     tests.
//   - [Reference] runs the same function in the float64 interpreter of package
//     ir with the same random numbers, for differential tests.
//
// # Determinism
//
// A random operation draws from Options.Seed, split by the stream that its
// attribute names and by the step number: the result of a run is a function of
// the bound inputs, the seed and the step, bit for bit, for any number of
// threads and for both executors.
package runtime

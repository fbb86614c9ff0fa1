// Package bench measures how fast gsrc is on this machine, and how that compares
// with the machine's own limits and with PyTorch.
//
// # A newcomer's map
//
//   - [Cases] is the list of what is timed: compilation, training steps and their
//     parts, kernels, inference. [Run] times the ones that a pattern selects and
//     returns a [Report], which prints as a table and as JSON.
//   - [MeasureRoofline] finds what the machine can do: the rate of its best matrix
//     product, and memory bandwidth by how much memory is touched.
//   - [DeviceCases] are those of them that run on a GPU, by [Options.Device], against
//     what [MeasureDevice] finds.
//   - [LowerBound] is what an ECL step has to compute at least, from its sizes.
//   - [NewSession] is the harness below: a model whose training steps are made one at a
//     time, as train makes them. Benchmarks elsewhere use it too.
//   - [Options.Without] leaves passes out, which shows what they bring.
//   - [Baselines] times the PyTorch programs in the folder baselines in turn with gsrc.
//
// Nothing here passes or fails by a time. Figures are medians of rounds; a case
// needs no data, since a [Workload] whose files are not found is generated in the
// same size, and the result says so.
package bench

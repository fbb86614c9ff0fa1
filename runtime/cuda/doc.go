// Package cuda runs compiled programs on NVIDIA GPUs.
//
// It needs no toolkit and no cgo: the driver's library is opened at run time, and
// the kernels travel in the binary as PTX, text that the driver compiles for the
// device it finds.
//
// # A newcomer's map
//
//   - src has the kernels' sources, in a subset of CUDA C that two compilers
//     take: clang makes the PTX of it (folder ptx, by make ptx), and a C compiler
//     makes host code of it.
//   - emulator runs that host code as a device would: blocks, threads, shared
//     memory, barriers. It is how kernels are tested where there is no GPU.
//   - ops.go and the ops_*.go files are the table from operation to launches.
//   - stream.go is what launches go to.
//   - device.go is the GPU as a runtime.Device: memory, the queue on a stream,
//     recording as a CUDA graph. optimizer_step.go is what follows a training step: the
//     optimizer, and what the host gets to see; metrics.go scores evaluations.
//     planner.go is for predictions.
//   - anchors.go draws samples, blocks.go samples blocks, neighbors.go nearest
//     neighbours, and candidates.go makes graphs of these. They rest on the prefix sums
//     and the stable sort of scan.go.
package cuda

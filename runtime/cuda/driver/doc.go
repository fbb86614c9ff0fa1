// Package driver speaks to NVIDIA's driver: devices, memory, modules, streams,
// launches and captured graphs, by the CUDA driver API, and matrix products by
// cuBLAS. Both libraries are opened when a program asks for them. None is needed
// to build, and a program runs without them where no GPU is asked for.
//
// On Linux a program with this package needs glibc also where it was built without
// cgo, since the loader of libraries is glibc's.
//
// A newcomer starts with [Open], which finds the driver's library; its
// [Driver.Devices] lists the GPUs, [Device.Open] gives a [Context], in which memory
// is allocated, modules of PTX are loaded and streams are made. Work is put on a
// [Stream], runs in order and asynchronously, and is waited for by
// [Stream.Synchronize]:
//
//	d, err := driver.Open("")          // libcuda.so.1
//	ctx, err := d.Devices()[0].Open()
//	m, err := ctx.LoadModule(ptx)
//	f, err := m.Function("gsrc_add")
//	s, err := ctx.NewStream()
//	x, err := ctx.Alloc(4 * n)
//	err = s.Upload(x, bytes)
//	err = s.Launch(f, grid, block, 0, uint64(x), uint64(n))
//	err = s.Download(bytes, x)
//	err = s.Synchronize()
//
// Addresses of device memory are uintptr and mean nothing to the host. Sizes are
// in bytes.
//
// # Errors
//
// The driver's refusals are [*Error], which errors.Is compares with [ErrNoDriver],
// [ErrNoDevice], [ErrOutOfMemory], [ErrLaunch], [ErrDeviceLost], [ErrModule] and
// [ErrCapture]. A launch runs after its call has returned, so that what goes wrong
// in it comes with a later call, often Synchronize. After [ErrLaunch] and
// [ErrDeviceLost] the device takes no more work from this process.
//
// # Threads
//
// The driver keeps a current context per thread of the operating system. Each
// method makes its own current first, so goroutines may call from any thread. A
// [Stream] and a [BLAS] serve one goroutine at a time.
package driver

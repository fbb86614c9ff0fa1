//go:build arm64 || loong64 || ppc64 || ppc64le || riscv64 || s390x

package kernels

// fma32 returns x·y + z, rounded once: the compiler fuses the two where the
// processor has the instruction. A product that is an argument must be converted,
// float32(a*b), or the compiler may fuse that one in place of x·y.
func fma32(x, y, z float32) float32 { return x*y + z }

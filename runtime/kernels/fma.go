package kernels

// FMA returns x·y + z, rounded once: by one instruction where the compiler has it, and
// otherwise by several with the same result.
func FMA(x, y, z float32) float32 { return fma32(x, y, z) }

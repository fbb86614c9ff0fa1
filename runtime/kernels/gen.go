package kernels

//go:generate go run ./asm -group elem -out elem_amd64.s -stubs elem_amd64.go -pkg kernels
//go:generate go run ./asm -group reduce -out reduce_amd64.s -stubs reduce_amd64.go -pkg kernels
//go:generate go run ./asm -group gemm -out gemm_amd64.s -stubs gemm_amd64.go -pkg kernels

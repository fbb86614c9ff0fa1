package kernels

//go:generate go run ./asm -group elem -out elem_amd64.s -stubs elem_amd64.go -pkg kernels
//go:generate go run ./asm -group reduce -out reduce_amd64.s -stubs reduce_amd64.go -pkg kernels
//go:generate go run ./asm -group pair -out pair_amd64.s -stubs pair_amd64.go -pkg kernels
//go:generate go run ./asm -group gemm -out gemm_amd64.s -stubs gemm_amd64.go -pkg kernels
//go:generate go run ./asm -group sparse -out sparse_amd64.s -stubs sparse_amd64.go -pkg kernels
//go:generate go run ./asm -group random -out random_amd64.s -stubs random_amd64.go -pkg kernels
//go:generate go run ./asm -group train -out train_amd64.s -stubs train_amd64.go -pkg kernels
//go:generate go run ./asm -group nearest -out nearest_amd64.s -stubs nearest_amd64.go -pkg kernels
//go:generate go run ./asm -group attention -out attention_amd64.s -stubs attention_amd64.go -pkg kernels

// Package gorgonia makes a gorgonia graph of a function of the IR and runs it on
// gorgonia's TapeMachine.
//
//   - emit.go makes the graph ([Emit]). Gorgonia is the container and the type
//     checker; its nodes are operations of the IR with this project's kernels. None of
//     gorgonia's own operations are used, since many are slow and some are wrong.
//   - tape.go runs it ([NewTapeExecutor]), every value in memory of its own. It gives
//     the same bits as the default executor of package runtime, which is held against
//     it in tests; it is slower and takes more memory.
//   - dot.go writes the graph for Graphviz.
package gorgonia

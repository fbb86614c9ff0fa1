// Package ir is the intermediate representation of gsrc: typed, straight-line
// programs in single-assignment form over tensors and graph structures.
//
// A [Module] declares parameters and functions. A function ([Func]) is a list
// of operations ([Op]) on values; its meaning is what [Interpret] computes in
// float64. Everything that is known of an operation stands in one literal of
// the operation table ([OpDef]; the tables are the ops_*.go files): operands,
// attributes, type rule, gradient rule, reference evaluation.
//
// There are three levels of operations, distinguished by prefix: gsr.* is what the
// paper writes, gnn.* what a graph library has, and the rest are tensor
// operations that have kernels. Models use all of them; passes lower the upper
// two to the third.
//
// # Text form
//
// Every module prints ([Module.String]) and parses back ([Parse]) to itself:
//
//	func @encode(%x: f32[N,1433], %g: graph<N,E>) -> (embedding: f32[N,128]) {
//	  %a, %s = gnn.sym_norm %g, _ : f32[E], f32[N]
//	  %h = matmul %x, $w1 : f32[N,128]
//	  %z = spmm %g, %a, %s, %h : f32[N,128]
//	  return %z
//	}
//
// docs/ir.md has the grammar. Attributes in the declaration of a function are not
// empty, since "{" opens its body too. Symbols such as N are bound when a function is
// called; a graph's structure holds both directions of an undirected edge and no
// self-loops, and its edge values are separate tensors f32[E].
package ir

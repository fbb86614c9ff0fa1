// Package data reads attributed graphs from the formats people have them in
// and hands the rest of gsrc two types: [Dataset], a graph with node features,
// labels and splits, for learning about nodes; and [Collection], many graphs with a
// label each, for learning about graphs. Both are checked and counted.
//
// [Load] looks at a path and picks the reader:
//
//   - a folder with ind.NAME.x, .y, .tx, .ty, .allx, .ally, .graph and
//     .test.index: Planetoid's pickles (Cora, Citeseer, Pubmed);
//   - a .npz file with node_features, node_labels and edges: the heterophilous
//     benchmark's layout, with optional train_masks, val_masks, test_masks;
//   - a .npz file with adj_*, attr_* and labels: SciPy CSR matrices in parts;
//   - a folder with edges.csv and nodes.csv (or .parquet), or features.npy or features.npz:
//     a user's own data, described in docs/data.md;
//   - a folder or a .zip with raw/edge.csv.gz, raw/node-feat.csv.gz and so on: the
//     Open Graph Benchmark's layout of node property tasks;
//   - the name of a public data set, such as "cora", that was fetched: package
//     catalog knows them;
//   - the word "synthetic": a contextual stochastic block model whose ground
//     truth is known.
//
// [LoadCollection] does so for collections of graphs:
//
//   - a folder or a .zip with NAME_A.txt, NAME_graph_indicator.txt and
//     NAME_graph_labels.txt: the TU collection's text files;
//   - a .txt file, by itself, in a folder or in a .zip: the text format of "How
//     powerful are graph neural networks", with its 10 folds beside it.
//
// A training step on a collection takes some of its graphs at a time, which
// [Collection.Batch] joins into one.
//
// # What is trusted
//
// Nothing. Input files are read whole, hashed, and parsed by readers that run
// no code from them, unpack text as they go, allocate in proportion to what the file
// really holds, and answer bad input with a [*FileError] that says where the
// fault is and what to do. A load that fails returns no dataset.
//
// The pickle reader (package pickle) and the npy reader are gsrc's own for that reason.
// gopickle, the Go pickle library, allocates whatever length an opcode claims
// (BINUNICODE: 4 GiB for five bytes of input, FRAME: any 64-bit number) and
// has no way to limit it. npyio, the Go npy library, slices a header at
// positions it does not check, allocates a declared shape before looking for
// its data, and takes the end of a file for zeros.
//
// # Missing things
//
// A node without a label has label -1 and takes part in message passing only.
// Self-loops and repeated edges are removed, because gsrc adds its own loops
// and an undirected edge is one edge; [Dataset.Repairs] counts what was changed.
// Features are kept raw: the compiled model normalises them, so that the
// exported model takes raw features too.
package data

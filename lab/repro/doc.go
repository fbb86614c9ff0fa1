// Package repro repeats the evaluation of the ECL-GSR paper: each of its tables and
// figures is a [Target], a list of runs with what becomes of their results. Table E, which
// holds refined graphs against planted and attacked edges, is one more.
//
//	err := repro.Run(ctx, repro.Options{Targets: []string{"table1"}, Only: []string{"cora"}, Out: "results"}, nil)
//
// # A newcomer's map
//
//   - targets.go declares the targets: which models, on which data, with which
//     options; adding a model to the tables is one line of the list models.
//   - paper.csv has the numbers that the paper prints, [Paper] reads them.
//   - [Run] has package sweep do the runs, which are kept in Out/store, so that an
//     evaluation that was stopped goes on; figures that need training curves or
//     edges keep whole run directories in Out/runs.
//   - Each target leaves TARGET.csv, a line for each run ([ResultRow]), from which its
//     tables, tests and charts are made and nothing else is.
//   - [Page] makes docs/results.md of these files.
//
// Equal seeds give equal files but for the column seconds and the charts of times.
package repro

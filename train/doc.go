// Package train is the training loop: it takes a module, a data set, a split and
// a configuration, and gives back a trained model, a refined graph where the
// model makes one, and how good they are.
//
//	ds, err := data.Load("planetoid/cora", data.LoadOptions{})
//	cfg, err := config.Load("ecl-gsr", ds.Name, "", []string{"train.seed=3"})
//	res, err := train.Train(ctx, train.Job{Model: "ecl-gsr", Task: train.Nodes(ds)}, cfg, train.Options{Dir: "runs/cora"})
//	fmt.Println(*res.TestAcc, res.Trained.Refined.Graph().NumEdges())
//
// # What is trained
//
// The functions that a module has decide the procedure (package models says
// what they mean):
//
//   - @train and @classify: supervised training, one step an epoch.
//   - @fit, @classify and @refine, with @pretrain, @joint, @encode and
//     @probability: Algorithm 1 of ECL-GSR. Contrastive pre-training; candidate
//     edges and their probabilities; then epochs that train the classifier on
//     samples of the candidates (@fit), every so often together with the encoder
//     (@joint, Eq 19).
//
// Validation alone chooses what is kept: the epoch with the highest validation
// accuracy, of equal ones that with the lowest validation loss. The test nodes'
// labels are read once, at the end, for the kept state.
//
// # Optimizer
//
// Adam (β₁ 0.9, β₂ 0.999, ε 1e-8) with the L2 weight decay that each parameter's
// attribute decay declares, coupled to the gradient. Parameters of the group
// "encoder" have the learning rate train.encoder_lr, all others train.lr; each
// group counts its own steps. With train.halve_lr_every both rates halve after
// every so many epochs; contrastive steps before the first epoch have the whole
// rates.
//
// # A run directory
//
//	config.toml             the resolved configuration, with where each value comes from
//	module.gsr              the program that was trained, in the text form of package ir
//	run.json                model, data and their checksum, seed, version, results
//	split.json              the nodes to train on, to choose by and to be judged on
//	metrics.jsonl           one line an evaluated step; what depends on the clock is under "time"
//	checkpoint.safetensors  everything that is needed to go on
//	weights.safetensors     the kept parameters under their plain names
//	refined_edges.csv       the refined graph
//	x_struct.safetensors    structural attributes, where the model has them
//
// Files are replaced atomically. A run that is stopped at any moment, by ctx, by
// a crash or by SIGKILL, goes on with Options.Resume as if it had never been
// stopped: parameters, metrics and edges end up equal byte for byte, timing
// aside. metrics.jsonl is cut back to the lines that the checkpoint counts.
//
// # The refined graph
//
// Its edges are the candidates with probability at least model.edges.threshold.
// Their weight, which the classifier is evaluated with, is the probability
// (model.edges.mode = expected) or 1 (threshold). refined_edges.csv lists the
// edges of the raw and of the refined graph, each undirected one once:
//
//	source,target,probability,status
//
// with the data set's node ids and the status old (in both graphs), new (in the
// refined one only) or removed (in the raw one only: its probability is below
// the threshold). Candidates that are in neither are not listed.
//
// # Randomness
//
// All of it comes from streams of one seed, split by name and by step: "init"
// for parameters, "train" for what a program draws, "anchors" and "edges" for
// batches, "deepwalk". The result is the same bit for bit for any number of
// threads.
package train

package kernels

// jobs holds the one job of each kernel kind. They live in the pool so that a
// call allocates nothing; a job is cleared after its call, so that the pool
// keeps none of the caller's memory alive.
type jobs struct {
	loop       forJob
	elem       elemJob
	mm         gemmJob
	split      splitJob
	sparse     sparseJob
	wide       wideJob
	scatter    scatterJob
	few        fewJob
	reduce     reduceJob
	softmax    softmaxJob
	random     randomJob
	adam       adamJob
	pair       pairJob
	pairMean   pairMeanJob
	ranges     rangeJob
	near       nearestJob
	nearSparse nearestSparseJob
	zeros      zerosJob
	around     aroundJob
	among      amongJob
	chain      chainJob
	attend     attentionJob
}

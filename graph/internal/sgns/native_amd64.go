package sgns

var native = Kernel{
	Scores: func(s, c, rows []float32, idx []int32) {
		if len(idx) > 0 {
			scoresAVX2(&s[0], &c[0], &rows[0], &idx[0], len(idx), len(c))
		}
	},
	Update: func(g, c, rows []float32, idx []int32) {
		if len(idx) > 0 {
			updateAVX2(&g[0], &c[0], &rows[0], &idx[0], len(idx), len(c))
		}
	},
}

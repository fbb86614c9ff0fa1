package kernels

// LogAddExp computes dst[i,j] = ln(exp a[i,j] + exp b[i,j]) without overflow, its
// operands broadcast as in [Pool.Binary]. dst may be an operand of mode Full.
func (p *Pool) LogAddExp(dst, a, b []float32, rows, cols int, modeA, modeB BroadcastMode) {
	p.runElem("LogAddExp", &elemJob{kind: elemLogAddExp, dst: dst, a: a, b: b, modeA: modeA, modeB: modeB}, rows, cols)
}

// logAddExps computes dst[i] = hi + ln(1 + exp(lo − hi)) of a[i·sa] and b[i·sb], for
// at most roomPart elements. With u = 1 + e, rounded, ln(1+e) is ln u + (e − (u−1))/u.
func logAddExps(dst, a, b []float32, sa, sb int, room []float32) {
	n := len(dst)
	hi, e, u, over := room[:n], room[roomPart:][:n], room[2*roomPart:][:n], room[3*roomPart:][:n]
	for i := range hi {
		x, y := a[i*sa], b[i*sb]
		hi[i] = max(x, y)
		e[i] = min(x, y) - hi[i]
		if hi[i] == negInf || hi[i] == posInf {
			e[i] = negInf // the difference would be NaN
		}
	}
	ks.unary[Exp](e, e, 0)
	ks.vs[Add](u, e, 1)
	ks.vs[Sub](over, u, 1)
	ks.vv[Sub](e, e, over)
	ks.vv[Div](e, e, u)
	ks.unary[Log](u, u, 0)
	ks.vv[Add](e, e, u)
	ks.vv[Add](dst, hi, e)
}

package cuda

// scanBlock is the number of elements that a block of scan.cu's kernels has.
const scanBlock = 2048

// scan makes the Count ints at Y the sums of those before each of X, and Total, if
// it is not 0, that of all. Y may be X. All are addresses.
type scan struct {
	Y, X, Total uintptr
	N           int     // how many there is room for
	Count       uintptr // of an int, how many there are; 0 means N
	End         bool    // the total stands behind the last sum as well
}

// scanBytes returns the workspace of a scan of n ints.
func scanBytes(n int) int { return 4 * ((n+scanBlock-1)/scanBlock + 1) }

func (s scan) launch(q *steps, work uintptr) {
	block := [3]uint32{threads, 1, 1}
	// One block goes through few elements in less time than three launches take.
	if s.N <= 4*scanBlock {
		q.launch("gsrc_scan_all", [3]uint32{1, 1, 1}, block, 0, Ptr(s.Y), Ptr(s.Total), Ptr(s.X), Ptr(s.Count), Int(s.N), flag(s.End))
		return
	}
	n := (s.N + scanBlock - 1) / scanBlock
	grid, total := [3]uint32{uint32(n), 1, 1}, s.Total
	if total == 0 {
		total = work + uintptr(4*n)
	}
	q.launch("gsrc_scan_sums", grid, block, 0, Ptr(work), Ptr(s.X), Ptr(s.Count), Int(s.N))
	q.launch("gsrc_scan_all", [3]uint32{1, 1, 1}, block, 0, Ptr(work), Ptr(total), Ptr(work), 0, Int(n), 0)
	q.launch("gsrc_scan_rest", grid, block, 0, Ptr(s.Y), Ptr(s.X), Ptr(work), Ptr(total), Ptr(s.Count), Int(s.N), flag(s.End))
}

// sort brings pairs of ints into the order of their keys, which are at least 0 and
// below 1<<Bits; of equal keys the first stays first. The input stays as it is. All
// are addresses.
type sort struct {
	KeyTo, ValueTo   uintptr
	Key, Value       uintptr // Value 0 means that an element's value is its place
	KeyTemp, ValTemp uintptr // room for as many; unused where Bits is at most 8
	N                int     // how many there is room for
	Count            uintptr // of an int, how many there are; 0 means N
	Bits             int
}

// sortBytes returns the workspace of a sort of n pairs.
func sortBytes(n int) int {
	counts := 256 * ((n + scanBlock - 1) / scanBlock)
	return 4*counts + scanBytes(counts)
}

func (s sort) launch(q *steps, work uintptr) {
	if s.N == 0 {
		return
	}
	n := (s.N + scanBlock - 1) / scanBlock
	grid, block := [3]uint32{uint32(n), 1, 1}, [3]uint32{threads, 1, 1}
	passes := max(1, (s.Bits+7)/8)
	key, value := s.Key, s.Value
	for pass := range passes {
		keyTo, valueTo := s.KeyTo, s.ValueTo
		if (passes-pass)%2 == 0 { // the last pass writes the result
			keyTo, valueTo = s.KeyTemp, s.ValTemp
		}
		q.launch("gsrc_sort_count", grid, block, 0, Ptr(work), Ptr(key), Ptr(s.Count), Int(s.N), Int(8*pass))
		scan{Y: work, X: work, N: 256 * n}.launch(q, work+uintptr(4*256*n))
		q.launch("gsrc_sort_move", grid, block, 0, Ptr(keyTo), Ptr(valueTo), Ptr(key), Ptr(value), Ptr(work), Ptr(s.Count), Int(s.N), Int(8*pass))
		key, value = keyTo, valueTo
	}
}

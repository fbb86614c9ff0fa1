package data

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/rng"
)

// FoldCount is how many folds graph classification is judged on by convention.
const FoldCount = 10

// leastGraphs is how many graphs the split of a run needs where folds are drawn: with fewer, less than
// [FoldCount] may be left to train on, of which validation graphs are one in so many.
const leastGraphs = 12

// foldsFolder holds folds that come with a collection: test_idx-K.txt and
// train_idx-K.txt with the numbers of graphs, from 0.
const foldsFolder = "10fold_idx"

// FoldsFor returns the folds of a run: those that came with the data, whatever
// the seed, else [FoldCount] stratified ones drawn for the seed. In each of them
// Train and Test share out all graphs whose class is known, and either is empty where
// folds that came with the data have no such graph there; [Collection.Holdout] takes
// validation graphs out of Train.
func (c *Collection) FoldsFor(seed uint64) ([]Split, error) {
	if c.Folds != nil {
		return c.Folds, nil
	}
	return c.DrawFolds(FoldCount, seed)
}

// SplitFor returns the split of a run: fold number seed modulo the number of folds,
// those of [Collection.FoldsFor] the quotient, so that the seeds 0 to 9 are the ten
// folds of one partition; a stratified tenth of the fold's training graphs, drawn
// for the seed, is for validation.
func (c *Collection) SplitFor(seed uint64) (Split, error) {
	count, n := uint64(FoldCount), len(labelled(c.Labels))
	switch {
	case n == 0 && c.Format == "tu":
		return Split{}, fmt.Errorf("no graph of %s has a class to learn from: NAME_graph_labels.txt is missing, whose line i is the class of graph i", c.Name)
	case n == 0:
		return Split{}, fmt.Errorf("no graph of %s has a class to learn from", c.Name)
	case c.Folds != nil:
		count = uint64(len(c.Folds))
	case n < leastGraphs:
		return Split{}, fmt.Errorf("%s has %d graphs with a class; for %d folds with validation graphs, %d or more are needed", c.Name, n, FoldCount, leastGraphs)
	}
	folds, err := c.FoldsFor(seed / count)
	if err != nil {
		return Split{}, err
	}
	fold := folds[seed%count]
	for _, part := range []struct {
		name   string
		graphs []int32
	}{{"test", fold.Test}, {"training", fold.Train}} {
		if len(part.graphs) == 0 {
			return Split{}, fmt.Errorf("%s: fold %s has no %s graph with a class; take the seed of another fold, or say the classes of more graphs", c.Name, c.FoldName(seed), part.name)
		}
	}
	return c.Holdout(fold, FoldCount, seed)
}

// FoldName names the fold that SplitFor takes, such as "3", or "3 of partition 1"
// where the seed is 13.
func (c *Collection) FoldName(seed uint64) string {
	if c.Folds != nil {
		return fmt.Sprint(seed % uint64(len(c.Folds)))
	}
	if seed < FoldCount {
		return fmt.Sprint(seed)
	}
	return fmt.Sprintf("%d of partition %d", seed%FoldCount, seed/FoldCount)
}

// DrawFolds draws k stratified folds from the stream "data.folds" of a seed. The
// test parts are disjoint, together all graphs whose class is known, and differ by at most one in size
// and in the number of graphs of a class.
func (c *Collection) DrawFolds(k int, seed uint64) ([]Split, error) {
	all := labelled(c.Labels)
	if k < 2 || k > len(all) {
		return nil, fmt.Errorf("%s has %d graphs with a class: 2 to %d folds can be drawn, not %d", c.Name, len(all), len(all), k)
	}
	folds := make([]Split, k)
	for i, parts := range c.deal(all, k, rng.New(seed, "data.folds")) {
		for j := range folds {
			if i == j {
				folds[j].Test = append(folds[j].Test, parts...)
			} else {
				folds[j].Train = append(folds[j].Train, parts...)
			}
		}
	}
	for i := range folds {
		slices.Sort(folds[i].Train)
	}
	return folds, nil
}

// Holdout returns the fold with one of k stratified parts of its training graphs
// made validation graphs, drawn from the stream "data.holdout" of a seed.
func (c *Collection) Holdout(fold Split, k int, seed uint64) (Split, error) {
	if k < 2 || k > len(fold.Train) {
		return Split{}, fmt.Errorf("one in %d of %d training graphs cannot be held out", k, len(fold.Train))
	}
	out := Split{Test: fold.Test}
	for i, part := range c.deal(fold.Train, k, rng.New(seed, "data.holdout")) {
		if i == 0 {
			out.Val = part
		} else {
			out.Train = append(out.Train, part...)
		}
	}
	slices.Sort(out.Train)
	return out, nil
}

// deal shares graphs out to k parts: each class is shuffled, and dealt out in
// turn where the class before it ended.
func (c *Collection) deal(graphs []int32, k int, s rng.Stream) [][]int32 {
	parts := make([][]int32, k)
	turn := 0
	for class, list := range byClass(graphs, c.Labels, c.Classes) {
		shuffle(list, s.At(uint64(class)))
		for _, g := range list {
			parts[turn%k] = append(parts[turn%k], g)
			turn++
		}
	}
	for _, p := range parts {
		slices.Sort(p)
	}
	return parts
}

// readFolds reads the folds that lie beside a collection, if there are any.
func (c *Collection) readFolds(s *fileSet) error {
	files, _ := s.list(foldsFolder)
	var numbers []int
	for _, f := range files {
		if text, ok := strings.CutPrefix(strings.TrimSuffix(f, ".txt"), "test_idx-"); ok {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return badFile(s.path(path.Join(foldsFolder, f)), "the name does not end in the number of a fold").hint("folds are called test_idx-1.txt, train_idx-1.txt, test_idx-2.txt, …")
			}
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	tested := make([]int, len(c.Graphs)) // the fold whose test part has the graph
	for i, n := range numbers {
		if n != i+1 {
			return badFile(s.path(foldsFolder), "test_idx-%d.txt is missing", i+1)
		}
		name := func(part string) string { return path.Join(foldsFolder, fmt.Sprintf("%s_idx-%d.txt", part, n)) }
		test, err := c.readFold(s, name("test"))
		if err != nil {
			return err
		}
		train, err := c.readFold(s, name("train"))
		if err != nil {
			return err
		}
		for _, g := range test {
			if tested[g] != 0 {
				return badFile(s.path(name("test")), "graph %d is in the test part of fold %d already", g, tested[g])
			}
			tested[g] = n
		}
		for _, g := range train {
			if tested[g] == n {
				return badFile(s.path(name("train")), "graph %d is in the test part of the same fold", g)
			}
		}
		c.Folds = append(c.Folds, Split{Train: train, Test: test})
	}
	return nil
}

// readFold reads one file of graph numbers, and leaves out those without a class.
func (c *Collection) readFold(s *fileSet, name string) ([]int32, error) {
	t := s.open(name)
	defer t.close()
	var list []int32
	unlabelled := 0
	seen := make([]bool, len(c.Graphs))
	err := t.each(func() {
		g := t.index("graph", 0, len(c.Graphs))
		if seen[g] {
			t.fail("the graph is listed twice")
		}
		if seen[g] = true; c.Labels[g] >= 0 {
			list = append(list, int32(g))
		} else {
			unlabelled++
		}
		t.end("the number of a graph")
	})
	if err != nil {
		return nil, err
	}
	if len(list)+unlabelled == 0 {
		return nil, badFile(t.file, "the file is empty")
	}
	c.Repairs.SplitUnlabelled += unlabelled
	slices.Sort(list)
	return list, nil
}

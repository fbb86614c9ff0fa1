package data

import (
	"fmt"
	"strings"
)

// Warnings says in a sentence each what is no error and yet seldom meant: nodes whose
// features are all zero, also after float32 has rounded them, classes that s trains
// nothing of, edges of training nodes that others are unlike, and columns of tables that are left out or give the label away.
func (d *Dataset) Warnings(s Split) []string {
	list := classWarnings("node", d.Labels, d.Classes, d.ClassNames, s)
	if w := d.EmptyWarning(); w != "" {
		list = append(list, w)
	}
	if e := d.Ends(s); e.Suspect {
		list = append(list, fmt.Sprintf("the ends of edges at training nodes are less alike than those of others (mean cosine of the features %.2f, others %.2f), and less often of one class: where such edges were added to mislead a classifier, one that refines the graph, or reads it without those (data.edges=cut:training), is misled less", e.Training, e.Others))
	}
	if d.Columns != nil {
		list = append(list, leftOut(d.Columns.LeftOut)...)
		list = append(list, d.giveaways(s)...)
	}
	return list
}

// EmptyWarning is the part of Warnings that is of the features; "" is none.
func (d *Dataset) EmptyWarning() string {
	if d.prepared() {
		return ""
	}
	return emptyWarning(d.X)
}

// Warnings are those of [Dataset.Warnings].
func (c *Collection) Warnings(s Split) []string {
	list := classWarnings("graph", c.Labels, c.Classes, c.ClassNames, s)
	if n := len(c.Labels) - len(labelled(c.Labels)); n > 0 {
		list = append(list, fmt.Sprintf("%d of %d graphs have no class, and take no part in training", n, len(c.Labels)))
	}
	if w := emptyWarning(c.X); w != "" {
		list = append(list, w)
	}
	return append(list, c.scaleWarning()...)
}

// scaleWarning names the attribute with the largest values where these are above 100, or 100
// times those of another.
func (c *Collection) scaleWarning() []string {
	most, largest := make([]float32, c.X.Cols), 0
	note := func(j int, v float32) { most[j] = max(most[j], v, -v) }
	for k, v := range c.X.Val {
		note(int(c.X.Col[k]), v)
	}
	for k, v := range c.X.Dense {
		note(k%c.X.Cols, v)
	}
	least := float32(1)
	for j, name := range c.FeatureNames {
		if strings.HasPrefix(name, "attribute ") && most[j] > 0 {
			least = min(least, most[j])
			if most[j] > most[largest] {
				largest = j
			}
		}
	}
	if len(most) == 0 || most[largest] <= 100*least || !strings.HasPrefix(c.FeatureNames[largest], "attribute ") {
		return nil
	}
	return []string{fmt.Sprintf("values of %s go up to %.3g, and attributes are taken as they are: a model may learn little else; scale the columns of NAME_node_attributes.txt alike, as to mean 0 and deviation 1", c.FeatureNames[largest], most[largest])}
}

func emptyWarning(x *Features) string {
	n := x.EmptyRows()
	if n == 0 || x.Cols == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d nodes have no features but zeros; only their edges say anything of them", n, x.Rows)
}

func classWarnings(item string, labels []int32, classes int, names []string, s Split) []string {
	trained, there := make([]bool, classes), make([]bool, classes)
	for _, c := range labels {
		if c >= 0 {
			there[c] = true
		}
	}
	for _, i := range s.Train {
		if c := labels[i]; c >= 0 {
			trained[c] = true
		}
	}
	var present, missing []string
	for c := range classes {
		if there[c] {
			present = append(present, className(names, c))
			if !trained[c] {
				missing = append(missing, className(names, c))
			}
		}
	}
	switch {
	case len(present) == 1 && len(s.Train) > 0:
		return []string{fmt.Sprintf("every %s with a label is of class %s, so that there is nothing to tell apart", item, present[0])}
	case missing != nil:
		return []string{fmt.Sprintf("no training %s is of class %s; the model cannot learn to predict what it never sees", item, nameSome(missing))}
	}
	return nil
}

func className(names []string, c int) string {
	if names == nil {
		return fmt.Sprint(c)
	}
	return printable(names[c])
}

// Package company generates tables as a company exports them from its database: customers
// with numbers, categories, dates and gaps, and payments between them. It is what examples
// and tests of own data read.
package company

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/rng"
)

// Options say what to generate. The zero value is 50,000 customers and 300,000 payments.
type Options struct {
	Nodes, Edges int
	Seed         uint64
	// Wrong is the share of planted wrong edges, which join customers of unrelated groups;
	// 0 is 3 %, and a negative one is none.
	Wrong float64
	// Known is the share of customers whose label is known; 0 is 30 %.
	Known float64
	// Useless has all edges join customers evenly at random.
	Useless bool
}

const (
	groupSize = 100
	rareShare = 0.01 // of rows whose region is one of the many rare ones
)

// table is what is drawn before it is written.
type table struct {
	o      Options
	r      rng.Stream
	group  []int     // [Nodes]
	effect []float64 // of each group on the label; alike in groups next to each other
	order  [][]int   // members of each group
}

// Write writes nodes.csv and edges.csv to a folder, which is made, and the truth beside them:
// wrong.csv, the planted wrong edges, and truth.csv, the labels that nodes.csv leaves out.
func Write(dir string, o Options) error {
	o.Nodes = cmp.Or(o.Nodes, 50_000)
	o.Edges = cmp.Or(o.Edges, 300_000)
	o.Wrong = max(cmp.Or(o.Wrong, 0.03), 0)
	o.Known = cmp.Or(o.Known, 0.3)
	if o.Nodes < 2*groupSize || o.Edges < 0 || !(o.Wrong <= 1) || !(o.Known > 0 && o.Known <= 1) {
		return fmt.Errorf("%d nodes, %d edges, share %g of wrong ones, share %g of known labels: give at least %d nodes, 0 edges, and shares of at most 1", o.Nodes, o.Edges, o.Wrong, o.Known, 2*groupSize)
	}
	t := &table{o: o, r: rng.New(o.Seed, "company")}
	t.draw()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var files [4]*os.File
	var w [4]*bufio.Writer
	for i, name := range []string{"nodes.csv", "truth.csv", "edges.csv", "wrong.csv"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer f.Close()
		files[i], w[i] = f, bufio.NewWriterSize(f, 1<<16)
	}
	t.nodes(w[0], w[1])
	t.edges(w[2], w[3])
	var errs []error
	for i, f := range files {
		errs = append(errs, w[i].Flush(), f.Close())
	}
	return errors.Join(errs...)
}

func (t *table) draw() {
	n := t.o.Nodes
	groups := n / groupSize
	t.group, t.order = make([]int, n), make([][]int, groups)
	for i, v := range t.r.Sub("groups").Perm(n) {
		g := min(i/groupSize, groups-1)
		t.group[v] = g
		t.order[g] = append(t.order[g], v)
	}
	t.effect = make([]float64, groups)
	s := t.r.Sub("effect")
	last := s.Normal(0)
	for g := range t.effect {
		last = float64(0.9*last) + float64(0.44*s.Normal(uint64(g)+1))
		t.effect[g] = last
	}
}

var (
	products = []string{"basic", "plus", "family", "business", "student"}
	words    = []string{"called", "about", "invoice", "asked", "for", "refund", "moved", "house", "new", "card", "lost", "phone", "wants", "offer", "happy", "waiting", "letter", "sent"}
	begin    = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)
)

// draws returns what draws normals and numbers below n from parts of a stream of their own.
func draws(r rng.Stream) (normal func(uint64) float64, pick func(uint64, int) int) {
	return func(i uint64) float64 { return r.Normal(1000 + i) }, func(i uint64, n int) int { return r.Intn(2000+i, n) }
}

// nodes writes the customers. The label depends on the columns, not linearly, and on the
// group, of which the columns say little and the neighbours much.
func (t *table) nodes(w, truth io.Writer) {
	fmt.Fprintln(truth, "customer_id,churned")
	fmt.Fprintln(w, "customer_id,row,age,income,transactions,balance,premium,region,product,joined,last_login,currency,note,churned")
	for v := range t.o.Nodes {
		r := t.r.Sub("node").At(uint64(v))
		normal, pick := draws(r)
		u := t.effect[t.group[v]]
		gap := func(i uint64, share float64, text string) string {
			if float64(r.Uniform(100+i)) < share {
				return ""
			}
			return text
		}
		age := min(max(math.Round(44+float64(15*normal(1))), 18), 95)
		logIncome := 10.2 + float64(0.55*normal(2)) + float64(0.1*u)
		activity := fmath.Exp(float64(1.1*normal(3)) - float64(0.2*u))
		transactions := math.Floor(12 * activity)
		balance := float64(2500*normal(4)) + float64(0.08*fmath.Exp(logIncome))
		premium := float64(r.Uniform(5)) < 0.3
		region := pick(6, 12)
		name := fmt.Sprintf("region-%02d", region)
		if float64(r.Uniform(7)) < rareShare {
			name = fmt.Sprintf("abroad-%03d", pick(8, 400))
		}
		product := pick(9, len(products))
		days := pick(10, 3000)
		joined := begin.AddDate(0, 0, days)
		login := begin.Add(time.Duration(3000+pick(11, 300))*24*time.Hour + time.Duration(pick(12, 86400))*time.Second)
		note := ""
		for k := range 3 + pick(13, 5) {
			note += words[pick(uint64(20+k), len(words))] + " "
		}
		note += fmt.Sprint(pick(14, 1_000_000))

		young := 0.0
		if age < 30 && transactions < 10 {
			young = 1
		}
		score := float64(1.3*u) + float64(0.8*young) - float64(0.5*(logIncome-10.2)/0.55) - float64(0.35*fmath.Log(activity)) +
			float64(0.35*float64(region%4-1)) + float64(0.0003*(1500-float64(days)))
		if premium {
			score -= 0.5
		}
		if product == 4 && logIncome > 10.2 {
			score += 0.8
		}
		label := "no"
		if float64(r.Uniform(15)) < fmath.Sigmoid(score-1.2) {
			label = "yes"
		}
		known := gap(6, 1-t.o.Known, label)
		if known == "" {
			fmt.Fprintf(truth, "C%06d,%s\n", v, label)
		}
		fmt.Fprintf(w, "C%06d,%d,%s,%s,%.0f,%.2f,%s,%s,%s,%s,%s,EUR,%s,%s\n", v, v+1,
			gap(1, 0.05, fmt.Sprintf("%.0f", age)), gap(2, 0.12, fmt.Sprintf("%.2f", fmath.Exp(logIncome))), transactions, balance,
			gap(3, 0.02, fmt.Sprint(premium)), gap(4, 0.03, name), products[product], joined.Format(time.DateOnly),
			gap(5, 0.08, login.Format(time.DateTime)), note, known)
	}
}

// edges writes the payments: most within a group, some to a group beside it, and among
// them the wrong ones.
func (t *table) edges(w, wrong io.Writer) {
	fmt.Fprintln(w, "payer,payee,amount,at,channel")
	fmt.Fprintln(wrong, "payer,payee")
	s := t.r.Sub("edges")
	for i := range t.o.Edges {
		r := s.At(uint64(i))
		normal, pick := draws(r)
		u := pick(0, t.o.Nodes)
		g := t.group[u]
		planted := float64(r.Uniform(1)) < t.o.Wrong
		var v int
		switch {
		case t.o.Useless || planted:
			v = pick(2, t.o.Nodes)
		default:
			if float64(r.Uniform(3)) < 0.15 {
				g = (g + 1 + pick(4, 2)*(len(t.order)-2)) % len(t.order)
			}
			v = t.order[g][pick(5, len(t.order[g]))]
		}
		if u == v {
			v = (v + 1) % t.o.Nodes
		}
		amount := fmath.Exp(3 + float64(1.2*normal(6)))
		at := begin.Add(time.Duration(pick(7, 3300*86400)) * time.Second)
		fmt.Fprintf(w, "C%06d,C%06d,%.2f,%s,%s\n", u, v, amount, at.Format(time.RFC3339), [...]string{"card", "transfer", "cash"}[pick(8, 3)])
		if planted {
			fmt.Fprintf(wrong, "C%06d,C%06d\n", u, v)
		}
	}
}

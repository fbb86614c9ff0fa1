package repro

import (
	"context"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/lab"
)

// Table L: linear models of what the encoder makes of the nodes, trained and as it was drawn. Where
// evidence judges edges, nothing else shows what its training is worth.

// Alterations that put an embedding in the place of the features.
var (
	embedded = alteration{name: "embedded", embedded: true}
	asDrawn  = alteration{name: "drawn", embedded: true, drawn: true}
)

// contrast are the options of the training, which is of the encoder alone.
var contrast = []string{"model.ecl.tau=2", "model.views.mask_features=0.6", "model.views.drop_edges=0.5", "train.joint_every=0", "train.epochs=1", "train.self_training=0"}

// stayDrawn is a step too small to tell from none: gsrc embeds what was trained.
var stayDrawn = []string{"train.pretrain_steps=1", "train.encoder_lr=1e-30"}

// embedding returns what an encoder that no label has reached makes of the data in source; of one
// that stays as it is drawn, if drawn.
func embedding(ctx context.Context, source string, seed uint64, drawn bool) (*data.Features, error) {
	set := contrast
	if drawn {
		set = append(slices.Clone(contrast), stayDrawn...)
	}
	run, err := gsrc.Train(ctx, gsrc.TrainOptions{Model: eclGSR, Data: source, Set: set, Seed: int(seed)})
	if err != nil {
		return nil, err
	}
	h, width, err := run.Embed(0)
	if err != nil {
		return nil, err
	}
	return &data.Features{Rows: len(h) / width, Cols: width, Dense: h}, nil
}

const (
	ofEmbedding = "linear, of the embedding"
	ofDrawn     = "linear, of an encoder never trained"
)

func embeddingCells() (cells []cell) {
	add := func(panel, x, data string, set ...string) {
		for _, e := range []struct {
			row  string
			made alteration
			set  []string
		}{
			{ofEmbedding, embedded, nil},
			{ofDrawn, asDrawn, nil},
			{"linear", copied, nil},
			{"propagated, linear", copied, []string{"model.linear.steps=16"}},
			{selfTrained[0].row, copied, selfTrained[0].own},
		} {
			c := entry{row: e.row, model: "linear", own: e.set}.cell(panel, x, data, set...)
			c.alteration = e.made
			cells = append(cells, c)
		}
	}
	for _, d := range citations {
		for _, r := range [][2]string{{"1 % of the labels", "ratio:0.01"}, {"3 %", "ratio:0.03"}, {"5 %", "ratio:0.05"}, {"10 %", "ratio:0.1"}} {
			add(d, r[0], d, "data.split="+r[1])
		}
		add(d, "public split", d)
		add(d, "Metattack 10 %", d+"_metattack_0.1")
		add(d, "Metattack 20 %", d+"_metattack_0.2")
	}
	for _, d := range slices.Concat(webPages, []string{"actor"}) {
		add(d, "ten splits", d)
	}
	return cells
}

func embeddingReport(t *Target, ls ResultRows) rendered {
	return rendered{text: deep(t, ls, "") + trainedEncoder(ls, ofEmbedding, ofDrawn)}
}

// trainedEncoder is the table of tests of a row whose encoder is trained against that whose encoder is not.
func trainedEncoder(ls ResultRows, trained, drawn string) string {
	var rows [][]string
	var ps []float64
	for _, at := range ls.places() {
		if p := ls.paired(at.panel, at.x, trained, drawn); p != nil {
			ps = append(ps, p.P)
			rows = append(rows, []string{strings.TrimSuffix(at.panel+", "+at.x, ", "), signed(p.Diff), signed(p.Lo) + " to " + signed(p.Hi), pvalue(p.P)})
		}
	}
	if rows == nil {
		return ""
	}
	for i, p := range lab.Holm(ps) {
		rows[i] = append(rows[i], pvalue(p))
	}
	return "\nThe trained encoder against the one that was never trained, paired by seed or split; the last column is p by Holm's correction over all of these tests.\n\n" +
		table([]string{"", "difference", "95 % interval", "p", "p, Holm"}, rows)
}

package sweep

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/lab"
)

func splitOption(set string) (key, value string) {
	key, value, _ = strings.Cut(set, "=")
	return config.Canonical(strings.TrimSpace(key)), strings.TrimSpace(value)
}

// Val returns mean and standard deviation of the best trial's validation
// accuracies, in percent.
func (f *Study) Val() (mean, std float64) { return lab.MeanStd(f.Best.Val()) }

// Evidence says what the best trial reached in what the search compares.
func (f *Study) Evidence() string {
	seeds := "1 seed"
	if f.Seeds > 1 {
		seeds = fmt.Sprintf("%d seeds", f.Seeds)
	}
	return fmt.Sprintf("validation %s over %s", f.Best.score(), seeds)
}

// score is mean and standard deviation of the scores, with the name of what they are
// unless that is accuracy.
func (t *Trial) score() string {
	scores := t.scores()
	mean, std := lab.MeanStd(scores)
	if t.measure == "loss" {
		return "loss " + lab.PlusMinus("%.4f", -mean, std, len(scores))
	}
	names := map[string]string{"macro_f1": "macro-F1 ", "auc": "AUC "}
	return names[t.measure] + lab.PlusMinus("%.2f", mean, std, len(scores))
}

// Test returns mean and standard deviation of the best trial's test accuracies, in
// percent; NaN where there are no test nodes. The search has not looked at them.
func (f *Study) Test() (mean, std float64) {
	row := newRow(slices.Clone(f.Best.Records))
	return float64(row.TestMean), float64(row.TestStd)
}

// Keys are the options that the outcome decides or was given, in the order of
// config.KeyNames.
func (f *Study) Keys() []string {
	chosen := map[string]bool{}
	for _, set := range slices.Concat(f.Search.Set, f.Best.Set) {
		key, _ := splitOption(set)
		chosen[key] = true
	}
	return slices.DeleteFunc(slices.Clone(config.KeyNames()), func(key string) bool { return !chosen[key] })
}

// WriteTOML writes the options that were found, as gsrc train --config reads them
// and as the defaults of a data set are kept. A comment at the head names the
// command; each value's says what it found on validation.
func (f *Study) WriteTOML(w io.Writer, command string) error {
	var b bytes.Buffer
	evidence := f.Evidence()
	fmt.Fprintf(&b, "# %s on %s, chosen by validation %s with\n#   %s\n# which tried %d settings in %d runs: %s", f.Search.Model, f.Dataset, f.Best.measure, command, len(f.Trials), f.Runs, evidence)
	if v := f.Defaults.Val(); f.Best != f.Defaults && len(v) == f.Seeds {
		fmt.Fprintf(&b, ",\n# with the defaults %s", f.Defaults.score())
	}
	b.WriteString(".\n")
	if f.Best == f.Defaults {
		b.WriteString("# No setting was better than the defaults by more than the noise.\n")
	}
	if !f.Complete {
		b.WriteString("# The search was stopped before its end.\n")
	}
	section := ""
	for _, key := range f.Keys() {
		dot := strings.LastIndex(key, ".")
		if key[:dot] != section {
			section = key[:dot]
			fmt.Fprintf(&b, "\n[%s]\n", section)
		}
		fmt.Fprintf(&b, "%s = %s  # gsrc tune: %s\n", key[dot+1:], f.Config.Value(key), evidence)
	}
	_, err := w.Write(b.Bytes())
	return err
}

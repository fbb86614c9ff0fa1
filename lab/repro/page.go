package repro

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
)

// curvesName ends the names of a target's chart of training curves and of the
// file with their values.
const (
	curvesName   = "-curves"
	curvesSuffix = curvesName + ".csv"
)

// filesOf is the folder of the files that a report shows.
func filesOf(report string) string {
	return strings.TrimSuffix(report, filepath.Ext(report))
}

// writePage writes a report from the files beside it.
func writePage(report string) error {
	dir := filesOf(report)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := Page(os.DirFS(dir), filepath.Base(dir), filepath.ToSlash(report))
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(report, text)
}

// Page makes the report, in Markdown, of the files of targets: TARGET.csv, and the
// charts, to which it links in a folder. report is how the command names it.
// Nothing but these files decides what it says.
func Page(files fs.FS, folder, report string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Results

The evaluation of the ECL-GSR paper, repeated. This page is generated from the files
in [%s](%s), which have a line for each run, by

`+"```sh\ngsrc repro all --report %s\n```"+`

Accuracies are in percent on test nodes, mean ± standard deviation over the seeds.
Epochs and settings are chosen on validation nodes, except for the settings of the
accuracies with a †, of which the lines below their table say what had been seen. Test
accuracies were printed beside validation while options were compared, so that nobody
can show for the others that they had no part. *paper* marks numbers that the paper prints.
A difference counts as one where a paired two-sided t-test has p below %.2f; the
intervals are not corrected for their number. The time of a target is the sum of its
runs' times, which are done side by side, one on each processor; a run that several
targets have in common is done once. Memory is the most that a training step takes, as
the compiler lays it out.

`, folder, folder, report, significant)
	if err := samePage(&b, files, report); err != nil {
		return nil, err
	}
	for _, t := range targets {
		fmt.Fprintf(&b, "\n## %s: %s\n\n%s\n\n", heading(t.Name), t.Title, t.Asks)
		lines, err := t.linesIn(files)
		if err != nil {
			return nil, err
		}
		if lines == nil {
			fmt.Fprintf(&b, "Not run yet: `%s`.\n", command(t, nil))
			continue
		}
		t.section(&b, folder, lines)
	}
	return b.Bytes(), nil
}

// section writes what a target's runs found.
// linesIn reads the target's file; nil where there is none.
func (t *Target) linesIn(files fs.FS) (ResultRows, error) {
	f, err := files.Open(t.Name + ".csv")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := ReadResultRows(t.Name+".csv", f)
	if err == nil && len(lines) == 0 {
		err = fmt.Errorf("%s.csv has no runs", t.Name)
	}
	return lines, err
}

// samePage says what of the figures anybody can repeat.
func samePage(b *bytes.Buffer, files fs.FS, report string) error {
	all, hashed := 0, 0
	for _, t := range targets {
		lines, err := t.linesIn(files)
		if err != nil {
			return err
		}
		all += len(lines)
		for _, l := range lines {
			if l.Hash != "" {
				hashed++
			}
		}
	}
	fmt.Fprintf(b, `A run gives the same bits on every processor: weights, refined graph, kept epoch and
figures are the same with AVX-512, AVX2, on arm64 and in plain Go, for any number of
threads. The column hash has those of the weights and the graph; %d of the %d lines have
one. The others were run by a version whose results still depended on the processor: run
again, they come out a little differently. Not promised are the same bits from another
version of gsrc, on a GPU (`+"`--device cuda`"+`), and of what onnxruntime computes from an export.
On a laptop,

`+"```sh\ngsrc data fetch cora\ngsrc repro table1 --only cora --check --sample 1 --seconds 10 --report %s\n```"+`

repeats one run, in seconds, and compares; without --sample and --seconds it repeats every one of
Cora's that has a hash.
`, hashed, all, report)
	return nil
}

func (t *Target) section(b *bytes.Buffer, folder string, lines ResultRows) {
	var seconds float64
	var peak int64
	failed := 0
	for _, l := range lines {
		seconds += l.Seconds
		peak = max(peak, l.PeakBytes)
		if l.Error != "" {
			failed++
		}
	}
	fmt.Fprintf(b, "`%s`: seeds %s, %d runs, %s, peak memory %.0f MiB. Every run: [%s.csv](%s/%[6]s.csv).\n\n",
		command(t, lines), seedRange(lines.seeds()), len(lines), duration(seconds), float64(peak)/(1<<20), t.Name, folder)
	if lines[0].Budget == Short {
		b.WriteString("Short budget: small generated graphs in place of the data sets and a few steps a run. The numbers say nothing about the models.\n\n")
	}
	if rest := t.left(lines); len(rest) > 0 {
		fmt.Fprintf(b, "Not run: %s. `gsrc data fetch NAME` gets a data set, `gsrc repro %s --only %s` then runs on it.\n\n", strings.Join(rest, ", "), t.Name, strings.Join(rest, ","))
	}
	if failed > 0 {
		fmt.Fprintf(b, "Runs that failed: %d; the file says why. Means are over the others.\n\n", failed)
	}
	r := t.render(t, lines)
	b.WriteString(r.text)
	pictures := r.pictures
	for _, c := range r.charts {
		pictures = append(pictures, picture{c.Name, c.Caption})
	}
	if t.curves != nil {
		pictures = append(pictures, picture{t.Name + curvesName, fmt.Sprintf("From [%s%s](%s/%[1]s%[2]s).", t.Name, curvesSuffix, folder)})
	}
	for _, p := range pictures {
		fmt.Fprintf(b, "\n![%s](%s/%s.svg)\n\n%s\n", t.Title, folder, p.name, p.caption)
	}
}

// left lists the data sets of a target that none of its lines is of.
func (t *Target) left(lines ResultRows) []string {
	return slices.DeleteFunc(t.Data(), func(name string) bool {
		return slices.ContainsFunc(lines, func(l ResultRow) bool { return l.Data == name })
	})
}

// heading is a target's name as the paper writes it.
func heading(name string) string {
	if n, ok := strings.CutPrefix(name, "table"); ok {
		return "Table " + n
	}
	return "Figure " + strings.TrimPrefix(name, "fig")
}

func seedRange(n int) string {
	if n == 1 {
		return "0"
	}
	return fmt.Sprintf("0 to %d", n-1)
}

// duration writes seconds for people.
func duration(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", s)
	case d < 10*time.Minute:
		return fmt.Sprintf("%.0f s", s)
	case d < 10*time.Hour:
		return fmt.Sprintf("%.0f min", s/60)
	}
	return fmt.Sprintf("%.1f h", s/3600)
}

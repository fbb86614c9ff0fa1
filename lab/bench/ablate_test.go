package bench

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
)

// Every pass that is not required is left out once, by itself.
func TestAblationsCoverThePasses(t *testing.T) {
	sets, err := ablations("")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range passes.All {
		alone := slices.Contains(sets, p.Name)
		if alone == p.Required {
			t.Errorf("pass %s: required %v, left out %v", p.Name, p.Required, alone)
		}
	}
	if got, _ := ablations("fold, cse"); fmt.Sprint(got) != "[fold cse]" {
		t.Errorf("fold and cse give %v", got)
	}
	for _, wrong := range []string{"nothing", "autodiff"} {
		if err := CheckAblation(wrong); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s gives the error %v", wrong, err)
		}
	}
}

// Without a required pass there is nothing to run; without another one a step runs.
func TestRequiredPasses(t *testing.T) {
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range passes.All {
		step := func() error {
			s, err := NewSession(Job{Data: ds, Model: "ecl-gsr", Options: models.Default(), Anchors: 10, K: 2, Threads: 1, Without: []string{p.Name}})
			if err != nil {
				return err
			}
			defer s.Close()
			st, err := s.Stepper("joint", false)
			if err != nil {
				return err
			}
			if err := st.Step(); err != nil {
				return err
			}
			if len(st.params) == 0 {
				return fmt.Errorf("no gradients")
			}
			return nil
		}()
		if (step != nil) != p.Required {
			t.Errorf("pass %s: required %v, but a step without it gives the error %v", p.Name, p.Required, step)
		}
	}
}

func TestAblationGain(t *testing.T) {
	for _, c := range []struct {
		row          AblationRow
		time, memory int
	}{
		{AblationRow{Same: true}, 0, 0},
		{AblationRow{Ratio: 1.5, RatioLo: 1.4, RatioHi: 1.6, PlannedMiB: 10, PlannedWithoutMiB: 12}, 1, 1},
		{AblationRow{Ratio: 1.5, RatioLo: 0.9, RatioHi: 1.6, PlannedMiB: 10, PlannedWithoutMiB: 10}, 0, 0}, // rounds disagree
		{AblationRow{Ratio: 1.01, RatioLo: 1.005, RatioHi: 1.02, PlannedMiB: 10, PlannedWithoutMiB: 9}, 0, -1},
		{AblationRow{Ratio: 0.9, RatioLo: 0.85, RatioHi: 0.95, PlannedMiB: 10, PlannedWithoutMiB: 10}, -1, 0},
	} {
		if time, memory := c.row.gain(); time != c.time || memory != c.memory {
			t.Errorf("%+v: gain %d in time and %d in memory, want %d and %d", c.row, time, memory, c.time, c.memory)
		}
	}
	a := &Ablation{Results: []AblationRow{
		{Without: []string{"fold"}, Step: "s", Same: true},
		{Without: []string{"hoist"}, Step: "s", Ratio: 2, RatioLo: 1.9, RatioHi: 2.1, WithMS: 5, WithoutMS: 10, PlannedMiB: 4, PlannedWithoutMiB: 16},
	}}
	var b bytes.Buffer
	if err := a.Write(&b, Text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the same program\n", "fold brings nothing on these steps\n", "hoist: s 0.50× the time and 0.25× the memory\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &b)
		}
	}
}

// Steps that differ are timed, equal programs are told apart.
func TestAblationTimesInTurn(t *testing.T) {
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	e := &env{Options: Options{Rounds: 3, Threads: 1}, ds: ds}
	rows, err := ablateStep(t.Context(), e, stepCase{data: "tiny", model: "gcn", fn: "train"}, []string{"sparsify", "project-noise"})
	if err != nil {
		t.Fatal(err)
	}
	if r := rows[0]; r.Same || r.WithMS <= 0 || r.WithoutMS <= 0 || r.Ratio <= 0 || r.RatioLo > r.Ratio || r.RatioHi < r.Ratio || r.Kernels == 0 || r.PlannedMiB <= 0 {
		t.Errorf("without sparsify: %+v", r)
	}
	if !rows[1].Same {
		t.Error("a GCN has no noise to project, but leaving project-noise out changes it")
	}
}

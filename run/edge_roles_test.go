package run

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// matrixFolder is a ring with chords whose features are in features.npy; edges lead from the column "to" to
// "from", and some are listed twice.
func matrixFolder(t *testing.T, end string) string {
	t.Helper()
	const n = 60
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 3), }", n)
	head += strings.Repeat(" ", 117-len(head)) + "\n"
	npy := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head)))
	npy = append(npy, head...)
	nodes, edges := "id,label,split\n", "to,from,weight,fee\n"
	for i := range n {
		nodes += fmt.Sprintf("n%d,%s,%s\n", i, [...]string{"a", "b"}[i/3%2], [...]string{"train", "val", "test"}[i%3])
		for k := range 3 {
			npy = binary.LittleEndian.AppendUint32(npy, math.Float32bits(float32((i*i+7*k*i)%11)/11))
		}
		for j, to := range []int{(i + 1) % n, (3*i + 5) % n, (i + 1) % n} {
			edges += fmt.Sprintf("n%d,n%d,%g,%g\n", i, to, uneven(2*i+j), uneven(3*i+2*j))
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges + end, "features.npy": string(npy)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// trainedAndBuilt trains a model, which has what it answered in training, and exports it.
func trainedAndBuilt(t *testing.T, lib *ort.Library, o TrainOptions) (r *Run, dir, dist string) {
	t.Helper()
	dir, dist = filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "dist")
	o.Out = dir
	r, err := Train(t.Context(), o)
	if err == nil {
		_, err = r.Build(t.Context(), dist, BuildOptions{Library: lib, Uncalibrated: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, dir, dist
}

// Runs and exports read the edges of other tables by the columns, and merge them, as their training did, also
// where features have no names; of stores that were made otherwise they say so.
func TestTablesAreReadAsInTraining(t *testing.T) {
	lib := orttest.Need(t)
	at, other := matrixFolder(t, ""), matrixFolder(t, "\n")
	o := infer.PredictOptions{Library: &lib, Provider: ort.CPU}
	for name, x := range map[string]struct {
		model  string
		set    []string
		tables data.Tables // of a store
		want   string
	}{
		"merge":      {"sage", []string{"data.merge=sum"}, data.Tables{Merge: data.MergeMax}, "convert the data with --merge sum"},
		"weight":     {"sage", []string{"data.weight=fee"}, data.Tables{Weight: "weight"}, "convert the data with --weight fee"},
		"directions": {"sage", []string{"data.source=to", "data.target=from", "data.directed=true", "data.weights=ignore"}, data.Tables{Source: "from", Target: "to"}, "convert the data with --source to --target from"},
		"run":        {"ecl-gsr", []string{"data.merge=sum", "train.pretrain_steps=2"}, data.Tables{}, "convert the data with --merge sum"},
	} {
		t.Run(name, func(t *testing.T) {
			made := filepath.Join(t.TempDir(), "store")
			r, dir, dist := trainedAndBuilt(t, &lib, TrainOptions{Model: x.model, Data: at, Set: append(x.set, "train.epochs=3")})
			if err := data.Convert(at, made, data.ConvertOptions{Load: data.LoadOptions{Directed: name == "directions", Tables: x.tables}}); err != nil {
				t.Fatal(err)
			}
			used := []string{dist, dir}
			if x.model == "sage" && name != "directions" { // reads weights, so its run takes the training's graph alone
				used = used[:1]
			}
			for _, dir := range used {
				p, err := Predict(t.Context(), dir, other, "", o)
				if err != nil {
					t.Fatal(err)
				}
				alike(t, "on another table", p.Probabilities, r.Trained.Probabilities)
				if _, err := Predict(t.Context(), dir, made, "", o); err == nil || !strings.Contains(err.Error(), x.want) {
					t.Errorf("on a store read in another way: %v, want %q", err, x.want)
				}
			}
		})
	}
}

// Runs and exports leave out of tables what their training left out, also where features have no names.
func TestIgnoredColumnsAreRemembered(t *testing.T) {
	lib := orttest.Need(t)
	at, other := matrixFolder(t, ""), matrixFolder(t, "\n")
	for _, dir := range []string{at, other} {
		nodes := "id,churned,joined,split\n"
		for i := range 60 {
			nodes += fmt.Sprintf("n%d,%s,2024-01-%02d,%s\n", i, [...]string{"a", "b"}[i/3%2], 1+i%28, [...]string{"train", "val", "test"}[i%3])
		}
		if err := os.WriteFile(filepath.Join(dir, "nodes.csv"), []byte(nodes), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := infer.PredictOptions{Library: &lib, Provider: ort.CPU}
	for name, x := range map[string]struct {
		model string
		set   []string
		on    []string
	}{
		"matrix": {"gcn", []string{"data.ignore=joined,weight", "data.weights=ignore"}, []string{at, other}},
		"roles":  {"sage", []string{"data.ignore=joined,fee", "data.weight=fee"}, []string{at}},
		"places": {"gcn", []string{"data.ignore=joined", "data.weights=ignore", "data.node_features=places"}, []string{at}},
	} {
		t.Run(name, func(t *testing.T) {
			r, dir, dist := trainedAndBuilt(t, &lib, TrainOptions{Model: x.model, Data: at, Set: append(x.set, "data.label=churned", "train.epochs=3")})
			for _, model := range []string{dir, dist} {
				for _, on := range x.on {
					p, err := Predict(t.Context(), model, on, "", o)
					if err != nil {
						t.Fatal(err)
					}
					alike(t, "on "+on, p.Probabilities, r.Trained.Probabilities)
				}
			}
		})
	}
}

// A store is the training data where its tables were read as those of the training, and other data else; what
// the run says of tables and of times to split by does not matter to it.
func TestStoresOfTablesReadByOptions(t *testing.T) {
	lib := orttest.Need(t)
	at, made, plain := matrixFolder(t, ""), filepath.Join(t.TempDir(), "made"), filepath.Join(t.TempDir(), "plain")
	nodes, edges := "id,label,joined\n", "source,target,payer,payee\n"
	for i := range 60 {
		nodes += fmt.Sprintf("n%d,%s,2024-01-%02d\n", i, [...]string{"a", "b"}[i/3%2], 1+7*i%28)
		edges += fmt.Sprintf("n%d,n%d,n%d,n%d\n", i, (i+1)%60, i, (3*i+5)%60)
	}
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for out, tables := range map[string]data.Tables{made: {Source: "payer", Target: "payee", Ignore: []string{"joined"}}, plain: {Ignore: []string{"joined"}}} {
		if err := data.Convert(at, out, data.ConvertOptions{Load: data.LoadOptions{Tables: tables}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, edges := range []string{"", "knn:3"} { // whose run takes the graph of its training alone
		t.Run("edges "+edges, func(t *testing.T) {
			dir, dist := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "dist")
			r, err := Train(t.Context(), TrainOptions{Model: "gcn", Data: at, Out: dir, Set: []string{"data.source=payer", "data.target=payee", "data.ignore=joined", "data.split=time:joined,0.5,0.2", "data.edges=" + edges, "train.epochs=3"}})
			if err != nil {
				t.Fatal(err)
			}
			models := []string{dir}
			if edges == "" {
				models = append(models, dist)
				if _, err := r.Build(t.Context(), dist, BuildOptions{Library: &lib, Uncalibrated: true}); err != nil {
					t.Fatal(err)
				}
			}
			for _, model := range models {
				p, err := Predict(t.Context(), model, made, "", infer.PredictOptions{Library: &lib, Provider: ort.CPU})
				if err != nil {
					t.Fatal(err)
				}
				alike(t, "on a store", p.Probabilities, r.Trained.Probabilities)
				if !p.TrainingGraph {
					t.Errorf("%s: a store that was read as in training is taken as other data", model)
				}
				p, err = Predict(t.Context(), model, plain, "", infer.PredictOptions{Library: &lib, Provider: ort.CPU})
				switch {
				case edges != "":
					if err == nil || !strings.Contains(err.Error(), "is not what the run was trained on") {
						t.Errorf("%s, on a store of other edges: %v", model, err)
					}
				case err != nil:
					t.Fatal(err)
				case p.TrainingGraph:
					t.Errorf("%s: a store of other edges is taken as the training graph", model)
				}
			}
		})
	}
}

package sweep

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/train"
)

func record(key string, seed int, val, test float64, set ...string) *Record {
	r := &Record{Job: Job{Model: "gcn", Data: "d", Set: append([]string{"train.epochs=5"}, set...), Seed: seed}, Key: key, Dataset: "d", Seconds: 2}
	r.Result = &train.Result{ValAcc: val, TestAcc: &test, BestEpoch: 1}
	return r
}

func TestTable(t *testing.T) {
	failed := record("5", 0, 0, 0, "train.lr=10.0", `model.classifier="gcn"`)
	failed.Result, failed.Error = nil, "diverged"
	records := []*Record{
		failed, nil,
		record("1", 1, 82, 70, "train.lr=0.1", `model.classifier="gcn"`),
		record("2", 0, 80, 72, "train.lr=0.1", `model.classifier="gcn"`),
		record("2", 0, 80, 72, "train.lr=0.1", `model.classifier="gcn"`), // of two stores
		record("3", 0, 81, 71, "train.lr=0.02", `model.classifier="gcn"`),
		record("4", 0, 90, 60),
	}
	var b strings.Builder
	if err := Summarize(records).WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	want := `model,data,model.classifier,train.lr,runs,failed,val_acc_mean,val_acc_std,test_acc_mean,test_acc_std,seconds
gcn,d,,,1,0,90.0000,0.0000,60.0000,0.0000,2.000
gcn,d,gcn,0.02,1,0,81.0000,0.0000,71.0000,0.0000,2.000
gcn,d,gcn,0.1,2,0,81.0000,1.4142,71.0000,1.4142,2.000
gcn,d,gcn,10.0,0,1,,,,,2.000
`
	if b.String() != want {
		t.Errorf("table\n%s\nwant\n%s", &b, want)
	}
	b.Reset()
	if err := Summarize(records).Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"model.classifier  train.lr  val %         test %        runs          s/run",
		"default           default   90.00         60.00         1             2.00",
		"gcn               10.0      –             –             0 (1 failed)  2.00",
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("table\n%slacks the line\n%s", &b, line)
		}
	}
	unlabelled := record("6", 0, 0, 0)
	unlabelled.Result = &train.Result{}
	if row := Summarize([]*Record{unlabelled}).Rows[0]; !math.IsNaN(float64(row.ValMean)) || !math.IsNaN(float64(row.TestMean)) {
		t.Errorf("a run without labels has accuracies %v and %v", row.ValMean, row.TestMean)
	}
	rows := Summarize(records).Rows
	for i, want := range map[int]string{
		0: `{"summary":true,"model":"gcn","data":"d","set":{},"runs":1,"failed":0,"val_acc_mean":90,"val_acc_std":0,"test_acc_mean":60,"test_acc_std":0,"seconds":2}`,
		3: `{"summary":true,"model":"gcn","data":"d","set":{"model.classifier":"gcn","train.lr":"10.0"},"runs":0,"failed":1,"val_acc_mean":null,"val_acc_std":null,"test_acc_mean":null,"test_acc_std":null,"seconds":2}`,
	} {
		if text, err := json.Marshal(rows[i]); err != nil || string(text) != want {
			t.Errorf("row %d as JSON: %s, %v, want %s", i, text, err, want)
		}
	}
}

func TestTableOfDataOfOneName(t *testing.T) {
	of := func(key, sum string, seed int, val float64) *Record {
		r := record(key, seed, val, val)
		r.Checksum = sum
		return r
	}
	show := func(records ...*Record) (rows []string, warnings []string) {
		table := Summarize(records)
		for _, r := range table.Rows {
			rows = append(rows, fmt.Sprint(r.Dataset, " ", r.Runs, " ", r.ValMean))
		}
		return rows, table.Warnings
	}
	rows, warnings := show(of("1", "aaaaaaaaaa", 0, 80), of("2", "bbbbbbbbbb", 0, 70), of("3", "bbbbbbbbbb", 1, 60))
	if want := []string{"d (aaaaaaaa) 1 80", "d (bbbbbbbb) 2 65"}; !slices.Equal(rows, want) || len(warnings) > 0 {
		t.Errorf("of two data sets: %q, %q, want %q", rows, warnings, want)
	}
	rows, warnings = show(of("1", "aaaaaaaaaa", 0, 80), of("2", "bbbbbbbbbb", 1, 70)) // drawn by the seed
	if want := []string{"d 2 75"}; !slices.Equal(rows, want) || len(warnings) > 0 {
		t.Errorf("of data by the seed: %q, %q, want %q", rows, warnings, want)
	}
	shards := []*Record{of("1", "cccccccccc", 0, 80), of("2", "dddddddddd", 1, 70)}
	for _, x := range [][]string{{"aaaaaaaaaa", "bbbbbbbbbb", "d (aaaaaaaa) 1 80", "d (bbbbbbbb) 1 70"}, {"aaaaaaaaaa", "aaaaaaaaaa", "d 2 75"}} { // other files, and damage drawn by the seed
		shards[0].Files, shards[1].Files = x[0], x[1]
		if rows, _ := show(shards...); !slices.Equal(rows, x[2:]) {
			t.Errorf("of the files %q: %q, want %q", x[:2], rows, x[2:])
		}
	}
	if _, warnings = show(of("1", "aaaaaaaaaa", 0, 80), of("3", "aaaaaaaaaa", 1, 80), of("2", "aaaaaaaaaa", 0, 70)); len(warnings) != 1 || !strings.Contains(warnings[0], "records 1 and 2 ") {
		t.Errorf("of two programs: %q", warnings)
	}
}

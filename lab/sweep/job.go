package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/train"
)

// Job is one training run. Two jobs with equal keys are the same run.
type Job struct {
	Model string `json:"model"` // a model's name, a .gsr file, or Auto
	Data  string `json:"data"`  // path or name, as gsrc.TrainOptions.Data takes it
	// Set are options as key=value, on top of the defaults for model and data.
	Set []string `json:"set"`
	// Seed is that of every random stream; of data with fixed splits or folds
	// also the split's number. It takes the place of train.seed in Set.
	Seed int `json:"seed"`
}

// String says what the job is, for messages.
func (j Job) String() string {
	s := fmt.Sprintf("%s on %s, seed %d", j.Model, j.Data, j.Seed)
	if len(j.Set) > 0 {
		s += ", " + strings.Join(j.Set, " ")
	}
	return s
}

// Record is what a job that has ended leaves in the store.
//
// Records of equal jobs are equal but for what the machine's load decides:
// Seconds, Threads and Result.WallS, and with them the checksum of the file.
type Record struct {
	Job
	// Key identifies the run; see [Key].
	Key string `json:"key"`
	// Dataset is the data set's short name, Checksum the SHA-256 of its files and of what was done to edges
	// in reading. Files is that of the files alone; empty for generated data, and in records of earlier versions.
	Dataset  string `json:"dataset"`
	Checksum string `json:"checksum"`
	Files    string `json:"files,omitempty"`
	// Chosen is the candidate that [Auto] has trained; empty for other models.
	Chosen string `json:"chosen,omitempty"`
	// Result is the outcome; nil where the run failed. Its PeakRSSMiB is nil
	// too, since the process runs several jobs at once.
	Result *train.Result `json:"result"`
	// Error says why the run failed, for instance that it diverged.
	Error string `json:"error,omitempty"`
	// Cause is the error that Error tells of, where the run failed just now.
	Cause error `json:"-"`
	// PeakBytes is the memory that the training steps take at their peak with
	// one thread, as the compiler forecasts it: see train.PredictMemory, which
	// tests hold to at most 15 % above what the executor allocates. It is 0
	// where there is no forecast.
	PeakBytes int64 `json:"peak_bytes"`
	// Version is the version of gsrc that ran the job.
	Version string `json:"version"`
	// Seconds is how long the job took, the reading of data not counted, with
	// Threads threads.
	Seconds float64 `json:"seconds"`
	Threads int     `json:"threads"`
	// Seal has the checksum of the record's file, in that file alone.
	Seal struct {
		Checksum string `json:"checksum"`
	} `json:"seal,omitzero"`
}

// Failed reports whether the run ended with an error.
func (r *Record) Failed() bool { return r.Error != "" }

// Key identifies what is trained: SHA-256 of the program before any pass, the
// data's checksum and every option that can change a result
// (config.Config.Hash), in hexadecimal. A default, a model or a file of data that
// has changed makes another job; where data lie, how options were given, and the
// number of threads do not.
func Key(s *gsrc.Setup) string { return key(modelName(s.Model), s, s.Module.String()) }

func key(model string, s *gsrc.Setup, program string) string {
	h := sha256.New()
	fmt.Fprintf(h, "model %s\ndata %s %s\nconfig %s\n%s", model, s.DataName(), s.DataChecksum(), s.Config.Hash(), program)
	return hex.EncodeToString(h.Sum(nil))
}

// Auto in the place of a model's name is the one that [gsrc.Auto] chooses for the data. Its key has
// the version of gsrc for a program, since the candidates, their defaults and how they are compared may differ in another.
const Auto = "auto"

// key identifies what a job trains, which s was prepared for.
func (j Job) key(s *gsrc.Setup) string {
	if j.Model == Auto {
		return key(Auto, s, gsrc.Version())
	}
	return Key(s)
}

// modelName is a model's name without the folder of a .gsr file.
func modelName(model string) string {
	return strings.TrimSuffix(filepath.Base(model), ".gsr")
}

// prepare resolves a job to what it trains. warn, if not nil, gets options without effect.
func (j Job) prepare(cache *data.Cache, warn func(string)) (*gsrc.Setup, error) {
	if j.Seed < 0 {
		return nil, fmt.Errorf("%s: a seed is at least 0", j)
	}
	model := j.Model
	if model == Auto { // what it reads of data and options any classifier does
		model, warn = "linear", nil
	}
	s, err := gsrc.Prepare(gsrc.TrainOptions{
		Model: model, Data: j.Data, Cache: cache, Warn: warn,
		Set: append(slices.Clone(j.Set), fmt.Sprintf("train.seed=%d", j.Seed), "train.threads=1"),
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j, err)
	}
	if s.Module.Func("classify") == nil {
		return nil, fmt.Errorf("%s: there are no labels, by which runs could be compared", j)
	}
	return s, nil
}

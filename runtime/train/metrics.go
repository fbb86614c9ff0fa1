package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"
)

// Record is a line of metrics.jsonl, what is known of one step. All of it but Time
// is a function of the task, the configuration and the seed. Accuracies are in
// percent; what was not evaluated is nil.
type Record struct {
	Phase    string             `json:"phase"`
	Step     int                `json:"step"`            // of the run, from 1
	Epoch    int                `json:"epoch,omitempty"` // from 1
	Function string             `json:"function"`
	Terms    map[string]float32 `json:"terms"` // the loss and its terms
	TrainAcc *float64           `json:"train_acc,omitempty"`
	ValAcc   *float64           `json:"val_acc,omitempty"`
	ValLoss  *float64           `json:"val_loss,omitempty"`
	// ValSelected is the macro-F1 or the AUC, in percent, where train.select is
	// one of these.
	ValSelected *float64 `json:"val_selected,omitempty"`
	// LR has the learning rate of each optimizer group that the step moved.
	LR map[string]float64 `json:"lr"`
	// Candidates is the number of candidate edges.
	Candidates int        `json:"candidates,omitempty"`
	Time       RecordTime `json:"time"`
}

// RecordTime is what depends on the clock.
type RecordTime struct {
	WallS float64 `json:"wall_s"` // since the run began, its earlier parts included
}

// metrics appends lines to metrics.jsonl. Lines are whole in the file or not
// there: they are written together, and a failed write is cut off again.
type metrics struct {
	f       *os.File
	w       io.Writer // f, or a test's writer
	size    int64     // of the whole lines in the file
	lines   int       // written, those of earlier parts of the run included
	pending bytes.Buffer
	flushed time.Time
}

// ReadMetrics reads the metrics.jsonl of a run directory: a record for every step
// that was evaluated or told, in their order.
func ReadMetrics(dir string) ([]Record, error) {
	path := filepath.Join(dir, metricsFile)
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the run's metrics: %w", err)
	}
	defer f.Close()
	var records []Record
	for d := json.NewDecoder(f); ; {
		var r Record
		err := d.Decode(&r)
		if err == io.EOF {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: record %d: %w", path, len(records)+1, err)
		}
		records = append(records, r)
	}
}

// flushEvery is how long lines wait at most.
const flushEvery = time.Second

// wrapMetrics, if not nil, wraps the file. Tests put a failing writer here.
var wrapMetrics func(io.Writer) io.Writer

// openMetrics opens the file and cuts it back to its first lines. It returns the
// last of these, nil without any.
func openMetrics(path string, lines int) (metrics, *Record, error) {
	var m metrics
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return m, nil, err
	}
	m = metrics{f: f, w: f, lines: lines, flushed: time.Now()}
	if wrapMetrics != nil {
		m.w = wrapMetrics(f)
	}
	last, err := m.cut(lines)
	if err != nil {
		return m, nil, errors.Join(err, f.Close())
	}
	return m, last, nil
}

// cut keeps the first lines of the file.
func (m *metrics) cut(lines int) (*Record, error) {
	text, err := io.ReadAll(m.f)
	if err != nil {
		return nil, err
	}
	var line []byte
	rest := text
	for i := range lines {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return nil, fmt.Errorf("%s has %d whole lines, the checkpoint counts %d: it was changed since; start anew with --force", m.f.Name(), i, lines)
		}
		line, rest = rest[:end], rest[end+1:]
	}
	m.size = int64(len(text) - len(rest))
	if err := m.f.Truncate(m.size); err != nil {
		return nil, err
	}
	if _, err := m.f.Seek(m.size, io.SeekStart); err != nil {
		return nil, err
	}
	if lines == 0 {
		return nil, nil
	}
	var last Record
	if err := json.Unmarshal(line, &last); err != nil {
		return nil, fmt.Errorf("%s: line %d: %w", m.f.Name(), lines, err)
	}
	return &last, nil
}

func (m *metrics) add(r *Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	m.lines++
	if m.f == nil {
		return nil
	}
	m.pending.Write(line)
	m.pending.WriteByte('\n')
	if time.Since(m.flushed) >= flushEvery {
		return m.flush()
	}
	return nil
}

// flush writes the waiting lines.
func (m *metrics) flush() error {
	if m.f == nil || m.pending.Len() == 0 {
		return nil
	}
	m.flushed = time.Now()
	n := m.pending.Len()
	if _, err := m.w.Write(m.pending.Bytes()); err != nil {
		return fmt.Errorf("cannot write %s: %w", m.f.Name(), errors.Join(err, m.f.Truncate(m.size)))
	}
	m.pending.Reset()
	m.size += int64(n)
	return nil
}

// sync writes the waiting lines and makes the file durable, so that a checkpoint
// may count on it.
func (m *metrics) sync() error {
	if m.f == nil {
		return nil
	}
	if err := m.flush(); err != nil {
		return err
	}
	return m.f.Sync()
}

func (m *metrics) close() {
	if m.f != nil {
		_ = m.flush() // after a failure: lines beyond the checkpoint, for the reader
		_ = m.f.Close()
		m.f = nil
	}
}

// record writes the line of the step that has just been made. s is nil where
// nothing was evaluated.
func (t *trainer) record(f *function, s *score) error {
	r := Record{Phase: t.state.Phase, Step: t.state.step(), Epoch: t.state.Epoch, Function: f.Name(), Terms: map[string]float32{}, LR: map[string]float64{},
		Time: RecordTime{WallS: math.Round(t.elapsed().Seconds()*1e4) / 1e4}}
	for _, x := range f.terms {
		r.Terms[x.name] = x.value
	}
	for _, u := range f.updates {
		r.LR[u.group.name] = u.group.lr
	}
	if s != nil {
		r.TrainAcc, r.ValAcc, r.ValLoss = known(s.trainAcc), &s.valAcc, &s.valLoss
		if by := t.cfg.Train.Select; by == "macro_f1" || by == "auc" {
			r.ValSelected = &s.selected
		}
	}
	if t.edges != nil {
		r.Candidates = t.edges.count()
	}
	return t.metrics.add(&r)
}

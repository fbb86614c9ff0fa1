package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/seal"
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

// Log appends lines to metrics.jsonl. Lines are whole in the file or not
// there: they are written together, and a failed write is cut off again.
type Log struct {
	f       *os.File
	w       io.Writer // f, by way of atomicfile.Wrap
	size    int64     // of the whole lines in the file
	lines   int       // written, those of earlier parts of the run included
	sum     uint32    // checksum of the lines but for their times
	pending bytes.Buffer
	flushed time.Time
}

// ReadMetrics reads the metrics.jsonl of a run directory: a record for every step
// that was evaluated or told, in their order, up to the last checkpoint. They are held
// against the checksum that the checkpoint has of them, but for their times.
func ReadMetrics(dir string) ([]Record, error) {
	path := filepath.Join(dir, MetricsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the run's metrics: %w", err)
	}
	c, err := ReadFile(filepath.Join(dir, CheckpointFile))
	if err != nil {
		return nil, err
	}
	if c.Version > 1 {
		size, _, _, err := c.prefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		text = text[:size]
	}
	var records []Record
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
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

// prefix finds the lines that a checkpoint counts: the bytes that they take, their
// checksum, which must be the checkpoint's, and the last of them.
func (c *State) prefix(text []byte) (size int, sum uint32, last []byte, err error) {
	for i := range c.Lines {
		end := bytes.IndexByte(text[size:], '\n')
		if end < 0 {
			return 0, 0, nil, fmt.Errorf("it has %d whole lines, the checkpoint counts %d: it was changed since; start anew with --force", i, c.Lines)
		}
		last = text[size : size+end]
		sum = addLine(sum, last)
		size += end + 1
	}
	if c.Metrics != "" && seal.Text(sum) != c.Metrics {
		return 0, 0, nil, fmt.Errorf("the first %d lines do not fit the checksum that the checkpoint has of them: the file is damaged, or was changed by hand", c.Lines)
	}
	return size, sum, last, nil
}

// addLine adds a line to the checksum of those before it. Its end, the time, is left
// out: checkpoints of equal runs are equal.
func addLine(sum uint32, line []byte) uint32 {
	if at := bytes.LastIndex(line, []byte(`,"time":`)); at >= 0 {
		line = line[:at]
	}
	return seal.Update(seal.Update(sum, line), []byte{'\n'})
}

// flushEvery is how long lines wait at most.
const flushEvery = time.Second

// open opens the file and cuts it back to the lines that a checkpoint counts. It returns
// the last of these, nil without any.
func (m *Log) open(path string, c *State) (*Record, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	*m = Log{f: f, w: f, lines: c.Lines, flushed: time.Now()}
	if atomicfile.Wrap != nil {
		m.w = atomicfile.Wrap(f)
	}
	last, err := m.cut(c)
	if err != nil {
		err = errors.Join(err, f.Close())
		m.f = nil
	}
	return last, err
}

// cut keeps the lines that a checkpoint counts.
func (m *Log) cut(c *State) (*Record, error) {
	text, err := io.ReadAll(m.f)
	if err != nil {
		return nil, err
	}
	size, sum, line, err := c.prefix(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.f.Name(), err)
	}
	m.size, m.sum = int64(size), sum
	if err := m.f.Truncate(m.size); err != nil {
		return nil, err
	}
	if _, err := m.f.Seek(m.size, io.SeekStart); err != nil {
		return nil, err
	}
	if c.Lines == 0 {
		return nil, nil
	}
	var last Record
	if err := json.Unmarshal(line, &last); err != nil {
		return nil, fmt.Errorf("%s: line %d: %w", m.f.Name(), c.Lines, err)
	}
	return &last, nil
}

// Add adds a line, which may wait to be written.
func (m *Log) Add(r *Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	m.lines++
	if m.f == nil {
		return nil
	}
	m.sum = addLine(m.sum, line)
	m.pending.Write(line)
	m.pending.WriteByte('\n')
	if time.Since(m.flushed) >= flushEvery {
		return m.flush()
	}
	return nil
}

// flush writes the waiting lines.
func (m *Log) flush() error {
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
func (m *Log) sync() error {
	if m.f == nil {
		return nil
	}
	if err := m.flush(); err != nil {
		return err
	}
	return m.f.Sync()
}

func (m *Log) close() {
	if m.f != nil {
		_ = m.flush() // after a failure: lines beyond the checkpoint, for the reader
		_ = m.f.Close()
		m.f = nil
	}
}

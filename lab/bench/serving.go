package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/rng"
	"gonum.org/v1/gonum/mat"
)

// ServingOptions say how a server is loaded.
type ServingOptions struct {
	Gsrc        string        // the program
	Data        string        // the online graph
	Rate        float64       // questions a second, each for one node
	Time        time.Duration // how long they come before the server is asked to stop
	UpdateEvery time.Duration // each adds a node and three edges
	Exact       bool          // have the server compute the whole graph anew at every update
	Model       string        // gcn if empty
	Set         []string      // options of its training
	Versions    int           // how many versions to compare with at most, evenly chosen; 0 is all
	Progress    func(string)  // gets a line for each step
}

// ServingReport is what a server did under load.
type ServingReport struct {
	ServingOptions
	Nodes, Edges int // of the graph at first
	Asked        int
	Took         time.Duration   // from the first question to the last
	Latency      []time.Duration // of the answers, ascending, each from when its question was due
	Updates      []time.Duration // ascending
	Lost         []string        // questions without an answer
	Refused      int             // questions answered with 503: too many were under way
	NotTaken     int             // questions that found the server gone
	Processor    time.Duration   // processor time of the server, in all
	Memory       [3]int64        // bytes of the server that are resident at the start, in the middle and at the end; 0 where the system does not tell
	Unchecked    int             // answers of versions that were not compared with
	Wrong        int             // answers that are not the whole graph's of their version within 1e-5
	Equal        int             // those that are, bit for bit
	MaxError     float64         // largest difference of a probability
}

type asked struct {
	node    int
	version int64
	p       []float32
}

type growth struct {
	version int64
	x       []float32
	edges   [][2]int
}

// Serving trains and exports a model, starts a server with the online graph, loads it
// and ends it amid the load.
func Serving(ctx context.Context, o ServingOptions) (*ServingReport, error) {
	if o.Rate <= 0 || o.Time <= 0 || o.UpdateEvery <= 0 {
		return nil, errors.New("rate and times are above 0")
	}
	dir, err := os.MkdirTemp("", "serving")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	o.Model = cmp.Or(o.Model, "gcn")
	o.Progress("training and exporting " + o.Model)
	run, err := gsrc.Train(ctx, gsrc.TrainOptions{Model: o.Model, Data: o.Data, Out: filepath.Join(dir, "run"), Set: o.Set})
	if err != nil {
		return nil, err
	}
	dist := filepath.Join(dir, "dist")
	if _, err := run.Build(ctx, dist, gsrc.BuildOptions{}); err != nil {
		return nil, err
	}
	args := []string{"serve", dist, "--data", o.Data, "--updates", "--http", "127.0.0.1:0", "--grpc", "", "--drain", "2s"}
	if o.Exact {
		args = append(args, "--exact")
	}
	server := exec.Command(o.Gsrc, args...)
	text, err := server.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	defer server.Process.Kill()
	lines := bufio.NewScanner(text)
	base := ""
	var said []string
	for base == "" && lines.Scan() {
		said = append(said, lines.Text())
		if _, address, ok := strings.Cut(lines.Text(), "listening on "); ok {
			base = address
		}
	}
	if base == "" {
		server.Wait()
		return nil, fmt.Errorf("the server did not start:\n%s", strings.Join(said, "\n"))
	}
	go func() {
		for lines.Scan() {
		}
	}()
	l := &load{o: o, base: base, ds: run.Data, r: &ServingReport{ServingOptions: o, Nodes: run.Data.Graph.N, Edges: run.Data.Graph.NumEdges()}}
	l.h = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}, Timeout: 20 * time.Second}
	o.Progress(fmt.Sprintf("%g questions a second for %v, an update every %v", o.Rate, o.Time, o.UpdateEvery))
	l.r.Memory[0] = rss.Of(server.Process.Pid)
	middle := time.AfterFunc(o.Time/2, func() {
		b := rss.Of(server.Process.Pid)
		l.mu.Lock()
		l.r.Memory[1] = b
		l.mu.Unlock()
	})
	defer middle.Stop()
	l.run(ctx, func() error {
		l.r.Memory[2] = rss.Of(server.Process.Pid)
		return server.Process.Signal(os.Interrupt)
	})
	var failed *exec.ExitError
	if err := server.Wait(); err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.r.Processor = server.ProcessState.UserTime() + server.ProcessState.SystemTime()
	o.Progress(fmt.Sprintf("comparing %d answers in %d versions", len(l.answers), 1+len(l.grown)))
	return l.r, l.compare(ctx, dist, filepath.Join(dir, "data"))
}

type load struct {
	o       ServingOptions
	base    string
	h       *http.Client
	ds      *data.Dataset
	leaving atomic.Bool // the server has said that it ends

	mu      sync.Mutex
	r       *ServingReport
	answers []asked
	grown   []growth
}

// run sends questions at random times, whatever has become of those before.
func (l *load) run(ctx context.Context, end func() error) {
	var wg, side sync.WaitGroup
	over := make(chan struct{})
	side.Go(func() { l.update(over) })
	stream := rng.New(1, "load")
	start := time.Now()
	due := time.Duration(0)
	ended := false
	for i := uint64(0); ctx.Err() == nil && !l.leaving.Load(); i++ {
		if due > l.o.Time && !ended {
			ended = true
			close(over)
			side.Wait()
			if err := end(); err != nil {
				l.lost("the server cannot be ended: " + err.Error())
				break
			}
		}
		// Waiting for a moment to come takes longer than a millisecond would be worth:
		// those that have become due go together.
		if wait := due - time.Since(start); wait > 0 {
			time.Sleep(wait)
		}
		node, at := int(stream.Uniform(2*i)*float32(l.ds.Graph.N)), due
		wg.Go(func() { l.ask(node, start.Add(at)) })
		l.r.Asked++
		l.r.Took = time.Since(start)
		due += time.Duration(-math.Log(1-float64(stream.Uniform(2*i+1))) / l.o.Rate * float64(time.Second))
	}
	wg.Wait()
	if !ended {
		close(over)
		side.Wait()
		_ = end() // it may have ended by itself, which the lost questions tell
	}
	slices.Sort(l.r.Latency)
	slices.Sort(l.r.Updates)
}

func (l *load) lost(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.r.Lost = append(l.r.Lost, why)
}

type reply struct {
	Parameters struct {
		Version int64 `json:"graph_version"`
	} `json:"parameters"`
	Outputs []struct {
		Data []float32 `json:"data"`
	} `json:"outputs"`
}

var errRefused = errors.New("too many requests are under way")

func (l *load) post(model string, body []byte) (*reply, error) {
	q, err := http.NewRequest("POST", l.base+"/v2/models/"+model+"/infer", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if model == "nodes" { // may be asked again where the server closed the connection unasked
		q.Header["Idempotency-Key"] = nil
	}
	r, err := l.h.Do(q)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r.Body)
	r.Body.Close()
	if r.Close {
		l.leaving.Store(true)
	}
	if err != nil {
		return nil, err
	}
	switch r.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable:
		return nil, errRefused
	default:
		return nil, fmt.Errorf("%d: %s", r.StatusCode, text)
	}
	var got reply
	return &got, json.Unmarshal(text, &got)
}

func (l *load) ask(node int, due time.Time) {
	body := append(append([]byte(`{"inputs":[{"name":"node","datatype":"BYTES","shape":[1],"data":["`), l.ds.NodeID(node)...),
		`"]}],"outputs":[{"name":"probabilities"}]}`...)
	got, err := l.post("nodes", body)
	took := time.Since(due)
	if err == nil && len(got.Outputs) != 1 {
		err = fmt.Errorf("%d outputs", len(got.Outputs))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		l.leaving.Store(true)
		l.r.NotTaken++
	case errors.Is(err, errRefused):
		l.r.Refused++
	case err != nil:
		l.r.Lost = append(l.r.Lost, err.Error())
	default:
		l.r.Latency = append(l.r.Latency, took)
		l.answers = append(l.answers, asked{node, got.Parameters.Version, got.Outputs[0].Data})
	}
}

// update adds a node like one that is there, and three edges, again and again.
func (l *load) update(over <-chan struct{}) {
	tick := time.NewTicker(l.o.UpdateEvery)
	defer tick.Stop()
	stream := rng.New(2, "updates")
	x := l.ds.X.ToDense()
	for i := 0; ; i++ {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		n := l.ds.Graph.N
		draw := func(k int) int { return int(stream.Uniform(uint64(8*i+k)) * float32(n)) }
		like, fresh := draw(0), n+i
		g := growth{x: x.Dense[like*x.Cols : (like+1)*x.Cols], edges: [][2]int{{fresh, draw(1)}, {draw(2), fresh}, {draw(3), draw(4)}}}
		name := func(v int) string {
			if v < n {
				return l.ds.NodeID(v)
			}
			return strconv.Itoa(v)
		}
		var src, dst []string
		for _, e := range g.edges {
			src, dst = append(src, name(e[0])), append(dst, name(e[1]))
		}
		type input struct {
			Name     string `json:"name"`
			Datatype string `json:"datatype"`
			Shape    []int  `json:"shape"`
			Data     any    `json:"data"`
		}
		body, err := json.Marshal(map[string]any{"inputs": []input{{"x", "FP32", []int{1, x.Cols}, g.x}, {"node", "BYTES", []int{1}, []string{name(fresh)}},
			{"source", "BYTES", []int{3}, src}, {"target", "BYTES", []int{3}, dst}}})
		if err != nil {
			l.lost(err.Error())
			return
		}
		start := time.Now()
		got, err := l.post("update", body)
		if errors.Is(err, errRefused) {
			i--
			continue
		}
		if err != nil {
			l.lost("update: " + err.Error())
			return
		}
		g.version = got.Parameters.Version
		l.mu.Lock()
		l.r.Updates = append(l.r.Updates, time.Since(start))
		l.grown = append(l.grown, g)
		l.mu.Unlock()
	}
}

// compare classifies every version of the graph as a whole, from files, as gsrc predict
// does, and holds the answers against it.
func (l *load) compare(ctx context.Context, dist, dir string) error {
	byVersion := map[int64][]asked{}
	for _, a := range l.answers {
		byVersion[a.version] = append(byVersion[a.version], a)
	}
	x := slices.Clone(l.ds.X.ToDense().Dense)
	edges := make([][2]int, 0, len(l.ds.Graph.Edges))
	for _, e := range l.ds.Graph.Edges {
		edges = append(edges, [2]int{int(e[0]), int(e[1])})
	}
	grown := append([]growth{{version: 1}}, l.grown...)
	every := 1
	if l.o.Versions > 0 {
		every = (len(grown) + l.o.Versions - 1) / l.o.Versions
	}
	for i, g := range grown {
		x, edges = append(x, g.x...), append(edges, g.edges...)
		if i+1 < len(grown) && grown[i+1].version == g.version {
			continue // these two came together
		}
		answers := byVersion[g.version]
		delete(byVersion, g.version)
		if len(answers) == 0 {
			continue
		}
		if i%every != 0 {
			l.r.Unchecked += len(answers)
			continue
		}
		path := l.o.Data // the first version may be the training graph, which files of its own are not
		if i > 0 {
			path = dir
			if err := writeFolder(dir, x, l.ds.X.Cols, edges); err != nil {
				return err
			}
		}
		want, err := gsrc.Predict(ctx, dist, path, "", gsrc.PredictOptions{Threads: max(1, runtime.NumCPU()/2)})
		if err != nil {
			return err
		}
		c := len(want.Classes)
		for _, a := range answers {
			whole := want.Probabilities[a.node*c : (a.node+1)*c]
			if slices.Equal(a.p, whole) {
				l.r.Equal++
				continue
			}
			worst := math.Inf(1)
			if len(a.p) == c {
				worst = 0
				for k := range whole {
					worst = max(worst, math.Abs(float64(a.p[k]-whole[k])))
				}
			}
			l.r.MaxError = max(l.r.MaxError, worst)
			if !(worst <= 1e-5) {
				l.r.Wrong++
			}
		}
	}
	for _, answers := range byVersion { // of versions that no update made
		l.r.Wrong += len(answers)
	}
	return nil
}

func writeFolder(dir string, x []float32, width int, edges [][2]int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var e bytes.Buffer
	e.WriteString("source,target\n")
	for _, p := range edges {
		fmt.Fprintf(&e, "%d,%d\n", p[0], p[1])
	}
	rows := mat.NewDense(len(x)/width, width, nil)
	for i, v := range x {
		rows.Set(i/width, i%width, float64(v))
	}
	return errors.Join(writeArray(filepath.Join(dir, "features.npy"), rows), os.WriteFile(filepath.Join(dir, "edges.csv"), e.Bytes(), 0o644))
}

// quantile returns the value that a share of sorted ones is not above.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// Write prints the report as a table.
func (r *ServingReport) Write(w io.Writer) {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }
	way := "what an update reaches is computed"
	if r.Exact {
		way = "the whole graph is computed at each update"
	}
	fmt.Fprintf(w, "graph                 %d nodes, %d edges; %s: %s\n", r.Nodes, r.Edges, r.Model, way)
	fmt.Fprintf(w, "questions             %d in %.1f s, %.0f a second, open loop\n", r.Asked, r.Took.Seconds(), float64(r.Asked)/r.Took.Seconds())
	fmt.Fprintf(w, "latency               p50 %s  p90 %s  p99 %s  p99.9 %s  max %s\n", ms(quantile(r.Latency, .5)), ms(quantile(r.Latency, .9)),
		ms(quantile(r.Latency, .99)), ms(quantile(r.Latency, .999)), ms(quantile(r.Latency, 1)))
	fmt.Fprintf(w, "processor time        %.2f s of the server in all, start and updates too\n", r.Processor.Seconds())
	fmt.Fprintf(w, "updates               %d, p50 %s  max %s\n", len(r.Updates), ms(quantile(r.Updates, .5)), ms(quantile(r.Updates, 1)))
	mib := func(b int64) float64 { return float64(b) / (1 << 20) }
	fmt.Fprintf(w, "resident memory       %.0f MiB at the start, %.0f in the middle, %.0f at the end\n", mib(r.Memory[0]), mib(r.Memory[1]), mib(r.Memory[2]))
	fmt.Fprintf(w, "answers               %d equal to the whole graph's bit for bit, %d within 1e-5 (%.1e), %d wrong, %d not compared\n",
		r.Equal, len(r.Latency)-r.Unchecked-r.Equal-r.Wrong, r.MaxError, r.Wrong, r.Unchecked)
	fmt.Fprintf(w, "lost, shutdown too    %d; %d refused as too many, %d came when the server was gone\n", len(r.Lost), r.Refused, r.NotTaken)
}

// Check is an error where something was lost or wrong, or the 99th
// percentile is above p99 (0 for no bar).
func (r *ServingReport) Check(p99 time.Duration) error {
	switch have := quantile(r.Latency, .99); {
	case len(r.Lost) > 0:
		return fmt.Errorf("%d questions were lost, the first: %s", len(r.Lost), r.Lost[0])
	case r.Wrong > 0:
		return fmt.Errorf("%d answers are not the whole graph's", r.Wrong)
	case r.Exact && r.Equal+r.Unchecked < len(r.Latency):
		return fmt.Errorf("%d answers are not the whole graph's to the bit", len(r.Latency)-r.Unchecked-r.Equal)
	case r.Refused > 0:
		return fmt.Errorf("%d questions were refused: this machine cannot answer %g a second now", r.Refused, r.Rate)
	case p99 > 0 && have > p99:
		return fmt.Errorf("the 99th percentile is %v, above %v", have, p99)
	}
	return nil
}

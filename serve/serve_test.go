package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/internal/wal"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	pb "github.com/gsrc-dev/gsrc/serve/inferencepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// small is an exported GCN for a graph of 200 nodes, made once; the folder goes when
// the tests end.
var small = sync.OnceValues(func() (export string, err error) {
	dir, err := os.MkdirTemp("", "serve")
	if err != nil {
		return "", err
	}
	made = dir
	run, err := gsrc.Train(context.Background(), gsrc.TrainOptions{Model: "gcn", Data: "synthetic", Out: filepath.Join(dir, "run"),
		Set: []string{"train.epochs=2"}})
	if err != nil {
		return "", err
	}
	_, err = run.Build(context.Background(), filepath.Join(dir, "dist"), gsrc.BuildOptions{Unverified: true})
	return filepath.Join(dir, "dist"), err
})

var made string

func TestMain(m *testing.M) {
	if o := os.Getenv(childVar); o != "" {
		os.Exit(beServer(o))
	}
	code := m.Run()
	os.RemoveAll(made)
	os.RemoveAll(madePipeline)
	os.Exit(code)
}

func newServer(t *testing.T, o Options) *Server {
	t.Helper()
	orttest.Need(t)
	if o.Dist == "" {
		var err error
		if o.Dist, err = small(); err != nil {
			t.Fatal(err)
		}
	}
	o.Predict.Provider = ort.CPU
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// client asks over HTTP, in JSON or with binary tensors, or over gRPC.
type client func(ctx context.Context, model string, inputs ...Tensor) (*Result, error)

// statusError is an answer that is none.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.text) }

func overHTTP(h *http.Client, base string, inBinary bool) client {
	return func(ctx context.Context, model string, inputs ...Tensor) (*Result, error) {
		type input struct {
			Name       string           `json:"name"`
			Datatype   string           `json:"datatype"`
			Shape      []int64          `json:"shape"`
			Parameters map[string]int64 `json:"parameters,omitempty"`
			Data       any              `json:"data,omitempty"`
		}
		var list []input
		var rest []byte
		for _, t := range inputs {
			in := input{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape}
			if inBinary {
				data := t.appendBytes(nil)
				in.Parameters = map[string]int64{"binary_data_size": int64(len(data))}
				rest = append(rest, data...)
			} else {
				in.Data = map[string]any{FP32: append([]float32{}, t.F32...), INT64: append([]int64{}, t.I64...), BYTES: append([]string{}, t.Text...)}[t.Datatype]
			}
			list = append(list, in)
		}
		body, err := json.Marshal(map[string]any{"id": "7", "inputs": list, "parameters": map[string]bool{"binary_data_output": inBinary}})
		if err != nil {
			return nil, err
		}
		r, err := http.NewRequestWithContext(ctx, "POST", base+"/v2/models/"+model+"/infer", bytes.NewReader(append(body, rest...)))
		if err != nil {
			return nil, err
		}
		if inBinary {
			r.Header.Set(lengthHeader, strconv.Itoa(len(body)))
		}
		reply, err := h.Do(r)
		if err != nil {
			return nil, err
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			return nil, err
		}
		if reply.StatusCode != http.StatusOK {
			return nil, &statusError{reply.StatusCode, string(text)}
		}
		if inBinary {
			n, err := strconv.Atoi(reply.Header.Get(lengthHeader))
			if err != nil {
				return nil, err
			}
			text, rest = text[:n], text[n:]
		}
		var j struct {
			Parameters map[string]int64 `json:"parameters"`
			Outputs    json.RawMessage  `json:"outputs"`
		}
		if err := json.Unmarshal(text, &j); err != nil {
			return nil, err
		}
		// Outputs have the form of inputs.
		outputs, _, err := parseRequest(ctx, append(fmt.Appendf(nil, `{"inputs":%s}`, j.Outputs), rest...), len(j.Outputs)+len(`{"inputs":}`), func(int64) error { return nil })
		if err != nil {
			return nil, err
		}
		return &Result{Outputs: outputs.Inputs, GraphVersion: j.Parameters[versionParameter]}, nil
	}
}

func overGRPC(t *testing.T, s *Server) client {
	t.Helper()
	h := httptest.NewUnstartedServer(s.RPC())
	h.Config.Protocols = &http.Protocols{}
	h.Config.Protocols.SetUnencryptedHTTP2(true)
	h.Start()
	t.Cleanup(h.Close)
	c, err := grpc.NewClient(h.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	stub := pb.NewGRPCInferenceServiceClient(c)
	return func(ctx context.Context, model string, inputs ...Tensor) (*Result, error) {
		r := &pb.ModelInferRequest{ModelName: model}
		for _, t := range inputs {
			in := &pb.ModelInferRequest_InferInputTensor{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape}
			in.Contents = &pb.InferTensorContents{Fp32Contents: t.F32, Int64Contents: t.I64}
			for _, v := range t.Text {
				in.Contents.BytesContents = append(in.Contents.BytesContents, []byte(v))
			}
			r.Inputs = append(r.Inputs, in)
		}
		reply, err := stub.ModelInfer(ctx, r)
		if err != nil {
			return nil, err
		}
		res := &Result{GraphVersion: reply.Parameters[versionParameter].GetInt64Param()}
		for i, out := range reply.Outputs {
			t := Tensor{Name: out.Name, Datatype: out.Datatype, Shape: out.Shape}
			if err := t.setBytes(reply.RawOutputContents[i]); err != nil {
				return nil, err
			}
			res.Outputs = append(res.Outputs, t)
		}
		return res, nil
	}
}

func names(list ...string) Tensor {
	return Tensor{Name: "node", Datatype: BYTES, Shape: []int64{int64(len(list))}, Text: list}
}

func output(t *testing.T, r *Result, name string) Tensor {
	t.Helper()
	for _, o := range r.Outputs {
		if o.Name == name {
			return o
		}
	}
	t.Fatalf("no output %q", name)
	return Tensor{}
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-5) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// Every protocol gives what the whole graph gives.
func TestAnswersAreTheWholeGraphs(t *testing.T) {
	for _, exact := range []bool{false, true} {
		s := newServer(t, Options{Data: "synthetic", Exact: exact, Batch: 7})
		all, err := gsrc.Predict(t.Context(), s.o.Dist, "synthetic", "", gsrc.PredictOptions{Provider: ort.CPU})
		if err != nil {
			t.Fatal(err)
		}
		h := httptest.NewServer(s.Handler())
		t.Cleanup(h.Close)
		c := len(all.Classes)
		var list []string
		var want []float32
		for _, v := range []int{3, 11, 3, 0, len(all.Predicted) - 1} {
			list, want = append(list, strconv.Itoa(v)), append(want, all.Probabilities[v*c:(v+1)*c]...)
		}
		for name, ask := range map[string]client{"json": overHTTP(h.Client(), h.URL, false), "binary": overHTTP(h.Client(), h.URL, true), "grpc": overGRPC(t, s)} {
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					r, err := ask(t.Context(), "nodes", names(list...))
					if err != nil {
						t.Error(name, err)
						return
					}
					if r.GraphVersion != 1 {
						t.Errorf("%s: version %d, want 1", name, r.GraphVersion)
					}
					near(t, name, output(t, r, "probabilities").F32, want)
					if got := output(t, r, "label").Text[1]; got != all.Classes[all.Predicted[11]] {
						t.Errorf("%s: label %q", name, got)
					}
				})
			}
			wg.Wait()
			empty, err := ask(t.Context(), "nodes", names())
			if err != nil || len(output(t, empty, "logits").F32) != 0 {
				t.Errorf("%s: no nodes give %+v, %v", name, empty, err)
			}
		}
	}
}

// whole classifies a graph by the export, without the server.
type whole struct {
	t     *testing.T
	dist  *dist.Dist
	x     []float32
	edges [][2]int32
}

func newWhole(t *testing.T, s *Server) *whole {
	t.Helper()
	sample, err := graph.Generate(graph.DefaultCSBM())
	if err != nil {
		t.Fatal(err)
	}
	d, err := dist.Open(s.o.Dist, ort.Options{Provider: ort.CPU, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return &whole{t, d, slices.Clone(sample.X), slices.Clone(sample.Graph.Edges)}
}

func (w *whole) probabilities() []float32 {
	w.t.Helper()
	d := w.dist.Manifest.NumFeatures
	seen := map[[2]int32]bool{}
	var src, dst []int64
	for _, e := range w.edges {
		u, v := e[0], e[1]
		if u == v || seen[e] || seen[[2]int32{v, u}] {
			continue
		}
		seen[e] = true
		src, dst = append(src, int64(u), int64(v)), append(dst, int64(v), int64(u))
	}
	n := int64(len(src))
	out, err := w.dist.Classify(ort.Float32s(w.x, int64(len(w.x)/d), int64(d)), ort.Int64s(append(src, dst...), 2, n), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return out["probabilities"].F32
}

// Answers change with the graph, and each is the whole graph's of the version that it
// names, while others ask.
func TestUpdatesUnderLoad(t *testing.T) {
	for _, exact := range []bool{false, true} {
		s := newServer(t, Options{Data: "synthetic", Updates: true, Exact: exact})
		h := httptest.NewServer(s.Handler())
		t.Cleanup(h.Close)
		ask := overHTTP(h.Client(), h.URL, true)
		w := newWhole(t, s)
		n, c := s.graph.Snapshot().Nodes(), len(s.dist.Manifest.Classes)
		type seen struct {
			version int64
			node    int
			p       []float32
		}
		var mu sync.Mutex
		var answers []seen
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for k := range 3 {
			wg.Go(func() {
				stream := rng.New(uint64(k), "questions")
				for i := uint64(0); ctx.Err() == nil; i++ {
					v := int(stream.Uniform(i) * float32(n))
					r, err := ask(t.Context(), "nodes", names(strconv.Itoa(v)))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					answers = append(answers, seen{r.GraphVersion, v, output(t, r, "probabilities").F32})
					mu.Unlock()
				}
			})
		}
		want := map[int64][]float32{1: w.probabilities()}
		d := s.dist.Manifest.NumFeatures
		for i := range 8 {
			fresh := n + i
			x := slices.Clone(w.x[i*d : (i+1)*d])
			src, dst := []string{strconv.Itoa(fresh), strconv.Itoa(i), "5"}, []string{strconv.Itoa(3 * i), strconv.Itoa(fresh), strconv.Itoa(40 + i)}
			r, err := ask(t.Context(), "update", Tensor{Name: "x", Datatype: FP32, Shape: []int64{1, int64(d)}, F32: x},
				Tensor{Name: "source", Datatype: BYTES, Shape: []int64{3}, Text: src}, Tensor{Name: "target", Datatype: BYTES, Shape: []int64{3}, Text: dst})
			if err != nil {
				t.Fatal(err)
			}
			w.x = append(w.x, x...)
			w.edges = append(w.edges, [2]int32{int32(fresh), int32(3 * i)}, [2]int32{int32(i), int32(fresh)}, [2]int32{5, int32(40 + i)})
			if r.GraphVersion != int64(i+2) || output(t, r, "num_nodes").I64[0] != int64(fresh+1) {
				t.Fatalf("update %d gave %+v", i, r)
			}
			want[r.GraphVersion] = w.probabilities()
			one, err := ask(t.Context(), "nodes", names(strconv.Itoa(fresh)))
			if err != nil {
				t.Fatal(err)
			}
			near(t, "the new node", output(t, one, "probabilities").F32, want[r.GraphVersion][fresh*c:])
		}
		stop()
		wg.Wait()
		for _, a := range answers {
			near(t, fmt.Sprintf("node %d in version %d", a.node, a.version), a.p, want[a.version][a.node*c:(a.node+1)*c])
		}
		if slices.Equal(want[1][5*c:6*c], want[9][5*c:6*c]) {
			t.Error("new edges leave the answer as it was")
		}
		t.Logf("%d answers", len(answers))
	}
}

// The files of the export answer for graphs that come with the request.
func TestFiles(t *testing.T) {
	s := newServer(t, Options{})
	h := httptest.NewServer(s.Handler())
	defer h.Close()
	w := newWhole(t, s)
	d := int64(s.dist.Manifest.NumFeatures)
	x := Tensor{Name: "x", Datatype: FP32, Shape: []int64{int64(len(w.x)) / d, d}, F32: w.x}
	var src, dst []int64
	for _, e := range w.edges {
		src, dst = append(src, int64(e[0]), int64(e[1])), append(dst, int64(e[1]), int64(e[0]))
	}
	edges := Tensor{Name: "edge_index", Datatype: INT64, Shape: []int64{2, int64(len(src))}, I64: append(src, dst...)}
	want := w.probabilities()
	for name, ask := range map[string]client{"json": overHTTP(h.Client(), h.URL, false), "binary": overHTTP(h.Client(), h.URL, true), "grpc": overGRPC(t, s)} {
		r, err := ask(t.Context(), "classifier", x, edges)
		if err != nil {
			t.Fatal(name, err)
		}
		near(t, name, output(t, r, "probabilities").F32, want)
		bad := edges
		bad.I64 = slices.Clone(edges.I64)
		bad.I64[3] = 1 << 40
		if _, err := ask(t.Context(), "classifier", x, bad); err == nil || !strings.Contains(err.Error(), "outside the nodes") {
			t.Errorf("%s: an edge from nowhere gives %v", name, err)
		}
	}
}

// pipelineExport is an export with a pipeline, made once.
func pipelineExport(t *testing.T) string {
	t.Helper()
	orttest.Need(t)
	dist, err := refining()
	if err != nil {
		t.Fatal(err)
	}
	return dist
}

var refining = sync.OnceValues(func() (dist string, err error) {
	dir, err := os.MkdirTemp("", "serve")
	if err != nil {
		return "", err
	}
	madePipeline = dir
	run, err := gsrc.Train(context.Background(), gsrc.TrainOptions{Model: "ecl-gsr", Data: "synthetic", Out: filepath.Join(dir, "run"),
		Set: []string{"synthetic.nodes=60", "synthetic.features=8", "train.epochs=2", "train.pretrain_steps=2", "model.encoder.hidden=8", "model.encoder.projection=8", "model.edges.judge=embedding"}})
	if err != nil {
		return "", err
	}
	dist = filepath.Join(dir, "dist")
	_, err = run.Build(context.Background(), dist, gsrc.BuildOptions{Unverified: true, Pipeline: export.PipelineOn})
	return dist, err
})

var madePipeline string

// TestPipeline asks for a refined graph, and compares it with the export's own.
func TestPipeline(t *testing.T) {
	orttest.Need(t)
	s := newServer(t, Options{Dist: pipelineExport(t)})
	h := httptest.NewServer(s.Handler())
	defer h.Close()
	d := int64(s.dist.Manifest.NumFeatures)
	x := Tensor{Name: "x", Datatype: FP32, Shape: []int64{4, d}, F32: make([]float32, 4*d)}
	for i := range x.F32 {
		x.F32[i] = float32(i*i%7) / 7
	}
	edges := Tensor{Name: "edge_index", Datatype: INT64, Shape: []int64{2, 2}, I64: []int64{0, 1, 1, 0}}
	k := func(n int64) Tensor { return Tensor{Name: "k", Datatype: INT64, Shape: []int64{1}, I64: []int64{n}} }
	want, err := s.dist.Refine(ort.Float32s(x.F32, x.Shape...), ort.Int64s(edges.I64, edges.Shape...), nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	// Work whose client has gone ends, and its model's turn keeps no other model waiting.
	large := Tensor{Name: "x", Datatype: FP32, Shape: []int64{20000, d}, F32: make([]float32, 20000*d)}
	for i := range large.F32 {
		large.F32[i] = float32(i*i%97) / 97
	}
	idle := s.budget.Used()
	for protocol, ask := range map[string]client{"http": overHTTP(h.Client(), h.URL, true), "grpc": overGRPC(t, s)} {
		code := map[string]string{"http": "499", "grpc": "Canceled"}[protocol]
		gone, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := ask(gone, "pipeline", large, edges, k(20))
			ended <- err
		}()
		for s.underWay.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		gates := s.models["pipeline"].(*file).gate
		taken := 0
		for len(gates) < cap(gates) {
			select {
			case gates <- struct{}{}:
				taken++
			default:
			}
		}
		if _, err := overHTTP(h.Client(), h.URL, true)(t.Context(), "classifier", x, edges); err != nil {
			t.Errorf("%s: while the pipeline has no turn left: %v", protocol, err)
		}
		cancel()
		start := time.Now()
		if err := <-ended; err == nil {
			t.Errorf("%s: a client that goes away gets an answer", protocol)
		}
		for {
			held := s.budget.Used() - idle
			if s.underWay.Load() == 0 {
				break
			}
			if held < int64(4*len(large.F32)) {
				t.Errorf("%s: work whose client has gone holds %d bytes of the budget, fewer than its features have", protocol, held)
				break
			}
			runtime.Gosched() // it ends within milliseconds
		}
		t.Logf("%s: the work ended %v after its client had gone", protocol, time.Since(start))
		for range taken {
			<-gates
		}
		line := fmt.Sprintf(`gsrc_requests_total{code=%q,model="pipeline",protocol=%q} 1`, code, protocol)
		counts := ""
		counted := func() bool { // which happens behind the end of the work
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/metrics", nil))
			counts = w.Body.String()
			return strings.Contains(counts, line)
		}
		for late := time.Now().Add(5 * time.Second); !counted() && time.Now().Before(late); {
			time.Sleep(time.Millisecond)
		}
		if !counted() {
			t.Errorf("%s: work whose client has gone was done to its end: no %s", protocol, line)
		}
		if i := strings.Index(counts, `gsrc_requests_total{code="Internal"`); i >= 0 {
			t.Errorf("%s: a request whose client has gone is counted twice: %.80s", protocol, counts[i:])
		}
	}
	for name, ask := range map[string]client{"json": overHTTP(h.Client(), h.URL, false), "grpc": overGRPC(t, s)} {
		r, err := ask(t.Context(), "pipeline", x, edges, k(2))
		if err != nil {
			t.Fatal(name, err)
		}
		near(t, name, output(t, r, "probabilities").F32, want["probabilities"].F32)
		if got := output(t, r, "refined_edge_index"); !slices.Equal(got.I64, want["refined_edge_index"].I64) {
			t.Errorf("%s: refined edges %v, want %v", name, got.I64, want["refined_edge_index"].I64)
		}
		for n, text := range map[int64]string{-1: "k is -1", -100: "k is -100", math.MinInt64: "k is -2147483648"} {
			if _, err := ask(t.Context(), "pipeline", x, edges, k(n)); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: k = %d gives %v", name, n, err)
			}
		}
		if _, err := ask(t.Context(), "pipeline", x, edges, k(math.MaxInt64)); err != nil {
			t.Errorf("%s: a large k: %v", name, err)
		}
		if _, err := ask(t.Context(), "pipeline", x, edges); err == nil || !strings.Contains(err.Error(), "k") {
			t.Errorf("%s: no k gives %v", name, err)
		}
	}
}

// graphOf is a graph of three nodes in JSON.
func graphOf(edges string, count int) string {
	return fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[3,128],"data":[%s]},{"name":"edge_index","datatype":"INT64","shape":[2,%d],"data":%s}]}`, repeated("1", 3*128), count, edges)
}

// Bodies that are wrong are the client's fault, and the server goes on.
func TestHostileBodies(t *testing.T) {
	s := newServer(t, Options{Data: "synthetic", Updates: true, MaxBody: 1 << 16})
	h := httptest.NewServer(s.Handler())
	defer h.Close()
	length := func(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
	input := func(rest string) string { return `{"inputs":[{"name":"node","datatype":"BYTES",` + rest + `}]}` }
	for _, x := range []struct {
		path, body string
		header     string
		code       int
		want       string
	}{
		{"nodes", ``, "", 400, "JSON"},
		{"nodes", `[]`, "", 400, "JSON"},
		{"nodes", strings.Repeat(`[`, 20000), "", 400, "JSON"},
		{"nodes", `{"inputs":` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}`, "", 400, "JSON"},
		{"nodes", `{}`, "", 400, "which nodes"},
		{"nodes", `{} {}`, "", 400, "goes on"},
		{"nodes", input(`"shape":[1],"data":[5]`), "", 400, "element"},
		{"nodes", input(`"shape":[1],"data":"5"`), "", 400, "no array"},
		{"nodes", input(`"shape":[1],"data":[null]`), "", 400, "element"},
		{"nodes", input(`"shape":[2],"data":["5"]`), "", 400, "says 2"},
		{"nodes", input(`"shape":[-1],"data":["5"]`), "", 400, "not negative"},
		{"nodes", input(`"shape":[4294967296,4294967296],"data":["5"]`), "", 400, "too large"},
		{"nodes", input(`"shape":[1,1],"data":[["5"]]`), "", 400, "shape"},
		{"nodes", input(`"shape":[1],"data":["nobody"]`), "", 400, `no node \"nobody\"`},
		{"nodes", input(`"shape":[1]`), "", 400, "no data"},
		{"nodes", input(`"data":["5"],"shape":[1]`), "", 200, "label"},
		{"nodes", input(`"shape":[1],"data":["5"],"data":["6"]`), "", 400, "twice"},
		{"nodes", input(`"shape":[2],"data":[["5"],["6"]]`), "", 400, "nested otherwise"},
		{"nodes", input(`"shape":[2],"data":["5",["6"]]`), "", 400, "nested otherwise"},
		{"nodes", input("\"shape\":[1],\"data\":[\"\xff\"]"), "", 400, "UTF-8"},
		{"nodes", input(`"shape":[1],"parameters":{"binary_data_size":5}`) + string(length(1)) + "\xff", "json", 400, "UTF-8"},
		{"update", `{"inputs":[{"name":"node","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":5}}]}` + string(length(1)) + "\xff", "json", 400, "UTF-8"},
		// Pairs where rows are said, which is another graph.
		{"classifier", graphOf(`[[0,1],[1,2],[2,0]]`, 3), "", 400, "nested otherwise"},
		{"classifier", graphOf(`[[0,1,2],[1,2]]`, 3), "", 400, "nested otherwise"},
		{"classifier", graphOf(`[[[0,1,2]],[1,2,0]]`, 3), "", 400, "nested otherwise"},
		{"classifier", graphOf(`[[0,1,2],[1,2,0],[]]`, 3), "", 400, "nested otherwise"},
		{"classifier", graphOf(`[[0,1,2],3]`, 3), "", 400, "nested otherwise"},
		{"classifier", graphOf(`[[0,1,2],[1,2,0]]`, 3), "", 200, "logits"},
		{"classifier", graphOf(`[0,1,2,1,2,0]`, 3), "", 200, "logits"},
		{"classifier", graphOf(`[0,1,2,1,2,0,1]`, 3), "", 400, "more elements"},
		{"classifier", graphOf(`[[],[]]`, 0), "", 200, "logits"},
		{"nodes", input(`"shape":[1],"data":["5"],"parameters":{"binary_data_size":5}`), "", 400, "both"},
		{"nodes", input(`"shape":[1],"parameters":{"binary_data_size":5}`), "", 400, "follow"},
		{"nodes", input(`"shape":[1],"parameters":{"binary_data_size":-5}`), "", 400, "follow"},
		{"nodes", input(`"shape":[1],"parameters":{"binary_data_size":4}`) + string(length(9)), "json", 400, "within a text"},
		{"nodes", input(`"shape":[1],"parameters":{"binary_data_size":3}`) + "abc", "json", 400, "length of a text"},
		{"nodes", input(`"shape":[1],"data":["5"]`) + "abc", "json", 400, "belong to no input"},
		{"nodes", `{}`, "99", 400, "says 99"},
		{"nodes", `{}`, "-1", 400, "number of bytes"},
		{"nodes", `{"inputs":[{"name":"other","datatype":"BYTES","shape":[0],"data":[]}]}`, "", 400, "no input"},
		{"nodes", `{"inputs":[{"name":"node","datatype":"FP16","shape":[1],"data":[1]}]}`, "", 400, "FP16"},
		{"nodes", `{"inputs":[{"name":"number","datatype":"INT64","shape":[1],"data":[1.5]}]}`, "", 400, "1.5"},
		{"nodes", `{"inputs":[{"name":"number","datatype":"INT64","shape":[1],"data":[-1]}]}`, "", 400, "number -1"},
		{"nodes", `{"inputs":[{"name":"number","datatype":"INT64","shape":[1],"data":[1]}],"outputs":[{"name":"other"}]}`, "", 400, "no output"},
		{"other", `{}`, "", 404, "no model"},
		{"nodes/versions/9", `{}`, "", 404, "no version"},
		{"nodes", strings.Repeat(" ", 1<<16+1), "", 413, "65536"},
		{"classifier", `{}`, "", 400, "missing"},
		{"classifier", `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,3],"data":[1,2,3]},{"name":"edge_index","datatype":"INT64","shape":[2,0],"data":[]}]}`, "", 400, "shape"},
		{"update", `{}`, "", 400, "nothing to add"},
		{"update", `{"inputs":[{"name":"source","datatype":"BYTES","shape":[1],"data":["0"]}]}`, "", 400, "sources"},
		{"update", `{"inputs":[{"name":"source","datatype":"BYTES","shape":[1],"data":["0"]},{"name":"target","datatype":"BYTES","shape":[1],"data":["nobody"]}]}`, "", 400, "no such node"},
	} {
		r, err := http.NewRequest("POST", h.URL+"/v2/models/"+x.path+"/infer", strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		switch x.header {
		case "":
		case "json":
			r.Header.Set(lengthHeader, strconv.Itoa(strings.LastIndex(x.body, "}")+1))
		default:
			r.Header.Set(lengthHeader, x.header)
		}
		reply, err := h.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(reply.Body)
		reply.Body.Close()
		if reply.StatusCode != x.code || !strings.Contains(string(text), x.want) || !json.Valid(text) {
			t.Errorf("%s %.80q: %d %s, want %d with %q", x.path, x.body, reply.StatusCode, text, x.code, x.want)
		}
	}
	both := Tensor{Name: "number", Datatype: INT64, Shape: []int64{1}, I64: []int64{5}, F32: []float32{5}}
	if _, err := overGRPC(t, s)(t.Context(), "nodes", both); err == nil || !strings.Contains(err.Error(), "code = InvalidArgument") || !strings.Contains(err.Error(), "has fp32_contents: put all its elements into int64_contents") {
		t.Errorf("contents of two kinds: %v", err)
	}
	if s.graph.Snapshot().Version != 1 {
		t.Error("a refused update changed the graph")
	}
	if _, err := overHTTP(h.Client(), h.URL, false)(t.Context(), "nodes", names("5")); err != nil {
		t.Error(err)
	}
	const turnedAway = `gsrc_requests_total{code="404",model="unknown",protocol="http"} 1`
	for _, path := range []string{"/", "/v2/models", "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/nodes", "/v2/models/nodes/ready", "/v2/models/nodes/versions/1/ready", "/metrics"} {
		var reply *http.Response
		var text []byte
		// What is turned away is counted when its connection is done with.
		for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			var err error
			if reply, err = h.Client().Get(h.URL + path); err != nil {
				t.Fatal(err)
			}
			text, _ = io.ReadAll(reply.Body)
			reply.Body.Close()
			if path != "/metrics" || strings.Contains(string(text), turnedAway) || time.Now().After(until) {
				break
			}
		}
		if reply.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, reply.StatusCode, text)
		}
		if (path == "/" || path == "/v2/models") && !strings.Contains(string(text), `{"name":"nodes","version":"1","state":"READY"}`) {
			t.Errorf("%s lists %s", path, text)
		}
		for _, line := range []string{`gsrc_refusals_total{reason="unknown"} 2`, "gsrc_batch_nodes_count 2\n", "gsrc_memory_held_bytes ", "gsrc_graph_version 1", "gsrc_graph_versions_held 1"} {
			if path == "/metrics" && !strings.Contains(string(text), line) {
				t.Errorf("the metrics lack %s:\n%s", line, text)
			}
		}
		if path == "/metrics" && !strings.Contains(string(text), turnedAway) {
			t.Errorf("the metrics lack what was refused:\n%s", text)
		}
	}
}

// What is not finite, or becomes so, is the client's fault, and no class.
func TestNumbersAreFinite(t *testing.T) {
	s := newServer(t, Options{})
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	d := s.dist.Manifest.NumFeatures
	edges := Tensor{Name: "edge_index", Datatype: INT64, Shape: []int64{2, 2}, I64: []int64{0, 1, 1, 0}}
	weights := Tensor{Name: "edge_weight", Datatype: FP32, Shape: []int64{2}, F32: []float32{1, -0.9}}
	for want, bad := range map[string]float32{"numbers are finite": float32(math.NaN()), "is +Inf; numbers": float32(math.Inf(1)), "not negative": -0.9} {
		x := Tensor{Name: "x", Datatype: FP32, Shape: []int64{2, int64(d)}, F32: make([]float32, 2*d)}
		x.F32[3] = 1
		inputs := []Tensor{x, edges}
		if x.F32[3] = bad; bad < 0 {
			x.F32[3], inputs = 1, append(inputs, weights)
		}
		for name, ask := range map[string]client{"binary": overHTTP(h.Client(), h.URL, true), "grpc": overGRPC(t, s)} {
			var fault *statusError
			if _, err := ask(t.Context(), "classifier", inputs...); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v is answered with %v", name, bad, err)
			} else if errors.As(err, &fault) && fault.code != 400 {
				t.Errorf("%s: %v is answered with %v", name, bad, err)
			}
		}
	}
}

// An answer that is not finite is refused by the output that it is in.
func TestAnswersAreFinite(t *testing.T) {
	s := newServer(t, Options{})
	f := s.models["classifier"].(*file)
	f.run = func(*dist.Dist, *Request) (map[string]ort.Tensor, error) {
		return map[string]ort.Tensor{"logits": ort.Float32s([]float32{1, float32(math.NaN())}, 1, 2), "probabilities": ort.Float32s([]float32{1, 0}, 1, 2)}, nil
	}
	x := Tensor{Name: "x", Datatype: FP32, Shape: []int64{1, int64(s.dist.Manifest.NumFeatures)}, F32: make([]float32, s.dist.Manifest.NumFeatures)}
	edges := Tensor{Name: "edge_index", Datatype: INT64, Shape: []int64{2, 0}}
	if _, err := f.infer(t.Context(), &Request{Inputs: []Tensor{x, edges}}); err == nil || !strings.Contains(err.Error(), "logits") || !strings.Contains(err.Error(), "too large for the model") {
		t.Errorf("%v", err)
	}
}

// A line of the log has the id, the time, the model and the rows of a request, answered or
// refused, and none of its features, which the refusal may name.
func TestRequestLog(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, Options{Requests: slog.New(slog.NewJSONHandler(&log, nil))})
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	d := s.dist.Manifest.NumFeatures
	edges := Tensor{Name: "edge_index", Datatype: INT64, Shape: []int64{2, 2}, I64: []int64{0, 1, 1, 0}}
	for name, ask := range map[string]client{"http": overHTTP(h.Client(), h.URL, false), "grpc": overGRPC(t, s)} {
		for _, end := range []int64{1, 9} { // there is no node 9
			x := Tensor{Name: "x", Datatype: FP32, Shape: []int64{2, int64(d)}, F32: make([]float32, 2*d)}
			x.F32[0] = 7319.25
			edges.I64[1] = end
			log.Reset()
			_, err := ask(t.Context(), "classifier", x, edges)
			if refused := end == 9; (err != nil) != refused {
				t.Fatalf("%s: an edge to node %d: %v", name, end, err)
			}
			var line struct {
				Protocol, Model, Code, Level string
				Rows                         int64
				ID                           *string
				Time, Took                   any
			}
			if err := json.Unmarshal(log.Bytes(), &line); err != nil {
				t.Fatalf("%s: %v in %q", name, err, log.String())
			}
			if line.Protocol != name || line.Model != "classifier" || line.ID == nil || line.Time == nil || line.Took == nil || line.Code == "" ||
				(line.Level == "WARN") != (end == 9) || end == 1 && line.Rows != 2 || strings.Contains(log.String(), "7319") {
				t.Errorf("%s, an edge to node %d: the log has %s", name, end, log.String())
			}
		}
	}
}

// Updates delete and change, are made once by their key, and where time is up say what
// may have happened.
func TestUpdatesByKey(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	var logged atomic.Value // the last line
	s := newServer(t, Options{Data: "synthetic", Updates: true, Journal: journal, Log: func(format string, args ...any) { logged.Store(fmt.Sprintf(format, args...)) }})
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	post := func(model, key, header string, body string) (int, string) {
		t.Helper()
		parameters := "{}"
		if key != "" {
			parameters = fmt.Sprintf(`{"idempotency_key": %q}`, key)
		}
		r, err := http.NewRequestWithContext(t.Context(), "POST", h.URL+"/v2/models/"+model+"/infer", strings.NewReader(`{"parameters": `+parameters+`, "inputs": [`+body+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			r.Header.Set("Idempotency-Key", header)
		}
		reply, err := h.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, string(text)
	}
	text := func(name string, list ...string) string {
		data, _ := json.Marshal(list)
		return fmt.Sprintf(`{"name": %q, "datatype": "BYTES", "shape": [%d], "data": %s}`, name, len(list), data)
	}
	expect := func(code int, want string) func(int, string) {
		return func(gotCode int, got string) {
			t.Helper()
			if gotCode != code || !strings.Contains(got, want) {
				t.Errorf("%d %s, want %d and %q", gotCode, got, code, want)
			}
		}
	}
	gone := text("delete_node", "17")
	expect(200, `"graph_version":2`)(post("update", "a", "", gone))
	expect(200, `"graph_version":3`)(post("update", "b", "b", text("delete_node", "18")))
	expect(200, `"graph_version":2`)(post("update", "", "a", gone))
	expect(409, "other content")(post("update", "a", "", text("delete_node", "19")))
	expect(400, "differ")(post("update", "a", "b", gone))
	expect(400, "is empty")(post("update", "", " ", gone)) // a header of spaces is empty
	if _, _, err := parseRequest(t.Context(), []byte(`{"parameters": {"idempotency_key": ""}, "inputs": [`+gone+`]}`), -1, func(int64) error { return nil }); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty key: %v", err)
	}
	expect(400, "was deleted")(post("update", "c", "", gone))
	expect(400, "was deleted")(post("nodes", "", "", text("node", "17")))
	expect(400, "was deleted")(post("nodes", "", "", `{"name": "number", "datatype": "INT64", "shape": [1], "data": [18]}`))
	expect(200, `"graph_version":3`)(post("nodes", "", "", text("node", "19")))
	expect(200, `"graph_version":3`)(post("update", "", "", text("source", "20")+","+text("target", "20")))

	conn := overGRPC(t, s) // its requests have no parameters
	if r, err := conn(t.Context(), "update", Tensor{Name: "delete_node", Datatype: BYTES, Shape: []int64{1}, Text: []string{"21"}}); err != nil || r.GraphVersion != 4 {
		t.Error(r, err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	r := &Request{IdempotencyKey: "late", Inputs: []Tensor{{Name: "delete_node", Datatype: BYTES, Shape: []int64{1}, Text: []string{"22"}}}}
	if _, err := newUpdate(s.graph).infer(ctx, r); err == nil || classify(err).http != 504 || !strings.Contains(err.Error(), "may have been applied") {
		t.Errorf("an update that is late: %v", err)
	}
	expect(200, `"graph_version":5`)(post("update", "late", "", text("delete_node", "22")))

	// On a full disk updates are refused, while questions go on; then the same is made.
	wal.Wrap = func(io.Writer) io.Writer { return fullDisk{} }
	defer func() { wal.Wrap = nil }()
	expect(503, "journal")(post("update", "full", "", text("delete_node", "23")))
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/metrics", nil))
	if line, is := logged.Load().(string); !is || !strings.HasPrefix(line, "journal error: ") || !strings.HasSuffix(line, "no space left on device") || !strings.Contains(w.Body.String(), `gsrc_refusals_total{reason="journal"} 1`) {
		t.Errorf("the log says %q of a full disk, and the metrics\n%s", line, w.Body)
	}
	expect(200, `"graph_version":5`)(post("nodes", "", "", text("node", "23")))
	wal.Wrap = nil
	expect(200, `"graph_version":6`)(post("update", "full", "", text("delete_node", "23")))
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// What is refused before its body is read, for its token or for the name that the server is asked by, is
// logged, too, if it asks for inference.
func TestDeniedRequestsAreLogged(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, Options{Token: "secret", Requests: slog.New(slog.NewJSONHandler(&log, nil))})
	for _, c := range []struct{ host, path, code string }{{"localhost", "/v2/models/classifier/infer", "401"}, {"other.example", "/v2/models/classifier/infer", "403"}, {"localhost", "/v2/repository", ""}} {
		log.Reset()
		r := httptest.NewRequest("POST", c.path, strings.NewReader("{}"))
		r.Host = c.host
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		if got := log.String(); c.code == "" && got != "" || c.code != "" && (!strings.Contains(got, `"code":"`+c.code+`"`) || !strings.Contains(got, "WARN") || !strings.Contains(got, `"model":"classifier"`)) {
			t.Errorf("%s at %s: the log has %q", c.path, c.host, got)
		}
	}
}

// An address that takes another method says which.
func TestOtherMethods(t *testing.T) {
	h := newServer(t, Options{}).Handler()
	for request, want := range map[string]string{"DELETE /v2/models": "405 GET, HEAD", "POST /": "405 GET, HEAD", "POST /v2/health/live": "405 GET, HEAD", "GET /v2/models/classifier/infer": "405 POST", "DELETE /v2/none": "404 ", "GET /none": "404 ", "HEAD /v2/models": "200 "} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, path, nil)
		r.Host = "localhost"
		h.ServeHTTP(w, r)
		if got := fmt.Sprintf("%d %s", w.Code, w.Header().Get("Allow")); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

// A graph that can never change is said to be one before a client asks.
func TestUpdatesOfAFixedGraph(t *testing.T) {
	orttest.Need(t)
	dir := t.TempDir()
	run, err := gsrc.Train(t.Context(), gsrc.TrainOptions{Model: "gen", Data: "synthetic", Out: filepath.Join(dir, "run"), Set: []string{"train.epochs=1"}})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dist: filepath.Join(dir, "dist"), Data: "synthetic", Updates: true}
	o.Predict.Provider = ort.CPU
	if _, err := run.Build(t.Context(), o.Dist, gsrc.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "a weight of its own; without --updates") || strings.Contains(err.Error(), "structural") {
		t.Errorf("updates: %v", err)
	}
	o.Updates = false
	newServer(t, o)
}

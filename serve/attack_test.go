package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	pb "github.com/gsrc-dev/gsrc/serve/inferencepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// The attacks go to a server in a process of its own, whose address space is limited, so
// that one which takes too much ends there.

// childVar holds the options of a server that this binary is to be.
const childVar = "GSRC_TEST_SERVE"

// childOptions are those of its options that tests set.
type childOptions struct {
	Dist, Data, Token string
	Updates           bool
	Memory, MaxPairs  int64
	MaxAnswer         int64
	Timeout, Grace    time.Duration
}

// beServer serves until standard input ends.
func beServer(options string) int {
	var c childOptions
	if err := json.Unmarshal([]byte(options), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o := Options{Dist: c.Dist, Data: c.Data, Token: c.Token, Updates: c.Updates, Memory: c.Memory, MaxPairs: c.MaxPairs, MaxAnswer: c.MaxAnswer, Timeout: c.Timeout, Grace: c.Grace}
	o.Predict.Provider, o.Predict.Threads = ort.CPU, 1
	debug.SetMemoryLimit(o.Memory / 8 * 7) // as the command does
	s, err := New(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var l [2]net.Listener
	for i := range l {
		if l[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Println(l[0].Addr(), l[1].Addr())
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := s.Run(ctx, l[0], l[1]); err != nil {
		fmt.Println(err)
	}
	return 0
}

// victim is such a process.
type victim struct {
	t        *testing.T
	o        Options
	pid      int
	web, rpc string
	http     *http.Client
	grpc     pb.GRPCInferenceServiceClient
	start    int64 // resident bytes when nothing had been asked
	end      func() (says string)
}

func newVictim(t *testing.T, o Options) *victim {
	t.Helper()
	orttest.Need(t)
	if runtime.GOOS != "linux" {
		t.Skip("this system has neither ulimit -v nor /proc, by which the memory of a process is limited and seen")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(childOptions{o.Dist, o.Data, o.Token, o.Updates, o.Memory, o.MaxPairs, o.MaxAnswer, o.Timeout, o.Grace})
	if err != nil {
		t.Fatal(err)
	}
	// Go and the threads of onnxruntime reserve addresses that they do not use.
	c := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -v %d || { echo no limits; exit 9; }; exec "$0" -test.run '^$'`, (o.Memory+3<<30)>>10), self)
	c.Env = append(os.Environ(), childVar+"="+string(text))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the server does not start: %v", err)
	}
	if strings.Contains(first, "no limits") {
		t.Skip("no limit of the address space (ulimit -v) can be set here")
	}
	v := &victim{t: t, o: o, pid: c.Process.Pid}
	if _, err := fmt.Sscan(first, &v.web, &v.rpc); err != nil {
		t.Fatalf("the server does not start: %q, %v", first, err)
	}
	v.end = sync.OnceValue(func() string {
		in.Close()
		says, _ := io.ReadAll(lines)
		if err := c.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		return string(says)
	})
	t.Cleanup(func() { v.end() })
	v.http = &http.Client{Transport: &http.Transport{}}
	conn, err := grpc.NewClient(v.rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	v.grpc = pb.NewGRPCInferenceServiceClient(conn)
	v.start = v.memory("VmRSS")
	if peak := v.memory("VmHWM"); peak > o.Memory {
		t.Errorf("the process took %s to start, and its budget is %s", budget.Format(peak), budget.Format(o.Memory))
	}
	return v
}

// memory reads a line of the process's status, in bytes.
func (v *victim) memory(field string) int64 {
	v.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.pid))
	if err != nil {
		v.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, field+": %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	v.t.Fatalf("no %s", field)
	return 0
}

// post sends a body and returns the code and the answer.
func (v *victim) post(model string, header int, body []byte) (int, string) {
	v.t.Helper()
	r, err := http.NewRequest("POST", "http://"+v.web+"/v2/models/"+model+"/infer", bytes.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	if header >= 0 {
		r.Header.Set(lengthHeader, strconv.Itoa(header))
	}
	reply, err := v.http.Do(r)
	if err != nil {
		v.t.Fatalf("%s: %v", model, err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		v.t.Fatalf("%s: %v", model, err)
	}
	return reply.StatusCode, string(text)
}

// binaryBody writes a request with binary tensors.
func binaryBody(rest string, inputs ...Tensor) (header int, body []byte) {
	var list []string
	var data []byte
	for _, t := range inputs {
		b := t.appendBytes(nil)
		shape, _ := json.Marshal(t.Shape)
		list = append(list, fmt.Sprintf(`{"name":%q,"datatype":%q,"shape":%s,"parameters":{"binary_data_size":%d}}`, t.Name, t.Datatype, shape, len(b)))
		data = append(data, b...)
	}
	text := fmt.Sprintf(`{"inputs":[%s]%s}`, strings.Join(list, ","), rest)
	return len(text), append([]byte(text), data...)
}

// attack is a request that would take too much, and what is to come of it.
type attack struct {
	name, model string
	header      int
	body        []byte
	rpc         *pb.ModelInferRequest
	code        int // 0 is an answer or a refusal
	want        string
}

// run makes attacks, and holds the memory that the process takes against its budget.
func (v *victim) run(list []attack) {
	t := v.t
	for _, a := range list {
		os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", v.pid), []byte("5"), 0) // the peak starts anew
		before := time.Now()
		code, text := 0, ""
		if a.rpc != nil {
			_, err := v.grpc.ModelInfer(t.Context(), a.rpc)
			if text = fmt.Sprint(err); status.Code(err) == codes.InvalidArgument {
				code = 400
			}
		} else {
			code, text = v.post(a.model, a.header, a.body)
		}
		if a.code != 0 && code != a.code || a.code == 0 && code != 200 && code != 400 && code != 503 && code != 504 || !strings.Contains(text, a.want) {
			t.Errorf("%s: %d %.300s, want %d with %q", a.name, code, text, a.code, a.want)
		}
		peak := v.memory("VmHWM")
		t.Logf("%s: %d after %v, peak %s of %s: %.150s", a.name, code, time.Since(before).Round(time.Millisecond), budget.Format(peak), budget.Format(v.o.Memory), text)
		if peak > v.o.Memory {
			t.Errorf("%s: the process took %s, and its budget is %s", a.name, budget.Format(peak), budget.Format(v.o.Memory))
		}
		if a.code == 400 && len(text) > 16<<10 {
			t.Errorf("%s: the error has %d bytes", a.name, len(text))
		}
	}
	v.recovers()
}

// recovers waits until memory is near what it was at the start.
func (v *victim) recovers() {
	v.t.Helper()
	end := time.Now().Add(time.Minute)
	for v.memory("VmRSS") > v.start/2*3 {
		if time.Now().After(end) {
			v.t.Errorf("a minute after the attacks the process holds %s, and %s at its start", budget.Format(v.memory("VmRSS")), budget.Format(v.start))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// repeated is a list of n equal elements.
func repeated(element string, n int) string {
	return strings.TrimSuffix(strings.Repeat(element+",", n), ",")
}

const mib = 1 << 20

func floats(name string, shape ...int64) Tensor {
	n, _ := elements(name, shape)
	return Tensor{Name: name, Datatype: FP32, Shape: shape, F32: make([]float32, n)}
}

func ints(name string, shape []int64, v ...int64) Tensor {
	return Tensor{Name: name, Datatype: INT64, Shape: shape, I64: v}
}

func edgesOf(nodes, count int) Tensor {
	v := make([]int64, 2*count)
	for i := range v {
		v[i] = int64(i*7919) % int64(nodes)
	}
	return ints("edge_index", []int64{2, int64(count)}, v...)
}

func withBinary(a attack, rest string, inputs ...Tensor) attack {
	a.header, a.body = binaryBody(rest, inputs...)
	return a
}

// Requests that name, claim or make too much, for an online graph and its classifier.
func TestAttacksOnGraph(t *testing.T) {
	dist, err := small()
	if err != nil {
		t.Fatal(err)
	}
	v := newVictim(t, Options{Dist: dist, Data: "synthetic", Updates: true, Memory: 1 << 30})
	d := int64(128)
	question := func(rest string) string {
		return `{"inputs":[{"name":"number","datatype":"INT64","shape":[1],"data":[5]}]` + rest + `}`
	}
	outputs := make([]*pb.ModelInferRequest_InferRequestedOutputTensor, 2500)
	for i := range outputs {
		outputs[i] = &pb.ModelInferRequest_InferRequestedOutputTensor{Name: "logits"}
	}
	five := &pb.ModelInferRequest_InferInputTensor{Name: "number", Datatype: INT64, Shape: []int64{1}, Contents: &pb.InferTensorContents{Int64Contents: []int64{5}}}
	empty := make([]*pb.ModelInferRequest_InferInputTensor, 2*mib)
	for i := range empty {
		empty[i] = &pb.ModelInferRequest_InferInputTensor{}
	}
	x := floats("x", 8*mib/d/4, d)
	// A byte of it would be four in an error, and 12 in JSON.
	long := strings.Repeat("\x01", 48*mib)
	input := func(name, datatype string) *pb.ModelInferRequest {
		return &pb.ModelInferRequest{ModelName: "nodes", Inputs: []*pb.ModelInferRequest_InferInputTensor{{Name: name, Datatype: datatype, Shape: []int64{1}}}}
	}
	node := input("node", BYTES)
	node.Inputs[0].Contents = &pb.InferTensorContents{BytesContents: [][]byte{[]byte(long)}}
	manyDimensions := input("number", INT64)
	manyDimensions.Inputs[0].Shape = make([]int64, mib)
	v.run([]attack{
		{name: "outputs named over and over", model: "nodes", header: -1, body: []byte(question(`,"outputs":[` + repeated(`{"name":"logits"}`, 2500) + `]`)), code: 400, want: "outputs"},
		{name: "an output named twice", model: "nodes", header: -1, body: []byte(question(`,"outputs":[{"name":"logits"},{"name":"logits"}]`)), code: 400, want: "twice"},
		{name: "outputs over gRPC", rpc: &pb.ModelInferRequest{ModelName: "nodes", Inputs: []*pb.ModelInferRequest_InferInputTensor{five}, Outputs: outputs}, code: 400, want: "more than 64"},
		{name: "empty inputs", model: "nodes", header: -1, body: []byte(`{"inputs":[` + repeated(`{}`, 8*mib) + `]}`), code: 400, want: "more than 64 inputs"},
		{name: "empty inputs over gRPC", rpc: &pb.ModelInferRequest{ModelName: "nodes", Inputs: empty}, code: 400, want: "more than 64"},
		{name: "a long shape", model: "nodes", header: -1, body: []byte(`{"inputs":[{"name":"number","datatype":"INT64","shape":[` + repeated(`1`, 8*mib) + `],"data":[5]}]}`), code: 400, want: "dimensions"},
		{name: "many fields", model: "nodes", header: -1, body: []byte(`{"parameters":{` + strings.TrimSuffix(strings.Repeat(`"a":1,`, 2*mib), ",") + `},` + question("")[1:]), code: 200},
		{name: "a node asked for again and again", model: "nodes", header: -1, body: []byte(`{"inputs":[{"name":"number","datatype":"INT64","shape":[8000000],"data":[` + repeated(`1`, 8000000) + `]}]}`), code: 400, want: "--m"},
		{name: "its label alone", model: "nodes", header: -1, body: []byte(`{"inputs":[{"name":"number","datatype":"INT64","shape":[1000000],"data":[` + repeated(`1`, 1000000) + `]}],"outputs":[{"name":"class"}]}`)},
		{name: "empty names", model: "nodes", header: -1, body: []byte(`{"inputs":[{"name":"node","datatype":"BYTES","shape":[4000000],"data":[` + repeated(`""`, 4000000) + `]}]}`), code: 400, want: "--m"},
		withBinary(attack{name: "many nodes", model: "classifier"}, "", x, edgesOf(int(x.Shape[0]), 1000)),
		withBinary(attack{name: "many edges", model: "classifier"}, "", floats("x", 100, d), edgesOf(100, 1500000)),
		withBinary(attack{name: "one node with all edges", model: "classifier"}, "", floats("x", 2, d), edgesOf(2, 1000000)),
		withBinary(attack{name: "a long name of a node", model: "nodes", code: 400, want: "no node"}, "", Tensor{Name: "node", Datatype: BYTES, Shape: []int64{1}, Text: []string{long}}),
		withBinary(attack{name: "a long name of a node to delete", model: "update", code: 400, want: "no such node"}, "", Tensor{Name: "delete_node", Datatype: BYTES, Shape: []int64{1}, Text: []string{long}}),
		withBinary(attack{name: "a long name of a new node", model: "update", code: 400, want: "is called"}, "", floats("x", 1, d), Tensor{Name: "node", Datatype: BYTES, Shape: []int64{1}, Text: []string{long}}),
		{name: "a long id", model: "nodes", header: -1, body: []byte(question(`,"id":"` + long[:mib] + `"`)), code: 400, want: "id"},
		{name: "a long id in text", model: "nodes", header: -1, body: []byte(question(`,"id":"` + strings.Repeat("a", 48*mib) + `"`)), code: 400, want: "id"},
		{name: "a long type", model: "nodes", header: -1, body: []byte(`{"inputs":[{"name":"number","datatype":"` + strings.Repeat("ü", 24*mib) + `","shape":[1],"data":[5]}]}`), code: 400, want: "data type"},
		{name: "a long name of a node over gRPC", rpc: node, code: 400, want: "no node"},
		{name: "a long name of an input over gRPC", rpc: input(long, INT64), code: 400, want: "has no input"},
		{name: "a long type over gRPC", rpc: input("number", long), code: 400, want: "data type"},
		{name: "a long shape over gRPC", rpc: manyDimensions, code: 400, want: "dimensions"},
		{name: "a long id over gRPC", rpc: &pb.ModelInferRequest{ModelName: "nodes", Id: long, Inputs: []*pb.ModelInferRequest_InferInputTensor{five}}, code: 400, want: "id"},
		withBinary(attack{name: "an update that changes nothing", model: "update"}, "", Tensor{Name: "source", Datatype: BYTES, Shape: []int64{mib}, Text: strings.Split(repeated("1", mib), ",")},
			Tensor{Name: "target", Datatype: BYTES, Shape: []int64{mib}, Text: strings.Split(repeated("1", mib), ",")}),
	})
}

// Two nodes that all others lead to, and whose common neighbours are looked for again and
// again: the lists of these are far longer than those of edges and pairs.
func TestAttacksOnEvidence(t *testing.T) {
	orttest.Need(t)
	dir := t.TempDir()
	run, err := gsrc.Train(t.Context(), gsrc.TrainOptions{Model: "ecl-gsr", Data: "synthetic", Out: filepath.Join(dir, "run"),
		Set: []string{"model.edges.judge=evidence", "train.epochs=1", "train.pretrain_steps=1", "train.joint_every=0", "deepwalk.width=0"}})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dist: filepath.Join(dir, "dist"), Data: "synthetic", Updates: true, Memory: 3 << 29}
	if _, err := run.Build(t.Context(), o.Dist, gsrc.BuildOptions{Unverified: true, Pipeline: export.PipelineOff}); err != nil {
		t.Fatal(err)
	}
	little := o
	little.Data, little.Updates, little.Memory = "", false, 320<<20
	newVictim(t, little).end()
	v := newVictim(t, o)
	const nodes, times = 2000, 50_000
	x := floats("x", nodes, 128)
	star := func(more int) Tensor {
		e := 2*nodes + more
		list := make([]int64, 2*e)
		for i := range list[:e] {
			list[i], list[e+i] = int64(i/2%nodes), int64(i%2)
			if i >= 2*nodes {
				list[i], list[e+i] = 0, 1
			}
		}
		return ints("edge_index", []int64{2, int64(e)}, list...)
	}
	pairs := func(n int) Tensor {
		list := make([]int64, 2*n)
		for i := range n {
			list[n+i] = 1
		}
		return ints("pairs", []int64{2, int64(n)}, list...)
	}
	v.run([]attack{
		{name: "a node", model: "nodes", header: -1, body: []byte(oneNode), code: 200},
		withBinary(attack{name: "pairs of hubs", model: "scorer", code: 400, want: "--memory"}, "", x, star(0), pairs(times)),
		withBinary(attack{name: "edges between hubs", model: "encoder", code: 400, want: "--memory"}, "", x, star(times)),
		withBinary(attack{name: "some pairs of hubs", model: "scorer", code: 200}, "", x, star(0), pairs(10)),
	})
}

// Updates that would make millions of nodes are refused before they take more than the
// budget, and what was made before them goes on answering.
func TestGrowthStaysWithinMemory(t *testing.T) {
	orttest.Need(t)
	dir := t.TempDir()
	nodes, edges := "id,label,split,a,b\n", "source,target\n"
	for v := range 12 {
		nodes += fmt.Sprintf("%d,%d,%s,%d,1\n", v, v%2, []string{"train", "train", "val", "test"}[v%4], v%2)
		edges += fmt.Sprintf("%d,%d\n", v, (v+2)%12)
	}
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := t.TempDir()
	run, err := gsrc.Train(t.Context(), gsrc.TrainOptions{Model: "gcn", Data: dir, Out: filepath.Join(out, "run"), Set: []string{"train.epochs=1"}})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dist: filepath.Join(out, "dist"), Data: dir, Updates: true, Memory: 512 << 20, Timeout: time.Minute}
	if _, err := run.Build(t.Context(), o.Dist, gsrc.BuildOptions{Unverified: true}); err != nil {
		t.Fatal(err)
	}
	v := newVictim(t, o)
	const more = 200_000
	header, body := binaryBody("", floats("x", more, 2))
	made := 0
	for {
		code, text := v.post("update", header, body)
		if code == 409 && strings.Contains(text, "--memory") {
			break
		}
		if made++; code != 200 || made == 6 {
			t.Fatalf("update %d: %d %.300s", made, code, text)
		}
	}
	if code, text := v.post("nodes", -1, []byte(`{"inputs":[{"name":"number","datatype":"INT64","shape":[1],"data":[`+strconv.Itoa(max(5, made*more))+`]}]}`)); code != 200 {
		t.Errorf("a question after %d updates: %d %.300s", made, code, text)
	}
	peak := v.memory("VmHWM")
	t.Logf("%d updates of %d nodes, peak %s of %s", made, more, budget.Format(peak), budget.Format(o.Memory))
	if peak > o.Memory {
		t.Errorf("the process took %s, and its budget is %s", budget.Format(peak), budget.Format(o.Memory))
	}
}

// Graphs and neighbours beyond what the request holds.
func TestAttacksOnGraphs(t *testing.T) {
	orttest.Need(t)
	dir := t.TempDir()
	// Triangles and paths.
	edges, of, labels := "", "", ""
	for g := range 40 {
		v := 3*g + 1
		edges += fmt.Sprintf("%d, %d\n%d, %d\n", v, v+1, v+1, v+2)
		if g%2 == 0 {
			edges += fmt.Sprintf("%d, %d\n", v, v+2)
		}
		of += strings.Repeat(fmt.Sprintln(g+1), 3)
		labels += fmt.Sprintln(g % 2)
	}
	for name, text := range map[string]string{"A": edges, "graph_indicator": of, "graph_labels": labels} {
		if err := os.WriteFile(filepath.Join(dir, "DS_"+name+".txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run, err := gsrc.Train(t.Context(), gsrc.TrainOptions{Model: "gin", Data: dir, Out: filepath.Join(t.TempDir(), "run"), Set: []string{"train.epochs=1"}})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dist: filepath.Join(t.TempDir(), "dist"), Memory: 1 << 30}
	if _, err := run.Build(t.Context(), o.Dist, gsrc.BuildOptions{Unverified: true}); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read(o.Dist)
	if err != nil {
		t.Fatal(err)
	}
	v := newVictim(t, o)
	x, none := floats("x", 1, int64(m.NumFeatures)), ints("edge_index", []int64{2, 0})
	var list []attack
	for _, id := range []int64{1, 10000000, math.MaxInt64, math.MinInt64} {
		list = append(list, withBinary(attack{name: "a graph of number " + strconv.FormatInt(id, 10), model: "classifier", code: 400, want: "a batch of 1 nodes"}, "", x, none, ints("graph_ids", []int64{1}, id)))
	}
	v.run(list)
}

// All pairs of nodes.
func TestAttacksOnPipeline(t *testing.T) {
	o := Options{Dist: pipelineExport(t), Memory: 1 << 30}
	m, err := manifest.Read(o.Dist)
	if err != nil {
		t.Fatal(err)
	}
	d := int64(m.NumFeatures)
	ask := func(a attack, nodes, k int64) attack {
		a.name, a.model = fmt.Sprintf("%d nodes, k = %d", nodes, k), "pipeline"
		x := floats("x", nodes, d)
		for i := range x.F32 {
			x.F32[i] = float32(i*i%97) / 97
		}
		return withBinary(a, "", x, ints("edge_index", []int64{2, 0}), ints("k", []int64{1}, k))
	}
	v := newVictim(t, o)
	v.run([]attack{ask(attack{code: 400, want: "--max-pairs"}, 12000, 12000), ask(attack{code: 400, want: "--max-pairs"}, 12000, math.MaxInt64), ask(attack{code: 200}, 1500, 20)})
	v.end()
	// The budget bounds it where the limit does not.
	o.MaxPairs, o.MaxAnswer = math.MaxInt64, math.MaxInt64
	v = newVictim(t, o)
	v.run([]attack{ask(attack{code: 400, want: "--memory"}, 12000, 12000), ask(attack{code: 400, want: "--memory"}, 2000, 2000), ask(attack{}, 1500, 150)})
	v.end()
	// Time that is up ends the work, and the turn passes on. The most nodes that the
	// pipeline takes need ten times the limit on a fast processor.
	o.Timeout = 200 * time.Millisecond
	v = newVictim(t, o)
	long := ask(attack{}, 32768, 1)
	if code, text := v.post(long.model, long.header, long.body); code != 504 {
		t.Errorf("work beyond the time limit: %d %.200s", code, text)
	}
	v.run([]attack{ask(attack{code: 200}, 20, 3)})
}

// Bodies that do not come hold little, whoever sends them, and keep nobody out.
func TestUnfinishedBodies(t *testing.T) {
	dist, err := small()
	if err != nil {
		t.Fatal(err)
	}
	const token = "secret"
	v := newVictim(t, Options{Dist: dist, Data: "synthetic", Memory: 768 << 20, Token: token, Grace: 500 * time.Millisecond})
	part := make([]byte, 58<<20)
	head := "POST /v2/models/nodes/infer HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
	var group sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	send := func(given string, body []byte, length int) {
		c, err := net.Dial("tcp", v.web)
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		open = append(open, c)
		mu.Unlock()
		fmt.Fprintf(c, head, given, length)
		c.Write(body) // it may be cut off
	}
	for i := range 40 {
		group.Go(func() { send([]string{token, "wrong"}[i%2], part, len(part)+1) })
	}
	// A thousand more with one byte each.
	for range 1000 {
		send(token, part[:1], len(part))
	}
	group.Go(func() {
		for range 20 { // over gRPC, without a token
			c, err := grpc.NewClient(v.rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, err = pb.NewGRPCInferenceServiceClient(c).ModelInfer(t.Context(), &pb.ModelInferRequest{ModelName: "nodes", RawInputContents: [][]byte{part}})
			if code := status.Code(err); code != codes.Unauthenticated && code != codes.Unavailable {
				t.Errorf("a large message without a token: %v", err)
			}
		}
	})
	for i := range 50 {
		r, err := http.NewRequest("POST", "http://"+v.web+"/v2/models/nodes/infer", strings.NewReader(oneNode))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		reply, err := v.http.Do(r)
		if err != nil {
			t.Fatalf("question %d: %v", i, err)
		}
		text, _ := io.ReadAll(reply.Body)
		reply.Body.Close()
		if reply.StatusCode != 200 {
			t.Errorf("question %d: %d %s", i, reply.StatusCode, text)
		}
	}
	group.Wait()
	peak := v.memory("VmHWM")
	t.Logf("peak %s of %s, %s at the start", budget.Format(peak), budget.Format(v.o.Memory), budget.Format(v.start))
	if peak > v.o.Memory {
		t.Errorf("the process took %s, and its budget is %s", budget.Format(peak), budget.Format(v.o.Memory))
	}
	// The end comes though bodies do not, and tells what was cut.
	if says := v.end(); !strings.Contains(says, "whose bodies had not come") {
		t.Errorf("at its end the server says %q", says)
	}
	for _, c := range open {
		c.Close()
	}
}

// What many small requests and connections held goes back to the system, too.
func TestMemoryAfterManySmallBodies(t *testing.T) {
	dist, err := small()
	if err != nil {
		t.Fatal(err)
	}
	v := newVictim(t, Options{Dist: dist, Data: "synthetic", Memory: 2 << 30, Grace: 500 * time.Millisecond})
	part := make([]byte, 6<<20)
	var open []net.Conn
	for range 60 {
		c, err := net.Dial("tcp", v.web)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		fmt.Fprintf(c, "POST /v2/models/nodes/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(part)+1)
		if _, err := c.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	held := v.memory("VmRSS")
	for _, c := range open {
		c.Close()
	}
	if held < 3*v.start {
		t.Fatalf("60 bodies of 6 MiB hold %s, and %s are held at the start", budget.Format(held), budget.Format(v.start))
	}
	v.recovers()
}

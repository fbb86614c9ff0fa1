package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/version"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Options say what is served, and within which limits. Zero values are defaults.
type Options struct {
	// Dist is the folder of an export.
	Dist string
	// Data is the online graph; none if empty.
	Data string
	// Predict says how the data are read and the models run. Threads 0 is one for every
	// second processor, so that the others answer.
	Predict infer.PredictOptions
	// Updates allows clients to add nodes and edges to the online graph.
	Updates bool
	// Exact computes every version as a whole, see infer.GraphOptions.
	Exact bool
	// Journal is the folder that keeps updates, see infer.GraphOptions; none if empty.
	Journal string
	// Batch is how many nodes are answered for together at most; 1024 if 0.
	Batch int

	// CertFile and KeyFile are PEM files for TLS; without them there is none.
	CertFile, KeyFile string
	// Token is wanted of every request but those for health; none if empty.
	Token string

	// Memory is how much the process may take, in bytes: for the models, the graph, and
	// what requests hold; what budget.Default says if 0.
	Memory int64
	// MaxBody is the largest body of a request, in bytes; 64 MiB if 0.
	MaxBody int64
	// MaxAnswer is the largest answer, in bytes; 256 MiB if 0.
	MaxAnswer int64
	// MaxPairs is how many pairs of nodes and neighbours (N·k) the pipeline judges in a
	// request; 2^20 if 0.
	MaxPairs int64
	// Timeout is how long a request may take, reading its body and answering it each;
	// 30 s if 0.
	Timeout time.Duration
	// MaxRequests is how many inference requests may be answered at a time; more are
	// refused at once. 1024 if 0.
	MaxRequests int
	// MaxConnections is how many connections there may be. Above, those are closed that
	// keep the server waiting for longest. 0 is as many as an eighth of the memory, and
	// the limit of open files, allow.
	MaxConnections int
	// Drain is how long requests are still accepted after a shutdown was requested, while the
	// server says that it is not ready; 0 is not at all. Grace is how long those that
	// were taken may go on afterwards; 23 s if 0.
	Drain, Grace time.Duration
	// AllowedHosts are names, beside localhost, the machine's own and addresses, by which
	// the server is asked over HTTP; "*" is any.
	AllowedHosts []string

	Log func(format string, args ...any) // gets a line for each event; may be nil
	// Requests gets a record of each request; may be nil.
	Requests *slog.Logger
	// LogWriter is what Log and Requests write to, whose dropped lines /metrics counts; may be nil.
	LogWriter *LogWriter
}

// Server answers questions to an export.
type Server struct {
	o           Options
	tls         *tls.Config
	budget      *budget.Budget
	intake      *intake
	connections *connections
	hosts       []string
	dist        *dist.Dist
	graph       *infer.Graph // nil without data
	models      map[string]model
	metrics     *metrics
	underWay    atomic.Int64
	tidying     atomic.Bool
	tidied      atomic.Int64  // bytes that were resident when memory was last given back
	idle        time.Duration // after which a connection without requests is closed
	draining    atomic.Bool
	closed      atomic.Bool
	drained     chan struct{} // closed by a test that has seen enough; else nil
}

// New loads an export, and the online graph if there is one.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Requests == nil {
		o.Requests = slog.New(slog.DiscardHandler)
	}
	o.Batch = cmp.Or(o.Batch, 1024)
	o.MaxRequests = cmp.Or(o.MaxRequests, 1024)
	o.Predict.Threads = cmp.Or(o.Predict.Threads, max(1, runtime.NumCPU()/2))
	o.MaxBody = cmp.Or(o.MaxBody, 64<<20)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, 256<<20)
	o.MaxPairs = cmp.Or(o.MaxPairs, 1<<20)
	if o.Memory == 0 {
		o.Memory, _ = budget.Default()
	}
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Grace = cmp.Or(o.Grace, 23*time.Second)
	if o.Batch < 0 || o.MaxRequests < 0 || o.MaxConnections < 0 || o.Memory < 0 || o.MaxBody < 0 || o.MaxBody > 1<<31-1 || o.MaxAnswer < 0 || o.MaxPairs < 0 ||
		o.Timeout < 0 || o.Drain < 0 || o.Grace < 0 {
		return nil, errors.New("the limits of a server are positive, and bodies have less than 2 GiB")
	}
	if (o.Updates || o.Journal != "") && o.Data == "" {
		return nil, errors.New("updates and their journal need an online graph: give one with --data")
	}
	s := &Server{o: o, metrics: newMetrics(), models: map[string]model{}, budget: budget.New(o.Memory), hosts: o.allowedHosts(), idle: 2 * time.Minute}
	var err error
	if s.tls, err = o.tls(); err != nil {
		return nil, err
	}
	if err := s.load(ctx); err != nil {
		s.Close()
		return nil, err
	}
	// What is there now, whatever it is for.
	if _, err := s.budget.Reserve("the models and the graph", max(0, resident()-s.budget.Used())); err != nil {
		s.Close()
		return nil, fmt.Errorf("%w (--memory)", err)
	}
	refused := func(why string) { s.metrics.refused.WithLabelValues(why).Inc() }
	s.intake = newIntake(s.budget, refused, s.large)
	if s.o.MaxConnections == 0 {
		s.o.MaxConnections = int(max(16, min(o.Memory/8/connectionBytes, openFiles()-128)))
	}
	s.connections = &connections{most: s.o.MaxConnections, budget: s.budget, refused: refused, all: map[net.Conn]*connection{}}
	s.metrics.memory(s.budget, s.intake, s.connections)
	s.metrics.dropped(o.LogWriter)
	return s, nil
}

// load loads the models, and the graph if there is one.
func (s *Server) load(ctx context.Context) (err error) {
	o := &s.o
	if o.Data != "" {
		p := o.Predict
		p.Log = o.Log
		if s.graph, err = infer.OpenGraphWithin(ctx, s.budget, o.Dist, o.Data, infer.GraphOptions{PredictOptions: p, Exact: o.Exact, ReadOnly: !o.Updates, Journal: o.Journal}); err != nil {
			return err
		}
		s.add(newNodes(s.graph, &batcher{graph: s.graph, most: o.Batch, observe: func(n int) { s.metrics.batch.Observe(float64(n)) }}))
		if o.Updates {
			if err := s.graph.Fixed(); err != nil {
				return fmt.Errorf("%s takes no updates: %w; without --updates it is served as it is", o.Dist, err)
			}
			s.add(newUpdate(s.graph))
		}
		s.metrics.graph(s.graph)
	}
	// The files have sessions of their own, which keep no memory between requests: those
	// of the online graph run on graphs of one size, and may.
	if s.dist, err = o.open(ctx); err != nil {
		return err
	}
	if err := s.dist.Warm(); err != nil {
		return err
	}
	all, err := files(s.dist, o.Predict.Threads, o.MaxPairs)
	for _, m := range all {
		s.add(m)
	}
	s.tidy()
	return err
}

// open opens the export alone.
func (o *Options) open(ctx context.Context) (*dist.Dist, error) {
	lib, err := o.Predict.Library.OrEnsure(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Read(o.Dist)
	if err != nil {
		return nil, err
	}
	if line := m.Unchecked(); line != "" {
		o.Log("%s", line)
	}
	return dist.OpenManifest(m, ort.Options{Provider: o.Predict.Provider, Device: o.Predict.Device, MemoryLimit: o.Predict.MemoryLimit, Threads: o.Predict.Threads, Library: lib, Log: o.Log, Yield: true, Release: true}), nil
}

// tls reads the certificate.
func (o *Options) tls() (*tls.Config, error) {
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, errors.New("TLS needs both a certificate and its key")
	}
	if o.CertFile == "" {
		return nil, nil
	}
	c, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", o.CertFile, o.KeyFile, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}, nil
}

func (s *Server) add(m model) { s.models[m.describe().Name] = m }

// Close frees the models. Requests to the handler are refused from then on.
func (s *Server) Close() {
	if s.closed.Swap(true) {
		return
	}
	s.draining.Store(true)
	if s.graph != nil {
		s.graph.Close()
	}
	if s.dist != nil {
		s.dist.Close()
	}
}

// model finds a model.
func (s *Server) model(name, version string) (model, error) {
	m, ok := s.models[name]
	if !ok {
		return nil, fail(kindUnknown, "there is no model %.60q", name)
	}
	if version != "" && version != modelVersion {
		return nil, fail(kindUnknown, "the model %q has no version %.60q; it has %s", name, version, modelVersion)
	}
	return m, nil
}

// known is a model's name as a label of what is counted: clients do not make labels.
func (s *Server) known(name string) string {
	if s.models[name] == nil {
		return "unknown"
	}
	return name
}

func (s *Server) ready() bool { return !s.draining.Load() }

// enter counts a request in whose body has come, unless there are too many.
func (s *Server) enter(ctx context.Context) (leave func(), err error) {
	if s.closed.Load() {
		return nil, fail(kindBusy, "the server is closed")
	}
	if s.underWay.Add(1) > int64(s.o.MaxRequests) {
		s.underWay.Add(-1)
		return nil, fail(kindBusy, "%d requests are under way: too many (--max-requests)", s.o.MaxRequests)
	}
	s.metrics.underWay.Inc()
	done := s.connections.answering(ctx)
	return func() {
		done()
		s.underWay.Add(-1)
		s.metrics.underWay.Dec()
	}, nil
}

// begin is called when an inference request begins; what it returns, when it is
// answered.
func (s *Server) begin(protocol, model string) func(c *call, code string, err error) {
	start := time.Now()
	return func(c *call, code string, err error) {
		took := time.Since(start)
		level, attrs := slog.LevelInfo, []slog.Attr{slog.String("protocol", protocol)}
		if c != nil {
			if c.model != "" {
				model = c.model
			}
			attrs = append(attrs, slog.String("id", c.id), slog.Int64("rows", c.rows))
		}
		s.metrics.requests.WithLabelValues(model, protocol, code).Inc()
		s.metrics.seconds.WithLabelValues(model, protocol).Observe(took.Seconds())
		attrs = append(attrs, slog.String("model", model), slog.String("code", code), slog.Duration("took", took))
		if err != nil {
			f := classify(err)
			if level = slog.LevelWarn; f.http >= http.StatusInternalServerError {
				level = slog.LevelError
			}
			attrs = append(attrs, slog.String("why", f.why))
		}
		s.o.Requests.LogAttrs(context.Background(), level, "request", attrs...)
	}
}

// count counts a refusal.
func (s *Server) count(f *failure) {
	s.metrics.refused.WithLabelValues(f.why).Inc()
	if f.kind == kindInternal || f.kind == kindJournal { // whoever runs the server is to mend it
		s.o.Log("%s error: %s", f.why, f.message)
	}
}

// description is the server's metadata.
type description struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

func (s *Server) describe() description {
	return description{"gsrc", version.String(), []string{"binary_tensor_data"}}
}

// Run answers on the listeners (either may be nil) until ctx ends. It then says that
// it is not ready, takes requests for the time of Drain, and returns when all that were
// taken are answered, or when Grace is over: what is not done then is cut off, and the
// error is a *[CutError].
func (s *Server) Run(ctx context.Context, web, rpc net.Listener) error {
	failed := make(chan error, 2)
	work, abort := context.WithCancel(context.Background())
	defer abort()
	go s.keepTidy(work)
	var servers []*http.Server
	start := func(l net.Listener, h http.Handler, protocol string, set func(p *http.Protocols, on bool)) {
		if l == nil {
			return
		}
		p := &http.Protocols{}
		set(p, true)
		h1 := &http.Server{
			Handler: h, Protocols: p, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: s.o.Timeout,
			WriteTimeout: 2*s.o.Timeout + 10*time.Second, IdleTimeout: s.idle, MaxHeaderBytes: 64 << 10,
			HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: 64, MaxReceiveBufferPerConnection: 1 << 20, MaxReceiveBufferPerStream: 256 << 10},
			ErrorLog: log.New(logWriter(s.o.Log), "", 0), ConnState: s.connections.follow, ConnContext: s.connections.with,
			BaseContext: func(net.Listener) context.Context { return work },
		}
		if s.tls != nil {
			c := s.tls.Clone()
			c.NextProtos = []string{protocol}
			h1.TLSConfig = c
		}
		servers = append(servers, h1)
		go func() {
			if s.tls != nil {
				failed <- h1.ServeTLS(l, "", "")
			} else {
				failed <- h1.Serve(l)
			}
		}()
	}
	start(web, s.Handler(), "http/1.1", (*http.Protocols).SetHTTP1)
	second := (*http.Protocols).SetUnencryptedHTTP2
	if s.tls != nil {
		second = (*http.Protocols).SetHTTP2
	}
	start(rpc, s.RPC(), "h2", second)
	select {
	case err := <-failed:
		for _, h := range servers {
			h.Close()
		}
		return err
	case <-ctx.Done():
	}
	s.draining.Store(true)
	if s.o.Drain > 0 {
		s.o.Log("not ready any more; requests are taken for another %v", s.o.Drain)
		select {
		case <-time.After(s.o.Drain):
		case <-s.drained:
		}
	}
	s.o.Log("finishing what is under way, within %v", s.o.Grace)
	end, cancel := context.WithTimeout(context.Background(), s.o.Grace)
	defer cancel()
	var wait sync.WaitGroup
	for _, h := range servers {
		wait.Go(func() { h.Shutdown(end) })
	}
	wait.Wait()
	if end.Err() == nil {
		return nil
	}
	cut := &CutError{Grace: s.o.Grace, Answering: int(s.underWay.Load())}
	cut.Bodies, cut.Answers = s.intake.unfinished()
	abort()
	for _, h := range servers {
		h.Close()
	}
	if cut.Bodies+cut.Answers+cut.Answering == 0 { // idle connections
		return nil
	}
	return cut
}

// CutError says what was cut off when a server ended.
type CutError struct {
	Grace     time.Duration
	Bodies    int // requests whose bodies had not come whole
	Answering int // requests that were being worked on
	Answers   int // answers that had not been read whole
}

func (e *CutError) Error() string {
	return fmt.Sprintf("after %v these were cut off: %d requests whose bodies had not come, %d that were being answered, %d answers that had not been read", e.Grace, e.Bodies, e.Answering, e.Answers)
}

// logWriter passes on what net/http complains of, a line at a time.
type logWriter func(format string, args ...any)

func (w logWriter) Write(b []byte) (int, error) {
	w("%s", strings.TrimSpace(string(b)))
	return len(b), nil
}

package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"google.golang.org/grpc"
)

// Options say what is served, and within which limits. Zero values are defaults.
type Options struct {
	// Dist is the folder of an export.
	Dist string
	// Data is the resident graph; none if empty.
	Data string
	// Predict says how the data are read and the models run. Threads 0 is one for every
	// second processor, so that the others answer.
	Predict gsrc.PredictOptions
	// Updates allows clients to add nodes and edges to the resident graph.
	Updates bool
	// Subgraphs answers from sub-graphs, see gsrc.ResidentOptions.
	Subgraphs bool
	// Batch is how many nodes are answered for together at most; 1024 if 0.
	Batch int

	// CertFile and KeyFile are PEM files for TLS; without them there is none.
	CertFile, KeyFile string
	// Token is wanted of every request but those for health; none if empty.
	Token string

	// MaxBody is the largest body of a request, in bytes; 64 MiB if 0.
	MaxBody int64
	// Timeout is how long a request may take, reading its body and answering it each;
	// 30 s if 0.
	Timeout time.Duration
	// MaxRequests is how many inference requests may be under way; more are refused at
	// once. 1024 if 0.
	MaxRequests int
	// Drain is how long requests are still taken after the end was asked for, while the
	// server says that it is not ready; 0 is not at all.
	Drain time.Duration

	Log func(format string, args ...any) // gets a line for each event; may be nil
}

// Server answers questions to an export.
type Server struct {
	o        Options
	tls      *tls.Config
	dist     *export.Dist
	resident *gsrc.Resident // nil without data
	models   map[string]model
	metrics  *metrics
	underWay atomic.Int64
	draining atomic.Bool
	drained  chan struct{} // closed by a test that has seen enough; else nil
}

// New loads an export, and the resident graph if there is one.
func New(ctx context.Context, o Options) (*Server, error) {
	def := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	def(&o.Batch, 1024)
	def(&o.MaxRequests, 1024)
	def(&o.Predict.Threads, max(1, runtime.NumCPU()/2))
	if o.MaxBody == 0 {
		o.MaxBody = 64 << 20
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Batch < 0 || o.MaxRequests < 0 || o.MaxBody < 0 || o.MaxBody > 1<<31-1 || o.Timeout < 0 || o.Drain < 0 {
		return nil, errors.New("the limits of a server are positive, and bodies have less than 2 GiB")
	}
	if o.Updates && o.Data == "" {
		return nil, errors.New("updates need a resident graph: give one with --data")
	}
	s := &Server{o: o, metrics: newMetrics(), models: map[string]model{}}
	var err error
	if s.tls, err = o.tls(); err != nil {
		return nil, err
	}
	if o.Data != "" {
		p := o.Predict
		p.Log = o.Log
		if s.resident, err = gsrc.OpenResident(ctx, o.Dist, o.Data, gsrc.ResidentOptions{PredictOptions: p, Subgraphs: o.Subgraphs}); err != nil {
			return nil, err
		}
		s.dist = s.resident.Dist()
		s.add(newNodes(s.resident, &batcher{resident: s.resident, most: o.Batch, observe: func(n int) { s.metrics.batch.Observe(float64(n)) }}))
		if o.Updates {
			s.add(newUpdate(s.resident))
		}
		s.metrics.graph(s.resident)
	} else if s.dist, err = o.open(ctx); err != nil {
		return nil, err
	}
	if err := s.dist.Warm(); err != nil {
		s.Close()
		return nil, err
	}
	for _, m := range files(s.dist, o.Predict.Threads) {
		s.add(m)
	}
	return s, nil
}

// open opens the export alone.
func (o *Options) open(ctx context.Context) (*export.Dist, error) {
	lib := o.Predict.Library
	if lib == nil {
		found, err := ort.Ensure(ctx, o.Log)
		if err != nil {
			return nil, err
		}
		lib = &found
	}
	return export.Open(o.Dist, ort.Options{Provider: o.Predict.Provider, Device: o.Predict.Device, MemoryLimit: o.Predict.MemoryLimit, Threads: o.Predict.Threads, Library: lib, Log: o.Log, Yield: true})
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

// Close frees the models.
func (s *Server) Close() {
	if s.resident != nil {
		s.resident.Close()
		return
	}
	s.dist.Close()
}

// Models describes what is served, by name.
func (s *Server) Models() map[string]Metadata {
	all := map[string]Metadata{}
	for name, m := range s.models {
		all[name] = *m.describe()
	}
	return all
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

// enter counts a request in, unless there are too many.
func (s *Server) enter() (leave func(), err error) {
	if s.underWay.Add(1) > int64(s.o.MaxRequests) {
		s.underWay.Add(-1)
		return nil, fail(kindBusy, "%d requests are under way: too many", s.o.MaxRequests)
	}
	s.metrics.underWay.Inc()
	return func() {
		s.underWay.Add(-1)
		s.metrics.underWay.Dec()
	}, nil
}

// description is the server's metadata.
type description struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

func (s *Server) describe() description {
	return description{"gsrc", gsrc.Version(), []string{"binary_tensor_data"}}
}

// Run answers on the listeners (either may be nil) until ctx ends. It then says that
// it is not ready, takes requests for the time of Drain, and returns when all that were
// taken are answered.
func (s *Server) Run(ctx context.Context, web, rpc net.Listener) error {
	failed := make(chan error, 2)
	h := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: s.o.Timeout,
		WriteTimeout: 2*s.o.Timeout + 10*time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(logWriter(s.o.Log), "", 0),
	}
	if web != nil {
		l := web
		if s.tls != nil {
			c := s.tls.Clone()
			c.NextProtos = []string{"http/1.1"}
			l = tls.NewListener(web, c)
		}
		go func() { failed <- h.Serve(l) }()
	}
	var g *grpc.Server
	if rpc != nil {
		g = s.GRPC()
		go func() { failed <- g.Serve(rpc) }()
	}
	select {
	case err := <-failed:
		h.Close()
		if g != nil {
			g.Stop()
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
	s.o.Log("finishing what is under way")
	end, cancel := context.WithTimeout(context.Background(), 2*s.o.Timeout)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if g != nil {
			g.GracefulStop()
		}
	}()
	err := h.Shutdown(end)
	select {
	case <-stopped:
	case <-end.Done():
		g.Stop()
	}
	if err != nil {
		return fmt.Errorf("requests did not end within %v: %w", 2*s.o.Timeout, err)
	}
	return nil
}

// logWriter passes on what net/http complains of, a line at a time.
type logWriter func(format string, args ...any)

func (w logWriter) Write(b []byte) (int, error) {
	w("%s", strings.TrimSpace(string(b)))
	return len(b), nil
}

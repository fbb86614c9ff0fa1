package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/gsrc-dev/gsrc/serve/inferencepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

const oneNode = `{"inputs":[{"name":"node","datatype":"BYTES","shape":[1],"data":["5"]}]}`

// A server that was closed refuses requests, and is not ready.
func TestClosed(t *testing.T) {
	s := newServer(t, Options{Data: "synthetic"})
	s.Close()
	h := s.Handler()
	for at, body := range map[string]string{"/v2/models/nodes/infer": oneNode, "/v2/health/ready": ""} {
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+at, strings.NewReader(body)))
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", at, w.Code, w.Body)
		}
	}
}

// Every request that was taken is answered, though the end is asked for amid them.
func TestShutdownLosesNothing(t *testing.T) {
	s := newServer(t, Options{Data: "synthetic", Drain: time.Hour})
	s.drained = make(chan struct{})
	web, rpc := listen(t), listen(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, web, rpc) }()
	var wg sync.WaitGroup
	var answered, during atomic.Int64
	for range 6 {
		wg.Go(func() {
			h := &http.Client{Transport: &http.Transport{}}
			for {
				r, err := h.Post("http://"+web.Addr().String()+"/v2/models/nodes/infer", "application/json", strings.NewReader(oneNode))
				if err != nil {
					t.Error("lost:", err)
					return
				}
				text, err := io.ReadAll(r.Body)
				r.Body.Close()
				if err != nil || r.StatusCode != 200 {
					t.Errorf("lost: %d %s %v", r.StatusCode, text, err)
					return
				}
				answered.Add(1)
				if r.Close { // told to go elsewhere
					during.Add(1)
					return
				}
			}
		})
	}
	c, err := grpc.NewClient(rpc.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stub := pb.NewGRPCInferenceServiceClient(c)
	var rpcs sync.WaitGroup
	var rpcAnswered atomic.Int64
	for range 2 {
		rpcs.Go(func() {
			for {
				_, err := stub.ModelInfer(context.Background(), &pb.ModelInferRequest{ModelName: "nodes", Inputs: []*pb.ModelInferRequest_InferInputTensor{
					{Name: "number", Datatype: INT64, Shape: []int64{1}, Contents: &pb.InferTensorContents{Int64Contents: []int64{5}}}}})
				if status.Code(err) == codes.Unavailable { // not taken, which the count below tells
					return
				}
				if err != nil {
					t.Error("lost:", err)
					return
				}
				rpcAnswered.Add(1)
			}
		})
	}
	for answered.Load() < 20 || rpcAnswered.Load() < 20 {
		time.Sleep(time.Millisecond)
	}
	stop()
	for !s.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	r, err := http.Get("http://" + web.Addr().String() + "/v2/health/ready")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a server that ends says %d of its readiness", r.StatusCode)
	}
	wg.Wait()
	close(s.drained)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	rpcs.Wait()
	if during.Load() != 6 {
		t.Errorf("%d clients were told to go elsewhere, want 6", during.Load())
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/metrics", nil))
	for protocol, n := range map[string]int64{`code="200",model="nodes",protocol="http"`: answered.Load(), `code="OK",model="nodes",protocol="grpc"`: rpcAnswered.Load()} {
		if line := fmt.Sprintf("gsrc_requests_total{%s} %d\n", protocol, n); !strings.Contains(w.Body.String(), line) {
			t.Errorf("the server has not answered as many as came: want %s in\n%s", line, w.Body)
		}
	}
}

// What is not finished when the time of grace is over is cut off and counted: calls and
// requests whose bodies do not come.
func TestShutdownCutsWhatDoesNotEnd(t *testing.T) {
	s := newServer(t, Options{Data: "synthetic", Timeout: time.Hour, Drain: time.Millisecond, Grace: 50 * time.Millisecond})
	web, rpc := listen(t), listen(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, web, rpc) }()
	const calls, requests = 10, 3
	var wg sync.WaitGroup
	var rests []*io.PipeWriter
	ask := func(h *http.Client, l net.Listener, path, content string, part []byte) {
		body, rest := io.Pipe()
		rests = append(rests, rest)
		r, err := http.NewRequest("POST", "http://"+l.Addr().String()+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", content)
		r.Header.Set("Te", "trailers")
		wg.Go(func() {
			reply, err := h.Do(r)
			if err == nil {
				io.Copy(io.Discard, reply.Body)
				reply.Body.Close()
			}
			body.Close()
		})
		wg.Go(func() { rest.Write(part) })
	}
	second := &http.Transport{Protocols: &http.Protocols{}}
	second.Protocols.SetUnencryptedHTTP2(true)
	defer second.CloseIdleConnections()
	for range calls { // a message of 4096 bytes, of which one comes
		ask(&http.Client{Transport: second}, rpc, pb.GRPCInferenceService_ModelInfer_FullMethodName, "application/grpc", []byte{0, 0, 0, 16, 0, 10})
	}
	for range requests {
		ask(&http.Client{Transport: &http.Transport{}}, web, "/v2/models/nodes/infer", "application/json", []byte("{"))
	}
	for bodies, _ := s.intake.unfinished(); bodies < calls+requests; bodies, _ = s.intake.unfinished() {
		time.Sleep(time.Millisecond)
	}
	stop()
	var cut *CutError
	if err := <-ended; !errors.As(err, &cut) || cut.Bodies != calls+requests {
		t.Errorf("the server ended with %v, want %d bodies cut off", err, calls+requests)
	}
	for _, rest := range rests { // net/http's client waits for its body
		rest.Close()
	}
	wg.Wait()
	bodies, _ := s.intake.unfinished() // handlers notice shortly after their connections are closed
	for end := time.Now().Add(10 * time.Second); bodies > 0 && time.Now().Before(end); bodies, _ = s.intake.unfinished() {
		time.Sleep(time.Millisecond)
	}
	if bodies > 0 {
		t.Errorf("%d bodies are still coming", bodies)
	}
}

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600)); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return certFile, keyFile, pool
}

// TLS and the token hold for both protocols; health is told to everybody.
func TestTLSAndToken(t *testing.T) {
	o := Options{Data: "synthetic", Token: "secret"}
	var pool *x509.CertPool
	o.CertFile, o.KeyFile, pool = certificate(t)
	s := newServer(t, o)
	web, rpc := listen(t), listen(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, web, rpc) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	h := &http.Client{Transport: transport}
	for _, x := range []struct {
		method, path, token string
		code                int
	}{
		{"GET", "/v2/health/ready", "", 200},
		{"GET", "/metrics", "", 401},
		{"GET", "/v2/models/nodes", "", 401},
		{"POST", "/v2/models/nodes/infer", "", 401},
		{"POST", "/v2/models/nodes/infer", "Bearer wrong", 401},
		{"POST", "/v2/models/nodes/infer", "secret", 401},
		{"POST", "/v2/models/nodes/infer", "Bearer secret", 200},
		{"POST", "/v2/models/nodes/infer", "bearer secret", 200},
	} {
		r, err := http.NewRequest(x.method, "https://"+web.Addr().String()+x.path, strings.NewReader(oneNode))
		if err != nil {
			t.Fatal(err)
		}
		if x.token != "" {
			r.Header.Set("Authorization", x.token)
		}
		reply, err := h.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != x.code {
			t.Errorf("%s %s with token %q: %d, want %d", x.method, x.path, x.token, reply.StatusCode, x.code)
		}
	}
	c, err := grpc.NewClient(rpc.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stub := pb.NewGRPCInferenceServiceClient(c)
	if r, err := stub.ServerReady(t.Context(), &pb.ServerReadyRequest{}); err != nil || !r.Ready {
		t.Error(r, err)
	}
	if _, err := stub.ModelMetadata(t.Context(), &pb.ModelMetadataRequest{Name: "nodes"}); status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
	with := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer secret")
	if m, err := stub.ModelMetadata(with, &pb.ModelMetadataRequest{Name: "nodes"}); err != nil || len(m.Inputs) != 2 {
		t.Error(m, err)
	}
	if _, err := stub.ModelInfer(with, &pb.ModelInferRequest{ModelName: "nodes", Inputs: []*pb.ModelInferRequest_InferInputTensor{nil}}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
}

// A body that does not come, and too many requests, are refused.
func TestLimits(t *testing.T) {
	s := newServer(t, Options{Data: "synthetic", Timeout: 300 * time.Millisecond, MaxRequests: 1})
	web := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, web, nil) }()
	slow, err := net.Dial("tcp", web.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	io.WriteString(slow, "POST /v2/models/nodes/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
	for n := 0; n == 0; n, _ = s.intake.unfinished() {
		time.Sleep(time.Millisecond)
	}
	ask := func(change func(r *http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "http://localhost/v2/models/nodes/infer", strings.NewReader(oneNode))
		change(r)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w
	}
	// A body that does not come takes no place of those that do.
	if w := ask(func(*http.Request) {}); w.Code != http.StatusOK {
		t.Errorf("beside a body that does not come: %d %s", w.Code, w.Body)
	}
	leave, err := s.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w := ask(func(*http.Request) {}); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "--max-requests") {
		t.Errorf("a second request: %d %s", w.Code, w.Body)
	}
	leave()
	reply, err := io.ReadAll(slow)
	if err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 408") {
		t.Errorf("a body that does not come: %q, %v", reply, err)
	}
	for host, code := range map[string]int{"localhost:8000": 200, "127.0.0.1": 200, "[::1]:8000": 200, "LOCALHOST.": 200, "evil.example": 403, "evil.example:8000": 403, "127.0.0.1.evil.example": 403} {
		if w := ask(func(r *http.Request) { r.Host = host }); w.Code != code || !json.Valid(w.Body.Bytes()) {
			t.Errorf("as %s: %d %s, want %d", host, w.Code, w.Body, code)
		}
	}
	// A page elsewhere makes a browser send this.
	if w := ask(func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }); w.Code != http.StatusForbidden || !json.Valid(w.Body.Bytes()) {
		t.Errorf("a request from another site: %d %s", w.Code, w.Body)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A connection on which nothing is asked is closed, over gRPC too.
func TestIdleConnectionsClose(t *testing.T) {
	s := newServer(t, Options{Data: "synthetic"})
	s.idle = 20 * time.Millisecond
	web, rpc := listen(t), listen(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, web, rpc) }()
	r, err := http.Post("http://"+web.Addr().String()+"/v2/models/nodes/infer", "application/json", strings.NewReader(oneNode))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	c, err := grpc.NewClient(rpc.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := pb.NewGRPCInferenceServiceClient(c).ServerLive(t.Context(), &pb.ServerLiveRequest{}); err != nil {
		t.Fatal(err)
	}
	for s.connections.number() > 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Above the limit of connections, that which keeps the server waiting for longest makes
// room for one that asks.
func TestSlowConnectionsMakeRoom(t *testing.T) {
	s := newServer(t, Options{Data: "synthetic", MaxConnections: 4})
	web := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, web, nil) }()
	for range 4 {
		slow, err := net.Dial("tcp", web.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		io.WriteString(slow, "POST /v2/models/nodes/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
	}
	for n := 0; n < 4; n, _ = s.intake.unfinished() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(patience) // for so long each is left alone
	for range 6 {
		h := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := h.Post("http://"+web.Addr().String()+"/v2/models/nodes/infer", "application/json", strings.NewReader(oneNode))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	if n := s.connections.number(); n > 4 {
		t.Errorf("%d connections, and 4 are allowed", n)
	}
	stop()
	if err := <-ended; err != nil {
		t.Log(err) // what is left of the slow ones
	}
}

func TestOptionFaults(t *testing.T) {
	for want, o := range map[string]Options{
		"online graph":     {Updates: true},
		"limits":           {MaxRequests: -1},
		"less than 2 GiB":  {MaxBody: 1 << 40},
		"both a cert":      {CertFile: "x"},
		"certificate none": {CertFile: "none", KeyFile: "none"},
		"manifest.json":    {Dist: t.TempDir(), Data: "synthetic"},
	} {
		if _, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

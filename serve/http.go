package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// lengthHeader tells how much of a body is JSON, where binary tensors follow.
	lengthHeader = "Inference-Header-Content-Length"
	// idempotencyHeader is the parameter idempotency_key as a header.
	idempotencyHeader = "Idempotency-Key"
)

// past is a deadline that has passed: what waits for a client ends.
var past = time.Unix(1, 0)

// Handler returns the HTTP side of the server.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	ready := func(w http.ResponseWriter) {
		if !s.ready() {
			s.refuse(w, fail(kindBusy, "not ready"))
		}
	}
	mux.HandleFunc("GET /v2/health/live", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v2/health/ready", func(w http.ResponseWriter, _ *http.Request) { ready(w) })
	private := func(pattern string, h http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := s.authorize(r.Header.Values("Authorization")); err != nil {
				w.Header().Set("WWW-Authenticate", "Bearer")
				s.deny(w, r, err)
				return
			}
			h(w, r)
		})
	}
	private("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP)
	for _, at := range []string{"GET /v2", "GET /v2/{$}"} {
		private(at, func(w http.ResponseWriter, r *http.Request) { s.reply(w, s.describe()) })
	}
	for _, at := range []string{"GET /{$}", "GET /v2/models", "GET /v2/models/{$}"} {
		private(at, func(w http.ResponseWriter, r *http.Request) { s.reply(w, s.index()) })
	}
	for _, at := range []string{"/v2/models/{model}", "/v2/models/{model}/versions/{version}"} {
		ofModel := func(end string, h func(w http.ResponseWriter, m model)) {
			private("GET "+at+end, func(w http.ResponseWriter, r *http.Request) {
				m, err := s.model(r.PathValue("model"), r.PathValue("version"))
				if err != nil {
					s.refuse(w, err)
					return
				}
				h(w, m)
			})
		}
		ofModel("", func(w http.ResponseWriter, m model) { s.reply(w, m.describe()) })
		ofModel("/ready", func(w http.ResponseWriter, _ model) { ready(w) })
		private("POST "+at+"/infer", s.inferHTTP)
	}
	private("/", func(w http.ResponseWriter, r *http.Request) {
		for method, allow := range map[string]string{http.MethodGet: "GET, HEAD", http.MethodPost: "POST"} { // no address takes both
			if _, at := mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host}); at != "/" {
				w.Header().Set("Allow", allow)
				s.turnAway(w, r, fail(kindMethod, "%.200s takes %s alone", r.URL.Path, allow))
				return
			}
		}
		s.turnAway(w, r, fail(kindUnknown, "there is nothing at %.200s; GET /v2/models lists the models", r.URL.Path))
	})
	// A page in a browser must not reach a server on the same machine unasked: not by a
	// request to it, and not by a name of its own that leads here.
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() { // the client asks elsewhere next time
			w.Header().Set("Connection", "close")
		}
		if err := s.checkHost(r.Host); err != nil {
			s.deny(w, r, err)
			return
		}
		if err := cross.Check(r); err != nil {
			s.deny(w, r, fail(kindSite, "the page of another site asks: %v", err))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// deny turns away a request whose sender may not ask, and logs one for inference like those of others.
func (s *Server) deny(w http.ResponseWriter, r *http.Request, err error) {
	code := s.turnAway(w, r, err)
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/infer") {
		model, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/models/"), "/")
		s.begin("http", s.known(model))(nil, strconv.Itoa(code), err)
	}
}

// checkHost refuses requests that come by a name which is not the server's: the page of
// a site whose name leads to this machine is, to a browser, of the same site.
func (s *Server) checkHost(host string) error {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || slices.Contains(s.hosts, name) || slices.Contains(s.hosts, "*") {
		return nil
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return nil
	}
	return fail(kindSite, "this server is not known as %.100q; ask it by its address, or start it with --allowed-host %[1]s", name)
}

// allowedHosts are the names that a server answers to beside localhost and addresses.
func (o *Options) allowedHosts() []string {
	all := slices.Clone(o.AllowedHosts)
	if own, err := os.Hostname(); err == nil {
		all = append(all, own)
	}
	for i := range all {
		all[i] = strings.ToLower(strings.TrimSuffix(all[i], "."))
	}
	return all
}

// index lists the models.
func (s *Server) index() any {
	type entry struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		State   string `json:"state"`
	}
	all := []entry{}
	for _, name := range slices.Sorted(maps.Keys(s.models)) {
		all = append(all, entry{name, modelVersion, "READY"})
	}
	return map[string]any{"models": all}
}

// inferHTTP answers an inference request.
func (s *Server) inferHTTP(w http.ResponseWriter, r *http.Request) {
	done := s.begin("http", s.known(r.PathValue("model")))
	deadline := http.NewResponseController(w)
	c, err := s.intake.open(func() { deadline.SetReadDeadline(past) })
	if err != nil {
		done(nil, strconv.Itoa(s.turnAway(w, r, err)), err)
		return
	}
	defer c.close()
	body, header, whole, err := s.answerHTTP(c, r)
	if err != nil {
		c.close() // an error may wait for its client too
		code := 0
		if whole {
			code = s.refuse(w, err)
		} else {
			code = s.turnAway(w, r, err)
		}
		done(c, strconv.Itoa(code), err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if header >= 0 {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set(lengthHeader, strconv.Itoa(header))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.begin(func() { deadline.SetWriteDeadline(past) })
	w.Write(body) // a client that has gone is no fault
	done(c, "200", nil)
}

// answerHTTP reads a request and makes its answer; whole tells whether the body came.
func (s *Server) answerHTTP(c *call, r *http.Request) (body []byte, header int, whole bool, err error) {
	m, err := s.model(r.PathValue("model"), r.PathValue("version"))
	if err != nil {
		return nil, 0, false, err
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, 0, false, fail(kindEncoding, "the body is encoded as %.40s; send it as it is", e)
	}
	length := -1
	if text := r.Header.Get(lengthHeader); text != "" {
		if length, err = strconv.Atoi(text); err != nil || length < 0 {
			return nil, 0, false, invalid("the header %s is %.40q, want a number of bytes", lengthHeader, text)
		}
	}
	data, err := c.read(r.Body, r.ContentLength, s.o.MaxBody)
	if err != nil {
		return nil, 0, false, err
	}
	leave, err := s.enter(r.Context())
	if err != nil {
		return nil, 0, true, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Timeout)
	defer cancel()
	req, binary, err := parseRequest(ctx, data, length, c.grow)
	if err != nil {
		return nil, 0, true, err
	}
	if keys := r.Header.Values(idempotencyHeader); len(keys) > 0 {
		key := keys[0]
		if len(keys) > 1 || key == "" {
			return nil, 0, true, invalid("the header %s is empty, or given twice", idempotencyHeader)
		}
		if req.IdempotencyKey != "" && req.IdempotencyKey != key {
			return nil, 0, true, invalid("the header %s and the parameter %s differ", idempotencyHeader, idempotencyParameter)
		}
		req.IdempotencyKey = key
	}
	res, err := s.ask(ctx, c, m, req, binary)
	if err != nil {
		return nil, 0, true, err
	}
	body, header, err = writeResponse(m.describe().Name, req.ID, res, binary)
	return body, header, true, err
}

// reply writes a value as JSON.
func (s *Server) reply(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		s.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

// turnAway is refuse where the body of the request has not been read: the connection
// ends, since the rest is not read.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, err error) int {
	if r.Body == nil || r.Body == http.NoBody {
		return s.refuse(w, err)
	}
	w.Header().Set("Connection", "close")
	code := s.refuse(w, err)
	c := http.NewResponseController(w)
	c.Flush()
	c.SetReadDeadline(past)
	return code
}

// refuse writes an error and returns its code.
func (s *Server) refuse(w http.ResponseWriter, err error) int {
	f := classify(err)
	s.count(f)
	if f.http == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	text := &bytes.Buffer{}
	json.NewEncoder(text).Encode(map[string]string{"error": f.message}) // of strings: cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(f.http)
	w.Write(text.Bytes())
	return f.http
}

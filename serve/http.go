package serve

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"context"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// lengthHeader tells how much of a body is JSON, where binary tensors follow.
const lengthHeader = "Inference-Header-Content-Length"

// Handler returns the HTTP side of the server.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	state := func(ok func() bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !ok() {
				s.refuse(w, fail(kindBusy, "not ready"))
			}
		}
	}
	mux.HandleFunc("GET /v2/health/live", state(func() bool { return true }))
	mux.HandleFunc("GET /v2/health/ready", state(s.ready))
	private := func(pattern string, h http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := s.authorize(r.Header.Get("Authorization")); err != nil {
				w.Header().Set("WWW-Authenticate", "Bearer")
				s.refuse(w, err)
				return
			}
			h(w, r)
		})
	}
	private("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP)
	private("GET /v2", func(w http.ResponseWriter, r *http.Request) { s.reply(w, s.describe()) })
	private("GET /v2/{$}", func(w http.ResponseWriter, r *http.Request) { s.reply(w, s.describe()) })
	for _, at := range []string{"/v2/models/{model}", "/v2/models/{model}/versions/{version}"} {
		private("GET "+at, func(w http.ResponseWriter, r *http.Request) {
			m, err := s.model(r.PathValue("model"), r.PathValue("version"))
			if err != nil {
				s.refuse(w, err)
				return
			}
			s.reply(w, m.describe())
		})
		private("GET "+at+"/ready", func(w http.ResponseWriter, r *http.Request) {
			if _, err := s.model(r.PathValue("model"), r.PathValue("version")); err != nil {
				s.refuse(w, err)
			} else if !s.ready() {
				s.refuse(w, fail(kindBusy, "not ready"))
			}
		})
		private("POST "+at+"/infer", s.inferHTTP)
	}
	private("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, fail(kindUnknown, "there is nothing at %s; the models are at /v2/models/NAME", r.URL.Path))
	})
	// A page in a browser must not reach a server on the same machine unasked.
	guarded := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() { // the client asks elsewhere next time
			w.Header().Set("Connection", "close")
		}
		guarded.ServeHTTP(w, r)
	})
}

// inferHTTP answers an inference request.
func (s *Server) inferHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	code := http.StatusOK
	defer func() {
		s.metrics.request(s.known(r.PathValue("model")), "http", strconv.Itoa(code), time.Since(start))
	}()
	body, header, err := s.answerHTTP(w, r)
	if err != nil {
		code = s.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if header >= 0 {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set(lengthHeader, strconv.Itoa(header))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body) // a client that has gone is no fault
}

func (s *Server) answerHTTP(w http.ResponseWriter, r *http.Request) (body []byte, header int, err error) {
	leave, err := s.enter()
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	m, err := s.model(r.PathValue("model"), r.PathValue("version"))
	if err != nil {
		return nil, 0, err
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, 0, fail(kindEncoding, "the body is encoded as %s; send it as it is", e)
	}
	length := -1
	if text := r.Header.Get(lengthHeader); text != "" {
		if length, err = strconv.Atoi(text); err != nil || length < 0 {
			return nil, 0, invalid("the header %s is %.40q, want a number of bytes", lengthHeader, text)
		}
	}
	data, err := s.readBody(w, r)
	if err != nil {
		return nil, 0, err
	}
	req, binary, err := parseRequest(data, length)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Timeout)
	defer cancel()
	res, err := ask(ctx, m, req)
	if err != nil {
		return nil, 0, err
	}
	return writeResponse(m.describe().Name, req.ID, res, binary)
}

// readBody reads the body of a request within the limits.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limited := http.MaxBytesReader(w, r.Body, s.o.MaxBody)
	if r.ContentLength > s.o.MaxBody {
		return nil, &http.MaxBytesError{Limit: s.o.MaxBody}
	}
	var data []byte
	var err error
	if n := r.ContentLength; n >= 0 && n <= 1<<20 { // more is believed when it has come
		data = make([]byte, n)
		_, err = io.ReadFull(limited, data)
	} else {
		data, err = io.ReadAll(limited)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil || errors.As(err, &tooLarge):
		return data, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fail(kindSlow, "the body did not come within the time limit")
	}
	return nil, invalid("the body cannot be read: %v", err)
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

// refuse writes an error and returns its code.
func (s *Server) refuse(w http.ResponseWriter, err error) int {
	f := classify(err)
	if f.http == http.StatusInternalServerError {
		s.o.Log("internal error: %v", err)
	}
	if f.kind == kindBusy {
		w.Header().Set("Retry-After", "1")
	}
	text, _ := json.Marshal(map[string]string{"error": f.message}) // of strings: cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.http)
	w.Write(text)
	return f.http
}

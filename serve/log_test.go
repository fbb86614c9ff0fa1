package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// A log that nobody reads holds up no answer. What is dropped is counted, and said in the log.
func TestUnreadLog(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	log := NewLogWriter(w)
	s := newServer(t, Options{Requests: slog.New(slog.NewTextHandler(log, nil)), LogWriter: log,
		Log: func(format string, args ...any) { fmt.Fprintf(log, format+"\n", args...) }})
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	ask := overHTTP(h.Client(), h.URL, false)
	x := Tensor{Name: "x", Datatype: FP32, Shape: []int64{1, int64(s.dist.Manifest.NumFeatures)}, F32: make([]float32, s.dist.Manifest.NumFeatures)}
	edges := Tensor{Name: "edge_index", Datatype: INT64, Shape: []int64{2, 0}}
	lines, line := 0, strings.Repeat("x", 1<<13)+"\n"
	for ; log.Dropped() < 3; lines++ { // more than the pipe and the buffer hold
		s.o.Log("%s", line[:len(line)-1])
	}
	for range 5 {
		if _, err := ask(t.Context(), "classifier", x, edges); err != nil {
			t.Fatal(err)
		}
	}
	log.Flush(time.Millisecond) // does not wait for ever
	dropped := log.Dropped()
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost/metrics", nil))
	if want := "gsrc_log_lines_dropped_total " + strconv.FormatInt(dropped, 10) + "\n"; !strings.Contains(answer.Body.String(), want) {
		t.Errorf("/metrics lacks %q", want)
	}

	// Once it is read again, nothing else is missing.
	var got bytes.Buffer
	read := make(chan struct{})
	go func() {
		io.Copy(&got, r)
		close(read)
	}()
	log.Flush(time.Minute)
	s.o.Log("the end")
	log.Flush(time.Minute)
	w.Close()
	<-read
	whole := strings.Count(got.String(), "x\n")
	asked := strings.Count(got.String(), "msg=request")
	if want := fmt.Sprintf("%d lines of the log were dropped", dropped); !strings.Contains(got.String(), want) || whole+asked+int(dropped) != lines+5 || !strings.HasSuffix(got.String(), "\nthe end\n") {
		t.Errorf("%d lines were logged and %d dropped, of %d; it says %.200q", whole+asked, dropped, lines+5, got.String()[max(0, got.Len()-200):])
	}
}

// A client that has gone before its answer is no failure of the server.
func TestClientGone(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, Options{Requests: slog.New(slog.NewTextHandler(&log, nil))})
	for _, x := range []struct {
		err  error
		want string
	}{{context.Canceled, "level=WARN msg=request protocol=http model=nodes code=499 "}, {context.DeadlineExceeded, "level=ERROR msg=request protocol=http model=nodes code=504 "}} {
		log.Reset()
		f := classify(fmt.Errorf("the model: %w", x.err))
		if s.begin("http", "nodes")(nil, strconv.Itoa(f.http), f); !strings.Contains(log.String(), x.want) || !strings.Contains(log.String(), "why="+f.why) {
			t.Errorf("%v: %s", x.err, log.String())
		}
	}
	if f := classify(context.Canceled); f.why != "gone" || f.grpc != codes.Canceled {
		t.Errorf("over gRPC %v, %s", f.grpc, f.why)
	}
}

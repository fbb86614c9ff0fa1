package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

// floodVar asks for another flood than the short one of every test run: connections and
// seconds, as in GSRC_TEST_FLOOD=5000,30.
const floodVar = "GSRC_TEST_FLOOD"

// slowBody gives a byte a second.
type slowBody struct{ ctx context.Context }

func (b slowBody) Read(p []byte) (int, error) {
	select {
	case <-b.ctx.Done():
		return 0, io.ErrUnexpectedEOF
	case <-time.After(time.Second):
		p[0] = 0
		return 1, nil
	}
}

// Questions are answered while others send bodies a byte at a time, over HTTP and gRPC,
// with and without a token.
func TestQuestionsDuringFlood(t *testing.T) {
	connections, seconds := 120, 2
	if text := os.Getenv(floodVar); text != "" {
		if _, err := fmt.Sscanf(text, "%d,%d", &connections, &seconds); err != nil {
			t.Fatalf("%s=%s: %v", floodVar, text, err)
		}
	}
	dist, err := small()
	if err != nil {
		t.Fatal(err)
	}
	const token = "secret"
	v := newVictim(t, Options{Dist: dist, Data: "synthetic", Memory: 4 << 30, Token: token, Grace: time.Second})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var attackers sync.WaitGroup
	var sent atomic.Int64
	raw := func(token string) { // HTTP
		for ctx.Err() == nil {
			c, err := net.Dial("tcp", v.web)
			if err != nil {
				return
			}
			fmt.Fprintf(c, "POST /v2/models/nodes/infer HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 1000000\r\n\r\n", token)
			sent.Add(1)
			io.Copy(c, slowBody{ctx})
			c.Close()
		}
	}
	rpc := func(token string) {
		transport := &http.Transport{Protocols: &http.Protocols{}}
		transport.Protocols.SetUnencryptedHTTP2(true)
		defer transport.CloseIdleConnections()
		for ctx.Err() == nil {
			r, err := http.NewRequestWithContext(ctx, "POST", "http://"+v.rpc+"/inference.GRPCInferenceService/ModelInfer", slowBody{ctx})
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/grpc")
			r.Header.Set("Authorization", "Bearer "+token)
			sent.Add(1)
			reply, err := transport.RoundTrip(r)
			if err == nil {
				reply.Body.Close()
			}
			select { // it is turned away at once without the token
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
	for i := range connections {
		attackers.Go(func() { []func(string){raw, rpc}[i%2]([]string{token, "wrong"}[i/2%2]) })
	}
	for sent.Load() < int64(connections) {
		time.Sleep(time.Millisecond)
	}
	const rate = 200
	took := make([]time.Duration, rate*seconds)
	var questions sync.WaitGroup
	start := time.Now()
	for i := range took {
		due := start.Add(time.Duration(i) * time.Second / rate)
		time.Sleep(time.Until(due))
		questions.Go(func() {
			r, err := http.NewRequest("POST", "http://"+v.web+"/v2/models/nodes/infer", strings.NewReader(oneNode))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+token)
			reply, err := v.http.Do(r)
			if err != nil {
				t.Errorf("question %d: %v", i, err)
				return
			}
			text, err := io.ReadAll(reply.Body)
			reply.Body.Close()
			if took[i] = time.Since(due); reply.StatusCode != 200 || err != nil {
				t.Errorf("question %d: %d %s %v", i, reply.StatusCode, text, err)
			}
		})
	}
	questions.Wait()
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("%d connections, %d bodies begun: %d questions at %d a second, median %v, p99 %v, all within %v; peak %s of %s", connections, sent.Load(), len(took), rate,
		took[len(took)/2], p99, took[len(took)-1], budget.Format(v.memory("VmHWM")), budget.Format(v.o.Memory))
	if os.Getenv(floodVar) != "" && p99 >= time.Second { // the time of a short run on a busy machine says nothing
		t.Errorf("p99 is %v, want less than 1 s", p99)
	}
	stop()
	attackers.Wait()
}

// Package download fetches files over HTTP so that a file is there whole and right
// or not at all. What arrives goes into a file beside it, NAME.part, from which a
// later try goes on, also after the process was killed; the file takes its name
// once its checksum is right.
package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// A machine without a way out must learn so in seconds.
	connectTimeout = 3 * time.Second
	answerTimeout  = 10 * time.Second
	// A transfer that stands still this long is given up.
	stallTimeout = 30 * time.Second
	// DefaultLimit is the largest file that is accepted where File says nothing.
	DefaultLimit = 4 << 30
)

// File is what to fetch and where to put it.
type File struct {
	URL    string
	Path   string // its folder has to exist
	SHA256 string // in hexadecimal; empty if it is not known
	Size   int64  // bytes that it has to have; 0 if it is not known
	Limit  int64  // bytes; 0 is DefaultLimit. A known size is the limit
}

// Options say how patiently.
type Options struct {
	// Tries is how often a transfer that breaks off is tried, at least once.
	// Every try goes on where the one before ended.
	Tries int
	// Wait is the pause before the second try; it doubles with each one. 0 is
	// a second.
	Wait time.Duration
	// Progress, if not nil, is called with how many bytes there are, and how many there
	// will be: -1 where the server does not say.
	Progress func(done, total int64)
	// Log, if not nil, gets a line where a try failed and another follows.
	Log func(format string, args ...any)
}

// Sum is what is known of a file that was fetched.
type Sum struct {
	Size   int64
	SHA256 string // in hexadecimal
}

// ChecksumError says that a file is not the one that was expected.
type ChecksumError struct {
	Name, Have, Want string
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s has SHA-256 %s, pinned is %s: refused", e.Name, e.Have, e.Want)
}

// statusError is an answer that is not the file.
type statusError struct {
	url    string
	status string
	code   int
}

func (e *statusError) Error() string { return fmt.Sprintf("%s answers %s", e.url, e.status) }

// Get fetches a file. On an error there is no file of that name, or the one that
// was there before; what has arrived stays beside it for the next call, unless it
// is known to be wrong.
func Get(ctx context.Context, f File, o Options) (Sum, error) {
	if f.Size > 0 {
		f.Limit = f.Size
	} else if f.Limit <= 0 {
		f.Limit = DefaultLimit
	}
	if o.Wait <= 0 {
		o.Wait = time.Second
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	g := &getter{File: f, Options: o, part: f.Path + ".part", mark: f.Path + ".part.from"}
	for try := 1; ; try++ {
		resumed, err := g.try(ctx)
		if err == nil {
			var sum Sum
			if sum, err = g.install(); err == nil {
				return sum, nil
			}
			// What an earlier call left may be of another version of the file.
			var wrong *ChecksumError
			if errors.As(err, &wrong) && resumed && try < max(o.Tries, 2) {
				o.Log("%v; fetching it again from the start", err)
				continue
			}
			return Sum{}, err
		}
		if ctx.Err() != nil {
			return Sum{}, ctx.Err()
		}
		if try >= o.Tries || !passing(err) {
			return Sum{}, err
		}
		wait := o.Wait << (try - 1)
		o.Log("%v; trying again in %v", err, wait)
		select {
		case <-ctx.Done():
			return Sum{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// passing reports whether an error may be another one next time.
func passing(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return status.code >= 500 || status.code == http.StatusTooManyRequests || status.code == http.StatusRequestTimeout
	}
	var path *os.PathError
	return !errors.As(err, &path) && !errors.Is(err, errTooLarge)
}

var errTooLarge = errors.New("refused")

func (g *getter) tooLarge() error {
	if g.Size > 0 {
		return fmt.Errorf("%s is larger than the pinned %d bytes: %w", g.URL, g.Size, errTooLarge)
	}
	return fmt.Errorf("%s is larger than %d MiB: %w", g.URL, g.Limit>>20, errTooLarge)
}

type getter struct {
	File
	Options
	part string // what has arrived
	mark string // what the server called the version that arrived
}

// try makes one request for what is missing, and reports whether it went on with
// what was there.
func (g *getter) try(ctx context.Context) (resumed bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("the transfer stood still for %v", stallTimeout)) })
	defer stall.Stop()
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
	}()
	have, version := g.arrived()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL, nil)
	if err != nil {
		return false, err
	}
	// Ranges are of the bytes that are stored, not of a compressed transfer.
	req.Header.Set("Accept-Encoding", "identity")
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if version != "" {
			req.Header.Set("If-Range", version)
		}
	}
	client := &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: answerTimeout,
	}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()

	total := resp.ContentLength
	switch {
	case resp.StatusCode == http.StatusPartialContent && have > 0:
		start, whole, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok || start != have {
			g.discard()
			return false, fmt.Errorf("%s answers with another range than asked for", g.URL)
		}
		total = whole
	case resp.StatusCode == http.StatusOK: // all of it, from the start
		g.discard()
		have = 0
		g.keepVersion(resp.Header)
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && have > 0:
		// Nothing is missing: a process was killed before it could say so.
		_, whole, _ := contentRange(resp.Header.Get("Content-Range"))
		if whole == have {
			return true, nil
		}
		g.discard()
		return false, &statusError{g.URL, resp.Status + " to a transfer that was to go on; it starts again", http.StatusRequestTimeout}
	default:
		return false, &statusError{g.URL, resp.Status, resp.StatusCode}
	}
	if total > g.Limit {
		g.discard()
		return false, g.tooLarge()
	}
	if g.Size > 0 && total < 0 {
		total = g.Size
	}
	return have > 0, g.receive(ctx, resp.Body, have, total, func() { stall.Reset(stallTimeout) })
}

// arrived returns how much is there to go on with, and of which version. Without
// a checksum and without a version nothing says that the rest would belong to it.
func (g *getter) arrived() (have int64, version string) {
	info, err := os.Stat(g.part)
	if err != nil || !info.Mode().IsRegular() {
		return 0, ""
	}
	text, _ := os.ReadFile(g.mark)
	if version = string(text); version == "" && g.SHA256 == "" {
		return 0, ""
	}
	return info.Size(), version
}

// keepVersion writes down what the server calls the version that it sends. A weak
// tag does not promise equal bytes.
func (g *getter) keepVersion(h http.Header) {
	version := h.Get("ETag")
	if version == "" || strings.HasPrefix(version, "W/") {
		version = h.Get("Last-Modified")
	}
	if version != "" {
		// Without it a transfer starts again, and nothing else is lost.
		_ = os.WriteFile(g.mark, []byte(version), 0o644)
	}
}

func (g *getter) discard() {
	os.Remove(g.part)
	os.Remove(g.mark)
}

// contentRange reads "bytes 10-19/20" or "bytes */20"; -1 is unknown.
func contentRange(s string) (start, total int64, ok bool) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, size, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		return -1, -1, false
	}
	if total, ok = -1, true; size != "*" {
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			return -1, -1, false
		}
		total = n
	}
	first, _, _ := strings.Cut(span, "-")
	start, err := strconv.ParseInt(first, 10, 64)
	return start, total, err == nil && start >= 0
}

// receive appends a body to what is there.
func (g *getter) receive(ctx context.Context, body io.Reader, have, total int64, touch func()) error {
	out, err := os.OpenFile(g.part, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	report := func() {
		if g.Progress != nil {
			g.Progress(have, total)
		}
	}
	report()
	buf := make([]byte, 128<<10)
	for err == nil {
		var n int
		n, err = body.Read(buf)
		if n == 0 {
			continue
		}
		touch()
		if have += int64(n); have > g.Limit {
			err = g.tooLarge()
			break
		}
		if _, werr := out.Write(buf[:n]); werr != nil {
			err = werr
			break
		}
		report()
		if err == nil {
			err = ctx.Err() // what has arrived already is not worth a stop that comes late
		}
	}
	if err == io.EOF {
		err = nil
		if total >= 0 && have < total {
			err = io.ErrUnexpectedEOF
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%s broke off after %d bytes", g.URL, have)
	}
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, errTooLarge) {
		g.discard()
	}
	return err
}

func (g *getter) install() (Sum, error) {
	sum, err := SHA256(g.part)
	if err != nil {
		return Sum{}, err
	}
	if g.SHA256 != "" && sum.SHA256 != g.SHA256 {
		g.discard()
		return Sum{}, &ChecksumError{Name: filepath.Base(g.Path), Have: sum.SHA256, Want: g.SHA256}
	}
	if err := os.Rename(g.part, g.Path); err != nil {
		return Sum{}, err
	}
	os.Remove(g.mark)
	return sum, nil
}

// SHA256 reads a file and returns its size and checksum.
func SHA256(path string) (Sum, error) {
	f, err := os.Open(path)
	if err != nil {
		return Sum{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return Sum{}, err
	}
	return Sum{Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

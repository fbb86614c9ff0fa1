package main

import (
	"net"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/serve"
	"github.com/spf13/cobra"
)

type writer func(text string)

func (w writer) Write(b []byte) (int, error) {
	w(string(b))
	return len(b), nil
}

// While a server loads, its ports refuse connections; one that is taken is told before.
func TestServeBindsWhenLoaded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	loading := 0
	a := &app{stderr: &output{to: writer(func(string) {
		loading++
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			t.Error("a connection is taken before the export is read")
		}
	})}}
	c := &cobra.Command{}
	c.SetContext(t.Context())
	if err := a.serve(c, &serve.Options{Dist: t.TempDir()}, address, ""); err == nil || !strings.Contains(err.Error(), "address already in use") || loading > 0 {
		t.Errorf("a port that is taken: %v after %d lines", err, loading)
	}
	l.Close()
	if err := a.serve(c, &serve.Options{Dist: t.TempDir()}, address, ""); err == nil || !strings.Contains(err.Error(), "no export") || loading == 0 {
		t.Errorf("a folder without an export: %v after %d lines", err, loading)
	}
}

// An address is named as it was given, and the warning speaks of what is missing alone.
func TestServeWarnsOfWhatIsMissing(t *testing.T) {
	open, local := &net.TCPAddr{IP: net.IPv6unspecified, Port: 81}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 81}
	for _, x := range []struct {
		given      string
		at         *net.TCPAddr
		token, tls bool
		want       string
	}{
		{"0.0.0.0:0", open, false, false, "0.0.0.0:81 can be reached from other machines: without a token (--token-file) everybody there can ask, and without TLS (--tls-cert) whoever is in between can read along"},
		{":81", open, true, false, "[::]:81 can be reached from other machines: without TLS (--tls-cert) whoever is in between can read along"},
		{"[::]:81", open, false, true, "[::]:81 can be reached from other machines: without a token (--token-file) everybody there can ask"},
		{"0.0.0.0:81", open, true, true, ""},
		{"127.0.0.1:81", local, false, false, ""},
	} {
		if _, got := reached(x.given, x.at, x.token, x.tls); got != x.want {
			t.Errorf("%s: %q, want %q", x.given, got, x.want)
		}
	}
	if address, _ := reached("localhost:0", local, true, true); address != "localhost:81" {
		t.Error(address)
	}
}

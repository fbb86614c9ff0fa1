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

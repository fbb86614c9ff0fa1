package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/serve"
	"github.com/spf13/cobra"
)

// tokenVar holds the bearer token where no file does.
const tokenVar = "GSRC_TOKEN"

func (a *app) serveCommand() *cobra.Command {
	var o serve.Options
	var web, rpc, tokenFile string
	var provider providerFlags
	var tables tableFlags
	var maxBody, maxAnswer int64
	var logLevel, logFormat string
	var compact bool
	c := &cobra.Command{
		Use: "serve DIR [--data PATH]", Short: "Serve predictions over HTTP and gRPC", Args: cobra.ExactArgs(1),
		Long: `Serve an export by the Open Inference Protocol, version 2, which clients of Triton
and KServe speak. The models encoder, scorer and classifier take graphs as tensors.
With --data there is an online graph: the model nodes answers for its nodes by name, and
with --updates the model update changes it. A reply names the version of
the graph that it belongs to. Prometheus finds its figures at /metrics.

On an interrupt or SIGTERM it answers the requests in progress and ends. A bearer token
is taken from --token-file or the environment variable ` + tokenVar + `; every request but
those for health must then carry it.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := provider.apply(&o.Predict.Provider, &o.Predict.Device, &o.Predict.MemoryLimit); err != nil {
				return err
			}
			switch {
			case web == "" && rpc == "":
				return usage("there is nothing to listen on: give --http or --grpc an address")
			case o.Data == "" && (o.Updates || o.Exact || o.Journal != ""):
				return usage("--updates, --exact and --journal are for an online graph: give one with --data PATH")
			case compact && o.Journal == "":
				return usage("--compact is for a journal: name it with --journal DIR")
			case (o.CertFile == "") != (o.KeyFile == ""):
				return usage("--tls-cert and --tls-key go together")
			case maxBody < 1 || maxBody > 2047:
				return usage("--max-body %d: give 1 to 2047 MiB", maxBody)
			case maxAnswer < 1 || maxAnswer > 1<<20:
				return usage("--max-answer %d: give 1 to 1048576 MiB", maxAnswer)
			case o.Timeout <= 0 || o.Drain < 0 || o.Grace <= 0:
				return usage("--timeout and --grace are positive, --drain not negative")
			}
			if err := tables.applyOther(c, args[0], &o.Predict.Load); err != nil {
				return err
			}
			o.LogWriter = a.logInBackground()
			logger, err := requestLog(a.stderr, logLevel, logFormat)
			if err != nil {
				return err
			}
			o.Dist, o.Log, o.MaxBody, o.MaxAnswer, o.Requests = args[0], a.logf, maxBody<<20, maxAnswer<<20, logger
			for _, address := range []string{web, rpc} {
				if host, _, err := net.SplitHostPort(address); err == nil && host != "" {
					o.AllowedHosts = append(o.AllowedHosts, host)
				}
			}
			o.Token = os.Getenv(tokenVar)
			if tokenFile != "" {
				text, err := os.ReadFile(tokenFile)
				if err != nil {
					return err
				}
				if o.Token = strings.TrimSpace(string(text)); o.Token == "" {
					return fmt.Errorf("%s holds no token", tokenFile)
				}
			}
			if strings.ContainsFunc(o.Token, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
				return fmt.Errorf("the token in %s has a space, a line break or a control character, which no request could carry; put one token without them there", cmp.Or(tokenFile, tokenVar))
			}
			if compact {
				return a.compact(c, &o)
			}
			return a.serve(c, &o, web, rpc)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.Data, "data", "", "online graph: a folder, a file, the name of a fetched data set, or "+data.Synthetic)
	flags.BoolVar(&o.Updates, "updates", false, "let clients change the online graph")
	flags.BoolVar(&o.Exact, "exact", false, "compute the whole graph anew at every update: answers are those of gsrc predict to the bit, and not only within 1e-5")
	flags.Bool("subgraphs", false, "")
	_ = flags.MarkDeprecated("subgraphs", "updates compute only what they reach, unless --exact is given")
	flags.StringVar(&o.Journal, "journal", "", "folder of the journal of updates, which are replayed when the server starts")
	flags.BoolVar(&compact, "compact", false, "fold the journal into a graph, print its folder, and end")
	flags.StringVar(&web, "http", "127.0.0.1:8000", "address for HTTP; empty for none")
	flags.StringVar(&rpc, "grpc", "127.0.0.1:8001", "address for gRPC; empty for none")
	flags.StringVar(&o.CertFile, "tls-cert", "", "PEM file with the certificate; without one there is no TLS")
	flags.StringVar(&o.KeyFile, "tls-key", "", "PEM file with the certificate's key")
	flags.StringVar(&tokenFile, "token-file", "", "file with the bearer token that requests must carry")
	flags.Int64Var(&maxBody, "max-body", 64, "largest body of a request, MiB")
	flags.Int64Var(&maxAnswer, "max-answer", 256, "largest answer, MiB")
	numberFlag(flags, &o.MaxPairs, "max-pairs", 1<<20, 1, "pairs of nodes and neighbours (N times k) that the model pipeline judges in a request")
	numberFlag(flags, &o.MaxConnections, "max-connections", 0, 0, "connections at one time; above that the slowest are closed; 0 for as many as memory and open files allow")
	flags.StringSliceVar(&o.AllowedHosts, "allowed-host", nil, "host name that HTTP clients may use, beside localhost and the machine's name and addresses; * for any")
	flags.StringVar(&logLevel, "log-level", "info", "requests that are logged: info for all, warn for those refused, error for failures, off for none")
	flags.StringVar(&logFormat, "log-format", "text", "form of the log of requests: text or json")
	flags.DurationVar(&o.Timeout, "timeout", 30*time.Second, "how long a request may take")
	numberFlag(flags, &o.MaxRequests, "max-requests", 1024, 1, "inference requests in progress at one time; more are refused")
	numberFlag(flags, &o.Batch, "batch", 1024, 1, "maximum number of nodes answered for together")
	flags.DurationVar(&o.Drain, "drain", time.Second, "how long requests are still accepted after a shutdown was requested")
	flags.DurationVar(&o.Grace, "grace", 23*time.Second, "how long requests in progress may go on after that before they are cut off")
	provider.register(flags)
	numberFlag(flags, &o.Predict.Threads, "threads", 0, 0, "threads of onnxruntime, 0 for one for every second processor")
	tables.registerOther(flags, &o.Predict.Load, "seed of the synthetic graph")
	return c
}

// compact folds a journal into a graph.
func (a *app) compact(c *cobra.Command, o *serve.Options) error {
	if _, err := os.Stat(o.Journal); err != nil {
		return fmt.Errorf("there is no journal: %w", err)
	}
	p := o.Predict
	p.Log = a.logf
	r, err := infer.OpenGraph(c.Context(), o.Dist, o.Data, infer.GraphOptions{PredictOptions: p, ReadOnly: true, Journal: o.Journal})
	if err != nil {
		return err
	}
	defer r.Close()
	path, err := r.Compact()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, path)
	return err
}

// serve answers until the command's context ends.
func (a *app) serve(c *cobra.Command, o *serve.Options, web, rpc string) (err error) {
	// A port that is taken is told at once. Nobody is kept waiting by one that is bound while the graph is read.
	taken, err := listen(web, rpc)
	if err != nil {
		return err
	}
	hangUp(taken)
	var source string
	o.Memory, source = budget.Default()
	a.logf("memory: %s, from %s", budget.Format(o.Memory), source)
	if os.Getenv("GOMEMLIMIT") == "" { // garbage is collected before the memory is used up
		debug.SetMemoryLimit(o.Memory / 8 * 7)
	}
	s, err := serve.New(c.Context(), *o)
	if err != nil {
		return err
	}
	defer func() { // what cannot be ended must not keep the process
		closed := make(chan struct{})
		go func() {
			s.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(time.Second):
		}
	}()
	listeners, err := listen(web, rpc)
	if err != nil {
		return err
	}
	defer hangUp(listeners)
	scheme := "http"
	if o.CertFile != "" {
		scheme = "https"
	}
	for i, given := range []string{web, rpc} {
		if l := listeners[i]; l != nil {
			address, warning := reached(given, l.Addr().(*net.TCPAddr), o.Token != "", o.CertFile != "")
			a.logf("listening on %s://%s", [...]string{scheme, "grpc"}[i], address)
			if warning != "" {
				a.logf("%s", warning)
			}
		}
	}
	err = s.Run(c.Context(), listeners[0], listeners[1])
	var cut *serve.CutError
	switch {
	case errors.As(err, &cut): // the end that was asked for
		a.logf("stopped; %v", cut)
		return nil
	case err == nil || errors.Is(err, net.ErrClosed):
		a.logf("stopped; every request was answered")
	}
	return err
}

// reached returns a listener's address with the host as it was given, and what follows where other machines
// reach it and it has no token or no TLS.
func reached(given string, at *net.TCPAddr, token, tls bool) (address, warning string) {
	address = at.String()
	if host, _, err := net.SplitHostPort(given); err == nil && host != "" {
		address = net.JoinHostPort(host, strconv.Itoa(at.Port))
	}
	var list []string
	if !token {
		list = append(list, "without a token (--token-file) everybody there can ask")
	}
	if !tls {
		list = append(list, "without TLS (--tls-cert) whoever is in between can read along")
	}
	if list != nil && !at.IP.IsLoopback() {
		warning = address + " can be reached from other machines: " + strings.Join(list, ", and ")
	}
	return address, warning
}

// listen binds the addresses that are not empty, or none.
func listen(addresses ...string) (list [2]net.Listener, err error) {
	for i, address := range addresses {
		if address != "" && err == nil {
			list[i], err = net.Listen("tcp", address)
		}
	}
	if err != nil {
		hangUp(list)
	}
	return list, err
}

func hangUp(list [2]net.Listener) {
	for _, l := range list {
		if l != nil {
			l.Close()
		}
	}
}

// requestLog is where requests are logged.
func requestLog(w io.Writer, level, format string) (*slog.Logger, error) {
	levels := map[string]slog.Level{"info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError, "off": slog.LevelError + 1}
	l, ok := levels[level]
	if !ok {
		return nil, usage("--log-level %s: give info, warn, error or off", level)
	}
	o := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, usage("--log-format %s: give text or json", format)
}

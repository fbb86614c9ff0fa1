package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// engine is a runtime and the program that checks exports in it.
type engine struct {
	name, title string
	quick       bool
	needs       []string   // programs of the toolchain; "a|b" is either
	setup       [][]string // commands that install what the program needs
	command     []string   // of the program; the folders follow
	library     bool       // wants ORT_DYLIB_PATH, the shared library of onnxruntime
}

// The folder of the Python environment, which several runtimes share.
const pythonHome = "bin/conformance/python"

var (
	python      = filepath.Join(pythonHome, "bin", "python")
	pythonSetup = [][]string{
		{"python3", "-m", "venv", pythonHome},
		{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "tools/conformance/engines/python/requirements.txt"},
	}
)

func npm(folder string) []string {
	return []string{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder}
}

// cargo is the engine whose program cargo builds of the package in a folder, and runs.
func cargo(e engine, folder string, more ...string) engine {
	flags := append([]string{"--quiet", "--release", "--locked", "--manifest-path", folder + "/Cargo.toml"}, more...)
	e.needs = []string{"cargo"}
	e.setup, e.command = [][]string{append([]string{"cargo", "build"}, flags...)}, append(append([]string{"cargo", "run"}, flags...), "--")
	return e
}

// runtimes is the suite, in the order of its report.
var runtimes = []engine{
	{name: "python", title: "onnxruntime, Python", quick: true, needs: []string{"python3"}, setup: pythonSetup,
		command: []string{python, "tools/conformance/engines/python/check.py", "onnxruntime"}},
	{name: "node", title: "onnxruntime-node", needs: []string{"node", "npm"}, setup: [][]string{npm("tools/conformance/engines/node")},
		command: []string{"node", "tools/conformance/engines/node/check.mjs"}},
	{name: "browser", title: "onnxruntime-web, Chromium", needs: []string{"node", "npm", "chromium|chromium-browser|google-chrome"},
		setup: [][]string{npm("tools/conformance/engines/browser")}, command: []string{"node", "tools/conformance/engines/browser/check.mjs"}},
	{name: "java", title: "onnxruntime, Java", needs: []string{"java", "mvn"},
		setup:   [][]string{{"mvn", "--quiet", "--batch-mode", "--file", "tools/conformance/engines/java/pom.xml", "compile"}},
		command: []string{"java", "-cp", "tools/conformance/engines/java/target/classes:tools/conformance/engines/java/target/lib/*", "Check"}},
	cargo(engine{name: "rust", title: "ort, Rust", library: true}, "tools/conformance/engines/rust", "--features", "ort", "--bin", "ort"),
	{name: "checker", title: "onnx checker", quick: true, needs: []string{"python3"}, setup: pythonSetup,
		command: []string{python, "tools/conformance/engines/python/check.py", "checker"}},
	{name: "reference", title: "onnx reference evaluator", quick: true, needs: []string{"python3"}, setup: pythonSetup,
		command: []string{python, "tools/conformance/engines/python/check.py", "reference"}},
	{name: "openvino", title: "OpenVINO", needs: []string{"python3"},
		setup: append(pythonSetup[:2:2], []string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"-r", "tools/conformance/engines/python/requirements-openvino.txt"}),
		command: []string{python, "tools/conformance/engines/python/check.py", "openvino"}},
	cargo(engine{name: "tract", title: "tract, Rust"}, "tools/conformance/engines/tract"),
}

func names(which func(engine) bool) string {
	var list []string
	for _, r := range runtimes {
		if which(r) {
			list = append(list, r.name)
		}
	}
	return strings.Join(list, ", ")
}

// Statuses of a model in a runtime.
const (
	statusOK    = "ok"
	statusFail  = "FAIL"
	statusLacks = "lacks"
)

type result struct {
	status  string
	text    string // what failed, or what the runtime lacks
	max     float64
	hasMax  bool
	graphs  int
	refused int // faulty graphs that the program's check of edges refused
	byFile  int // those of them that the file itself refused
}

type outcome struct {
	engine
	skipped string // why it did not run; "" if it did
	version string
	env     []string // of the program
	beside  string   // told beside the version
	took    time.Duration
	order   []string
	results map[string]result // by "EXPORT MODEL"
}

// setUp has what became of the commands that have run, "" for well: runtimes share
// folders.
var setUp = map[string]string{}

func (r engine) prepare(ctx context.Context) *outcome {
	o := &outcome{engine: r, results: map[string]result{}, env: os.Environ()}
	for _, need := range r.needs {
		if !onPath(need) {
			o.skipped = "there is no " + strings.ReplaceAll(need, "|", " or ") + " on this machine"
			return o
		}
	}
	if r.library {
		lib, err := ort.Ensure(ctx, logf)
		if err != nil {
			o.skipped = "onnxruntime: " + err.Error()
			return o
		}
		o.env, o.beside = append(o.env, "ORT_DYLIB_PATH="+lib.Path), ", onnxruntime "+lib.Version
	}
	for _, command := range r.setup {
		line := strings.Join(command, " ")
		failure, ran := setUp[line]
		if !ran {
			logf("%s: %s", r.name, line)
			if said, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
				failure = fmt.Sprintf("%q: %v: %s", line, err, lastLine(string(said)))
			}
			setUp[line] = failure
		}
		if failure != "" {
			o.skipped = failure
			return o
		}
	}
	return o
}

func (o *outcome) execute(ctx context.Context, folders []string) {
	start := time.Now()
	c := exec.CommandContext(ctx, o.command[0], append(o.command[1:len(o.command):len(o.command)], folders...)...)
	c.Env, c.Stderr = o.env, os.Stderr
	pipe, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		o.add("the program", "", result{status: statusFail, text: err.Error()})
		return
	}
	readErr := o.read(pipe)
	o.version += o.beside
	err = errors.Join(readErr, c.Wait())
	o.took = time.Since(start)
	if err != nil && o.failures() == 0 {
		o.add("the program", "", result{status: statusFail, text: err.Error()})
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// onPath finds one of several programs.
func onPath(names string) bool {
	return slices.ContainsFunc(strings.Split(names, "|"), func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}

// read takes the lines of a program: "runtime NAME VERSION", then for each model
// "EXPORT MODEL STATUS …", where what follows ok is key=value, and what follows FAIL and
// lacks a text. Other lines are passed on.
func (o *outcome) read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		line := lines.Text()
		if version, ok := strings.CutPrefix(line, "runtime "); ok {
			o.version = version
			continue
		}
		fields := strings.SplitN(line, " ", 4)
		if len(fields) < 3 {
			logf("%s", line)
			continue
		}
		r := result{status: fields[2]}
		rest := ""
		if len(fields) == 4 {
			rest = fields[3]
		}
		switch r.status {
		case statusFail, statusLacks:
			r.text = rest
		case statusOK:
			if err := r.values(rest); err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
		default:
			logf("%s", line)
			continue
		}
		o.add(fields[0], fields[1], r)
	}
	return lines.Err()
}

func (o *outcome) add(dist, model string, r result) {
	key := strings.TrimSpace(dist + " " + model)
	o.order = append(o.order, key)
	o.results[key] = r
}

// values reads what follows ok.
func (r *result) values(text string) error {
	counts := map[string]*int{"graphs": &r.graphs, "refused": &r.refused, "by_file": &r.byFile}
	for _, pair := range strings.Fields(text) {
		key, value, _ := strings.Cut(pair, "=")
		var err error
		if n := counts[key]; n != nil {
			*n, err = strconv.Atoi(value)
		} else if r.hasMax = key == "max_abs"; r.hasMax {
			r.max, err = strconv.ParseFloat(value, 64)
		} else {
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *outcome) failures() int {
	n := 0
	for _, r := range o.results {
		if r.status == statusFail {
			n++
		}
	}
	return n
}

// print shows what happened, a line for each model.
func (o *outcome) print(w io.Writer) {
	if o.skipped != "" {
		fmt.Fprintf(w, "%s: left out, %s\n", o.title, o.skipped)
		return
	}
	fmt.Fprintf(w, "%s (%s), %.1f s\n", o.title, o.version, o.took.Seconds())
	for _, key := range o.order {
		r := o.results[key]
		text := r.text
		if r.status == statusOK && r.hasMax {
			text = fmt.Sprintf("max error %.2e on %d graphs, %d faulty ones refused", r.max, r.graphs, r.refused)
		}
		fmt.Fprintf(w, "  %-32s %-5s %s\n", key, r.status, text)
	}
}

package main

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/data/catalog"
	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/internal/mockdriver"
	"github.com/gsrc-dev/gsrc/internal/seal"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
	"github.com/rogpeppe/go-internal/testscript"
)

// exits CODE gsrc ARGS… runs a command line that must end with exactly this
// exit code. What it printed is for stdout and stderr to check; an error must
// be told in plain words and not by a panic or a usage dump.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	text := ts.ReadFile("stderr")
	for _, bad := range []string{"panic:", "goroutine ", "Available Commands"} {
		if strings.Contains(text, bad) {
			ts.Fatalf("stderr contains %q", bad)
		}
	}
	if want == 1 || want == 2 {
		if !strings.Contains(text, "gsrc: ") {
			ts.Fatalf("stderr has no line of the error")
		}
	}
}

// jsonlines N [KEY…] checks that the last command's standard output is N lines
// of JSON objects and nothing else, and that the first has these keys.
func jsonLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: jsonlines N [KEY…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n")
	if len(lines) != want {
		ts.Fatalf("%d lines, want %d", len(lines), want)
	}
	for i, line := range lines {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			ts.Fatalf("line %d is not a JSON object: %v", i+1, err)
		}
		if i > 0 {
			continue
		}
		for _, key := range args[1:] {
			if _, ok := object[key]; !ok {
				ts.Fatalf("no key %q; there are %q", key, slices.Sorted(maps.Keys(object)))
			}
		}
	}
}

// swap FROM TO FILE puts the file of one export into another and makes the
// manifest say so, as a faulty exporter would.
func swap(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: swap FROM TO FILE")
	}
	var files [2]map[string]any
	var manifests [2]map[string]any
	for i, dir := range args[:2] {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(filepath.Join(dir, "manifest.json"))), &manifests[i]))
		files[i] = manifests[i]["files"].(map[string]any)
	}
	files[1][args[2]] = files[0][args[2]]
	manifests[1]["config_hash"], manifests[1]["checksum"] = manifests[0]["config_hash"], seal.Blank
	text, err := json.Marshal(manifests[1])
	ts.Check(err)
	seal.Stamp(text)
	to := ts.MkAbs(args[1])
	ts.Check(os.WriteFile(filepath.Join(to, "manifest.json"), text, 0o644))
	ts.Check(os.WriteFile(filepath.Join(to, args[2]), []byte(ts.ReadFile(filepath.Join(args[0], args[2]))), 0o644))
}

// interrupt CODE FILE COMMAND ARGS… starts a command, sends it an interrupt once
// the file (or one that the pattern matches) has content, and checks its exit
// code. What it printed is for stdout and stderr to check.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt CODE FILE COMMAND ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	file := ts.MkAbs(args[1])
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 3000 {
			found, _ := filepath.Glob(file)
			if slices.ContainsFunc(found, func(path string) bool {
				info, err := os.Stat(path)
				return err == nil && info.Size() > 0
			}) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	program, err := lookPath(ts.Getenv("PATH"), args[2])
	ts.Check(err)
	cmd := exec.Command(program, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "TMPDIR=" + ts.Getenv("TMPDIR")}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	ts.Check(cmd.Start())
	<-done
	ts.Check(cmd.Process.Signal(os.Interrupt))
	err = cmd.Wait()
	fmt.Fprint(ts.Stdout(), stdout.String())
	fmt.Fprint(ts.Stderr(), stderr.String())
	var failed *exec.ExitError
	if !errors.As(err, &failed) || failed.ExitCode() != want {
		ts.Fatalf("%v, want exit code %d; stderr: %s", err, want, stderr.String())
	}
}

// untimed TABLE OUT writes a table of a sweep without its last column, which is of
// times.
func untimed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: untimed TABLE OUT")
	}
	rows, err := csv.NewReader(strings.NewReader(ts.ReadFile(args[0]))).ReadAll()
	ts.Check(err)
	if last := rows[0][len(rows[0])-1]; last != "seconds" {
		ts.Fatalf("the last column is %s", last)
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(strings.Join(row[:len(row)-1], ",") + "\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(b.String()), 0o644))
}

func lookPath(path, name string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return filepath.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("no %s in PATH", name)
}

// mirror DIR serves a folder over HTTP until the script ends and sets
// GSRC_DATA_MIRROR to it. A folder whose name ends in .zip is served as an archive
// of its files.
func mirror(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mirror DIR")
	}
	root := ts.MkAbs(args[0])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := filepath.Join(root, filepath.FromSlash(r.URL.Path))
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			http.ServeFile(w, r, path)
			return
		}
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		if err := errors.Join(z.AddFS(os.DirFS(path)), z.Close()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b.Bytes()))
	}))
	ts.Defer(server.Close)
	ts.Setenv(catalog.MirrorVar, server.URL)
}

// useMockDriver has the script's commands find the mock driver for NVIDIA's driver. With the
// argument clean it asks what the commands since then did: they must have taken a
// device, left nothing in it, and used the driver without a violation.
func useMockDriver(ts *testscript.TestScript, neg bool, args []string) {
	report := filepath.Join(ts.Getenv("WORK"), "mock.txt")
	if len(args) == 1 && args[0] == "clean" && !neg {
		text, err := os.ReadFile(report)
		ts.Check(err)
		taken, left := strings.Count(string(text), "taken\n"), strings.Count(string(text), "released, 0 left\n")
		if taken == 0 || taken != left || strings.Contains(string(text), "violation: ") {
			ts.Fatalf("the mock driver reports:\n%s", text)
		}
		ts.Check(os.Remove(report))
		return
	}
	if len(args) > 0 || neg {
		ts.Fatalf("usage: mock [clean]")
	}
	path, err := cudatest.Build()
	ts.Check(err)
	ts.Setenv(driver.Variable, path)
	ts.Setenv(driver.BLASVariable, mockdriver.BLAS(path))
	ts.Setenv("GSRC_MOCKDRIVER_REPORT", report)
}

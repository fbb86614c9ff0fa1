// Command testcount reads the output of "go test -json" and prints what people
// want of it: the output of what failed, a line for each package, and last
//
//	N passed, N failed, N skipped
//
// Tests count, with their subtests; benchmarks and fuzz targets count as the
// tests that they run as. A package that does not build or dies outside of a
// test counts as one failure. The exit code is 1 if anything failed or if no
// test ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	ok, err := count(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// event is a line of test2json; see "go doc test2json". Build output has
// ImportPath in place of Package.
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Elapsed                                                float64
}

func count(r io.Reader, w io.Writer) (ok bool, err error) {
	tests := map[string]int{}          // by what became of them: pass, fail or skip
	output := map[[2]string][]string{} // of a package's test
	builds := map[string][]string{}    // of what does not build
	failedTests := map[string]int{}    // of a package
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if err != nil && err != io.EOF {
			return false, err
		}
		if strings.TrimSpace(line) != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				// The go command speaks plainly about what stops it.
				fmt.Fprint(w, line)
				tests["fail"]++
				continue
			}
			key := [2]string{e.Package, e.Test}
			switch e.Action {
			case "output":
				output[key] = append(output[key], e.Output)
			case "build-output":
				builds[e.ImportPath] = append(builds[e.ImportPath], e.Output)
			case "pass", "fail", "skip":
				if e.Action == "fail" {
					failedTests[e.Package]++
					for _, text := range append(builds[e.FailedBuild], output[key]...) {
						fmt.Fprint(w, text)
					}
					delete(builds, e.FailedBuild)
				}
				delete(output, key)
				if e.Test != "" {
					tests[e.Action]++
					continue
				}
				if e.Action == "fail" && failedTests[e.Package] == 1 {
					tests["fail"]++ // the package itself and none of its tests
				}
				if e.Action != "skip" { // skip: no test files
					fmt.Fprintf(w, "%-4s %s %.1fs\n", e.Action, e.Package, e.Elapsed)
				}
			}
		}
		if err == io.EOF {
			break
		}
	}
	if len(tests) == 0 {
		fmt.Fprintln(w, "no test ran")
		tests["fail"]++
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", tests["pass"], tests["fail"], tests["skip"])
	return tests["fail"] == 0, nil
}

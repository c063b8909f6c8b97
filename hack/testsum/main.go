// Command testsum reads the output of one or more `go test -json` on standard input. It prints a line
// for each package, the whole output of what failed, and last a line like "12 passed, 0 failed, 1
// skipped". It exits with 1 if anything failed, a build or a panic included.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// event is a line of test2json, or of a build that failed.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// summary keeps the output of what is still running or has failed.
type summary struct {
	passed, failed, skipped int
	output                  map[string]*strings.Builder
	// broken are packages of which a test failed, so that the package's own failure is no news.
	broken map[string]bool
}

func main() {
	s := summary{output: map[string]*strings.Builder{}, broken: map[string]bool{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			fmt.Println(in.Text()) // make, or the go command itself
			continue
		}
		s.take(e)
	}
	if err := in.Err(); err != nil {
		fmt.Println("read test results:", err)
		s.failed++
	}
	if s.passed+s.failed == 0 {
		fmt.Println("no test ran")
		s.failed++
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	if s.failed > 0 {
		os.Exit(1)
	}
}

func (s *summary) take(e event) {
	name := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if e.Action == "build-output" {
			name = e.ImportPath
		}
		if s.output[name] == nil {
			s.output[name] = &strings.Builder{}
		}
		s.output[name].WriteString(e.Output)
		return
	case "build-fail":
		s.show("FAIL", e.ImportPath, e.ImportPath)
		return
	case "pass", "fail", "skip":
		s.end(e, name)
	}
}

// end counts a test; a package counts only where it failed without a failed test.
func (s *summary) end(e event, name string) {
	switch {
	case e.Action == "fail" && (e.Test != "" || !s.broken[e.Package]):
		s.failed++
		s.broken[e.Package] = true
		s.show("FAIL", strings.TrimSpace(name), name)
	case e.Test == "":
		fmt.Printf("%-4s %s (%.1fs)\n", e.Action, e.Package, e.Elapsed)
		s.broken[e.Package] = false
	case e.Action == "pass":
		s.passed++
	case e.Action == "skip":
		s.skipped++
	}
	delete(s.output, name)
}

func (s *summary) show(what, title, name string) {
	fmt.Printf("--- %s: %s\n", what, title)
	if out := s.output[name]; out != nil {
		fmt.Print(out.String())
	}
}

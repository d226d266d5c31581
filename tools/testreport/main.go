// Command testreport reads the output of go test -json and tells people what
// happened: a line a package, the whole output of what failed, the names of what
// was skipped, and last a line of counts. It exits 1 if anything failed.
//
//	go test -json ./... | testreport [COUNTS]
//
// With COUNTS it writes "passed failed skipped" to that file too.
//
// A test is counted once: one with subtests counts through them, and by itself
// only if it failed where none of them did. A package that fails outside its tests
// (it does not build, panics, leaks a goroutine, runs out of time) counts as one
// failure.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	var c counts
	err := func() (err error) {
		if c, err = report(os.Stdin, os.Stdout); err != nil || len(os.Args) < 2 {
			return err
		}
		return os.WriteFile(os.Args[1], fmt.Appendln(nil, c.passed, c.failed, c.skipped), 0o644)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if c.failed > 0 {
		os.Exit(1)
	}
}

type counts struct{ passed, failed, skipped int }

// An event is a line of go test -json; see go doc test2json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of what go build reports on
	FailedBuild string
	Test        string
	Elapsed     float64
	Output      string
}

// A pkg is what is known of a package whose tests run.
type pkg struct {
	tests  map[string]*test
	order  []*test
	output strings.Builder // outside its tests
}

type test struct {
	name   string
	action string // pass, fail or skip; empty: never ended
	output strings.Builder
	parent bool
}

// report copies the news from in to out and counts.
func report(in io.Reader, out io.Writer) (counts, error) {
	var total counts
	packages := map[string]*pkg{}
	builds := map[string]*strings.Builder{}
	events := 0

	lines := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(out, line) // the go command's own words
			} else {
				events++
				if e.Package == "" { // about a build
					if builds[e.ImportPath] == nil {
						builds[e.ImportPath] = &strings.Builder{}
					}
					builds[e.ImportPath].WriteString(e.Output)
				} else {
					p := packages[e.Package]
					if p == nil {
						p = &pkg{tests: map[string]*test{}}
						packages[e.Package] = p
					}
					if p.take(e) {
						c := p.end(e, builds[e.FailedBuild], out)
						total.passed += c.passed
						total.failed += c.failed
						total.skipped += c.skipped
						delete(packages, e.Package)
					}
				}
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return total, err
		}
	}
	// Cut off: what never ended has failed.
	for _, name := range sorted(packages) {
		c := packages[name].end(event{Action: "fail", Package: name}, nil, out)
		total.passed += c.passed
		total.failed += max(c.failed, 1)
		total.skipped += c.skipped
	}
	if events == 0 {
		return total, errors.New("no test output: did go test -json start?")
	}
	fmt.Fprintf(out, "tests: %d passed, %d failed, %d skipped\n", total.passed, total.failed, total.skipped)
	return total, nil
}

// take records an event and reports whether it ends the package.
func (p *pkg) take(e event) bool {
	ends := e.Action == "pass" || e.Action == "fail" || e.Action == "skip"
	if e.Test == "" {
		p.output.WriteString(e.Output)
		return ends
	}
	t := p.tests[e.Test]
	if t == nil {
		t = &test{name: e.Test}
		p.tests[e.Test] = t
		p.order = append(p.order, t)
		if i := strings.LastIndexByte(e.Test, '/'); i > 0 && p.tests[e.Test[:i]] != nil {
			p.tests[e.Test[:i]].parent = true
		}
	}
	t.output.WriteString(e.Output)
	if ends {
		t.action = e.Action
	}
	return false
}

// end counts a package's tests and prints what matters of them.
func (p *pkg) end(e event, build *strings.Builder, out io.Writer) counts {
	var c counts
	var skipped []string
	for _, t := range p.order {
		switch {
		case t.action == "fail" || t.action == "":
			fmt.Fprint(out, t.output.String())
			if !p.failedBelow(t) {
				c.failed++
			}
		case t.parent: // counted through its subtests
		case t.action == "skip":
			c.skipped++
			skipped = append(skipped, t.name)
		default:
			c.passed++
		}
	}
	if e.Action == "fail" && c.failed == 0 {
		c.failed++
		if build != nil {
			fmt.Fprint(out, build.String())
		}
	}
	switch {
	case e.Action == "fail":
		fmt.Fprint(out, p.output.String())
		fmt.Fprintf(out, "FAIL %s: %d passed, %d failed, %d skipped (%.1f s)\n", e.Package, c.passed, c.failed, c.skipped, e.Elapsed)
	case len(p.order) > 0:
		fmt.Fprintf(out, "ok   %s: %d passed, %d skipped (%.1f s)\n", e.Package, c.passed, c.skipped, e.Elapsed)
	}
	for _, name := range skipped {
		fmt.Fprintf(out, "     skipped: %s\n", name)
	}
	return c
}

func (p *pkg) failedBelow(t *test) bool {
	return slices.ContainsFunc(p.order, func(sub *test) bool {
		return strings.HasPrefix(sub.name, t.name+"/") && sub.action != "pass" && sub.action != "skip"
	})
}

func sorted(m map[string]*pkg) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Command testonly reports what no program uses: functions, methods, types, variables and constants of the product
// that only tests and test kits refer to, or that nothing refers to.
//
//	testonly [DIR]   reports file:line of each such declaration in a checkout, and exits 1 if there is any
//
// It starts at the main functions of pkg, cmd and examples, and follows references from declaration to declaration.
// So a function that only an unused one calls is reported too. A method counts as used with its type if an interface
// has a method of its name, or if a library calls it by its name. A value of an enum counts as used. A name in a
// file for another system, or with another build tag, counts as used in its package.
//
// A package that no program imports is a kit if its name ends in test, and is not checked. Any other package is
// reported. allowed.txt names exceptions.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/harnessmesh/harnessmesh"

// generators are packages that tests run to write files of the repository. What they use is used.
var generators = []string{"cmd/harness/internal/schemagen"}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testonly:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	var dir string
	switch len(args) {
	case 0:
		top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
		if err != nil {
			return fmt.Errorf("find the repository: %w", err)
		}
		dir = strings.TrimSpace(string(top))
	case 1:
		dir = args[0]
	default:
		return errors.New("expected at most a directory")
	}
	return check(dir, allowedFile, out)
}

// check reports the unused declarations of a checkout that a list does not name, and names that the list need not have.
func check(dir, list string, out io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	loaded, err := packages.Load(&packages.Config{
		Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile,
	}, "./pkg/...", "./services/...", "./cmd/...", "./examples/...")
	if err != nil {
		return err
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			return fmt.Errorf("load %s: %w", p.PkgPath, e)
		}
	}
	g, err := newGraph(loaded)
	if err != nil {
		return err
	}
	allowed, err := readAllowed(list)
	if err != nil {
		return err
	}
	var reports []string
	for _, u := range g.unused() {
		if allowed[u.name] {
			delete(allowed, u.name)
			continue
		}
		at := loaded[0].Fset.Position(u.pos)
		file, err := filepath.Rel(dir, at.Filename)
		if err != nil {
			return err
		}
		reports = append(reports, fmt.Sprintf("%s:%d: %s is used by no program", file, at.Line, u.name))
	}
	for name := range allowed {
		reports = append(reports, "tools/testonly/allowed.txt: "+name+": not needed")
	}
	if len(reports) == 0 {
		return nil
	}
	slices.Sort(reports)
	for _, r := range reports {
		fmt.Fprintln(out, r)
	}
	return fmt.Errorf("%d findings; delete what only tests use, or move it to a test, to export_test.go or to test/kit", len(reports))
}

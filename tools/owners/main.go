// Command owners checks which packages write the state of a run: each field of harness.v1.Snapshot has the
// writers that the views in pkg/runstate/owner.go name, and no other package assigns it.
//
//	owners [DIR]   reports file:line of each other assignment in a checkout, and exits 1 if there is any
//
// An assignment is one to the field, to a value reached through it (s.Turn.Open, s.GetTurn().Open,
// s.Children[i]) or by a getter of a view, or through a local variable that was set to that; a literal of a snapshot; and
// the address of a field. Arguments and results of functions are not followed: a write to a
// pending call that AwaitedCalls returned is not reported. Tests and test kits may write everything.
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

const (
	module   = "github.com/harnessmesh/harnessmesh"
	messages = module + "/pkg/gen/harness/v1"
	rules    = "pkg/runstate"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "owners:", err)
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
	return check(dir, out)
}

// check reports the writes in a checkout to fields of other owners.
func check(dir string, out io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	loaded, err := packages.Load(&packages.Config{
		Dir: dir,
		Mode: packages.NeedName | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedExportFile,
	}, "./pkg/...", "./services/...", "./cmd/...")
	if err != nil {
		return err
	}
	var owners *ownership
	for _, p := range loaded {
		for _, e := range p.Errors {
			return fmt.Errorf("load %s: %w", p.PkgPath, e)
		}
		if p.PkgPath == module+"/"+rules {
			if owners, err = ownershipIn(p.Syntax, p.Fset); err != nil {
				return err
			}
		}
	}
	if owners == nil {
		return errors.New(rules + " not found")
	}
	var reports []string
	for _, p := range loaded {
		room := strings.TrimPrefix(p.PkgPath, module+"/")
		if room == rules || strings.HasSuffix(room, "test") || p.PkgPath == messages {
			continue
		}
		for _, w := range writesIn(p.Syntax, p.TypesInfo) {
			why := owners.refuse(w.field, room)
			if why == "" {
				continue
			}
			at := p.Fset.Position(w.pos)
			file, err := filepath.Rel(dir, at.Filename)
			if err != nil {
				return err
			}
			reports = append(reports, fmt.Sprintf("%s:%d: %s", file, at.Line, why))
		}
	}
	if len(reports) == 0 {
		return nil
	}
	slices.Sort(reports)
	for _, r := range slices.Compact(reports) {
		fmt.Fprintln(out, r)
	}
	return fmt.Errorf("%d writes to fields of other owners; call a function of %s, or change its owner.go", len(reports), rules)
}

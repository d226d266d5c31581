//go:build linux && usable

package usable

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	only    = flag.String("projects", "", "the names of the projects to try, separated by commas; empty: all")
	limit   = flag.Duration("limit", 3*time.Minute, "time limit of each command")
	folder  = flag.String("dir", "/var/tmp", "the folder for sources and caches; commands have another /tmp")
	keep    = flag.String("results", "", "a file for the results, which replace older ones of the same commands")
	absent  = flag.Bool("missing", false, "try only commands without a valid result in the file for results")
	update  = flag.Bool("update", false, "write the results into docs/sandbox.md")
	verbose = flag.Bool("outputs", false, "print the outputs of commands that differ")
)

// least is the share of commands that must behave in the sandbox as outside, in percent.
const least = 98

// result compares a command in the sandbox with the same one outside.
type result struct {
	Project string `json:"project"`
	Command string `json:"command"`
	Network bool   `json:"network"`
	// Different is what differs; empty: it behaves as outside.
	Different string `json:"different,omitempty"`
	// Invalid is why the command proves nothing; empty: it does.
	Invalid string        `json:"invalid,omitempty"`
	Outside time.Duration `json:"outside"`
	Full    time.Duration `json:"full"`
}

// TestProjects compares each command of each project.
func TestProjects(t *testing.T) {
	projects := readProjects(t)
	hosts := registries(t)
	dir, err := os.MkdirTemp(*folder, "harness-usable-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := remove(dir); err != nil {
			t.Error(err)
		}
	}()
	enterHome(t, filepath.Join(dir, "home"))
	results := readResults(t, projects)
	for _, p := range projects {
		if *absent {
			p.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(l line) bool {
				return slices.ContainsFunc(results, result{Project: p.Name, Command: l.Run}.sameCommand)
			})
		}
		if len(p.Commands) == 0 || *only != "" && !slices.Contains(strings.Split(*only, ","), p.Name) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			c := comparison{t: t, project: p, hosts: hosts, dir: filepath.Join(dir, p.Name)}
			results = merge(t, results, c.run())
		})
	}
	report(t, projects, results)
}

// comparison compares the commands of one project.
type comparison struct {
	t       *testing.T
	project project
	hosts   map[string][]string
	dir     string
	tree    *tree
}

func (c *comparison) run() (results []result) {
	defer func() {
		if err := remove(c.dir); err != nil {
			c.t.Error(err)
		}
	}()
	work := filepath.Join(c.dir, "work")
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		c.t.Fatal(err)
	}
	began := time.Now()
	c.project.fetch(c.t, work)
	fmt.Printf("%s %s is set up (%.0f s)\n", c.project.Name, c.project.Version, time.Since(began).Seconds())
	var err error
	if c.tree, err = newTree(work, filepath.Join(c.dir, "copy")); err != nil {
		c.t.Fatal(err)
	}
	for i, l := range c.project.Commands {
		r := c.compare(l)
		verdict := cmp.Or(r.Invalid, r.Different, "same")
		fmt.Printf("%s %d/%d (%.1f s, outside %.1f s) %s: %s\n", c.project.Name, i+1, len(c.project.Commands), r.Full.Seconds(), r.Outside.Seconds(), l.Run, verdict)
		if r.Invalid != "" {
			c.t.Errorf("%s: %s", l.Run, r.Invalid)
		}
		results = append(results, r)
	}
	return results
}

// trial is what one run of a command did.
type trial struct {
	outcome
	changes []string
}

// compare runs a command in the sandbox and outside. The sandbox comes first, so that it finds
// nothing in the caches that the run outside has put there.
func (c *comparison) compare(l line) result {
	r := result{Project: c.project.Name, Command: l.Run, Network: l.Network != ""}
	full, out := c.full(l), c.outside(l)
	r.Full, r.Outside = full.took, out.took
	if full.code == out.code && slices.Equal(full.changes, out.changes) && out.code == 0 {
		return r
	}
	again := c.outside(l)
	switch {
	case out.code != 0 || again.code != 0:
		r.Invalid = fmt.Sprintf("it fails outside (exit codes %d and %d)", out.code, again.code)
		if *verbose {
			fmt.Println(tail(out.output))
		}
	case full.code != out.code:
		r.Different = fmt.Sprintf("exit code %d", full.code)
	default:
		r.Different = differentFiles(full.changes, out.changes, again.changes)
	}
	if *verbose && r.Different != "" {
		fmt.Printf("---- full: exit code %d\n%s\n---- outside: exit code %d\n%s\n----\n", full.code, tail(full.output), out.code, tail(out.output))
	}
	return r
}

func (c *comparison) full(l line) trial {
	c.t.Helper()
	var hosts []string
	for kind := range strings.FieldsSeq(l.Network) {
		hosts = append(hosts, c.hosts[kind]...)
	}
	data := filepath.Join(c.dir, "data")
	host := newToolHost(c.t, data, private(c.t, hosts))
	defer host.close(c.t, data)
	return c.after(host.run(c.t, c.tree.dir, l.Run, hosts, *limit))
}

func (c *comparison) outside(l line) trial {
	c.t.Helper()
	tried := c.after(outside(c.t, c.tree.dir, l.Run, *limit))
	if c.project.Registry == "go" { // it would not run tests again that have passed
		if o := outside(c.t, c.tree.dir, "go clean -testcache", patience); o.code != 0 {
			c.t.Fatal(o.output)
		}
	}
	return tried
}

// after collects what a command has changed, and puts the tree back.
func (c *comparison) after(o outcome) trial {
	c.t.Helper()
	changes, err := c.tree.changes()
	if err = errors.Join(err, c.tree.restore()); err != nil {
		c.t.Fatal(err)
	}
	return trial{o, changes}
}

// differentFiles returns which changes differ, of those that are the same in both runs outside.
// A folder with files that differ between these is left out.
func differentFiles(full, out, again []string) string {
	varying := map[string]bool{}
	for _, name := range slices.Concat(without(out, again), without(again, out)) {
		varying[name[1:]] = true
		if folder := path.Dir(name[1:]); folder != "." {
			varying[folder] = true
		}
	}
	var different []string
	for mark, names := range map[string][]string{"only in the sandbox": without(full, out), "only outside": without(out, full)} {
		for _, name := range names {
			if !below(varying, name[1:]) {
				different = append(different, name+" "+mark)
			}
		}
	}
	slices.Sort(different)
	if len(different) > 5 {
		different = append(different[:5], fmt.Sprintf("%d more", len(different)-5))
	}
	return strings.Join(different, ", ")
}

// without returns the names of the first list that are not in the second.
func without(first, second []string) []string {
	return slices.DeleteFunc(slices.Clone(first), func(name string) bool { return slices.Contains(second, name) })
}

// below reports whether a file or one of its folders is in a set.
func below(set map[string]bool, name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if set[name] {
			return true
		}
	}
	return false
}

// Package docs holds the pages to the code: the numbers that they name, the
// rooms of the architecture, and a row for each field of an agent file.
package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// page returns a text of the repository, by its path from here.
func page(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestNumbersAreThoseOfTheCode: a number that can be counted is right wherever a page names it.
// A page that no longer names it leaves the list.
func TestNumbersAreThoseOfTheCode(t *testing.T) {
	points := 0
	for _, role := range workflow.Roles() {
		points += len(failpoint.Points(role))
	}
	for _, c := range []struct {
		what  string
		n     int
		form  string // a regular expression whose group is the number
		pages []string
	}{
		{"kill points (pkg/failpoint)", points, `(\d+) named points`, []string{"../README.md", "architecture.md"}},
		{"built-in providers (pkg/model/catalogue)", len(catalogue.Default().Providers()), `(\d+) providers are built in`, []string{"../README.md"}},
		{"mutations (test/simulation)", len(inFiles(t, "../test/simulation/*_test.go", `(?m)^\t\{name: "`)), `each of (\d+) broken rules`, []string{"simulator.md"}},
		{"prompts of a namespace (pkg/profile)", constant(t, "../pkg/profile/prompt.go", "maxPrompts"), `a namespace (\d+) of them`, []string{"quality.md"}},
	} {
		form := regexp.MustCompile(c.form)
		for _, file := range append(files(t, "*.md"), "../README.md", "../CONTRIBUTING.md") {
			found := form.FindAllStringSubmatch(page(t, file), -1)
			if len(found) == 0 && slices.Contains(c.pages, file) {
				t.Errorf("%s does not name the number of %s: remove the page from this test", file, c.what)
			}
			for _, m := range found {
				if m[1] != fmt.Sprint(c.n) {
					t.Errorf("%s: %q, but there are %d %s", file, m[0], c.n, c.what)
				}
			}
		}
	}
}

// inFiles returns the matches of a regular expression in files.
func inFiles(t *testing.T, pattern, form string) []string {
	t.Helper()
	var found []string
	for _, file := range files(t, pattern) {
		found = append(found, regexp.MustCompile(form).FindAllString(page(t, file), -1)...)
	}
	return found
}

// constant returns the number of a constant in a file of Go.
func constant(t *testing.T, file, name string) int {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\s*` + name + `\s+= (\d+)\b`).FindStringSubmatch(page(t, file))
	if m == nil {
		t.Fatalf("%s has no constant %s", file, name)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestProvidersWithTwoWires: models.md names them.
func TestProvidersWithTwoWires(t *testing.T) {
	var names []string
	for _, p := range catalogue.Default().Providers() {
		if len(p.Wires) > 1 {
			names = append(names, "`"+p.Name+"`")
		}
	}
	last := len(names) - 1
	if want := strings.Join(names[:last], ", ") + " and " + names[last] + " have two wires"; !strings.Contains(page(t, "models.md"), want) {
		t.Errorf("models.md does not have: %s", want)
	}
}

// TestPictureHasEveryLayer: the picture of the stop decision has the layers of the table.
func TestPictureHasEveryLayer(t *testing.T) {
	_, table, _ := strings.Cut(page(t, "architecture.md"), "| layer | condition | outcome |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	layers := func(text, form string) []string {
		var found []string
		for _, m := range regexp.MustCompile(form).FindAllStringSubmatch(text, -1) {
			found = append(found, m[1])
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	want := layers(table, `(?m)^\| (\w+) \|`)
	if drawn := layers(page(t, "img/stop.svg"), `<text class="n"[^>]*>(\w+)</text>`); !slices.Equal(drawn, want) || len(want) == 0 {
		t.Errorf("img/stop.svg has the layers %v, the table %v", drawn, want)
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	return found
}

// row finds the first cell of a row of a table, and name the names in it.
var (
	row  = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)
	name = regexp.MustCompile("`([^`]+)`")
)

// rows returns the names in the first cells of the table that follows a header.
func rows(t *testing.T, text, header string) []string {
	t.Helper()
	_, table, ok := strings.Cut(text, "\n"+header)
	if !ok {
		t.Fatalf("there is no table %q", header)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var names []string
	for _, r := range row.FindAllStringSubmatch(table, -1) {
		for _, m := range name.FindAllStringSubmatch(r[1], -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// TestArchitectureHasEveryRoom: each folder of pkg, of services and of the tool host has its row, and each row its
// folder.
func TestArchitectureHasEveryRoom(t *testing.T) {
	text := page(t, "architecture.md")
	for _, c := range []struct{ folder, header string }{
		{"../pkg", "| room of `pkg/` |"},
		{"../services", "| room of `services/` |"},
		{"../services/toolhost/toolhostserver", "| room of `services/toolhost/toolhostserver/` |"},
	} {
		named := rows(t, text, c.header)
		entries, err := os.ReadDir(c.folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() && e.Name() != "gen" && !slices.Contains(named, e.Name()) {
				t.Errorf("architecture.md: the table %q has no row for %s/%s", c.header, c.folder, e.Name())
			}
		}
		for _, room := range named {
			if info, err := os.Stat(filepath.Join(c.folder, room)); err != nil || !info.IsDir() {
				t.Errorf("architecture.md: %s/%s does not exist", c.folder, room)
			}
		}
	}
}

// TestPathsExist: each path of the repository that CONTRIBUTING or the architecture names exists,
// without those that have a NAME to replace.
func TestPathsExist(t *testing.T) {
	path := regexp.MustCompile("`((?:cmd|pkg|services|test|tools|docs|deploy|bench|examples|proto)/[A-Za-z0-9_/.*-]+)`")
	for _, file := range []string{"../CONTRIBUTING.md", "../README.md", "architecture.md"} {
		for _, m := range path.FindAllStringSubmatch(page(t, file), -1) {
			if strings.Contains(m[1], "NAME") || strings.Contains(m[1], "PROVIDER") {
				continue
			}
			if found, err := filepath.Glob("../" + m[1]); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which does not exist", file, m[1])
			}
		}
	}
}

// TestAgentFileFieldsAreDocumented: each field of an agent file has its row in agent.md, and
// each field of its sections is named on a page.
func TestAgentFileFieldsAreDocumented(t *testing.T) {
	type object struct{ Properties map[string]any }
	var schema struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(page(t, "../schemas/agent.json")), &schema); err != nil {
		t.Fatal(err)
	}
	fields := rows(t, page(t, "agent.md"), "| field | type | default | meaning |")
	for _, field := range slices.Sorted(maps.Keys(schema.Properties)) {
		if !slices.Contains(fields, field) {
			t.Errorf("agent.md: the table of fields has no row for %s", field)
		}
	}
	var all strings.Builder
	for _, file := range files(t, "*.md") {
		all.WriteString(page(t, file))
	}
	for section, o := range schema.Defs {
		for field := range o.Properties {
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(field) + `\b`).MatchString(all.String()) {
				t.Errorf("no page of docs names the field %s of %s", field, section)
			}
		}
	}
}

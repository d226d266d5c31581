package gym

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var tableFile = flag.String("table", "", "Markdown file in which the tables between the markers are replaced")

// table is one of the tables of the page, between two markers.
type table struct {
	name    string
	columns []string
	cells   func(r *row) []string
	of      func(r *scenario) bool
}

const (
	tablePage   = "../../docs/gym.md"
	tokenColumn = "tokens"
)

var tables = []table{
	{
		name: "models",
		columns: []string{
			"model", "kind", "bare loop: turns", tokenColumn, "claims", "really done",
			"harness: turns", tokenColumn, "verdict", "really done", "in 16,000 tokens: verdict", "interventions",
		},
		cells: (*row).cells,
		of:    func(s *scenario) bool { return s.kind != limit },
	},
	{
		name:    "limits",
		columns: []string{"model", "bare loop claims", "really done", "harness: verdict", "really done", "remedy"},
		cells:   (*row).limitCells,
		of:      func(s *scenario) bool { return s.kind == limit },
	},
}

func (t table) marker() string { return "<!-- " + t.name + ": make gym writes this table -->\n" }
func (t table) end() string    { return "<!-- end of " + t.name + " -->\n" }

func (r *row) limitCells() []string {
	return []string{r.what, r.bare.end, yes(r.bare.really), r.harness.end, yes(r.harness.really), r.instead}
}

// cells are a row of the table. Tokens are rounded to two places, for reading.
func (r *row) cells() []string {
	by := strings.Join(r.harness.by, ", ")
	if by == "" {
		by = "–"
	}
	return []string{
		r.what, r.kind,
		fmt.Sprint(r.bare.turns), rounded(r.bare.tokens), r.bare.end, yes(r.bare.really),
		fmt.Sprint(r.harness.turns), rounded(r.harness.tokens), r.harness.end, yes(r.harness.really), r.small.end, by,
	}
}

func rounded(n int) string {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	n = (n + unit/2) / unit * unit
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "**no**"
}

func line(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// writeTables replaces the tables of a page.
func writeTables(t *testing.T, path string, rows []*row) {
	t.Helper()
	for _, table := range tables {
		var b strings.Builder
		b.WriteString(line(table.columns) + strings.Repeat("|---", len(table.columns)) + "|\n")
		for _, r := range rows {
			if r == nil {
				t.Fatal("a table needs all scenarios: leave out the part of -run after TestGym")
			}
			if table.of(r.scenario) {
				b.WriteString(line(table.cells(r)))
			}
		}
		before, _, after := table.find(t, path)
		if err := os.WriteFile(path, []byte(before+table.marker()+b.String()+table.end()+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// compareTables fails the test unless the page has what came about, tokens aside. Rows
// of scenarios that -run left out are nil.
func compareTables(t *testing.T, all []*scenario, rows []*row) {
	t.Helper()
	for _, table := range tables {
		_, text, _ := table.find(t, tablePage)
		lines := strings.Split(strings.TrimSpace(text), "\n")[min(2, strings.Count(text, "\n")):]
		for i, s := range all {
			if !table.of(s) {
				continue
			}
			if len(lines) == 0 {
				t.Fatalf("%s has no line for %s; run make gym", tablePage, s.name)
			}
			if rows[i] != nil {
				table.compare(t, rows[i], lines[0])
			}
			lines = lines[1:]
		}
		if len(lines) > 0 {
			t.Errorf("%s has lines for nothing, such as %q; run make gym", tablePage, lines[0])
		}
	}
}

func (t table) compare(test *testing.T, r *row, have string) {
	test.Helper()
	there := strings.Split(strings.TrimSuffix(strings.TrimPrefix(have, "| "), " |"), " | ")
	for n, want := range t.cells(r) {
		if t.columns[n] != tokenColumn && (n >= len(there) || there[n] != want) {
			test.Errorf("%s, %s of %s (%s) is not %q; run make gym", tablePage, t.columns[n], r.name, r.kind, want)
		}
	}
}

// find splits a page at the markers of the table.
func (t table) find(test *testing.T, path string) (before, text, after string) {
	test.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		test.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), t.marker())
	text, after, closed := strings.Cut(rest, t.end())
	if !ok || !closed {
		test.Fatalf("%s has no table between %q and %q", path, t.marker(), t.end())
	}
	return before, text, after
}

package gym

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var tableFile = flag.String("table", "", "Markdown file in which the table between the markers is replaced")

// Where the table stands in its page.
const (
	page0       = "../../docs/gym.md"
	tableBegin  = "<!-- table: make gym writes it -->\n"
	tableEnd    = "<!-- end of table -->\n"
	tokenColumn = "tokens"
)

var columns = []string{
	"model", "kind",
	"bare loop: turns", tokenColumn, "says", "really done",
	"harness: turns", tokenColumn, "verdict", "really done", "what did it",
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
		fmt.Sprint(r.harness.turns), rounded(r.harness.tokens), r.harness.end, yes(r.harness.really), by,
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

// writeTable replaces the table of a page.
func writeTable(t *testing.T, path string, rows []*row) {
	t.Helper()
	var b strings.Builder
	b.WriteString(line(columns) + strings.Repeat("|---", len(columns)) + "|\n")
	for _, r := range rows {
		if r == nil {
			t.Fatal("a table needs all scenarios: leave out the part of -run behind TestGym")
		}
		b.WriteString(line(r.cells()))
	}
	before, _, after := tableOf(t, path)
	if err := os.WriteFile(path, []byte(before+tableBegin+b.String()+tableEnd+after), 0o644); err != nil { //nolint:gosec // a page
		t.Fatal(err)
	}
}

// compareTable fails the test unless the page has what came about, tokens aside.
func compareTable(t *testing.T, rows []*row) {
	t.Helper()
	_, table, _ := tableOf(t, page0)
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != len(rows)+2 {
		t.Fatalf("%s has %d lines of a table for %d scenarios; run make gym", page0, len(lines), len(rows))
	}
	for i, r := range rows {
		if r == nil {
			continue // left out by -run
		}
		got := r.cells()
		there := strings.Split(strings.Trim(lines[i+2], "| "), " | ")
		for n, want := range got {
			if columns[n] != tokenColumn && (n >= len(there) || there[n] != want) {
				t.Errorf("%s, line of %s: %q is now %q; run make gym", page0, r.name, columns[n], want)
			}
		}
	}
}

// tableOf splits a page at the markers.
func tableOf(t *testing.T, path string) (before, table, after string) {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a page
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	table, after, closed := strings.Cut(rest, tableEnd)
	if !ok || !closed {
		t.Fatalf("%s has no table between %q and %q", path, tableBegin, tableEnd)
	}
	return before, table, after
}

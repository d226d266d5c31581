package quality

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var tableFile = flag.String("table", "", "Markdown file in which the tables between the markers are replaced")

const tablePage = "../../docs/quality-bench.md"

// table is one of the tables of the page, between two markers.
type table struct {
	name    string
	columns []string
	cells   func(r *row) []string
}

// Columns whose figures may differ from those of the page.
const (
	tokens  = "tokens"
	records = "records"
)

var tables = []table{
	{
		name:    "cost",
		columns: []string{"model", "kind", "without: turns", records, tokens, "worth", "judged: attempts", "turns", records, tokens, "calls of the judge", tokens, "delivered", "worth", "end"},
		cells: func(r *row) []string {
			w, j := r.without, r.judged[right]
			return []string{
				r.title(), r.kind, fmt.Sprint(w.turns), fmt.Sprint(w.records), rounded(w.tokens), worth(w.worth),
				fmt.Sprint(j.attempts), fmt.Sprint(j.turns), fmt.Sprint(j.records), rounded(j.tokens - j.judging), fmt.Sprint(j.jobs), rounded(j.judging), fmt.Sprint(j.delivered), worth(j.worth), j.end(),
			}
		},
	},
	{
		name:    "judges",
		columns: []string{"model", right, "harsh", lenient, random, down},
		cells: func(r *row) []string {
			cells := []string{r.title()}
			for _, j := range allJudges() {
				o := r.judged[j.name]
				cells = append(cells, fmt.Sprintf("%d of %d, %s, %s", o.delivered, o.attempts, worth(o.worth), o.end()))
			}
			return cells
		},
	},
}

func (r *row) title() string {
	if r.healthy {
		return "healthy: " + r.what
	}
	return r.what
}

// end is how the run ended.
func (o outcome) end() string {
	switch {
	case o.degraded && o.accepted:
		return "degraded, accepted"
	case o.degraded:
		return "degraded"
	case o.accepted:
		return "accepted"
	}
	return "not accepted"
}

func worth(x float64) string { return fmt.Sprintf("%.2f", x) }

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

func line(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

func (t table) marker() string {
	return "<!-- " + t.name + ": make quality writes this table -->\n"
}
func (t table) end() string { return "<!-- end of " + t.name + " -->\n" }

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

// writeTables replaces the tables of a page.
func writeTables(t *testing.T, path string, rows []*row) {
	t.Helper()
	for _, table := range tables {
		var b strings.Builder
		b.WriteString(line(table.columns) + strings.Repeat("|---", len(table.columns)) + "|\n")
		for _, r := range rows {
			if r == nil {
				t.Fatal("a table needs all scripts: leave out the part of -run after TestQuality")
			}
			b.WriteString(line(table.cells(r)))
		}
		before, _, after := table.find(t, path)
		if err := os.WriteFile(path, []byte(before+table.marker()+b.String()+table.end()+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// compareTables fails the test unless the page has what came about, tokens and records aside. Rows of scripts
// that -run left out are nil.
func compareTables(t *testing.T, all []script, rows []*row) {
	t.Helper()
	for _, table := range tables {
		_, text, _ := table.find(t, tablePage)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if len(lines) != 2+len(all) {
			t.Fatalf("%s has %d lines in the table %s, expected %d; run make quality", tablePage, len(lines), table.name, 2+len(all))
		}
		for i, r := range rows {
			if r == nil || len(r.judged) < len(allJudges()) {
				continue
			}
			have := strings.Split(strings.TrimSuffix(strings.TrimPrefix(lines[2+i], "| "), " |"), " | ")
			for n, want := range table.cells(r) {
				if c := table.columns[n]; c != tokens && c != records && (n >= len(have) || have[n] != want) {
					t.Errorf("%s, %s of %s is not %q; run make quality", tablePage, table.columns[n], r.name, want)
				}
			}
		}
	}
}

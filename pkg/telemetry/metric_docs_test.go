package telemetry

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// shownAs returns an instrument's name in Prometheus.
func shownAs(i Instrument) string {
	name := strings.ReplaceAll(i.Name, ".", "_")
	switch i.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	}
	if i.Kind == Counter {
		name += "_total"
	}
	return name
}

func row(i Instrument) string {
	labels := strings.ReplaceAll(strings.Join(i.Attributes, ", "), ".", "_")
	kind := string(i.Kind)
	if i.Kind == UpDown {
		kind = string(Gauge)
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |", shownAs(i), kind, strings.Trim(i.Unit, "{}"), labels, i.Description)
}

// instrumentRow matches a row of a table of names.
var instrumentRow = regexp.MustCompile("^\\| `[a-zA-Z_]+` \\|")

func TestDocumentationListsEachInstrument(t *testing.T) {
	data, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if instrumentRow.MatchString(line) {
			rows[strings.TrimSpace(line)] = true
		}
	}
	for _, i := range Instruments() {
		if want := row(i); !rows[want] {
			t.Errorf("docs/metrics.md lacks\n%s", want)
		} else {
			delete(rows, want)
		}
	}
	for r := range rows {
		t.Errorf("docs/metrics.md has a row of no instrument: %s", r)
	}
}

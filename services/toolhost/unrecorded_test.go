package toolhost

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestUnrecorded: an entry is unrecorded unless the log knows its call, or it is that of the request
// itself, with the same tool and arguments.
func TestUnrecorded(t *testing.T) {
	entry := func(id, tool, arguments string) *harnessv1.LedgerCall { return Describe(id, tool, arguments) }
	own := entry("own", "run_command", "{}")
	for name, c := range map[string]struct {
		later []*harnessv1.LedgerCall
		known []string
		want  string
	}{
		"none":                         {},
		"its own":                      {later: []*harnessv1.LedgerCall{entry("own", "run_command", "{}")}},
		"its id with other arguments":  {later: []*harnessv1.LedgerCall{entry("own", "run_command", "[]")}, want: "own"},
		"its id with another tool":     {later: []*harnessv1.LedgerCall{entry("own", "edit_file", "{}")}, want: "own"},
		"another":                      {later: []*harnessv1.LedgerCall{entry("a", "run_command", "{}")}, want: "a"},
		"another that the log knows":   {later: []*harnessv1.LedgerCall{entry("a", "run_command", "{}")}, known: []string{"a"}},
		"two of which it knows one":    {later: []*harnessv1.LedgerCall{entry("a", "x", ""), entry("own", "run_command", "{}"), entry("b", "x", "")}, known: []string{"a"}, want: "b"},
		"tool and arguments are apart": {later: []*harnessv1.LedgerCall{entry("own", "run_command{", "}")}, want: "own"},
	} {
		var got []string
		for _, c := range Unrecorded(c.later, c.known, own) {
			got = append(got, c.GetCallId())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
	var many []*harnessv1.LedgerCall
	for i := range MaxUnrecorded + 3 {
		many = append(many, entry(fmt.Sprint(i), "x", ""))
	}
	if got := Unrecorded(many, nil, own); !slices.Equal(got, many[:MaxUnrecorded]) {
		t.Errorf("of %d entries %d are returned, the first is %v", len(many), len(got), got[0])
	}
	if IsOther(nil, own) {
		t.Error("an entry without a description is that of another call")
	}
}

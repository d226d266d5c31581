package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// handled are the verbs that take a run, with what follows the run.
var handled = map[string][]string{
	"watch": nil, "show": nil, "send": {"hello"}, "answer": {"1"}, "approve": nil, "interrupt": nil, "resume": nil, "cancel": nil, "delete": nil, "feedback": {"up"},
}

// TestEachVerbTakesTheHandles checks the forms in which a run can be named, in each verb that takes one.
func TestEachVerbTakesTheHandles(t *testing.T) {
	t.Parallel()
	takes := regexp.MustCompile(`(?m)^Usage: harness (\S+) .*<run>`)
	for _, line := range strings.Split(harnesstest.Call(t, nil, "", "help").Out, "\n") {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.HasPrefix(line, "  ") {
			continue
		}
		if help := takes.FindStringSubmatch(harnesstest.Call(t, nil, "", "help", words[0]).Out); help != nil {
			if _, listed := handled[help[1]]; !listed {
				t.Errorf("%s takes a run and is not tested here", help[1])
			}
		}
	}
	for verb, rest := range handled {
		for handle, refused := range map[string]string{
			"r-abcd2345": "", "r-abc": "", "abc": "", "last": "", // the newest is the first of the list
			"r-ab": "of 2 ids", "zz": "not found",
		} {
			f := harnesstest.ServeGateway(t)
			f.Add("r-abcd2345", "default", harnesstest.ASpec()).Done()
			f.Add("r-abxy2345", "default", harnesstest.ASpec()).Done()
			got := harnesstest.Call(t, nil, "", append(append(strings.Fields(verb), append([]string{handle}, rest...)...), "--server", f.Address)...)
			said := got.Err + got.Out
			switch {
			case refused != "":
				if got.Code != 1 || !strings.Contains(got.Err, refused) {
					t.Errorf("%s %s: want %q, got %+v", verb, handle, refused, got)
				}
			case strings.Contains(said, "not found"), strings.Contains(said, "of 2 ids"), strings.Contains(said, "unknown flag"):
				t.Errorf("%s %s: %+v", verb, handle, got)
			}
		}
	}
}

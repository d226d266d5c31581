package responses

import (
	"strings"
	"testing"
)

// TestReasoningIsKeptOnce has reasoning that is repeated with its id at another place.
func TestReasoningIsKeptOnce(t *testing.T) {
	silent := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`
	shown := reason("rs_1", "Why.", "")
	nameless := strings.Replace(silent, `"rs_1"`, `""`, 1)
	other := strings.Replace(silent, "rs_1", "rs_2", 1)
	for name, c := range map[string]struct{ events, want string }{
		"repeated":                {done(0, silent) + done(1, silent), "reasoning " + silent + "|"},
		"repeated in the output":  {done(0, silent) + end(silent, silent), "reasoning " + silent + "|"},
		"repeated, not encrypted": {done(0, shown) + done(1, shown), "reasoning Why.|"},
		"encrypted, then not":     {done(0, silent) + done(1, shown), "reasoning " + silent + "|"},
		"not encrypted at first":  {done(0, shown) + done(1, silent) + done(2, silent), "reasoning Why.|reasoning " + silent + "|"},
		"empty at first":          {added(0, reason("rs_1", "", "")) + done(1, silent), "reasoning " + silent + "|"},
		"other ids":               {done(0, silent) + done(1, other), "reasoning " + silent + "|reasoning " + other + "|"},
		"no ids":                  {done(0, nameless) + done(1, nameless), "reasoning " + nameless + "|reasoning " + nameless + "|"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := fold(t, done(9, call("x", "c", "{}"))+c.events+completed)
			if got, want := summary(r), c.want+"call c f {}|tool_calls"; got != want {
				t.Errorf("the response is\n%s\nwant\n%s", got, want)
			}
		})
	}
}

package responses

import (
	"fmt"
	"strings"
	"testing"
)

// end is the end of a response with its output.
func end(items ...string) string {
	return on("completed", `"response":{"status":"completed","output":[`+strings.Join(items, ",")+`]}`)
}

// TestTheOutputRepeatsTheEvents has servers that give an item another id or another
// place in the output than in the events: no text and no call is in the answer twice.
func TestTheOutputRepeatsTheEvents(t *testing.T) {
	one, two := call("x", "c", "[]"), call("y", "d", "{}")
	for name, c := range map[string]struct{ events, want string }{
		"one place, no ids":           {done(0, text("", "a")) + done(0, call("", "c", "[]")) + end(text("", "a"), call("", "c", "[]")), "a|call c f []|tool_calls"},
		"one place, other ids":        {done(0, text("m", "a")) + done(0, one) + end(text("n", "a"), call("z", "c", "[]")), "a|call c f []|tool_calls"},
		"other ids of calls, too":     {done(0, text("m", "a")) + done(0, one) + end(text("n", "a"), call("z", "e", "[]")), "a|call c f []|tool_calls"},
		"no ids of calls":             {done(0, call("x", "", "[]")) + done(0, call("y", "", "{}")) + end(call("x", "", "[]"), call("y", "", "{}")), "|call  f []|call  f {}|tool_calls"},
		"another order":               {done(0, one) + done(1, two) + done(2, text("m", "a")) + end(text("n", "a"), two, one), "call c f []|call d f {}|text a|tool_calls"},
		"two texts":                   {done(0, text("", "a")) + done(0, text("", "b")) + end(text("m", "a"), text("n", "b")), "ab|stop"},
		"one call more":               {done(1, two) + end(one, two), "|call c f []|call d f {}|tool_calls"},
		"one call more, other places": {done(0, two) + end(text("m", "a"), two, one), "call d f {}|text a|call c f []|tool_calls"},
		"one call more, no ids":       {done(0, call("", "d", "{}")) + end(call("", "c", "[]"), call("", "d", "{}")), "|call d f {}|call c f []|tool_calls"},
		"calls only in the output":    {done(0, text("m", "a")) + end(one, two), "a|call c f []|call d f {}|tool_calls"},
		"one id for two calls":        {done(0, one) + end(one, one), "|call c f []|call c f []|tool_calls"},
		"one id for two open calls":   {added(1, call("x", "c", "")) + added(0, call("x", "c", "")) + end(one, call("x", "c", "{}")), "|call c f []|call c f {}|tool_calls"},
		"open, other ids":             {textDelta(0, "m", "a") + argumentsDelta(1, "x", "[") + end(text("n", "ab"), call("z", "c", "[]")), "ab|call c f []|tool_calls"},
		"open, the id decides":        {added(5, text("m", "")) + textDelta(5, "m", "a") + added(0, text("n", "")) + textDelta(0, "n", "b") + end(text("m", "ax"), text("n", "by")), "byax|stop"},
		"open, the place decides":     {textDelta(1, "", "b") + end(text("", "aa"), text("", "b")), "aab|stop"},
		"open, without a type":        {added(0, `{"id":"m"}`) + textDelta(0, "m", "a") + end(text("m", "ab")), "ab|stop"},
		"strange items":               {done(0, text("m", "a")) + end("7", "null", `{}`, text("n", "a")), "a|stop"},
	} {
		t.Run(name, func(t *testing.T) {
			r, shown := fold(t, c.events)
			if got := summary(r); got != c.want {
				t.Errorf("the response is\n%s\nwant\n%s", got, c.want)
			}
			if len(shown.Text) != len(r.Text) {
				t.Errorf("the deltas are %q, want those of %q", shown.Text, r.Text)
			}
		})
	}
}

// TestManyItemsOfOutput has more items than can be compared each with each.
func TestManyItemsOfOutput(t *testing.T) {
	const calls = 20_000
	var events strings.Builder
	output := make([]string, calls)
	for n := range calls {
		events.WriteString(done(0, call("", fmt.Sprint(n), "{}")))
		output[n] = call("", fmt.Sprint(calls+n), "{}")
	}
	if r, _ := fold(t, events.String()+end(output...)); len(r.ToolCalls) != calls {
		t.Errorf("%d calls, want %d", len(r.ToolCalls), calls)
	}
}

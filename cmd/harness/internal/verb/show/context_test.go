package show_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

func TestShowContext(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("a", "default", harnesstest.ASpec())
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
	}{
		"context-80.txt":  {map[string]string{"COLUMNS": "80"}, []string{"--version", "57"}},
		"context-120.txt": {map[string]string{"COLUMNS": "120", "LANG": "C"}, []string{"--version", "60"}},
		"context.txt":     {nil, nil},
		"context.json":    {nil, []string{"--version", "57", "--output", "json"}},
	} {
		got := harnesstest.Call(t, c.env, "", append([]string{"show", "a", "--context", "--server", f.Address}, c.args...)...)
		if got.Code != 0 || got.Err != "" {
			t.Errorf("%s: %+v", name, got)
		}
		harnesstest.Golden(t, name, got.Out)
		if strings.Contains(got.Out, "\x1b") {
			t.Errorf("%s: has control characters", name)
		}
	}
	empty := harnesstest.Call(t, nil, "", "show", "a", "--context", "--version", "61", "--server", f.Address)
	if empty.Code != 0 || !strings.Contains(empty.Out, "no messages") {
		t.Errorf("%+v", empty)
	}
}

// TestShowContextFitsTheTerminal at any width: no line is longer.
func TestShowContextFitsTheTerminal(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("a", "default", harnesstest.ASpec())
	for _, width := range []int{60, 72, 80, 99, 100, 120, 200} {
		got := harnesstest.Call(t, map[string]string{"COLUMNS": fmt.Sprint(width)}, "", "show", "a", "--context", "--version", "57", "--server", f.Address)
		longest := slices.MaxFunc(strings.Split(got.Out, "\n"), func(a, b string) int { return utf8.RuneCountInString(a) - utf8.RuneCountInString(b) })
		if got.Code != 0 || utf8.RuneCountInString(longest) > width {
			t.Errorf("%d columns: %s", width, longest)
		}
	}
}

func TestShowContextAsJSON(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("a", "default", harnesstest.ASpec())
	got := harnesstest.Call(t, nil, "", "show", "a", "--context", "--version", "57", "--output", "json", "--server", f.Address)
	var object struct {
		Version int
		Model   string
		Used    int `json:"used_tokens"`
		Max     int `json:"max_input_tokens"`
		Items   []struct{ Action, Reason string }
		Plan    []struct {
			First int `json:"first_message"`
		}
		Matches bool   `json:"digest_matches"`
		Next    string `json:"next_page_token"`
	}
	if err := json.Unmarshal([]byte(got.Out), &object); err != nil || strings.Count(got.Out, "\n") != 1 {
		t.Fatalf("%v: %s", err, got.Out)
	}
	if object.Version != 57 || object.Model != "openai:gpt-5" || object.Used != 62_400 || object.Max != 128_000 || len(object.Items) != 12 || len(object.Plan) != 4 ||
		object.Items[4].Action != "CLEAR" || !object.Matches || object.Next != "" {
		t.Errorf("%+v", object)
	}
}

func TestShowContextRefusals(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("a", "default", harnesstest.ASpec())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"a", "--context", "--version", "101"}, "version: 101: run default/a has versions up to 100"},
		{[]string{"none", "--context"}, "none"},
		{[]string{"a", "--version", "3"}, "--version: needs --context; for the state at a version use --state VERSION"},
		{[]string{"a", "--context", "--version", "x"}, `--version: "x": expected a whole number`},
		{[]string{"a", "--context", "--version", "-1"}, "--version"},
		{[]string{"a", "--context", "--version", "0"}, "--version: 0: versions begin with 1; leave it out for the newest"},
		{[]string{"a", "--context", "--conversation"}, "--context and --conversation are mutually exclusive"},
		{[]string{"a", "--context", "--state"}, "--context and --state are mutually exclusive"},
		{[]string{"--context"}, "expected \"<run>\""},
	} {
		got := harnesstest.Call(t, nil, "", append(append([]string{"show"}, c.args...), "--server", f.Address)...)
		if got.Code != 1 || !strings.Contains(got.Err, c.want) || strings.Count(got.Err, "\n") != 1 || got.Out != "" {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
}

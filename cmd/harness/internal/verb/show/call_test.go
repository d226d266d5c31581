package show_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

func TestShowCallAndTurn(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("a", "default", harnesstest.ASpec()).Done()
	for _, test := range []struct{ args, want string }{
		{"--call 1", "call 1 (c1), turn 1: read_file\n  path: a.txt\n\nerror:\n  no such file\n"},
		{"--call c3", "call 3 (c3), turn 2: find_files\n  pattern: *.txt\n\nno result yet\n"},
		{"--turn 1", "[2] turn 1, assistant:\n  Looking.\n  -> read_file path=a.txt\n\n[3] turn 1, tool read_file (error):\n  no such file\n"},
	} {
		got := harnesstest.Call(t, nil, "", append([]string{"show", "a", "--server", f.Address}, strings.Fields(test.args)...)...)
		if got.Code != 0 || got.Out != test.want {
			t.Errorf("%s: %+v", test.args, got)
		}
	}
	for args, want := range map[string]string{
		"--call 4": "--call: \"4\": expected the id of a call or a number from 1 to 3", "--call 0": "from 1 to 3", "--call x": "from 1 to 3",
		"--turn 3": "--turn: 3: expected a turn from 1 to 2", "--turn 0": "turns begin with 1",
		"--call 1 --turn 1": "--call and --turn", "--turn 1 --state": "--turn and --state", "--call 1 --conversation": "--call and --conversation",
		"--system": "--system: needs --conversation",
	} {
		got := harnesstest.Call(t, nil, "", append([]string{"show", "a", "--server", f.Address}, strings.Fields(args)...)...)
		if got.Code != 1 || got.Out != "" || strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	got := harnesstest.Call(t, nil, "", "show", "a", "--server", f.Address, "--call", "1", "--output", "json")
	var read struct {
		Number    int
		Tool      string
		Arguments map[string]string
		Result    string
		IsError   bool `json:"is_error"`
	}
	if err := json.Unmarshal([]byte(got.Out), &read); err != nil || read.Number != 1 || read.Tool != "read_file" || read.Arguments["path"] != "a.txt" || !read.IsError || read.Result != "no such file" {
		t.Errorf("%v: %+v", err, got)
	}
}

func TestConversationLeavesOutTheSystemPrompt(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Prompt = "You are an agent."
	f.Add("a", "default", harnesstest.ASpec()).Done()
	for args, want := range map[string]bool{"--conversation": false, "--conversation --system": true, "--conversation --output json": true} {
		got := harnesstest.Call(t, nil, "", append([]string{"show", "a", "--server", f.Address}, strings.Fields(args)...)...)
		if got.Code != 0 || strings.Contains(got.Out, "You are an agent.") != want || !strings.Contains(got.Out, "Mend it.") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

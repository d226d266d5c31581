package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestShowCallAndTurn(t *testing.T) {
	f := serveFake(t)
	f.add("a", "default", aSpec()).done()
	for _, test := range []struct{ args, want string }{
		{"--call 1", "call 1 (c1), turn 1: read_file\n  path: a.txt\n\nerror:\n  no such file\n"},
		{"--call c3", "call 3 (c3), turn 2: find_files\n  pattern: *.txt\n\nno result yet\n"},
		{"--turn 1", "[2] turn 1, assistant:\n  Looking.\n  -> read_file path=a.txt\n\n[3] turn 1, tool read_file (error):\n  no such file\n"},
	} {
		got := call(t, nil, "", append([]string{"show", "a", "--server", f.address}, strings.Fields(test.args)...)...)
		if got.code != 0 || got.out != test.want {
			t.Errorf("%s: %+v", test.args, got)
		}
	}
	for args, want := range map[string]string{
		"--call 4": "--call: \"4\": expected the id of a call or a number from 1 to 3", "--call 0": "from 1 to 3", "--call x": "from 1 to 3",
		"--turn 3": "--turn: 3: expected a turn from 1 to 2", "--turn 0": "turns begin with 1",
		"--call 1 --turn 1": "--call and --turn", "--turn 1 --state": "--turn and --state", "--call 1 --conversation": "--call and --conversation",
		"--system": "--system: needs --conversation",
	} {
		got := call(t, nil, "", append([]string{"show", "a", "--server", f.address}, strings.Fields(args)...)...)
		if got.code != 1 || got.out != "" || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	got := call(t, nil, "", "show", "a", "--server", f.address, "--call", "1", "--output", "json")
	var read struct {
		Number    int
		Tool      string
		Arguments map[string]string
		Result    string
		IsError   bool `json:"is_error"`
	}
	if err := json.Unmarshal([]byte(got.out), &read); err != nil || read.Number != 1 || read.Tool != "read_file" || read.Arguments["path"] != "a.txt" || !read.IsError || read.Result != "no such file" {
		t.Errorf("%v: %+v", err, got)
	}
}

func TestConversationLeavesOutTheSystemPrompt(t *testing.T) {
	f := serveFake(t)
	f.prompt = "You are an agent."
	f.add("a", "default", aSpec()).done()
	for args, want := range map[string]bool{"--conversation": false, "--conversation --system": true, "--conversation --output json": true} {
		got := call(t, nil, "", append([]string{"show", "a", "--server", f.address}, strings.Fields(args)...)...)
		if got.code != 0 || strings.Contains(got.out, "You are an agent.") != want || !strings.Contains(got.out, "Mend it.") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

func TestArgumentsAreShownUnescaped(t *testing.T) {
	for raw, want := range map[string]string{
		`{"command":"cat <<'EOF'\nrm -rf \"x\"\nEOF\n","timeout":3}`: "  command:\n    cat <<'EOF'\n    rm -rf \"x\"\n    EOF\n  timeout: 3\n",
		`{"edits":[{"old":"a"}],"path":"\u001b[2J"}`:                 "  edits:\n    [\n      {\n        \"old\": \"a\"\n      }\n    ]\n  path: \ufffd[2J\n",
		`{}`:        "",
		`not JSON`:  "  not JSON\n",
		`{"a":1,"b`: "  {\"a\":1,\"b\n",
	} {
		if got := argumentText(raw); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", raw, got, want)
		}
	}
}

package steer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("q", "default", harnesstest.ASpec()).Waits(harnesstest.AQuestion("c1", harnesstest.Colours))
	f.Add("two", "default", harnesstest.ASpec()).Waits(harnesstest.AnApproval("c0"), harnesstest.AQuestion("c1", harnesstest.Colours), harnesstest.AClientCall("c2"))
	f.Add("running", "default", harnesstest.ASpec())
	file := filepath.Join(t.TempDir(), "answer.json")
	if err := os.WriteFile(file, []byte("{\"state\": \"sent\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	number := harnesstest.Write(t, filepath.Join(t.TempDir(), "number"), "1\n")
	failed := harnesstest.ToolAnswer("c2", "no such order")
	failed.IsError = true
	for _, test := range []struct {
		stdin string
		args  []string
		want  *harnessv1.ToolAnswer
	}{
		{"", []string{"q", "dark", "green"}, harnesstest.ToolAnswer("c1", "dark green")},
		// A number is an option, as in the prompt; other numbers are texts, and so is what a file has.
		{"", []string{"q", "1"}, harnesstest.ToolAnswer("c1", "red")},
		{"", []string{"q", "c1", "2"}, harnesstest.ToolAnswer("c1", "dark blue")},
		{"2\n", []string{"q", "-"}, harnesstest.ToolAnswer("c1", "dark blue")},
		{"", []string{"q", "3"}, harnesstest.ToolAnswer("c1", "3")},
		{"", []string{"q", "--file", number}, harnesstest.ToolAnswer("c1", "1")},
		{"", []string{"q", "c1", "red"}, harnesstest.ToolAnswer("c1", "red")},
		{"", []string{"q", "--call", "c1", "c1", "red"}, harnesstest.ToolAnswer("c1", "c1 red")},
		{"from\nstdin\n", []string{"q", "-"}, harnesstest.ToolAnswer("c1", "from\nstdin")},
		{"", []string{"two", "c2", "12"}, harnesstest.ToolAnswer("c2", "12")},
		{"", []string{"two", "c2", "--error", "no such", "order"}, failed},
		{"", []string{"two", "--error", "c2", "no such", "order"}, failed},
		{"", []string{"two", "c2", "--file", file}, harnesstest.ToolAnswer("c2", `{"state": "sent"}`)},
		{"", []string{"q", "--file", file}, harnesstest.ToolAnswer("c1", `{"state": "sent"}`)},
		{"", []string{"two", "c2", ""}, harnesstest.ToolAnswer("c2", "")},
		{"", []string{"q", "--", "--error"}, harnesstest.ToolAnswer("c1", "--error")},
		// A call that is announced and not waiting yet: the gateway knows.
		{"", []string{"running", "c9", "early"}, harnesstest.ToolAnswer("c9", "early")},
		{"", []string{"running", "c9", "--file", file}, harnesstest.ToolAnswer("c9", `{"state": "sent"}`)},
		{"", []string{"q", "--call", "c9", "early"}, harnesstest.ToolAnswer("c9", "early")},
	} {
		got := harnesstest.Call(t, nil, test.stdin, append([]string{"answer", "--server", f.Address}, test.args...)...)
		if got.Code != 0 || got.Out != "" || !strings.Contains(got.Err, "the answer to "+test.want.GetCallId()+" is stored") {
			t.Errorf("%q: %+v", test.args, got)
		}
		if sent := f.Inputs[len(f.Inputs)-1]; !proto.Equal(sent, test.want) {
			t.Errorf("%q sent %v, want %v", test.args, sent, test.want)
		}
	}
}

func TestAnswersThatAreRefused(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("q", "default", harnesstest.ASpec()).Waits(harnesstest.AQuestion("c1", harnesstest.Colours))
	f.Add("two", "default", harnesstest.ASpec()).Waits(harnesstest.AQuestion("c 1", harnesstest.Colours), harnesstest.AClientCall("c2"))
	f.Add("ask", "default", harnesstest.ASpec()).Waits(harnesstest.AnApproval("c0"))
	f.Add("none", "default", harnesstest.ASpec()).Done()
	f.Runs["q"].State = &harnessv1.Snapshot{AnsweredCalls: []uint64{runlog.HashID("c0")}}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"answer", "q"}, "missing TEXT"},
		{[]string{"answer", "q", "c1"}, "missing TEXT: c1 is the call"},
		{[]string{"answer", "q", "--call", "c1"}, "missing TEXT"},
		{[]string{"answer", "q", " "}, "the answer is empty"},
		{[]string{"answer", "q", "-"}, "the answer is empty"},
		{[]string{"answer", "q", "--file", empty}, "the answer is empty"},
		{[]string{"answer", "q", "--file", empty + "no"}, "--file"},
		{[]string{"answer", "q", "red", "--file", empty}, `call "red" does not wait`},
		{[]string{"answer", "q", "c1", "red", "--file", empty}, "TEXT and --file are mutually exclusive"},
		{[]string{"answer", "q", "c0", "blue"}, `call "c0" already has an answer`},
		{[]string{"answer", "two", "red"}, `2 calls of run two wait for an answer, so name the CALL: ["c 1" "c2"]`},
		{[]string{"answer", "none", "red"}, "run none waits for no answer"},
		{[]string{"answer", "gone", "red"}, "not found"},
		{[]string{"answer", "a b", "red"}, "RUN"},
		{[]string{"answer", "ask", "yes"}, "call c0 of run ask waits for an approval, not for an answer: harness approve ask c0 --server " + f.Address},
		{[]string{"answer", "ask", "c0", "yes"}, "harness approve ask c0"},
		{[]string{"approve", "q"}, "call c1 of run q waits for an answer, not for an approval: harness answer q c1 ANSWER"},
		{[]string{"approve", "q", "c1"}, "harness answer q c1 ANSWER"},
		{[]string{"approve", "two", "c2"}, "harness answer two c2 RESULT"},
	} {
		got := harnesstest.Call(t, nil, "", append(test.args, "--server", f.Address)...)
		if got.Code != 1 || got.Out != "" || strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, test.want) {
			t.Errorf("%q: %+v, want %q", test.args, got, test.want)
		}
	}
	if len(f.Inputs) != 0 {
		t.Errorf("sent %v", f.Inputs)
	}
	f.Mu.Lock()
	f.Late = true
	f.Mu.Unlock()
	if got := harnesstest.Call(t, nil, "", "answer", "q", "red", "--server", f.Address); got.Code != 1 || !strings.Contains(got.Err, "already has an answer") {
		t.Errorf("a second answer: %+v", got)
	}
}

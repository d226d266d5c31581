package judgement

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// jitScript returns a model that replies in order and then ends the work.
func jitScript(all ...modeltest.Reply) live.Model {
	return func(n int, req *modeltest.Request) modeltest.Reply {
		return live.Replies(append(slices.Clone(all), live.Done())...)(n, req)
	}
}

// jitLooks are n turns that look for something else each, and read nothing.
func jitLooks(n int) []modeltest.Reply {
	var all []modeltest.Reply
	for i := range n {
		all = append(all, live.Calls(live.Call("find_files", live.Args{"pattern": fmt.Sprintf("*.%d", i)})))
	}
	return all
}

func jitRead(path string) modeltest.Call { return live.Call("read_file", live.Args{"path": path}) }
func jitWrite(path, content string) modeltest.Call {
	return live.Call("write_file", live.Args{"path": path, "content": content})
}
func jitShell(line string) modeltest.Call {
	return live.Call("run_command", live.Args{"command": line})
}

// jitFiles puts files into the workspace of a run that has not begun.
func jitFiles(r *live.Run, n int) []string {
	var all []string
	for i := range n {
		path := fmt.Sprintf("f%02d.txt", i)
		r.Write(path, fmt.Sprintf("file %d\n", i))
		all = append(all, path)
	}
	return all
}

// jitBegin starts a prepared run.
func jitBegin(r *live.Run, edits ...func(*harnessv1.RunSpec)) *live.Run {
	r.T.Helper()
	if err := jitTry(r, edits...); err != nil {
		r.T.Fatal(err)
	}
	return r
}

// jitTry asks for a prepared run to be started.
func jitTry(r *live.Run, edits ...func(*harnessv1.RunSpec)) error {
	_, err := live.Gateway(r.T).StartRun(r.T.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: r.Spec(edits...)})
	return err
}

// jitRefused fails the test unless a start is refused as an invalid argument whose
// message holds all words, and unless nothing of the run is there.
func jitRefused(r *live.Run, edit func(*harnessv1.RunSpec), words ...string) {
	r.T.Helper()
	err := jitTry(r, edit)
	if status.Code(err) != codes.InvalidArgument {
		r.T.Fatalf("the start gives %v, want an invalid argument", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			r.T.Errorf("the refusal does not say %q: %v", w, err)
		}
	}
	if _, err := live.Gateway(r.T).GetRun(r.T.Context(), &harnessv1.GetRunRequest{RunId: r.ID}); status.Code(err) != codes.NotFound {
		r.T.Errorf("there is a run: %v", err)
	}
}

func jitRules(rules ...*harnessv1.JitRule) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Agent.Jit = append(spec.Agent.Jit, rules...) }
}

// jitRule fires once, jitAlways each time.
func jitRule(id, when, text string) *harnessv1.JitRule {
	return &harnessv1.JitRule{Id: id, When: when, Text: text}
}

func jitAlways(id, when, text string) *harnessv1.JitRule {
	return &harnessv1.JitRule{Id: id, When: when, Text: text, Once: proto.Bool(false)}
}

func jitItems(spec *harnessv1.RunSpec) {
	spec.Config.WorkItems = &harnessv1.WorkItemConfig{Enabled: proto.Bool(true)}
}

func jitMaxTurns(n uint32) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) {
		if spec.Config.Stop == nil {
			spec.Config.Stop = &harnessv1.StopConfig{}
		}
		spec.Config.Stop.MaxTurns = proto.Uint32(n)
	}
}

func jitClients(tools ...*harnessv1.ToolSpec) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.ClientTools = append(spec.ClientTools, tools...) }
}

// jitClient is a tool that the client runs.
func jitClient(name string, a *harnessv1.ToolAnnotations) *harnessv1.ToolSpec {
	return &harnessv1.ToolSpec{
		Name: name, Description: "A tool of the client.", Annotations: a,
		ParametersSchema: `{"type":"object","properties":{"v":{}}}`,
	}
}

// jitSend sends an input to a run and returns its outcome.
func jitSend(r *live.Run, req *harnessv1.SendInputRequest) error {
	req.RunId = r.ID
	_, err := live.Gateway(r.T).SendInput(r.T.Context(), req)
	return err
}

// jitAnswer answers a call that waits.
func jitAnswer(r *live.Run, id, result string) {
	r.T.Helper()
	if err := jitSend(r, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ToolAnswer{
		ToolAnswer: &harnessv1.ToolAnswer{CallId: id, Result: content.Inline(result)},
	}}); err != nil {
		r.T.Fatal(err)
	}
}

// jitAttend answers every call that waits for a client until the run parks for
// something else or has ended. Each result is another one.
func jitAttend(r *live.Run) *live.Transcript {
	r.T.Helper()
	for answered := 0; ; {
		s := r.Wait()
		before := answered
		for _, c := range r.State().GetPendingToolCalls() {
			if c.GetKind() == "client_tool" {
				answered++
				jitAnswer(r, c.GetCallId(), fmt.Sprintf("result %d", answered))
			}
		}
		if answered == before {
			return s
		}
	}
}

// jitFired are the instructions that were given, such as "3 no_reads_after_3_turns":
// the turn and the rule.
func jitFired(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		if g := e.GetGuidanceInjected(); g.GetKind() == "jit" {
			all = append(all, fmt.Sprintf("%d %s", e.GetTurnNumber(), g.GetRuleId()))
		}
	}
	return all
}

// jitOf are the turns in which a rule fired.
func jitOf(s *live.Transcript, rule string) []string {
	var all []string
	for _, f := range jitFired(s) {
		if turn, id, _ := strings.Cut(f, " "); id == rule {
			all = append(all, turn)
		}
	}
	return all
}

// jitSame fails the test unless two lists are equal.
func jitSame(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// jitMark is what marks a message in the user's place as the harness's.
const jitMark = "[harness] "

// jitSaid returns the new messages of the harness in request n.
func jitSaid(s *live.Transcript, n int) []string {
	var all []string
	for _, m := range jitNews(s, n, "user") {
		if text, ok := strings.CutPrefix(m, jitMark); ok {
			all = append(all, text)
		}
	}
	return all
}

// jitNews are the messages of a role that request n has beyond those of the request
// before it.
func jitNews(s *live.Transcript, n int, role string) []string {
	if n >= len(s.Requests) {
		return nil
	}
	from := 0
	if n > 0 {
		from = len(s.Requests[n-1].Messages)
	}
	var all []string
	for _, m := range s.Requests[n].Messages[min(from, len(s.Requests[n].Messages)):] {
		if m.Role == role {
			all = append(all, m.Content)
		}
	}
	return all
}

// jitTold fails the test unless one of the things that the harness says in the user's
// place, and that are new in request n, holds all words.
func jitTold(t *testing.T, s *live.Transcript, n int, words ...string) {
	t.Helper()
	news := jitSaid(s, n)
	if !slices.ContainsFunc(news, func(m string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(m, w) })
	}) {
		t.Errorf("no new message of request %d holds all of %q; they are %q", n+1, words, news)
	}
}

// jitResult is the result of a call in the last request.
func jitResult(s *live.Transcript, id string) string {
	for _, m := range s.Requests[len(s.Requests)-1].Messages {
		if m.ToolCallID == id {
			return m.Content
		}
	}
	s.T.Errorf("the model never got a result of %s", id)
	return ""
}

// jitStable fails the test unless each request begins with the messages of the one
// before it: the provider's cache stays warm.
func jitStable(t *testing.T, s *live.Transcript) {
	t.Helper()
	for n := 1; n < len(s.Requests); n++ {
		before, now := s.Requests[n-1].Messages, s.Requests[n].Messages
		if len(now) < len(before) {
			t.Fatalf("request %d has %d messages, the one before it %d", n+1, len(now), len(before))
		}
		for i := range before {
			if !reflect.DeepEqual(before[i], now[i]) {
				t.Fatalf("request %d, message %d was\n%+v\nand is\n%+v", n+1, i+1, before[i], now[i])
			}
		}
	}
}

// jitTools are the names of the tools of request n.
func jitTools(s *live.Transcript, n int) []string {
	var all []string
	for _, t := range s.Requests[n].Tools {
		all = append(all, t.Name)
	}
	return all
}

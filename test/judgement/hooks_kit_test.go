package judgement

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// Topics in few letters.
const (
	hooksSessionStart = harnessv1.HookTopic_HOOK_TOPIC_SESSION_START
	hooksSessionEnd   = harnessv1.HookTopic_HOOK_TOPIC_SESSION_END
	hooksBeforePlan   = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_PLAN
	hooksAfterPlan    = harnessv1.HookTopic_HOOK_TOPIC_AFTER_PLAN
	hooksBeforeStep   = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP
	hooksAfterStep    = harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP
	hooksBeforeCall   = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL
	hooksAfterCall    = harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL
	hooksOnError      = harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR
	hooksOnPause      = harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE
	hooksOnBudget     = harnessv1.HookTopic_HOOK_TOPIC_ON_BUDGET_EXCEEDED
	hooksOnComplete   = harnessv1.HookTopic_HOOK_TOPIC_ON_COMPLETE
	hooksAgentStop    = harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP
)

// Actions in few letters.
const (
	hooksContinue = harnessv1.HookAction_HOOK_ACTION_CONTINUE
	hooksReplace  = harnessv1.HookAction_HOOK_ACTION_REPLACE
	hooksSkip     = harnessv1.HookAction_HOOK_ACTION_SKIP
	hooksAbort    = harnessv1.HookAction_HOOK_ACTION_ABORT
	hooksPause    = harnessv1.HookAction_HOOK_ACTION_PAUSE
	hooksDeny     = harnessv1.HookAction_HOOK_ACTION_DENY
	hooksBlock    = harnessv1.HookAction_HOOK_ACTION_BLOCK
	hooksReplan   = harnessv1.HookAction_HOOK_ACTION_REPLAN
)

// hooksTopic is a topic as people write it.
func hooksTopic(t harnessv1.HookTopic) string {
	return strings.ToLower(strings.TrimPrefix(t.String(), "HOOK_TOPIC_"))
}

func hooksAll() []harnessv1.HookTopic {
	var all []harnessv1.HookTopic
	for n := range harnessv1.HookTopic_name {
		if n != 0 {
			all = append(all, harnessv1.HookTopic(n))
		}
	}
	slices.Sort(all)
	return all
}

// hooksSet gives the agent subscribers.
func hooksSet(hooks ...*harnessv1.Hook) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Agent.Hooks = append(spec.Agent.Hooks, hooks...) }
}

// hooksRule is an expression that wants something when it holds.
func hooksRule(topic harnessv1.HookTopic, cel string, action harnessv1.HookAction, reason string) *harnessv1.Hook {
	return &harnessv1.Hook{Topic: topic, Cel: cel, Action: action, Reason: reason}
}

func hooksVerdict(action harnessv1.HookAction, reason string) *harnessv1.HookVerdict {
	return &harnessv1.HookVerdict{Action: action, Reason: reason}
}

// hooksInstead returns a verdict that replaces a field.
func hooksInstead(field string, value any) *harnessv1.HookVerdict {
	raw, err := json.Marshal(live.Args{field: value})
	if err != nil {
		panic(err)
	}
	return &harnessv1.HookVerdict{Action: hooksReplace, Reason: "put in its place", Payload: string(raw)}
}

// hooksScript returns a model that replies in order and then ends the work.
func hooksScript(all ...modeltest.Reply) live.Model {
	return func(n int, req *modeltest.Request) modeltest.Reply {
		return live.Replies(append(slices.Clone(all), live.Done())...)(n, req)
	}
}

func hooksWrite(path, content string) modeltest.Call {
	return live.Call("write_file", live.Args{"path": path, "content": content})
}

func hooksRead(path string) modeltest.Call { return live.Call("read_file", live.Args{"path": path}) }

func hooksShell(line string) modeltest.Call {
	return live.Call("run_command", live.Args{"command": line})
}

// hooksFile puts a file into the workspace before the run starts.
func hooksFile(t *testing.T, path, content string) func(*harnessv1.RunSpec) {
	t.Helper()
	return func(spec *harnessv1.RunSpec) { (&live.Run{T: t, Dir: spec.GetWorkspace()}).Write(path, content) }
}

func hooksMaxTurns(n uint32) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Config.Stop = &harnessv1.StopConfig{MaxTurns: proto.Uint32(n)} }
}

// hooksTrail is what happened, in order: dotted names, and of hooks the id and the
// action, or that it failed. Events about the window, guidance and inputs that
// were taken in is left out.
func hooksTrail(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		switch name := eventjson.Type(e); name {
		case "context.usage", "guidance.injected", "input.accepted":
		case "hook.result":
			all = append(all, e.GetHookResult().GetHookId()+" "+e.GetHookResult().GetAction())
		case "hook.error":
			all = append(all, e.GetHookError().GetHookId()+" failed")
		default:
			all = append(all, name)
		}
	}
	return all
}

// hooksBetween returns the part of a trail from the first entry to the next end,
// both included.
func hooksBetween(t *testing.T, trail []string, first, end string) []string {
	t.Helper()
	from := slices.Index(trail, first)
	if from < 0 {
		t.Fatalf("there is no %q in %q", first, trail)
	}
	to := slices.Index(trail[from+1:], end)
	if to < 0 {
		t.Fatalf("no %q after %q in %q", end, first, trail)
	}
	return trail[from : from+to+2]
}

// hooksSame fails the test unless two lists are equal.
func hooksSame(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// hooksTold fails the test unless what request n, from 0, has beyond the one before it
// holds all words.
func hooksTold(t *testing.T, s *live.Transcript, n int, words ...string) {
	t.Helper()
	if n >= len(s.Requests) {
		t.Errorf("there is no request %d, only %d", n+1, len(s.Requests))
		return
	}
	for _, w := range words {
		if !strings.Contains(s.Added(n), w) {
			t.Errorf("request %d does not contain %q; its new messages are\n%s", n+1, w, s.Added(n))
		}
	}
}

// hooksResult is the result of a call as the model was last sent it.
func hooksResult(s *live.Transcript, id string) string {
	s.T.Helper()
	for _, m := range s.Requests[len(s.Requests)-1].Messages {
		if m.ToolCallID == id {
			return m.Content
		}
	}
	s.T.Errorf("the model never got a result of %s", id)
	return ""
}

// hooksVersion is the version of the newest event of a story.
func hooksVersion(s *live.Transcript) uint64 { return s.Events[len(s.Events)-1].GetVersion() }

// hooksResume resumes a run and waits until it parks or ends; the transcript has what came
// after the former one.
func hooksResume(s *live.Transcript, b *harnessv1.Budgets) *live.Transcript {
	s.T.Helper()
	if _, err := live.Gateway(s.T).ResumeRun(s.T.Context(), &harnessv1.ResumeRunRequest{RunId: s.ID, Budgets: b}); err != nil {
		s.T.Fatal(err)
	}
	return s.WaitAfter(hooksVersion(s))
}

// hooksSend gives a run an input.
func hooksSend(r *live.Run, req *harnessv1.SendInputRequest) {
	r.T.Helper()
	req.RunId = r.ID
	if _, err := live.Gateway(r.T).SendInput(r.T.Context(), req); err != nil {
		r.T.Fatal(err)
	}
}

// hooksApprove answers a call that waits for leave.
func hooksApprove(r *live.Run, id string, decision harnessv1.ApprovalDecision, reason string) {
	r.T.Helper()
	hooksSend(r, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_Approval{
		Approval: &harnessv1.Approval{CallId: id, Decision: decision, Reason: reason},
	}})
}

// hooksGive answers a call with a result or an error.
func hooksGive(r *live.Run, id, text string, failed bool) {
	r.T.Helper()
	hooksSend(r, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ToolAnswer{
		ToolAnswer: &harnessv1.ToolAnswer{CallId: id, Result: content.Inline(text), IsError: failed},
	}})
}

// hooksStable fails the test unless each request begins with the messages of the one
// before it.
func hooksStable(t *testing.T, s *live.Transcript) {
	t.Helper()
	for n := 1; n < len(s.Requests); n++ {
		before, now := s.Requests[n-1].Messages, s.Requests[n].Messages
		for i := range before {
			if i >= len(now) || fmt.Sprintf("%+v", before[i]) != fmt.Sprintf("%+v", now[i]) {
				t.Fatalf("request %d does not begin with request %d: message %d was\n%+v", n+1, n, i+1, before[i])
			}
		}
	}
}

// hooksErrors are the failures of hooks, such as "guard before_tool_call closed".
func hooksErrors(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		if h := e.GetHookError(); h != nil {
			how := "open"
			if h.GetFailedClosed() {
				how = "closed"
			}
			all = append(all, h.GetHookId()+" "+h.GetTopic()+" "+how)
		}
	}
	return all
}

// hooksSay sends a user message.
func hooksSay(r *live.Run, text string) {
	r.T.Helper()
	hooksSend(r, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_UserMessage{
		UserMessage: &harnessv1.UserMessage{Content: content.Inline(text)},
	}})
}

package judgement

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// stopFiles puts files into the workspace before the run starts.
func stopFiles(t *testing.T, files map[string]string) func(*harnessv1.RunSpec) {
	t.Helper()
	return func(spec *harnessv1.RunSpec) {
		for path, content := range files {
			if err := os.WriteFile(filepath.Join(spec.GetWorkspace(), path), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func stopMaxTurns(n uint32) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { stopConfig(spec).MaxTurns = proto.Uint32(n) }
}

func stopConfig(spec *harnessv1.RunSpec) *harnessv1.StopConfig {
	if spec.Config.Stop == nil {
		spec.Config.Stop = &harnessv1.StopConfig{}
	}
	return spec.Config.Stop
}

func stopStrict(spec *harnessv1.RunSpec) {
	stopConfig(spec).Policy = harnessv1.StopPolicy_STOP_POLICY_STRICT
}

func stopNotRequired(spec *harnessv1.RunSpec) {
	stopConfig(spec).RequireWorkComplete = proto.Bool(false)
}

func stopRetries(n uint32) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { stopConfig(spec).WorkCompleteMaxRetries = proto.Uint32(n) }
}

func stopNudges(enabled bool, most uint32) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) {
		spec.Config.Continuation = &harnessv1.ContinuationConfig{Enabled: proto.Bool(enabled), MaxPrompts: proto.Uint32(most)}
	}
}

func stopItems(spec *harnessv1.RunSpec) {
	spec.Config.WorkItems = &harnessv1.WorkItemConfig{Enabled: proto.Bool(true)}
}

func stopHooks(hooks ...*harnessv1.Hook) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Agent.Hooks = append(spec.Agent.Hooks, hooks...) }
}

// stopBlock is a subscriber of agent_stop that blocks while an expression holds.
func stopBlock(cel, reason string) *harnessv1.Hook {
	return &harnessv1.Hook{
		Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Cel: cel,
		Action: harnessv1.HookAction_HOOK_ACTION_BLOCK, Reason: reason,
	}
}

// stopWanted is a contract for files: each is an output FILE_EXISTS with the path as
// id and "The file PATH is there" as description.
func stopWanted(paths ...string) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) {
		if spec.Contract == nil {
			spec.Contract = &harnessv1.TaskContract{Goal: "Make the files."}
		}
		for _, path := range paths {
			spec.Contract.RequiredOutputs = append(spec.Contract.RequiredOutputs, &harnessv1.RequiredOutput{
				Id: path, Description: "The file " + path + " is there",
				Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: path},
			})
		}
	}
}

func stopRead(path string) modeltest.Call { return live.Call("read_file", live.Args{"path": path}) }
func stopShell(line string) modeltest.Call {
	return live.Call("run_command", live.Args{"command": line})
}
func stopWrite(path, content string) modeltest.Call {
	return live.Call("write_file", live.Args{"path": path, "content": content})
}
func stopDone(summary string) modeltest.Call {
	return live.Call("work_complete", live.Args{"summary": summary})
}

// stopRejected are the rejections, such as "3 work_complete_not_called 2": the turn,
// the kind and the count.
func stopRejected(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		if r := e.GetStopRejected(); r != nil {
			all = append(all, fmt.Sprintf("%d %s %d", e.GetTurnNumber(), r.GetKind(), r.GetCount()))
		}
	}
	return all
}

// stopNudged are the nudges, such as "2: 2 of 2": the turn, the count and the most.
func stopNudged(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		if p := e.GetContinuationPrompt(); p != nil {
			all = append(all, fmt.Sprintf("%d: %d of %d", e.GetTurnNumber(), p.GetCount(), p.GetMax()))
		}
	}
	return all
}

// stopSame fails the test unless two lists are equal.
func stopSame(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// stopTold fails the test unless the news of request n hold all words.
func stopTold(t *testing.T, s *live.Transcript, n int, words ...string) {
	t.Helper()
	if n >= len(s.Requests) {
		t.Errorf("there is no request %d", n+1)
		return
	}
	for _, w := range words {
		if !strings.Contains(s.Added(n), w) {
			t.Errorf("request %d does not contain %q; its new messages are\n%s", n+1, w, s.Added(n))
		}
	}
}

// stopLast is the last message of request n, which is what the model answers.
func stopLast(s *live.Transcript, n int) modeltest.RequestMessage {
	return s.Requests[n].Messages[len(s.Requests[n].Messages)-1]
}

// stopAnswers are the results of the calls in the news of request n, in order.
func stopAnswers(s *live.Transcript, n int) []string {
	var all []string
	for _, m := range s.Requests[n].Messages[len(s.Requests[n-1].Messages):] {
		if m.Role == "tool" {
			all = append(all, m.Content)
		}
	}
	return all
}

// stopStable fails the test unless each request begins with the one before it: the
// provider's cache stays warm.
func stopStable(t *testing.T, s *live.Transcript) {
	t.Helper()
	for n := 1; n < len(s.Requests); n++ {
		before, now := s.Requests[n-1], s.Requests[n]
		if !reflect.DeepEqual(before.Tools, now.Tools) {
			t.Errorf("request %d has other tools than the one before it", n+1)
		}
		if len(now.Messages) < len(before.Messages) {
			t.Fatalf("request %d has %d messages, the one before it %d", n+1, len(now.Messages), len(before.Messages))
		}
		for i := range before.Messages {
			if !reflect.DeepEqual(before.Messages[i], now.Messages[i]) {
				t.Fatalf("request %d, message %d was\n%+v\nand is\n%+v", n+1, i+1, before.Messages[i], now.Messages[i])
			}
		}
	}
}

// stopVersion is the version of the newest event of a story.
func stopVersion(s *live.Transcript) uint64 { return s.Events[len(s.Events)-1].GetVersion() }

// stopSend gives a run an input.
func stopSend(r *live.Run, req *harnessv1.SendInputRequest) {
	r.T.Helper()
	req.RunId = r.ID
	if _, err := live.Gateway(r.T).SendInput(r.T.Context(), req); err != nil {
		r.T.Fatal(err)
	}
}

// stopSay sends a user message.
func stopSay(r *live.Run, text string) {
	r.T.Helper()
	stopSend(r, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_UserMessage{
		UserMessage: &harnessv1.UserMessage{Content: content.Inline(text)},
	}})
}

// stopOnce returns a model that replies in order and then ends the work,
// each time with another summary.
func stopOnce(all ...modeltest.Reply) live.Model {
	return func(n int, _ *modeltest.Request) modeltest.Reply {
		if n >= len(all) {
			return live.Calls(stopDone(fmt.Sprintf("done at request %d", n+1)))
		}
		r := all[n]
		r.Calls = slices.Clone(r.Calls)
		return r
	}
}

// stopNoRules switches the just-in-time instructions off: what is said last is then what
// the test is about.
func stopNoRules(spec *harnessv1.RunSpec) {
	spec.Config.Guidance = &harnessv1.GuidanceConfig{Jit: proto.Bool(false)}
}

// stopPlay starts a prepared run and waits until it is parked or has ended.
func stopPlay(r *live.Run, edits ...func(*harnessv1.RunSpec)) *live.Transcript {
	r.T.Helper()
	if _, err := live.Gateway(r.T).StartRun(r.T.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: r.Spec(edits...)}); err != nil {
		r.T.Fatal(err)
	}
	return r.Wait()
}

// stopSeconds is a budget of time.
func stopSeconds(n int64) *harnessv1.Budgets {
	return &harnessv1.Budgets{WallClock: durationpb.New(time.Duration(n) * time.Second)}
}

package judgement

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
)

// TestDecideFillsWhatIsLeftOut: a field that a posted state leaves out has its default,
// whatever else is set; a state whose run is over is refused.
func TestDecideFillsWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	decide := func(s *harnessv1.Snapshot) (string, error) {
		r, err := harnessv1.NewStopDecisionServiceClient(live.At(t).Conn).Decide(t.Context(), &harnessv1.DecideRequest{Input: &harnessv1.StepInput{
			Step: &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{TurnNumber: 1, AgentDone: true}}},
		}})
		if err != nil {
			return "", err
		}
		return decided(t, r), nil
	}
	off := proto.Bool(false)
	for name, c := range map[string]struct {
		state *harnessv1.Snapshot
		want  string
	}{
		"nothing":            {&harnessv1.Snapshot{}, "repair work_complete_not_called"},
		"a phase":            {&harnessv1.Snapshot{Phase: harnessv1.Phase_PHASE_REFLECTING}, "repair work_complete_not_called"},
		"turns":              {&harnessv1.Snapshot{TurnCount: 49}, "repair work_complete_not_called"},
		"all turns":          {&harnessv1.Snapshot{TurnCount: 50}, "DONE max_turns false"},
		"another part":       {&harnessv1.Snapshot{Config: &harnessv1.LoopConfig{Stall: &harnessv1.StallConfig{Enabled: off}}}, "repair work_complete_not_called"},
		"a part of stop":     {&harnessv1.Snapshot{Config: &harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{Policy: harnessv1.StopPolicy_STOP_POLICY_STRICT}}}, "repair work_complete_not_called"},
		"fewer turns":        {&harnessv1.Snapshot{TurnCount: 3, Config: &harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(3)}}}, "DONE max_turns false"},
		"no work_complete":   {&harnessv1.Snapshot{Config: &harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{RequireWorkComplete: off}}}, "DONE agent_done true"},
		"three rejections":   {&harnessv1.Snapshot{WorkCompleteRetries: 3}, "DONE agent_done false"},
		"its own rejections": {&harnessv1.Snapshot{WorkCompleteRetries: 3, Config: &harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{WorkCompleteMaxRetries: proto.Uint32(4)}}}, "repair work_complete_not_called"},
	} {
		if got, err := decide(c.state); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %s", name, got, err, c.want)
		}
	}
	if got, err := decide(&harnessv1.Snapshot{Phase: harnessv1.Phase_PHASE_DONE}); err == nil || status.Code(err) == codes.Internal {
		t.Errorf("a run that is over: %s, %v", got, err)
	}
}

// TestStopTheLargestNumberOfTurns: each of three segments has as many turns as can be
// written, and ends when its agent is done.
func TestStopTheLargestNumberOfTurns(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, live.Replies(live.Calls(stopDone("one")), live.Calls(stopDone("two")), live.Calls(stopDone("three"))))
	command := func(args ...string) {
		out, err := live.Command(t, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	command("run", "--max-turns", "4294967295", "--workspace", r.Dir, "--model", "openai:"+r.ID, "--run-id", r.ID, "--yolo", "Do the task.")
	s := r.Wait()
	for _, said := range []string{"And this.", "And that."} {
		s.Want("DONE agent_done accepted")
		version := stopVersion(s)
		command("send", r.ID, said)
		s = r.WaitAfter(version)
	}
	s.Want("DONE agent_done accepted")
	if len(s.Requests) != 3 || !strings.Contains(s.Result.GetSummary().GetInline(), "three") {
		t.Errorf("%d requests, the summary is %v", len(s.Requests), s.Result.GetSummary())
	}
}

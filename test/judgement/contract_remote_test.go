package judgement

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// The statuses of an output.
const (
	contractUnmet   = harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET
	contractMet     = harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET
	contractPartly  = harnessv1.RequirementStatus_REQUIREMENT_STATUS_PARTIALLY_MET
	contractSkipped = harnessv1.RequirementStatus_REQUIREMENT_STATUS_SKIPPED
)

// contractChecker is a custom check in a separate server.
type contractChecker struct {
	harnessv1.UnimplementedCheckServiceServer
	answer func(ctx context.Context, req *harnessv1.CheckRequest) (*harnessv1.RequirementCoverage, error)

	mu    sync.Mutex
	asked []*harnessv1.CheckRequest
}

func (c *contractChecker) Check(ctx context.Context, req *harnessv1.CheckRequest) (*harnessv1.CheckResponse, error) {
	c.mu.Lock()
	c.asked = append(c.asked, req)
	c.mu.Unlock()
	coverage, err := c.answer(ctx, req)
	if err != nil {
		return nil, err
	}
	return &harnessv1.CheckResponse{Coverage: coverage}, nil
}

func (c *contractChecker) requests() []*harnessv1.CheckRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// contractServe serves a check and returns where.
func contractServe(t *testing.T, answer func(ctx context.Context, req *harnessv1.CheckRequest) (*harnessv1.RequirementCoverage, error)) (*contractChecker, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &contractChecker{answer: answer}
	server := grpc.NewServer()
	harnessv1.RegisterCheckServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return c, listener.Addr().String()
}

// contractAsks is an output that a service judges.
func contractAsks(id, target string) *harnessv1.RequiredOutput {
	return contractOutput(id, &harnessv1.Predicate{Type: contractCustom, Grpc: target})
}

// A service of the user's own is given all that it needs, and what it says counts: its
// reason is in the model's next request, its evidence in the state.
func TestContractServiceDecidesAnOutput(t *testing.T) {
	t.Parallel()
	checker, at := contractServe(t, func(_ context.Context, req *harnessv1.CheckRequest) (*harnessv1.RequirementCoverage, error) {
		if req.GetResponse() != "Sehr geehrte Damen und Herren" {
			return &harnessv1.RequirementCoverage{Status: contractUnmet, Why: "the tone is too familiar"}, nil
		}
		return &harnessv1.RequirementCoverage{
			Status: contractMet, Confidence: 0.9, Evidence: []*harnessv1.Evidence{{Text: "read aloud", Digest: contractSum("x")}},
		}, nil
	})
	s := live.Play(t, live.Replies(
		contractSays("Hallo", live.Call("work_complete", live.Args{"summary": "first"})),
		contractSays("Sehr geehrte Damen und Herren", live.Call("work_complete", live.Args{"summary": "second"})),
	), contractOf(contractAsks("tone", at)))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "1: tone")
	itemsHas(t, "the gap report", contractToldGap(t, s, 1), "tone", "The tone is right", "the tone is too familiar")
	asked := checker.requests()
	if len(asked) != 2 {
		t.Fatalf("asked %d times", len(asked))
	}
	first := asked[0]
	if first.GetNamespace() != "default" || first.GetRunId() != s.ID || first.GetOutput().GetId() != "tone" || first.GetGoal() != "Do it well." ||
		first.GetResponse() != "Hallo" || first.GetWorkspace() != s.Dir {
		t.Errorf("asked with %v", first)
	}
	var state map[string]any
	if err := json.Unmarshal([]byte(first.GetState()), &state); err != nil || state["turn"] != 1.0 || state["response"] != "Hallo" {
		t.Errorf("state %s, %v", first.GetState(), err)
	}
	if first.GetIdempotencyKey() == "" || first.GetIdempotencyKey() == asked[1].GetIdempotencyKey() {
		t.Errorf("keys %q and %q", first.GetIdempotencyKey(), asked[1].GetIdempotencyKey())
	}
	r := contractRequirement(t, s.State(), "tone")
	e := r.GetEvidence()
	if r.GetConfidence() != 0.9 || len(e) != 1 || e[0].GetKind() != "service" || e[0].GetText() != "read aloud" || e[0].GetDigest() != contractSum("x") || e[0].GetTurnNumber() != 2 {
		t.Errorf("status = %v", r)
	}
}

// What counts as met: in part only where that is allowed; what is left out never, for
// a required output; a confidence below the least one not; no answer only as often as
// it is tolerated. Optional outputs never block. Each rejection has the reason.
func TestContractAcceptabilityDecidesWhatCounts(t *testing.T) {
	t.Parallel()
	say := func(s harnessv1.RequirementStatus, confidence float64, why string) func() (*harnessv1.RequirementCoverage, error) {
		return func() (*harnessv1.RequirementCoverage, error) {
			return &harnessv1.RequirementCoverage{Status: s, Confidence: confidence, Why: why}, nil
		}
	}
	fail := func() (*harnessv1.RequirementCoverage, error) {
		return nil, status.Error(codes.Internal, "the judge is ill")
	}
	partial := &harnessv1.Acceptability{AllowPartial: proto.Bool(true)}
	tolerant := &harnessv1.Acceptability{MaxUnknowns: proto.Uint32(1)}
	for name, c := range map[string]struct {
		answer   func() (*harnessv1.RequirementCoverage, error)
		accept   *harnessv1.Acceptability
		optional bool
		twice    bool
		status   string
		// why it is not accepted; empty: it is.
		why []string
	}{
		"met":                           {answer: say(contractMet, 1, ""), status: "out MET service"},
		"met, nothing said of how sure": {answer: say(contractMet, 0, ""), status: "out MET service"},
		"unmet":                         {answer: say(contractUnmet, 1, "half of it lacks"), status: "out UNMET", why: []string{"half of it lacks"}},
		"unmet, optional":               {answer: say(contractUnmet, 1, "half of it lacks"), optional: true, status: "out UNMET"},
		"in part":                       {answer: say(contractPartly, 1, "half of it lacks"), status: "out PARTIALLY_MET service", why: []string{"in part", "half of it lacks"}},
		"in part, allowed":              {answer: say(contractPartly, 1, "half of it lacks"), accept: partial, status: "out PARTIALLY_MET service"},
		"in part, allowed, unsure":      {answer: say(contractPartly, 0.5, ""), accept: partial, status: "out PARTIALLY_MET service", why: []string{"0.5", "0.6"}},
		"in part, optional":             {answer: say(contractPartly, 1, ""), optional: true, status: "out PARTIALLY_MET service"},
		"skipped":                       {answer: say(contractSkipped, 1, "not wanted"), status: "out SKIPPED", why: []string{"left out", "not wanted"}},
		"skipped, partial allowed":      {answer: say(contractSkipped, 1, "not wanted"), accept: partial, status: "out SKIPPED", why: []string{"left out"}},
		"skipped, optional":             {answer: say(contractSkipped, 1, ""), optional: true, status: "out SKIPPED"},
		"as sure as needed":             {answer: say(contractMet, 0.6, ""), status: "out MET service"},
		"not sure enough":               {answer: say(contractMet, 0.59, ""), status: "out MET service", why: []string{"0.59", "0.6"}},
		"not as sure as was asked":      {answer: say(contractMet, 0.9, ""), accept: &harnessv1.Acceptability{MinConfidence: proto.Float64(0.95)}, status: "out MET service", why: []string{"0.9", "0.95"}},
		"unsure and good enough":        {answer: say(contractMet, 0.1, ""), accept: &harnessv1.Acceptability{MinConfidence: proto.Float64(0.1)}, status: "out MET service"},
		"no answer":                     {answer: fail, status: "out UNMET unknown", why: []string{"the judge is ill"}},
		"no answer, tolerated":          {answer: fail, accept: tolerant, status: "out UNMET unknown"},
		"two without, one tolerated":    {answer: fail, accept: tolerant, twice: true, status: "out UNMET unknown", why: []string{"the judge is ill"}},
		"two without, two tolerated":    {answer: fail, accept: &harnessv1.Acceptability{MaxUnknowns: proto.Uint32(2)}, twice: true, status: "out UNMET unknown"},
		"no answer, optional":           {answer: fail, optional: true, status: "out UNMET unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, at := contractServe(t, func(context.Context, *harnessv1.CheckRequest) (*harnessv1.RequirementCoverage, error) {
				return c.answer()
			})
			outputs := []*harnessv1.RequiredOutput{contractAsks("out", at)}
			outputs[0].Optional = c.optional
			if c.twice {
				outputs = append(outputs, contractAsks("other", at))
			}
			s := live.Play(t, live.Replies(contractFinish("first"), contractFinish("second")), contractTurns(2), contractOf(outputs...), contractAccepts(c.accept))
			if got := contractStatuses(s.State())[0]; got != c.status {
				t.Errorf("status = %q, want %q", got, c.status)
			}
			if len(c.why) == 0 {
				s.Want("DONE agent_done accepted")
				return
			}
			s.Want("DONE max_turns")
			itemsHas(t, "the gap report", contractToldGap(t, s, 1), append(c.why, "out (The out is right)")...)
		})
	}
}

// A service that does not answer in time, or that is not there, gives no answer; the
// run continues.
func TestContractServiceThatIsNotThereGivesNoAnswer(t *testing.T) {
	t.Parallel()
	_, hanging := contractServe(t, func(ctx context.Context, _ *harnessv1.CheckRequest) (*harnessv1.RequirementCoverage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	slow := contractAsks("slow", hanging)
	slow.Predicate.Timeout = durationpb.New(50 * time.Millisecond)
	s := live.Play(t, live.Replies(contractFinish("first"), contractFinish("second")), contractTurns(2), contractOf(slow, contractAsks("gone", gone.Addr().String())))
	s.Want("DONE max_turns")
	itemsEqual(t, "gaps", contractGaps(s), "1: slow gone")
	itemsEqual(t, "the state", contractStatuses(s.State()), "slow UNMET unknown", "gone UNMET unknown")
	itemsHas(t, "the gap report", contractToldGap(t, s, 1), "slow could not be checked", "gone could not be checked")
}

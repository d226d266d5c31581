package judgement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// The status of each output can be read from outside with its evidence, in the
// contract's order, and how much of it is met is in the result: three of five.
func TestContractCoverageIsReadableFromOutside(t *testing.T) {
	t.Parallel()
	_, at := contractServe(t, contractByID(map[string]harnessv1.RequirementStatus{"tone": contractPartly, "summary": contractSkipped}))
	s := live.Play(t, live.Replies(
		live.Calls(live.Call("write_file", live.Args{"path": "report.md", "content": "Report"})),
		contractFinish("first"),
	), contractOf(
		contractFile("report", "report.md"),
		contractOptional(contractAsks("tone", at)),
		contractOutput("written", &harnessv1.Predicate{Type: contractToolSuccess, Tool: "write_file"}),
		contractOptional(contractAsks("summary", at)),
		contractOutput("taste", &harnessv1.Predicate{Type: contractAlwaysTrue}),
	))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "the state", contractStatuses(s.State()),
		"report MET file", "tone PARTIALLY_MET service", "written MET tool_call", "summary SKIPPED", "taste MET model_judgement")
	for _, r := range s.State().GetCoverageLedger().GetRequirements() {
		if want := map[string]float64{"taste": 0.6}[r.GetRequirementId()]; want > 0 && r.GetConfidence() != want {
			t.Errorf("%s is certain by %v", r.GetRequirementId(), r.GetConfidence())
		}
		for _, e := range r.GetEvidence() {
			if e.GetTurnNumber() != 2 || e.GetText() == "" {
				t.Errorf("evidence of %s: %v", r.GetRequirementId(), e)
			}
		}
	}
	c := s.Result.GetCoverage()
	if c.GetMet() != 3 || c.GetTotal() != 5 || !slices.Equal(c.GetUnmet(), []string{"tone", "summary"}) {
		t.Errorf("coverage %v", c)
	}
	if !s.Result.GetReason().GetDetails().GetContractVerified() {
		t.Errorf("details %v", s.Result.GetReason())
	}
	itemsEqual(t, "evaluations", contractEvaluations(s), "2: 3/5 satisfied")
}

// contractByID answers by the output's id.
func contractByID(by map[string]harnessv1.RequirementStatus) func(context.Context, *harnessv1.CheckRequest) (*harnessv1.RequirementCoverage, error) {
	return func(_ context.Context, req *harnessv1.CheckRequest) (*harnessv1.RequirementCoverage, error) {
		return &harnessv1.RequirementCoverage{Status: by[req.GetOutput().GetId()], Confidence: 1}, nil
	}
}

// A run that ends without its gates has the coverage as it is then, as far as looking
// has no effects: commands are not run for it.
func TestContractCoverageOfARunOutOfTurns(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(contractFinish("first"), contractWrite("report.md", "Report")), contractTurns(2),
		contractOf(contractFile("report", "report.md"), contractCommand("tests", "echo run >> runs.txt; false"), contractFile("other", "other.md")))
	s.Want("DONE max_turns")
	c := s.Result.GetCoverage()
	if c.GetMet() != 1 || c.GetTotal() != 3 || !slices.Equal(c.GetUnmet(), []string{"tests", "other"}) {
		t.Errorf("coverage %v", c)
	}
	itemsEqual(t, "evaluations", contractEvaluations(s), "1: 0/3", "2: 1/3")
	if got := contractRead(s.Run, "runs.txt"); got != "run\n" {
		t.Errorf("the command has run %q", got)
	}
	if s.Result.GetReason().GetDetails().GetContractVerified() {
		t.Errorf("details %v", s.Result.GetReason())
	}
}

// The simple form gives outputs R1 to Rn, after the explicit ones, which the
// model's own word meets; a higher demand on certainty can never be met and is refused.
func TestContractSimpleFormIsTheModelsJudgement(t *testing.T) {
	t.Parallel()
	lines := func(spec *harnessv1.RunSpec) {
		contractOf(contractFile("report", "report.md"))(spec)
		spec.Contract.Requirements = []string{"The cause is named", "It loads in a second"}
	}
	s := live.Play(t, live.Replies(contractWrite("report.md", "r"), contractFinish("first")), lines)
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "the state", contractStatuses(s.State()), "report MET file", "R1 MET model_judgement", "R2 MET model_judgement")
	if r := contractRequirement(t, s.State(), "R1"); r.GetConfidence() != 0.6 {
		t.Errorf("R1 = %v", r)
	}
	t.Run("strictly", func(t *testing.T) {
		t.Parallel()
		r := live.Prepare(t, live.Replies(live.Done()))
		spec := r.Spec(lines, contractAccepts(&harnessv1.Acceptability{MinConfidence: proto.Float64(0.7)}))
		_, err := live.Gateway(t).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: spec})
		if status.Code(err) != codes.InvalidArgument {
			t.Fatalf("the start gives %v", err)
		}
		itemsHas(t, "the refusal", err.Error(), "spec.contract.acceptability.min_confidence", "0.7", "R1", "0.6")
	})
}

// The first request lists what must exist. The gap report is in the next request with
// each output that is missing, what it is and why, and what to do; what is met or
// optional is not in it.
func TestContractGapReportNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		contractWrite("there.md", "x"),
		contractFinish("first"),
		contractWrite("missing.md", "x"),
		contractFinish("second"),
		live.Calls(live.Call("read_file", live.Args{"path": "there.md"})),
		contractFinish("third"),
	), contractOf(
		contractFile("alpha", "there.md"),
		contractFile("beta", "missing.md"),
		contractOptional(contractFile("gamma", "luxury.md")),
		contractOutput("delta", &harnessv1.Predicate{Type: contractToolSuccess, Tool: "read_file"}),
	))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "2: beta delta", "4: delta")
	itemsHas(t, "the first request", s.Text(0), "The alpha is right", "The beta is right", "The delta is right")
	told := contractToldGap(t, s, 2)
	itemsHas(t, "the gap report", told, "beta (The beta is right)", "no such file", "Write the file missing.md", "delta (The delta is right)", "read_file has not been called")
	itemsLacks(t, "the gap report", told, "The alpha is right", "The gamma is right", "luxury.md")
	itemsLacks(t, "the second gap report", contractToldGap(t, s, 4), "The beta is right")
	for _, e := range s.Events {
		if gap := e.GetStopRejected().GetGap(); gap != nil {
			for _, u := range gap.GetUnmetRequirements() {
				if u.GetDescription() != "The "+u.GetId()+" is right" || u.GetWhy() == "" {
					t.Errorf("gap %v", u)
				}
			}
			if len(gap.GetSuggestions()) != len(gap.GetUnmetRequirements()) {
				t.Errorf("suggestions %q", gap.GetSuggestions())
			}
		}
	}
	if m := s.Requests[2].Messages; m[len(m)-1].Role != "user" {
		t.Errorf("the gap report is not in the user's place: %+v", m[len(m)-1])
	}
	itemsStable(t, s)
}

// An unattended run continues until every required output is
// proven: no number of claims to be done ends it.
func TestContractUnattendedRunContinuesUntilAllIsProven(t *testing.T) {
	t.Parallel()
	var script []modeltest.Reply
	var outputs []*harnessv1.RequiredOutput
	var want []string
	for i := range 8 {
		path := fmt.Sprintf("part%d.md", i)
		outputs = append(outputs, contractFile(fmt.Sprintf("p%d", i), path))
		script = append(script, contractFinish(fmt.Sprint(i)), contractWrite(path, fmt.Sprintf("part %d", i)))
		line := fmt.Sprintf("%d:", 2*i+1)
		for j := i; j < 8; j++ {
			line += fmt.Sprintf(" p%d", j)
		}
		want = append(want, line)
	}
	s := live.Play(t, live.Replies(append(script, contractFinish("last"))...), contractOf(outputs...), func(spec *harnessv1.RunSpec) { spec.Agent.Autonomous = true })
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), want...)
	if c := s.Result.GetCoverage(); c.GetMet() != 8 || c.GetTotal() != 8 {
		t.Errorf("coverage %v", c)
	}
	itemsStable(t, s)
}

// A silent agent does not end either: once its reminders are
// used up the contract holds it.
func TestContractHoldsASilentAgent(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("I think that is all.")), contractOf(contractFile("report", "report.md")), contractTurns(9))
	s.Want("DONE max_turns")
	itemsEqual(t, "gaps", contractGaps(s), "6: report", "7: report", "8: report")
}

// A contract that is switched off leaves no trace: nothing is looked at, nothing is run.
func TestContractSwitchedOffLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(contractFinish("first")), contractOf(contractFile("report", "report.md"), contractCommand("tests", "touch ran.txt; false")),
		func(spec *harnessv1.RunSpec) {
			spec.Contract.Questions = []*harnessv1.UserQuestion{{Id: "q", Question: "Which?", Required: proto.Bool(true)}}
			spec.Config.Contract = &harnessv1.ContractConfig{Enabled: proto.Bool(false)}
		})
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 1 || len(s.Names("contract.evaluated", "stop.rejected")) > 0 || s.Exists("ran.txt") {
		t.Errorf("%d turns, %v, the command has run: %t", s.Result.GetTurnCount(), s.Names(), s.Exists("ran.txt"))
	}
	itemsLacks(t, "the first request", s.Text(0), "The report is right", "Which?")
	if s.Result.Coverage != nil || s.Result.GetReason().GetDetails().GetContractVerified() || s.State().GetCoverageLedger() != nil {
		t.Errorf("result %v, state %v", s.Result, s.State().GetCoverageLedger())
	}
}

// Without a contract work_complete alone decides.
func TestContractNoneLeavesItToWorkComplete(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(contractFinish("first")))
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 1 || s.Result.Coverage != nil || s.Result.GetReason().GetDetails().GetContractVerified() || len(s.Names("contract.evaluated")) > 0 {
		t.Errorf("result %v", s.Result)
	}
}

// A large contract stays within bounds for the model and is whole in the state.
func TestContractLargeOnesStayReadable(t *testing.T) {
	t.Parallel()
	var outputs []*harnessv1.RequiredOutput
	for i := range 120 {
		outputs = append(outputs, contractFile(fmt.Sprintf("o%03d", i), fmt.Sprintf("some/what/longer/path/of/file-%03d.md", i)))
	}
	s := live.Play(t, live.Replies(contractFinish("first"), contractFinish("second")), contractOf(outputs...), contractTurns(2))
	s.Want("DONE max_turns")
	told := ""
	for _, m := range s.Requests[1].Messages[len(s.Requests[0].Messages):] {
		if m.Role == "user" && strings.Contains(m.Content, "o000") {
			told = m.Content
		}
	}
	if len(told) == 0 || len(told) > 6<<10 {
		t.Errorf("the gap report has %d bytes", len(told))
	}
	itemsHas(t, "the gap report", told, "Not met (120)", "more")
	state := contractStatuses(s.State())
	if len(state) != 120 || state[119] != "o119 UNMET" {
		t.Errorf("the state has %d outputs", len(state))
	}
	if c := s.Result.GetCoverage(); c.GetTotal() != 120 || len(c.GetUnmet()) != 120 {
		t.Errorf("coverage %v", c)
	}
}

// The names of the designs are used for the events that they mean alone: a plan that is
// final, an evaluated contract and a rejected stop keep their names.
func TestContractEventsKeepTheirNames(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(contractFinish("first"), contractWrite("report.md", "r"), contractFinish("second")), contractOf(contractFile("report", "report.md")))
	s.Want("DONE agent_done accepted")
	body := stream(t, s.ID)
	for _, name := range []string{"harness_started", "plan.commit", "stop.rejected", "contract.evaluated", "harness_completed"} {
		if !strings.Contains(body, "event: "+name+"\n") {
			t.Errorf("no event has the name %s", name)
		}
	}
	for _, name := range []string{"harness_plan_selected", "harness_contract", "harness_retry"} {
		if strings.Contains(body, name) {
			t.Errorf("an event has the name %s", name)
		}
	}
}

package judgement

import (
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

// contractAsking adds questions to the contract, written as "id: question".
func contractAsking(required bool, questions ...string) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) {
		if spec.Contract == nil {
			spec.Contract = &harnessv1.TaskContract{Goal: "Do it well."}
		}
		for _, q := range questions {
			id, text, _ := strings.Cut(q, ": ")
			spec.Contract.Questions = append(spec.Contract.Questions, &harnessv1.UserQuestion{Id: id, Question: text, Required: &required})
		}
	}
}

// contractAnswer answers a pending call.
func contractAnswer(r *live.Run, callID, text string, failed bool) error {
	_, err := live.Gateway(r.T).SendInput(r.T.Context(), &harnessv1.SendInputRequest{RunId: r.ID, Input: &harnessv1.SendInputRequest_ToolAnswer{
		ToolAnswer: &harnessv1.ToolAnswer{CallId: callID, Result: content.Inline(text), IsError: failed},
	}})
	return err
}

// contractPending returns the calls that a parked run waits for, such as
// "question Which?".
func contractPending(s *live.Transcript) []string {
	var all []string
	for _, p := range s.Result.GetPending() {
		all = append(all, p.GetKind()+" "+p.GetWhy())
	}
	return all
}

// contractWaits returns the id of a call that a parked run waits for, from 0.
func contractWaits(s *live.Transcript, n int) string {
	s.T.Helper()
	if n >= len(s.Result.GetPending()) {
		s.T.Fatalf("%d calls wait", len(s.Result.GetPending()))
	}
	return s.Result.GetPending()[n].GetCallId()
}

func contractVersion(s *live.Transcript) uint64 { return s.Events[len(s.Events)-1].GetVersion() }

// Unanswered required questions park the run, all at the same time;
// the answers reach the model word for word, count, and are kept. One that is not
// required is never asked.
func TestContractQuestionsArePutToTheUserAndAnswered(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(contractFinish("first"), contractFinish("second")),
		contractAsking(true, "audience: Who is going to read it?", "length: How long may it be?"), contractAsking(false, "colour: Which colour?"))
	s.Want("PARKED question")
	itemsEqual(t, "pending", contractPending(s), "question Who is going to read it?", "question How long may it be?")
	listed, err := live.Gateway(t).ListPending(t.Context(), &harnessv1.ListPendingRequest{RunId: s.ID})
	if err != nil || len(listed.GetPending()) != 2 || !strings.Contains(listed.GetPending()[0].GetCall().GetArguments().GetInline(), "Who is going to read it?") {
		t.Fatalf("listed %v, %v", listed, err)
	}
	audience, length := contractWaits(s, 0), contractWaits(s, 1)
	if len(s.Requests) != 1 || s.Result.GetWakeAt() == nil {
		t.Errorf("%d requests, wakes at %v", len(s.Requests), s.Result.GetWakeAt())
	}

	version := contractVersion(s)
	if err := contractAnswer(s.Run, audience, "The board of the bank.", false); err != nil {
		t.Fatal(err)
	}
	s = s.WaitAfter(version)
	if s.Verdict() != "PARKED question" || len(s.Requests) != 1 {
		t.Fatalf("with one answer of two: %s, %d requests", s.Verdict(), len(s.Requests))
	}
	itemsEqual(t, "pending", contractPending(s), "question How long may it be?")
	if err := contractAnswer(s.Run, audience, "Somebody else.", false); status.Code(err) != codes.AlreadyExists {
		t.Errorf("a second answer: %v", err)
	}
	if err := contractAnswer(s.Run, "contract:colour", "Red.", false); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("an answer to an unknown question: %v", err)
	}

	version = contractVersion(s)
	if err := contractAnswer(s.Run, length, "Two pages.", false); err != nil {
		t.Fatal(err)
	}
	s = s.WaitAfter(version)
	s.Want("DONE agent_done accepted")
	itemsHas(t, "the next request", s.Added(1), "Who is going to read it?", "The board of the bank.", "How long may it be?", "Two pages.")
	itemsLacks(t, "the next request", s.Added(1), "colour", "Somebody else.")
	var answers []string
	for _, a := range s.State().GetCoverageLedger().GetAnswers() {
		answers = append(answers, a.GetQuestionId()+": "+a.GetAnswer().GetInline())
	}
	itemsEqual(t, "answers", answers, "audience: The board of the bank.", "length: Two pages.")
	itemsStable(t, s)
}

// What is missing in addition to an unanswered question reaches the model with the answer:
// its stop was rejected for that too.
func TestContractGapWithAQuestionComesWithTheAnswer(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(contractFinish("first"), contractWrite("report.md", "r"), contractFinish("second")),
		contractOf(contractFile("report", "report.md")), contractAsking(true, "audience: Who is going to read it?"))
	s.Want("PARKED question")
	version := contractVersion(s)
	if err := contractAnswer(s.Run, contractWaits(s, 0), "The board.", false); err != nil {
		t.Fatal(err)
	}
	s = s.WaitAfter(version)
	s.Want("DONE agent_done accepted")
	itemsHas(t, "the next request", s.Added(1), "The board.", "report (The report is right)")
}

// A question that the user does not want to answer counts as answered: it is not put
// again, and if the work continues the model gets the reason for the missing answer.
func TestContractQuestionMayBeDeclined(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(contractFinish("first"), contractWrite("report.md", "r"), contractFinish("second")),
		contractOf(contractFile("report", "report.md")), contractAsking(true, "audience: Who is going to read it?"))
	s.Want("PARKED question")
	version := contractVersion(s)
	if err := contractAnswer(s.Run, contractWaits(s, 0), "That is nobody's business.", true); err != nil {
		t.Fatal(err)
	}
	s = s.WaitAfter(version)
	s.Want("DONE agent_done accepted")
	a := s.State().GetCoverageLedger().GetAnswers()
	if len(a) != 1 || a[0].GetQuestionId() != "audience" || !a[0].GetDeclined() || a[0].GetAnswer().GetInline() != "That is nobody's business." {
		t.Errorf("answers %v", a)
	}
	itemsHas(t, "the next request", s.Added(1), "Who is going to read it?", "That is nobody's business.", "report (The report is right)")
}

// A resume is no answer: the run keeps waiting for the same one, which still counts.
func TestContractQuestionIsNotAnsweredByAResume(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(contractFinish("first"), contractFinish("second")), contractAsking(true, "audience: Who is going to read it?"))
	s.Want("PARKED question")
	asked, version := contractWaits(s, 0), contractVersion(s)
	if _, err := live.Gateway(t).ResumeRun(t.Context(), &harnessv1.ResumeRunRequest{RunId: s.ID}); err != nil {
		t.Fatal(err)
	}
	s = s.WaitAfter(version)
	s.Want("PARKED question")
	if contractWaits(s, 0) != asked || len(s.Requests) != 1 {
		t.Errorf("it waits for %v, with %d requests", s.Result.GetPending(), len(s.Requests))
	}
	version = contractVersion(s)
	if err := contractAnswer(s.Run, asked, "The board.", false); err != nil {
		t.Fatal(err)
	}
	s = s.WaitAfter(version)
	s.Want("DONE agent_done accepted")
	if a := s.State().GetCoverageLedger().GetAnswers(); len(a) != 1 || a[0].GetAnswer().GetInline() != "The board." {
		t.Errorf("answers %v", a)
	}
}

// A required question of an autonomous agent is rejected.
func TestContractRequiredQuestionOfAnAutonomousAgentIsRejected(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, live.Replies(live.Done()))
	spec := r.Spec(contractAsking(true, "audience: Who is going to read it?"), func(spec *harnessv1.RunSpec) { spec.Agent.Autonomous = true })
	_, err := live.Gateway(t).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: spec})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(status.Convert(err).Message(), "spec.contract.questions[0].required") {
		t.Errorf("the start said %v", err)
	}
}

// A call of the model cannot pass for a question of the contract, whatever id it has.
func TestContractQuestionIsNotAnsweredThroughACallOfTheModel(t *testing.T) {
	t.Parallel()
	ask := live.Call("ask_user", live.Args{"question": "What is the time?"})
	ask.ID = "contract:audience"
	s := live.Play(t, live.Replies(modeltest.Reply{Calls: []modeltest.Call{ask}}, contractFinish("first"), contractFinish("second")),
		contractAsking(true, "audience: Who is going to read it?"))
	s.Want("PARKED question")
	if p := s.Result.GetPending(); len(p) != 1 || p[0].GetTool() != "ask_user" || p[0].GetCallId() == "contract:audience" {
		t.Fatalf("pending %v", p)
	}
	version := contractVersion(s)
	if err := contractAnswer(s.Run, contractWaits(s, 0), "Noon.", false); err != nil {
		t.Fatal(err)
	}
	s = s.WaitAfter(version)
	s.Want("PARKED question")
	itemsEqual(t, "pending", contractPending(s), "question Who is going to read it?")
	if n := len(s.State().GetCoverageLedger().GetAnswers()); n != 0 {
		t.Errorf("%d answers", n)
	}
}

// contractQuestions adds a question to the contract that leaves open whether it is required.
func contractQuestions(spec *harnessv1.RunSpec) {
	contractAsking(true, "audience: Who is going to read it?")(spec)
	spec.Contract.Questions[0].Required = nil
}

// A question is required unless it says otherwise. The model gets it at the start. The
// run parks for it at the first attempt to stop, before any of the work is checked.
func TestContractQuestionsComeBeforeTheWorkIsChecked(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(contractFinish("first"), contractFinish("second")), contractOf(contractCommand("tests", "touch ran")), contractQuestions,
		contractAsking(false, "colour: Which colour?"))
	s.Want("PARKED question")
	itemsEqual(t, "pending", contractPending(s), "question Who is going to read it?")
	itemsHas(t, "the first request", s.Added(0), "audience: Who is going to read it? [required]", "colour: Which colour?", "ask_user")
	if s.Exists("ran") || len(s.Names("contract.evaluated")) != 0 {
		t.Error("the work was checked before the question was put")
	}
	version := contractVersion(s)
	if err := contractAnswer(s.Run, contractWaits(s, 0), "The board.", false); err != nil {
		t.Fatal(err)
	}
	s = s.WaitAfter(version)
	s.Want("DONE agent_done accepted")
	if !s.Exists("ran") {
		t.Error("the work was not checked")
	}
	itemsStable(t, s)
}

// Silence is an attempt to stop too: the run parks before the agent is reminded of
// work_complete.
func TestContractQuestionsComeWhenTheAgentFallsSilent(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("Done."), contractFinish("first")), contractQuestions, func(spec *harnessv1.RunSpec) {
		spec.Config.Continuation = &harnessv1.ContinuationConfig{Enabled: proto.Bool(false)}
	})
	s.Want("PARKED question")
	if len(s.Requests) != 1 || len(s.Names("stop.rejected")) != 0 {
		t.Errorf("%d requests, %v", len(s.Requests), s.Names("stop.rejected"))
	}
	version := contractVersion(s)
	if err := contractAnswer(s.Run, contractWaits(s, 0), "The board.", false); err != nil {
		t.Fatal(err)
	}
	s = s.WaitAfter(version)
	s.Want("DONE agent_done accepted")
	itemsHas(t, "the next request", s.Added(1), "The board.", "work_complete")
}

// A run without progress is not stalled while a question is open: the answers may be what
// it needs.
func TestContractQuestionsComeBeforeAStall(t *testing.T) {
	t.Parallel()
	look := live.Calls(live.Call("read_file", live.Args{"path": "there.md"}))
	s := live.Play(t, live.Replies(look, look, look, look, contractFinish("first")), contractQuestions, func(spec *harnessv1.RunSpec) {
		spec.Config.DoomLoop = &harnessv1.DoomLoopConfig{Enabled: proto.Bool(false)}
	})
	s.Want("PARKED question")
	asked, version := contractWaits(s, 0), contractVersion(s)
	if err := contractAnswer(s.Run, asked, "The board.", false); err != nil {
		t.Fatal(err)
	}
	s = s.WaitAfter(version)
	s.Want("DONE agent_done accepted")
}

// Every gap report has the questions without an answer, also those that are not required.
// An autonomous agent gets its questions and its gaps, and the run never parks for them.
func TestContractQuestionsAreInEachGapReport(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*harnessv1.RunSpec){
		"not required": contractAsking(false, "audience: Who is going to read it?"),
		"autonomous": func(spec *harnessv1.RunSpec) {
			contractQuestions(spec)
			spec.Agent.Autonomous = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, live.Replies(contractFinish("first"), contractWrite("report.md", "r"), contractFinish("second")), contractOf(contractFile("report", "report.md")), edit)
			s.Want("DONE agent_done accepted")
			itemsHas(t, "the first request", s.Added(0), "audience: Who is going to read it?")
			itemsLacks(t, "the first request", s.Added(0), "[required]")
			itemsHas(t, "the gap report", s.Added(1), "Who is going to read it?", "report.md")
			for _, e := range s.Events {
				if r := e.GetStopRejected(); r != nil {
					itemsEqual(t, "unanswered", r.GetGap().GetUnansweredQuestions(), "Who is going to read it?")
				}
			}
			if q := s.State().GetTaskContract().GetQuestions()[0]; q.Required == nil || q.GetRequired() {
				t.Errorf("the run keeps %v", q)
			}
		})
	}
}

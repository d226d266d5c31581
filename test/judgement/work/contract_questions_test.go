package work

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/modeltest"
)

// contractAsking adds questions to the contract, written as "id: question".
func contractAsking(required bool, questions ...string) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) {
		if spec.Contract == nil {
			spec.Contract = &harnessv1.TaskContract{Goal: "Do it well."}
		}
		for _, q := range questions {
			id, text, _ := strings.Cut(q, ": ")
			spec.Contract.Questions = append(spec.Contract.Questions, &harnessv1.UserQuestion{Id: id, Question: text, Required: required})
		}
	}
}

// contractAnswer answers a pending call.
func contractAnswer(r *live.Run, callID, text string, failed bool) error {
	_, err := live.Gateway.SendInput(r.T.Context(), &harnessv1.SendInputRequest{RunId: r.ID, Input: &harnessv1.SendInputRequest_ToolAnswer{
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
	listed, err := live.Gateway.ListPending(t.Context(), &harnessv1.ListPendingRequest{RunId: s.ID})
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
	if _, err := live.Gateway.ResumeRun(t.Context(), &harnessv1.ResumeRunRequest{RunId: s.ID}); err != nil {
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
	_, err := live.Gateway.StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: spec})
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

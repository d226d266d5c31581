package gateway

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var noon = time.Date(2026, 11, 21, 10, 30, 15, 0, time.UTC)

func TestRunID(t *testing.T) {
	id := func(runID, requestID string, random uint64) string {
		id, madeUp := RunID(&harnessv1.StartRunRequest{RunId: runID, RequestId: requestID}, noon, random)
		if !runlog.Name.MatchString(id) {
			t.Errorf("%q is not a valid name", id)
		}
		if madeUp != (runID == "" && requestID == "") {
			t.Errorf("%q: generated is %v", id, madeUp)
		}
		return id
	}
	if got := id("mine", "q", 1); got != "mine" {
		t.Errorf("got %s", got)
	}
	derived := id("", "q", 1)
	if derived != id("", "q", 2) || derived == id("", "p", 1) {
		t.Errorf("%s is not a function of the request id", derived)
	}
	if derived != "r-ry24ftj36zsbxwyoebilo2js" { // must never change: retries meet it over upgrades
		t.Errorf("got %s", derived)
	}
	if got := id("", "", 12345); !regexp.MustCompile(`^r-20261121-103015-[a-z2-7]{5}$`).MatchString(got) || got == id("", "", 54321) {
		t.Errorf("got %s", got)
	}
}

func TestSame(t *testing.T) {
	run := runlog.Run{Namespace: "n", ID: "r"}
	spec := validStart().GetSpec()
	if !Same(run, spec, proto.CloneOf(spec)) {
		t.Error("a request is not the same as itself")
	}
	spilled := proto.CloneOf(spec)
	spilled.Goal = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: content.Ref([]byte("do it"))}}
	if !Same(run, spec, spilled) {
		t.Error("where the goal is stored makes a difference")
	}
	for name, change := range map[string]func(*harnessv1.RunSpec){
		"goal":     func(s *harnessv1.RunSpec) { s.Goal = content.Inline("do it!") },
		"model":    func(s *harnessv1.RunSpec) { s.Agent.Model = "openai:gpt-6" },
		"workflow": func(s *harnessv1.RunSpec) { s.Workflow = nil },
		"presence": func(s *harnessv1.RunSpec) { s.Config.Stop.RequireWorkComplete = proto.Bool(false) },
	} {
		other := proto.CloneOf(spec)
		change(other)
		if Same(run, spec, other) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestStartRecord(t *testing.T) {
	spec := validStart().GetSpec()
	spec.Goal = content.Inline(strings.Repeat("ß", 1000))
	spec.Workflow = nil
	writer := &harnessv1.Writer{Executor: Writer, Instance: "i", Nonce: 7}
	rec := StartRecord(runlog.Run{Namespace: "n", ID: "r"}, "q", "nina", spec, nil, noon, writer)
	s := rec.GetStep().GetSnapshot()
	switch {
	case rec.GetVersion() != 1, rec.GetPrevSequence() != 0, rec.GetSchema() != runlog.Schema:
		t.Error("not a first record")
	case rec.GetStep().GetTo() != "repair", rec.GetStep().GetFrom() != "gateway":
		t.Error("wrong address")
	case len(s.GetWorkflow()) != 4, s.GetMaxTurns() != 1, s.GetModel() != "openai:gpt-5", s.GetWorkspace() != "/work":
		t.Error("the spec is not in the snapshot")
	case len(s.GetGoalPreview()) != content.MaxPreview, !s.GetCreateTime().AsTime().Equal(noon), !s.GetRunningSince().AsTime().Equal(noon):
		t.Error("wrong preview or time")
	case s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_RUNNING, s.GetPhase() != harnessv1.Phase_PHASE_IDLE:
		t.Error("wrong state")
	case rec.GetStep().GetRepairTrigger().GetRequestId() != "q", !proto.Equal(rec.GetStep().GetRepairTrigger().GetSpec(), spec):
		t.Error("wrong trigger")
	}
	a, _ := runlog.Encode(rec)
	b, _ := runlog.Encode(StartRecord(runlog.Run{Namespace: "n", ID: "r"}, "q", "nina", spec, nil, noon, writer))
	if string(a) != string(b) {
		t.Error("the same request makes different bytes")
	}
}

// TestLargestSpecFitsIntoARecord: the largest valid request fits, with its goal.
func TestLargestSpecFitsIntoARecord(t *testing.T) {
	r := validStart()
	s := r.GetSpec()
	s.Goal = content.Inline(strings.Repeat("x", runlog.MaxInline))
	for i := 0; ; i++ {
		s.Agent.ContextProviders = append(s.Agent.ContextProviders, &harnessv1.ContextProvider{
			Name: strconv.Itoa(i), Text: strings.Repeat("x", min(maxContextText, maxSpec-proto.Size(s)+proto.Size(s.GetGoal())-100)),
		})
		if proto.Size(s)-proto.Size(s.GetGoal()) > maxSpec-200 {
			break
		}
	}
	if err := CheckStart(r); err != nil {
		t.Fatal(err)
	}
	if data, err := runlog.Encode(StartRecord(runlog.Run{Namespace: "n", ID: "r"}, "q", "nina", s, nil, noon, nil)); err != nil || len(data) > runlog.MaxRecord {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	s.Agent.Name = strings.Repeat("x", 200)
	refusedAt(t, CheckStart(r), "spec", true)
}

// TestStartRecordFits: a request of many short parts fits into half a record.
func TestStartRecordFits(t *testing.T) {
	long := strings.Repeat("x", 64)
	r := validStart()
	r.RequestId = strings.Repeat("q", input.MaxID)
	s := r.GetSpec()
	s.Goal = content.Inline(strings.Repeat("x", runlog.MaxInline))
	s.Workspace = "/" + strings.Repeat("x", maxPath-1)
	s.Agent.Name, s.Agent.Instructions = strings.Repeat("x", input.MaxName), strings.Repeat("x", maxInstructions)
	s.Agent.Model = "p:" + strings.Repeat("x", input.MaxName-2)
	for range maxFallbackModels {
		s.Agent.FallbackModels = append(s.Agent.FallbackModels, s.Agent.Model)
	}
	s.Agent.Tools = nil
	for range maxToolRules {
		s.Agent.Tools = append(s.Agent.Tools, &harnessv1.ToolRule{Name: long, Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK})
	}
	s.Config.Continuation.Text = strings.Repeat("x", input.MaxReason)
	if err := CheckStart(r); err != nil {
		t.Fatal(err)
	}
	if data, err := runlog.Encode(StartRecord(runlog.Run{Namespace: long, ID: long}, r.GetRequestId(), "nina", s, nil, noon, nil)); err != nil || len(data) > runlog.MaxRecord/2 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
}

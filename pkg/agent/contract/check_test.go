package contract

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	user      = harnessv1.Role_ROLE_USER
	assistant = harnessv1.Role_ROLE_ASSISTANT
	tool      = harnessv1.Role_ROLE_TOOL
	ordinary  = harnessv1.MessageKind_MESSAGE_KIND_UNSPECIFIED

	isMet   = harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET
	isUnmet = harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET
	partly  = harnessv1.RequirementStatus_REQUIREMENT_STATUS_PARTIALLY_MET
	skipped = harnessv1.RequirementStatus_REQUIREMENT_STATUS_SKIPPED
)

func compiled(t testing.TB, p *harnessv1.Predicate) *Contract {
	t.Helper()
	c := &harnessv1.TaskContract{RequiredOutputs: []*harnessv1.RequiredOutput{{Id: "o", Description: "It", Predicate: p}}}
	if err := Validate(c); err != nil {
		t.Fatal(err)
	}
	out, err := Compile(Resolve(c))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkOnly checks the only output of a contract, and that the result is within its limits.
func checkOnly(t testing.TB, p *harnessv1.Predicate, w *memory) *harnessv1.RequirementCoverage {
	t.Helper()
	seen, err := compiled(t, p).Check(context.Background(), "o", w)
	if err != nil {
		t.Fatal(err)
	}
	if seen.GetRequirementId() != "o" || len(seen.GetWhy()) > maxWhy || strings.ContainsAny(seen.GetWhy(), "\n\r") {
		t.Errorf("out of bounds: %v", seen)
	}
	if (seen.GetStatus() == isMet || seen.GetStatus() == partly) != (len(seen.GetEvidence()) > 0) && !seen.GetUnknown() {
		t.Errorf("evidence belongs to what is met: %v", seen)
	}
	for _, e := range seen.GetEvidence() {
		if e.GetTurnNumber() != 7 || len(e.GetText()) > maxEvidenceText || e.GetKind() == "" {
			t.Errorf("the evidence is %v", e)
		}
	}
	return seen
}

func TestCheckOfEachPredicate(t *testing.T) {
	report := &harnessv1.Predicate{Type: fileExists, Path: "out/report.md"}
	cites := &harnessv1.Predicate{Type: containsText, In: "file:report.md", Pattern: `\[\d+\]`}
	done := &harnessv1.Predicate{Type: containsText, Pattern: "all tests PASS"}
	artifact := &harnessv1.Predicate{Type: containsText, In: "artifact:w1", Pattern: "^Summary"}
	schema := &harnessv1.Predicate{Type: schemaValid, In: "file:r.json", Schema: `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`}
	inItem := &harnessv1.Predicate{Type: schemaValid, In: "artifact:w1", Schema: `{"type":"array"}`}
	cel := &harnessv1.Predicate{Type: custom, Cel: `work_items.all(w, w.status == "DONE") && artifacts.w1.contains("x")`}
	run := &harnessv1.Predicate{Type: command, Command: "make test"}
	ended := func(code int32, out, errOut string) *harnessv1.CheckCommandResponse {
		return &harnessv1.CheckCommandResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, ExitCode: code, Output: out, ErrorOutput: errOut}
	}
	digestOfReport := digest("see [1]")
	for _, c := range []struct {
		name      string
		predicate *harnessv1.Predicate
		memory    memory
		status    harnessv1.RequirementStatus
		unknown   bool
		says      string // In why, or the evidence.
		evidence  string // Its kind and digest.
	}{
		{"file", report, memory{files: map[string]string{"out/report.md": "x"}}, isMet, false, "out/report.md, 1 bytes", "file " + digest("x")},
		{"no file", report, memory{files: map[string]string{"report.md": "x"}}, isUnmet, false, "out/report.md: does not exist", ""},
		{"text in file", cites, memory{files: map[string]string{"report.md": "see [1]"}}, isMet, false, "see [1]", "text " + digestOfReport},
		{"no text in file", cites, memory{files: map[string]string{"report.md": "see (1)"}}, isUnmet, false, "nothing in the file report.md matches", ""},
		{"text without file", cites, memory{}, isUnmet, false, "does not exist", ""},
		{"text beyond what is read", cites, memory{files: map[string]string{"report.md": "xxxx[1]"}, largest: 4}, isUnmet, true, "more than", ""},
		{"text in what is read", cites, memory{files: map[string]string{"report.md": "[1]xxxx"}, largest: 4}, isMet, false, "[1]", "text " + digest("[1]xxxx")},
		{"response in any case", done, memory{response: "So: All Tests pass."}, isMet, false, "All Tests pass", "text " + digest("So: All Tests pass.")},
		{"another response", done, memory{response: "No.", messages: []*harnessv1.Message{messageFrom(assistant, ordinary, "all tests pass")}}, isUnmet, false, "the last response", ""},
		{"artifact", artifact, memory{artifacts: map[string]string{"w1": "summary: x"}}, isMet, false, "summary", "text " + digest("summary: x")},
		{"no artifact", artifact, memory{}, isUnmet, false, "no artifact w1 yet", ""},
		{"valid document", schema, memory{files: map[string]string{"r.json": `{"n": 1}`}}, isMet, false, "valid", "document " + digest(`{"n": 1}`)},
		{"document of another shape", schema, memory{files: map[string]string{"r.json": `{"n": "1"}`}}, isUnmet, false, "n: got string, want integer", ""},
		{"no JSON", schema, memory{files: map[string]string{"r.json": `{"n": 1} x`}}, isUnmet, false, "not valid JSON", ""},
		{"a number of a million digits", schema, memory{files: map[string]string{"r.json": `{"n": 1e9999999}`}}, isUnmet, false, "out of range", ""},
		{"document beyond what is read", schema, memory{files: map[string]string{"r.json": `{"n": 1}`}, largest: 4}, isUnmet, true, "too large", ""},
		{"document in artifact", inItem, memory{artifacts: map[string]string{"w1": "[]"}}, isMet, false, "valid", "document " + digest("[]")},
		{"no document", inItem, memory{}, isUnmet, false, "no artifact", ""},
		{"expression", cel, memory{state: map[string]any{"artifacts": map[string]string{"w1": "x"}}}, isMet, false, "all", "expression "},
		{"expression that does not hold", cel, memory{state: map[string]any{}}, isUnmet, false, "does not hold", ""},
		{"expression without an answer", cel, memory{state: map[string]any{"work_items": 7}}, isUnmet, true, "gave no answer", ""},
		{"command", run, memory{command: ended(0, "ok", "")}, isMet, false, "exit 0: make test", "command "},
		{"failing command", run, memory{command: ended(2, "out", "FAIL: TestX\n")}, isUnmet, false, "exit 2: FAIL: TestX", ""},
		{"failing command that says it on its output", run, memory{command: ended(1, strings.Repeat("line\n", 200)+"the end", "")}, isUnmet, false, "the end", ""},
		{"failing command with a progress bar", run, memory{command: ended(1, "10%\r50%\r100%\nbroken", "")}, isUnmet, false, "exit 1: 100% broken", ""},
		{"silent failing command", run, memory{command: ended(1, "", " ")}, isUnmet, false, "exit 1, without any output", ""},
		{"command out of time", run, memory{command: ended(124, "", "")}, isUnmet, false, "want of time (2m0s)", ""},
		{"command that cannot be run", run, memory{command: &harnessv1.CheckCommandResponse{Error: "no shell"}}, isUnmet, true, "no shell", ""},
		{"command of a host that died", run, memory{command: &harnessv1.CheckCommandResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}}, isUnmet, true, "died", ""},
		{"cancelled command", run, memory{command: &harnessv1.CheckCommandResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED}}, isUnmet, true, "cancelled", ""},
		{"command without an end", run, memory{}, isUnmet, true, "does not say", ""},
		{"nothing to verify", nil, memory{}, isMet, false, "own word", "model_judgement "},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := checkOnly(t, c.predicate, &c.memory)
			if seen.GetStatus() != c.status || seen.GetUnknown() != c.unknown {
				t.Fatalf("coverage %v", seen)
			}
			text, evidence := seen.GetWhy(), ""
			if len(seen.GetEvidence()) > 0 {
				e := seen.GetEvidence()[0]
				text, evidence = e.GetText(), e.GetKind()+" "+e.GetDigest()
			}
			if !strings.Contains(text, c.says) || evidence != c.evidence {
				t.Errorf("says %q with evidence %q; want …%s… with %q", text, evidence, c.says, c.evidence)
			}
			want := 1.0
			if c.unknown {
				want = 0
			} else if c.predicate == nil {
				want = 0.6
			}
			if seen.GetConfidence() != want {
				t.Errorf("the confidence is %v, want %v", seen.GetConfidence(), want)
			}
		})
	}
}

func TestTranscriptHasOnlyTextsOfTheModelAndTools(t *testing.T) {
	needle := &harnessv1.Predicate{Type: containsText, In: "transcript", Pattern: "needle"}
	for name, m := range map[string]*harnessv1.Message{
		"the system prompt":     messageFrom(harnessv1.Role_ROLE_SYSTEM, ordinary, "needle"),
		"the goal":              messageFrom(user, harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, "needle"),
		"guidance":              messageFrom(user, harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, "needle"),
		"a gap report":          messageFrom(user, harnessv1.MessageKind_MESSAGE_KIND_STOP_REJECTED, "needle"),
		"an answer of the user": messageFrom(user, harnessv1.MessageKind_MESSAGE_KIND_ANSWER, "needle"),
		"what repair wrote":     messageFrom(tool, harnessv1.MessageKind_MESSAGE_KIND_REPAIR, "needle"),
		"arguments of a call":   calls([3]string{"c", "needle", `{"text": "needle"}`}),
	} {
		if seen := checkOnly(t, needle, &memory{messages: []*harnessv1.Message{m}}); seen.GetStatus() != isUnmet || seen.GetUnknown() {
			t.Errorf("%s counts: %v", name, seen)
		}
	}
	for name, m := range map[string]*harnessv1.Message{
		"the model":    messageFrom(assistant, ordinary, "I was asked for a Needle"),
		"a tool":       answers("c", "a needle in it", false),
		"a tool error": answers("c", "no needle", true),
		"a blob":       {Role: tool, Content: blob("d", "only hay")},
	} {
		w := &memory{blobs: map[string]string{"d": "hay and a needle"}}
		w.messages = []*harnessv1.Message{m, messageFrom(assistant, ordinary, "done")}
		if seen := checkOnly(t, needle, w); seen.GetStatus() != isMet || len(seen.GetEvidence()[0].GetDigest()) != 64 {
			t.Errorf("%s does not count: %v", name, seen)
		}
	}
}

func TestUnreadableMessageHidesNoOther(t *testing.T) {
	needle := &harnessv1.Predicate{Type: containsText, In: "transcript", Pattern: "needle"}
	lost := &harnessv1.Message{Role: tool, Content: blob("lost", "needle")}
	if seen := checkOnly(t, needle, &memory{messages: []*harnessv1.Message{messageFrom(assistant, ordinary, "needle"), lost}}); seen.GetStatus() != isMet {
		t.Errorf("it hides: %v", seen)
	}
	if seen := checkOnly(t, needle, &memory{messages: []*harnessv1.Message{lost}}); !seen.GetUnknown() {
		t.Errorf("expected unknown, got %v", seen)
	}
}

func TestLatestMatchingCallDecides(t *testing.T) {
	run := &harnessv1.Predicate{Type: toolSuccess, Tool: "run_command"}
	tests := &harnessv1.Predicate{Type: toolSuccess, Tool: "run_command", Arguments: []*harnessv1.ArgumentMatch{{Name: "command", Pattern: "^make (test|check)$"}}}
	deep := &harnessv1.Predicate{Type: toolSuccess, Tool: "edit", Arguments: []*harnessv1.ArgumentMatch{
		{Name: "file.path", Pattern: `\.go$`}, {Name: "lines", Pattern: `^\[1,2.50,"<a>"\]$`}, {Name: "a.b", Pattern: "^x$"},
	}}
	ok, failed := [3]string{"1", "run_command", `{"command": "make test"}`}, [3]string{"2", "run_command", `{"command": "ls"}`}
	for _, c := range []struct {
		name      string
		predicate *harnessv1.Predicate
		messages  []*harnessv1.Message
		status    harnessv1.RequirementStatus
		says      string
	}{
		{"never called", run, nil, isUnmet, "run_command has not been called"},
		{"another tool", run, []*harnessv1.Message{calls([3]string{"1", "read_file", "{}"}), answers("1", "x", false)}, isUnmet, "not been called"},
		{"success", run, []*harnessv1.Message{calls(ok), answers("1", "fine", false)}, isMet, "run_command (1): fine"},
		{"then a failure", run, []*harnessv1.Message{calls(ok), answers("1", "fine", false), calls(failed), answers("2", "no such file", true)}, isUnmet, "(2) failed: no such file"},
		{"a failure that does not fit", tests, []*harnessv1.Message{calls(ok), answers("1", "fine", false), calls(failed), answers("2", "x", true)}, isMet, "fine"},
		{"success after a failure", run, []*harnessv1.Message{calls(failed), answers("2", "x", true), calls(ok), answers("1", "fine", false)}, isMet, "fine"},
		{"both in one turn, the last fails", run, []*harnessv1.Message{calls(ok, failed), answers("2", "bad", true), answers("1", "fine", false)}, isUnmet, "bad"},
		{"no result yet", run, []*harnessv1.Message{calls(ok)}, isUnmet, "no result yet"},
		{"an end that nobody knows", run, []*harnessv1.Message{calls(ok), {Role: tool, ToolCallId: "1", Kind: harnessv1.MessageKind_MESSAGE_KIND_REPAIR, Content: inline("lost")}}, isUnmet, "nobody knows"},
		{"no fitting arguments", tests, []*harnessv1.Message{calls(failed), answers("2", "x", false)}, isUnmet, "run_command with command matching /^make (test|check)$/ has not been called"},
		{"arguments that are no JSON", tests, []*harnessv1.Message{calls([3]string{"1", "run_command", "make test"}), answers("1", "x", false)}, isUnmet, "not been called"},
		{"deep arguments", deep, []*harnessv1.Message{calls([3]string{"1", "edit", `{"file": {"path": "x.go"}, "lines": [1, 2.50, "<a>"], "a.b": "x"}`}), answers("1", "x", false)}, isMet, "edit"},
		{"a name in a text of the user", run, []*harnessv1.Message{{Role: user, ToolCalls: calls(ok).ToolCalls}, answers("1", "fine", false)}, isUnmet, "not been called"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := checkOnly(t, c.predicate, &memory{messages: c.messages})
			text := seen.GetWhy()
			if len(seen.GetEvidence()) > 0 {
				text = seen.GetEvidence()[0].GetText()
			}
			if seen.GetStatus() != c.status || !strings.Contains(text, c.says) {
				t.Errorf("coverage %v", seen)
			}
		})
	}
}

func TestAnswerOfAServiceIsLimitedAndCorrected(t *testing.T) {
	ask := &harnessv1.Predicate{Type: custom, Grpc: "localhost:9000"}
	long := strings.Repeat("é", 4000)
	for _, c := range []struct {
		answer     *harnessv1.RequirementCoverage
		status     harnessv1.RequirementStatus
		confidence float64
		unknown    bool
	}{
		{&harnessv1.RequirementCoverage{Status: isMet}, isMet, 1, false},
		{&harnessv1.RequirementCoverage{Status: isMet, Confidence: 0.7, RequirementId: "another"}, isMet, 0.7, false},
		{&harnessv1.RequirementCoverage{Status: isMet, Confidence: 17, Why: long}, isMet, 1, false},
		{&harnessv1.RequirementCoverage{Status: partly, Confidence: -1}, partly, 0, false},
		{&harnessv1.RequirementCoverage{Status: isMet, Confidence: math.NaN()}, isMet, 0, false},
		{&harnessv1.RequirementCoverage{Status: skipped}, skipped, 0, false},
		{&harnessv1.RequirementCoverage{Why: long}, isUnmet, 0, false},
		{&harnessv1.RequirementCoverage{Unknown: true}, isUnmet, 0, true},
		{&harnessv1.RequirementCoverage{Status: 99}, isUnmet, 0, true},
		{nil, isUnmet, 0, true},
		{&harnessv1.RequirementCoverage{Status: isMet, Evidence: []*harnessv1.Evidence{
			{Kind: "file", Digest: "no digest", Text: long, TurnNumber: 99}, {}, {}, {}, {}, {}, {},
		}}, isMet, 1, false},
	} {
		w := &memory{remote: c.answer}
		before := proto.CloneOf(c.answer)
		seen := checkOnly(t, ask, w)
		if seen.GetStatus() != c.status || seen.GetConfidence() != c.confidence || seen.GetUnknown() != c.unknown {
			t.Errorf("%.80v has coverage %.200v", c.answer, seen)
		}
		if len(seen.GetEvidence()) > maxEvidence || len(seen.GetEvidence()) > 0 && (seen.GetEvidence()[0].GetKind() != "service" || seen.GetEvidence()[0].GetDigest() != "") {
			t.Errorf("the evidence is %v", seen.GetEvidence())
		}
		if c.status != isMet && seen.GetWhy() == "" {
			t.Errorf("%.80v: no reason", c.answer)
		}
		if !proto.Equal(before, c.answer) {
			t.Error("the answer was changed")
		}
		if w.timeout != DefaultRemoteTimeout {
			t.Errorf("it may take %v", w.timeout)
		}
	}
}

func TestFailingSourceMakesAnOutputUnknown(t *testing.T) {
	for _, p := range []*harnessv1.Predicate{
		{Type: fileExists, Path: "a"}, {Type: containsText, Pattern: "a"}, {Type: containsText, In: "transcript", Pattern: "a"},
		{Type: containsText, In: "artifact:w1", Pattern: "a"}, {Type: containsText, In: "file:a", Pattern: "a"}, {Type: toolSuccess, Tool: "a"},
		{Type: command, Command: "a"}, {Type: schemaValid, In: "file:a", Schema: "true"}, {Type: custom, Cel: "true"}, {Type: custom, Grpc: "a:1"},
	} {
		w := &memory{err: errors.New("the tool\nhost is away")}
		seen := checkOnly(t, p, w)
		if !seen.GetUnknown() || seen.GetStatus() != isUnmet || !strings.Contains(seen.GetWhy(), "the tool host is away") || seen.GetConfidence() != 0 {
			t.Errorf("%v: %v", p, seen)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if seen, err := compiled(t, p).Check(ctx, "o", w); seen != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%v after the end: %v, %v", p, seen, err)
		}
	}
	if _, err := compiled(t, nil).Check(context.Background(), "nope", &memory{}); err == nil {
		t.Error("an output that is not there is looked at")
	}
}

func TestTimeoutsAndCheapChecks(t *testing.T) {
	c, err := Compile(&harnessv1.TaskContract{RequiredOutputs: []*harnessv1.RequiredOutput{
		{Id: "run", Predicate: &harnessv1.Predicate{Type: command, Command: "make", Timeout: durationpb.New(time.Minute)}},
		{Id: "ask", Predicate: &harnessv1.Predicate{Type: custom, Grpc: "h:1", Timeout: durationpb.New(time.Second)}},
		{Id: "cel", Predicate: &harnessv1.Predicate{Type: custom, Cel: "true"}}, {Id: "word"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var cheap []string
	for _, o := range c.Proto().GetRequiredOutputs() {
		if c.Cheap(o.GetId()) {
			cheap = append(cheap, o.GetId())
		}
	}
	if fmt.Sprint(cheap) != "[cel word]" {
		t.Errorf("cheap are %v", cheap)
	}
	for id, want := range map[string]time.Duration{"run": time.Minute, "ask": time.Second} {
		w := &memory{}
		if _, err := c.Check(context.Background(), id, w); err != nil || w.timeout != want {
			t.Errorf("%s may take %v, %v", id, w.timeout, err)
		}
	}
}

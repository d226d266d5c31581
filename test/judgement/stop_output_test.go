package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const outputSchema = `{"type":"object","required":["answer"],"properties":{"answer":{"type":"integer"},"sources":{"type":"array","items":{"type":"string"}}}}`

func outputOf(schema string) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.OutputSchema = schema }
}

// outputGives is a response that completes the work with an output.
func outputGives(summary string, output any) modeltest.Reply {
	return live.Calls(live.Call("work_complete", live.Args{"summary": summary, "output": output}))
}

// outputRejections are the rejected stops, such as "1 output_invalid 1".
func outputRejections(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		if r := e.GetStopRejected(); r != nil {
			all = append(all, fmt.Sprintf("%d %s %d", e.GetTurnNumber(), r.GetKind(), r.GetCount()))
		}
	}
	return all
}

// An output that is missing or does not fit is a rejected stop with its places; one that
// fits is in the result as JSON, and the result names model and transcript.
func TestOutputIsCheckedAgainstItsSchema(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(live.Call("work_complete", live.Args{"summary": "one"})),
		outputGives("two", live.Args{"answer": "many", "sources": []any{"a", 7}}),
		outputGives("three", live.Args{"answer": 42, "sources": []string{"b"}}),
	), outputOf(outputSchema))
	s.Want("DONE agent_done accepted")
	if got := outputRejections(s); !slices.Equal(got, []string{"1 output_invalid 1", "2 output_invalid 2"}) {
		t.Errorf("rejected: %q", got)
	}
	for _, tool := range s.Requests[0].Tools {
		if tool.Name == "work_complete" && !strings.Contains(string(tool.Parameters), "sources") {
			t.Errorf("work_complete does not show the schema: %s", tool.Parameters)
		}
	}
	for n, want := range map[int][]string{1: {"missing", "integer"}, 2: {"answer", "integer", "sources.1", "string"}} {
		for _, w := range want {
			if told := s.Added(n); !strings.Contains(told, w) {
				t.Errorf("request %d does not say %q: %s", n+1, w, told)
			}
		}
	}
	if got := s.Result.GetOutput().GetInline(); got != `{"answer":42,"sources":["b"]}` {
		t.Errorf("the output is %q", got)
	}
	if s.Result.GetSummary().GetInline() != "three" || s.Result.GetModel() != "openai:"+s.ID {
		t.Errorf("result %v", s.Result)
	}
	if want := "/v1/runs/" + s.ID + "/conversation?namespace=default"; s.Result.GetTranscript() != want {
		t.Errorf("the transcript is at %q, want %q", s.Result.GetTranscript(), want)
	}
}

// The output is judged before the contract. After three rejections the run ends; it is not
// accepted and has no output.
func TestOutputIsRejectedThreeTimes(t *testing.T) {
	t.Parallel()
	n := 0
	s := live.Play(t, func(int, *modeltest.Request) modeltest.Reply {
		n++
		return outputGives(fmt.Sprint(n), live.Args{"answer": fmt.Sprint(n)})
	}, outputOf(outputSchema), stopMaxTurns(9))
	s.Want("DONE agent_done")
	if got := outputRejections(s); len(got) != 3 || s.Result.GetTurnCount() != 4 || s.Result.GetOutput() != nil {
		t.Errorf("rejected %q in %d turns, output %v", got, s.Result.GetTurnCount(), s.Result.GetOutput())
	}
	if s.Result.GetReason().GetMessage() == "The agent completed the work." {
		t.Errorf("reason %v", s.Result.GetReason())
	}
}

// A large output is whole, next to its summary.
func TestOutputMayBeLarge(t *testing.T) {
	t.Parallel()
	var sources []string
	for i := range 3000 {
		sources = append(sources, fmt.Sprintf("source number %d", i))
	}
	s := live.Play(t, live.Replies(outputGives("large", live.Args{"answer": 1, "sources": sources})), outputOf(outputSchema))
	s.Want("DONE agent_done accepted")
	ref := s.Result.GetOutput().GetBlob()
	if ref == nil || ref.GetSize() < 40_000 || s.Result.GetSummary().GetInline() != "large" {
		t.Errorf("output %.200v, summary %v", s.Result.GetOutput(), s.Result.GetSummary())
	}
}

// A schema that cannot be used is refused before anything is stored.
func TestOutputSchemaIsCheckedAtTheStart(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, live.Replies(live.Done()))
	_, err := live.Gateway(t).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: r.Spec(outputOf(`{"type":"thing"}`))})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "output_schema") {
		t.Errorf("got %v", err)
	}
}

package turnserver_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// TestRunsOfAWorkerHaveTheirOwnTools: a worker keeps tool sets for later runs. Runs that differ
// only in what their contract counts, in whether their work is judged, in the tools of the web or
// in skills have different ones, whichever came first.
func TestRunsOfAWorkerHaveTheirOwnTools(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	client := harnessv1.NewTurnServiceClient(b.dial())
	tools := func(s *harnessv1.Snapshot) (list []string) {
		r, err := client.Prepare(b.Context(), &harnessv1.PrepareRequest{
			Input:        &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Step: &harnessv1.Step{To: "turn", Snapshot: s}},
			Conversation: []*harnessv1.Message{{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range r.GetRequest().GetTools() {
			name := tool.GetName()
			if _, kinds, is := strings.Cut(tool.GetParametersSchema(), `"kind":{"type":"string","enum":`); is {
				kinds, _, _ = strings.Cut(kinds, "]")
				name += kinds + "]"
			}
			list = append(list, name)
		}
		return list
	}
	counting := func(kind string) func(*harnessv1.Snapshot) {
		return func(s *harnessv1.Snapshot) {
			s.TaskContract = &harnessv1.TaskContract{RequiredOutputs: []*harnessv1.RequiredOutput{{
				Id: "o", Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_ARTIFACT_COUNT, Kind: kind, Min: proto.Uint32(1)},
			}}}
		}
	}
	runs := map[string]func(*harnessv1.Snapshot){
		"":                         func(*harnessv1.Snapshot) {},
		`save_artifact["finding"]`: counting("finding"),
		`save_artifact["letter"]`:  counting("letter"),
		`save_artifact["insight","recommendation","document"]`: func(s *harnessv1.Snapshot) { s.Quality = &harnessv1.QualityState{Kind: quality.Chat} },
		"calculate": func(s *harnessv1.Snapshot) {
			s.Definition = &harnessv1.Definition{Web: &harnessv1.Web{Calculate: true}}
		},
		"skill": func(s *harnessv1.Snapshot) { s.Skills = true },
	}
	plain := tools(b.state())
	for range 2 { // the second time from what is kept
		for want, change := range runs {
			s := b.state()
			change(s)
			more := slices.DeleteFunc(tools(s), func(name string) bool { return slices.Contains(plain, name) })
			if got := strings.Join(more, " "); got != want {
				t.Errorf("the run has %q in addition, want %q", got, want)
			}
		}
	}
}

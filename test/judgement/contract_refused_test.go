package judgement

import (
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// A contract that could never be verified is refused when the run is started, with the
// field that is wrong; nothing is stored.
func TestContractThatCannotBeVerifiedIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	outputs := func(all ...*harnessv1.RequiredOutput) *harnessv1.TaskContract {
		return &harnessv1.TaskContract{Goal: "g", RequiredOutputs: all}
	}
	one := func(p *harnessv1.Predicate) *harnessv1.TaskContract { return outputs(contractOutput("o", p)) }
	predicate := "required_outputs[0].predicate."
	for name, c := range map[string]struct {
		field    string
		contract *harnessv1.TaskContract
	}{
		"nothing asked":      {"required_outputs", &harnessv1.TaskContract{Goal: "g"}},
		"no type":            {predicate + "type", one(&harnessv1.Predicate{})},
		"empty path":         {predicate + "path", one(&harnessv1.Predicate{Type: contractFileExists})},
		"a directory":        {predicate + "path", one(&harnessv1.Predicate{Type: contractFileExists, Path: "docs/"})},
		"the workspace":      {predicate + "path", one(&harnessv1.Predicate{Type: contractFileExists, Path: "."})},
		"outside":            {predicate + "path", one(&harnessv1.Predicate{Type: contractFileExists, Path: "a/../../b"})},
		"absolute":           {predicate + "path", one(&harnessv1.Predicate{Type: contractFileExists, Path: "/etc/passwd"})},
		"bad pattern":        {predicate + "pattern", outputs(contractText("o", "response", "("))},
		"not RE2":            {predicate + "pattern", outputs(contractText("o", "response", `(?=x)`))},
		"no pattern":         {predicate + "pattern", outputs(contractText("o", "response", ""))},
		"no such place":      {predicate + "in", outputs(contractText("o", "somewhere", "x"))},
		"file outside":       {predicate + "in", outputs(contractText("o", "file:../x", "x"))},
		"artifact, no item":  {predicate + "in", outputs(contractText("o", "artifact:w1", "x"))},
		"no kind":            {predicate + "kind", outputs(contractCount("o", "", 1, false))},
		"odd kind":           {predicate + "kind", outputs(contractCount("o", "Odd kind", 1, false))},
		"none of a kind":     {predicate + "min", outputs(contractCount("o", "finding", 0, false))},
		"more than it saves": {predicate + "min", outputs(contractCount("o", "finding", 201, false))},
		"more in all":        {"required_outputs[1].predicate.min", outputs(contractCount("o", "finding", 150, false), contractCount("p", "letter", 51, false))},
		"schema of a text":   {predicate + "in", one(&harnessv1.Predicate{Type: contractSchemaValid, In: "response", Schema: `{}`})},
		"bad schema":         {predicate + "schema", one(&harnessv1.Predicate{Type: contractSchemaValid, In: "file:a", Schema: `{"type":"thing"}`})},
		"schema elsewhere":   {predicate + "schema", one(&harnessv1.Predicate{Type: contractSchemaValid, In: "file:a", Schema: `{"$ref":"file:///etc/passwd"}`})},
		"bad expression":     {predicate + "cel", outputs(contractCel("o", "turn >"))},
		"no such variable":   {predicate + "cel", outputs(contractCel("o", "moon == 'full'"))},
		"not true or false":  {predicate + "cel", outputs(contractCel("o", "turn + 1"))},
		"no target":          {predicate + "grpc", outputs(contractAsks("o", "localhost"))},
		"no command":         {predicate + "command", outputs(contractCommand("o", " "))},
		"no time":            {predicate + "timeout", one(&harnessv1.Predicate{Type: contractCommandSucceeds, Command: "true", Timeout: durationpb.New(-time.Second)})},
		"unused field":       {predicate + "command", one(&harnessv1.Predicate{Type: contractFileExists, Path: "a", Command: "true"})},
		"id twice":           {"required_outputs[1].id", outputs(contractFile("o", "a"), contractFile("o", "b"))},
		"id of a line": {"required_outputs[0].id", &harnessv1.TaskContract{
			RequiredOutputs: []*harnessv1.RequiredOutput{contractFile("R1", "a")}, Requirements: []string{"It is good"},
		}},
		"blank line":    {"requirements[1]", &harnessv1.TaskContract{Requirements: []string{"It is good", " "}}},
		"bad question":  {"questions[0].question", &harnessv1.TaskContract{Questions: []*harnessv1.UserQuestion{{Id: "q"}}}},
		"question id":   {"questions[0].id", &harnessv1.TaskContract{Questions: []*harnessv1.UserQuestion{{Id: "q q", Question: "?"}}}},
		"more than all": {"acceptability.min_confidence", &harnessv1.TaskContract{Requirements: []string{"a"}, Acceptability: &harnessv1.Acceptability{MinConfidence: proto.Float64(1.5)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live.Prepare(t, live.Replies(contractFinish("first")))
			spec := r.Spec(func(spec *harnessv1.RunSpec) { spec.Contract = c.contract })
			_, err := live.Gateway(t).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: spec})
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "spec.contract."+c.field) {
				t.Errorf("refused with %v, want %s", err, c.field)
			}
			if _, err := live.Gateway(t).GetRun(t.Context(), &harnessv1.GetRunRequest{RunId: r.ID}); status.Code(err) != codes.NotFound {
				t.Errorf("the run: %v", err)
			}
		})
	}
}

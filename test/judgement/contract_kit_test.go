package judgement

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// Types of predicates, as contract files write them.
const (
	contractFileExists      = harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS
	contractContainsText    = harnessv1.PredicateType_PREDICATE_TYPE_CONTAINS_TEXT
	contractToolSuccess     = harnessv1.PredicateType_PREDICATE_TYPE_TOOL_RESULT_SUCCESS
	contractCommandSucceeds = harnessv1.PredicateType_PREDICATE_TYPE_COMMAND_SUCCEEDS
	contractSchemaValid     = harnessv1.PredicateType_PREDICATE_TYPE_JSON_SCHEMA_VALID
	contractCustom          = harnessv1.PredicateType_PREDICATE_TYPE_CUSTOM
	contractAlwaysTrue      = harnessv1.PredicateType_PREDICATE_TYPE_ALWAYS_TRUE
)

// contractOf gives the run a contract with these outputs.
func contractOf(outputs ...*harnessv1.RequiredOutput) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) {
		spec.Contract = &harnessv1.TaskContract{Id: "task", Goal: "Do it well.", RequiredOutputs: outputs}
	}
}

// contractOutput is an output with the description "The ID is right".
func contractOutput(id string, p *harnessv1.Predicate) *harnessv1.RequiredOutput {
	return &harnessv1.RequiredOutput{Id: id, Description: "The " + id + " is right", Predicate: p}
}

func contractOptional(o *harnessv1.RequiredOutput) *harnessv1.RequiredOutput {
	o.Optional = true
	return o
}

func contractFile(id, path string) *harnessv1.RequiredOutput {
	return contractOutput(id, &harnessv1.Predicate{Type: contractFileExists, Path: path})
}

func contractText(id, in, pattern string) *harnessv1.RequiredOutput {
	return contractOutput(id, &harnessv1.Predicate{Type: contractContainsText, In: in, Pattern: pattern})
}

func contractCommand(id, line string) *harnessv1.RequiredOutput {
	return contractOutput(id, &harnessv1.Predicate{Type: contractCommandSucceeds, Command: line})
}

// contractAccepts sets how strict the contract is; use it after contractOf.
func contractAccepts(a *harnessv1.Acceptability) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Contract.Acceptability = a }
}

func contractTurns(n uint32) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Config.Stop = &harnessv1.StopConfig{MaxTurns: proto.Uint32(n)} }
}

// contractFinish is a call of work_complete with the number of the try in its summary.
func contractFinish(try string) modeltest.Reply {
	return live.Calls(live.Call("work_complete", live.Args{"summary": "finished, " + try + " try"}))
}

func contractWrite(path, content string) modeltest.Reply {
	return live.Calls(live.Call("write_file", live.Args{"path": path, "content": content}))
}

// contractGaps are the outputs that rejections said to be unmet, one string for each
// rejection, such as "3: report tests".
func contractGaps(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		r := e.GetStopRejected()
		if r.GetKind() != "contract_not_satisfied" {
			continue
		}
		line := fmt.Sprintf("%d:", e.GetTurnNumber())
		for _, u := range r.GetGap().GetUnmetRequirements() {
			line += " " + u.GetId()
		}
		all = append(all, line)
	}
	return all
}

// contractToldGap is the text of the gap report in the news of request n, from 0; the
// test fails when there is none.
func contractToldGap(t *testing.T, s *live.Transcript, n int) string {
	t.Helper()
	for _, e := range s.Events {
		if r := e.GetStopRejected(); r.GetKind() == "contract_not_satisfied" && e.GetTurnNumber() == uint32(n) {
			if n >= len(s.Requests) || !strings.Contains(s.Added(n), r.GetMessage()) {
				t.Errorf("the gap report is not in request %d:\n%s\nis missing in\n%s", n+1, r.GetMessage(), s.Added(n))
			}
			return s.Added(n)
		}
	}
	t.Errorf("no stop was rejected for the contract in turn %d: %v", n, contractGaps(s))
	return ""
}

// contractRequirement returns the requirement of an output in the state.
func contractRequirement(t *testing.T, s *harnessv1.Snapshot, id string) *harnessv1.RequirementCoverage {
	t.Helper()
	for _, r := range s.GetCoverageLedger().GetRequirements() {
		if r.GetRequirementId() == id {
			return r
		}
	}
	t.Fatalf("the state says nothing of %s: %v", id, s.GetCoverageLedger())
	return nil
}

// contractStatuses are the outputs of the state, such as "report MET file".
func contractStatuses(s *harnessv1.Snapshot) []string {
	var all []string
	for _, r := range s.GetCoverageLedger().GetRequirements() {
		all = append(all, contractStatus(r))
	}
	return all
}

func contractStatus(r *harnessv1.RequirementCoverage) string {
	line := r.GetRequirementId() + " " + strings.TrimPrefix(r.GetStatus().String(), "REQUIREMENT_STATUS_")
	for _, e := range r.GetEvidence() {
		line += " " + e.GetKind()
	}
	if r.GetUnknown() {
		line += " unknown"
	}
	return line
}

// contractEvaluations are the evaluations that observers saw, such as "2: 1/3" or
// "4: 3/3 satisfied".
func contractEvaluations(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		if c := e.GetContractEvaluated(); c != nil {
			line := fmt.Sprintf("%d: %d/%d", e.GetTurnNumber(), c.GetCoverage().GetMet(), c.GetCoverage().GetTotal())
			if c.GetSatisfied() {
				line += " satisfied"
			}
			all = append(all, line)
		}
	}
	return all
}

// contractSum is the digest of a text as evidence has it.
func contractSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// contractRead is a file of the workspace; empty when it is not there.
func contractRead(r *live.Run, path string) string {
	data, err := os.ReadFile(filepath.Join(r.Dir, path))
	if err != nil && !os.IsNotExist(err) {
		r.T.Fatal(err)
	}
	return string(data)
}

func contractSays(text string, c modeltest.Call) modeltest.Reply {
	return modeltest.Reply{Text: text, Calls: []modeltest.Call{c}}
}

func contractGoal(goal string) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Goal, spec.Contract.Goal = content.Inline(goal), goal }
}

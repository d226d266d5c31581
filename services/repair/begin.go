package repair

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// define puts what the agent is made of, and what it has to achieve, into the first
// state.
func (r *repairing) define(spec *harnessv1.RunSpec) {
	s := r.s
	s.Definition, s.TaskContract = agent.StoredForm(spec)
	if !s.GetConfig().GetContract().GetEnabled() {
		s.TaskContract = nil
	}
	if s.GetTaskContract() != nil {
		s.CoverageLedger = contract.NewLedger(s.GetTaskContract())
		s.CoverageLedger.Coverage = contract.Evaluate(s.GetTaskContract(), s.GetCoverageLedger()).Coverage
	}
	if s.GetConfig().GetWorkItems().GetEnabled() {
		s.WorkItemLedger = &harnessv1.WorkItemLedger{}
		workitem.FromTemplates(s.GetWorkItemLedger(), spec.GetAgent().GetWorkItemTemplates())
	}
}

// Section is a part of the system prompt that a context provider gave.
type Section struct{ Name, Text string }

// contexts are the sections of the agent's context providers, in their order. One
// that did not answer is left out, and observers are told.
func (r *repairing) contexts(spec *harnessv1.RunSpec) []Section {
	var sections []Section
	for _, p := range spec.GetAgent().GetContextProviders() {
		text := p.GetText()
		if p.GetGrpc() != "" {
			given := agent.Observation(r.in, NeedContext+p.GetName()).GetContext()
			if given.GetError() != "" {
				r.emit(&harnessv1.Event{Event: &harnessv1.Event_HookError{HookError: &harnessv1.HookError{
					HookId: p.GetName(), Topic: "context", Error: given.GetError(),
				}}})
				continue
			}
			text = content.Text(given.GetText())
		}
		sections = append(sections, Section{Name: p.GetName(), Text: text})
	}
	return sections
}

// contractText tells the model what it will be held to.
func contractText(c *harnessv1.TaskContract) string {
	if len(c.GetRequiredOutputs()) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("This work counts as done only when the following is there. It is checked each time you call work_complete.")
	for i, o := range c.GetRequiredOutputs() {
		if i == maxListed || b.Len() > maxContractText {
			b.WriteString("\n… and " + strconv.Itoa(len(c.GetRequiredOutputs())-i) + " more; what is missing of them is told when you call work_complete.")
			break
		}
		b.WriteString("\n- " + o.GetId() + ": " + o.GetDescription())
		if how := howChecked(o.GetPredicate()); how != "" {
			b.WriteString(" (" + how + ")")
		}
		if o.GetOptional() {
			b.WriteString(" [optional]")
		}
	}
	return b.String()
}

// Bounds of what the model is told of a contract at the start: outputs, and bytes.
const (
	maxListed       = 60
	maxContractText = 8 << 10
)

// howChecked says in a few words how an output is verified, where that helps to
// produce it.
func howChecked(p *harnessv1.Predicate) string {
	switch p.GetType() {
	case harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS:
		return "the file " + p.GetPath()
	case harnessv1.PredicateType_PREDICATE_TYPE_CONTAINS_TEXT:
		return "text that matches " + content.Cut(p.GetPattern(), 200) + " in " + cmp.Or(p.GetIn(), "response")
	case harnessv1.PredicateType_PREDICATE_TYPE_TOOL_RESULT_SUCCESS:
		return "a successful call of " + p.GetTool()
	case harnessv1.PredicateType_PREDICATE_TYPE_COMMAND_SUCCEEDS:
		return "this command succeeds: " + content.Cut(p.GetCommand(), 400)
	case harnessv1.PredicateType_PREDICATE_TYPE_JSON_SCHEMA_VALID:
		return p.GetIn() + " is valid under a JSON Schema"
	}
	return ""
}

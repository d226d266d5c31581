package repair

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// contractText tells the model what its work is checked against, and which questions are
// open.
func contractText(c *harnessv1.TaskContract, task *harnessv1.Task, autonomous bool) string {
	var parts []string
	for _, part := range []string{outputsText(c), sourcesText(c, task), questionsText(c, autonomous)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n\n")
}

// questionsText tells the model the questions of a contract.
func questionsText(c *harnessv1.TaskContract, autonomous bool) string {
	if len(c.GetQuestions()) == 0 {
		return ""
	}
	var b strings.Builder
	if autonomous {
		b.WriteString("These questions are open, and no user can be asked. Decide them as well as you can, and name what you assumed in your summary.")
	} else {
		b.WriteString("Only the user can answer these questions. Those marked required are put to the user at the latest when you first call work_complete; " +
			"the answers come as messages, and your work is checked after them. Ask with ask_user before you do work that depends on an answer.")
	}
	for i, q := range c.GetQuestions() {
		if b.Len() > maxQuestionsText {
			b.WriteString("\n… and " + strconv.Itoa(len(c.GetQuestions())-i) + " more.")
			break
		}
		b.WriteString("\n- " + q.GetId() + ": " + content.Cut(q.GetQuestion(), maxQuestionText))
		if q.GetRequired() {
			b.WriteString(" [required]")
		}
	}
	return b.String()
}

// Bounds of questionsText and of a question in it, in bytes.
const (
	maxQuestionsText = 8 << 10
	maxQuestionText  = 600
)

// outputsText tells the model which outputs of a contract are checked.
func outputsText(c *harnessv1.TaskContract) string {
	if len(c.GetRequiredOutputs()) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("This work counts as done only when the following is there. It is checked each time you call work_complete.")
	for i, o := range c.GetRequiredOutputs() {
		if i == maxOutputs || b.Len() > maxContractText {
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
	if len(contract.ArtifactKinds(c)) > 0 {
		b.WriteString("\nArtifacts count once you have saved them with " + workitem.SaveArtifact + ", each by itself and with its kind. Neither files nor your answer count as artifacts.")
	}
	return b.String()
}

// sourcesText tells the model which sources artifacts may cite, if a contract counts only those
// that cite some.
func sourcesText(c *harnessv1.TaskContract, task *harnessv1.Task) string {
	cited := slices.ContainsFunc(c.GetRequiredOutputs(), func(o *harnessv1.RequiredOutput) bool { return o.GetPredicate().GetCited() })
	if !cited || len(task.GetSources()) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Artifacts cite these sources by their ids:")
	for i, source := range task.GetSources() {
		if b.Len() > maxSourcesText {
			b.WriteString("\n… and " + strconv.Itoa(len(task.GetSources())-i) + " more.")
			break
		}
		b.WriteString("\n- " + source.GetId())
		for _, part := range []string{source.GetTitle(), source.GetPath(), source.GetUri()} {
			if part != "" {
				b.WriteString(", " + content.Line(part, maxSourceText))
			}
		}
	}
	return b.String()
}

// Bounds of sourcesText and of a part of a source in it, in bytes.
const (
	maxSourcesText = 8 << 10
	maxSourceText  = 200
)

// Bounds of outputsText: outputs, and bytes.
const (
	maxOutputs      = 60
	maxContractText = 8 << 10
)

// howChecked describes how an output is verified, if that helps to produce it.
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
	case harnessv1.PredicateType_PREDICATE_TYPE_ARTIFACT_COUNT:
		return contract.CountText(p)
	default:
		return ""
	}
}

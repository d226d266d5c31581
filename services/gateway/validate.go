package gateway

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// Namespace returns the namespace of a request.
func Namespace(namespace string) (string, error) {
	if namespace == "" {
		return DefaultNamespace, nil
	}
	return namespace, checkName("namespace", namespace)
}

// Run returns the run of a request.
func Run(namespace, id string) (runlog.Run, error) {
	namespace, err := Namespace(namespace)
	if err != nil {
		return runlog.Run{}, err
	}
	if id == "" {
		return runlog.Run{}, fault.Invalid("run_id", "must not be empty")
	}
	return runlog.Run{Namespace: namespace, ID: id}, checkName("run_id", id)
}

// CheckStart validates a request to start a run.
func CheckStart(r *harnessv1.StartRunRequest) error {
	if _, err := Namespace(r.GetNamespace()); err != nil {
		return err
	}
	if r.GetRunId() != "" {
		if err := checkName("run_id", r.GetRunId()); err != nil {
			return err
		}
	}
	if err := CheckRequestID(r.GetRequestId()); err != nil {
		return err
	}
	if err := checkEntitlements(r.GetEntitlements()); err != nil {
		return err
	}
	return checkSpec(r.GetSpec())
}

// CheckRequestID validates a request id. Empty is valid.
func CheckRequestID(id string) error { return checkID("request_id", id) }

// CheckInput validates an input from outside. The id of the item is the caller's request
// id and not empty.
func CheckInput(item *harnessv1.InboxItem) error {
	if err := CheckRequestID(item.GetId()); err != nil {
		return err
	}
	switch in := item.GetInput().(type) {
	case *harnessv1.InboxItem_UserMessage:
		return checkMessage(in.UserMessage)
	case *harnessv1.InboxItem_Approval:
		return checkApproval(in.Approval)
	case *harnessv1.InboxItem_ToolAnswer:
		return checkAnswer(in.ToolAnswer)
	case *harnessv1.InboxItem_ToolsDeclared:
		return nil // made by this program
	case *harnessv1.InboxItem_ModeChange:
		return checkMode("mode_change.mode", in.ModeChange.GetMode())
	case *harnessv1.InboxItem_ModelChange:
		return checkNewModel("model_change.model", in.ModelChange.GetModel())
	case *harnessv1.InboxItem_Feedback:
		if t := in.Feedback.GetThumb(); t != harnessv1.Thumb_THUMB_UP && t != harnessv1.Thumb_THUMB_DOWN {
			return fault.Invalid("feedback.thumb", "must be THUMB_UP or THUMB_DOWN")
		}
		return nil
	case *harnessv1.InboxItem_Replan:
		return checkSize("replan.reason", in.Replan.GetReason(), MaxReason)
	case *harnessv1.InboxItem_Interrupt:
		return checkSize("reason", in.Interrupt.GetReason(), MaxReason)
	case *harnessv1.InboxItem_Resume:
		if err := checkBudgets("budgets", in.Resume.GetBudgets()); err != nil {
			return err
		}
		return checkModel("model", in.Resume.GetModel())
	case *harnessv1.InboxItem_Cancel:
		return checkSize("reason", in.Cancel.GetReason(), MaxReason)
	}
	return fault.Invalid("input", "must be set")
}

// CheckDigest validates the digest of a blob.
func CheckDigest(digest string) error {
	raw, err := hex.DecodeString(digest)
	if err != nil || len(raw) != 32 || strings.ToLower(digest) != digest {
		return fault.Invalid("digest", "must be 64 lower-case hexadecimal digits")
	}
	return nil
}

// CheckList validates a request for a page and returns the namespace, empty for all, the
// page size and where the page begins.
func CheckList(r *harnessv1.ListRunsRequest) (namespace string, size int, from Place, err error) {
	if namespace, err = Scope(r.GetNamespace()); err != nil {
		return "", 0, Place{}, err
	}
	size = int(r.GetPageSize())
	switch {
	case size == 0:
		size = DefaultPage
	case size > MaxPage:
		return "", 0, Place{}, fault.Invalid("page_size", "%d: must be from 1 to %d", r.GetPageSize(), MaxPage)
	}
	if err := checkStatuses(r.GetStatuses()); err != nil {
		return "", 0, Place{}, err
	}
	from, err = ParsePlace(r.GetPageToken())
	return namespace, size, from, err
}

func checkStatuses(statuses []harnessv1.RunStatus) error {
	for _, s := range statuses {
		if _, ok := harnessv1.RunStatus_name[int32(s)]; !ok || s == harnessv1.RunStatus_RUN_STATUS_UNSPECIFIED {
			return fault.Invalid("statuses", "unknown status %d", int32(s))
		}
	}
	return nil
}

// Scope returns the namespace of a list, empty for all.
func Scope(namespace string) (string, error) {
	if namespace == AllNamespaces {
		return "", nil
	}
	return Namespace(namespace)
}

func checkApproval(a *harnessv1.Approval) error {
	if a.GetCallId() == "" {
		return fault.Invalid("approval.call_id", "must not be empty")
	}
	if len(a.GetCallId()) > MaxID {
		return TooLarge("approval.call_id", len(a.GetCallId()), MaxID, "bytes")
	}
	switch a.GetDecision() {
	case harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE,
		harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN,
		harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY:
	default:
		return fault.Invalid("approval.decision", "must be ONCE, RUN or DENY")
	}
	switch {
	case len(a.GetRules()) > 0 && a.GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN:
		return fault.Invalid("approval.rules", "need the decision RUN")
	case len(a.GetRules()) > policy.MaxRules:
		return fault.Invalid("approval.rules", "%d rules exceed the limit of %d", len(a.GetRules()), policy.MaxRules)
	case a.GetArguments() != nil && a.GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE:
		return fault.Invalid("approval.arguments", "need the decision ONCE")
	case a.GetArguments().GetBlob() != nil:
		return fault.Invalid("approval.arguments", "send the text itself, not a reference to a blob")
	}
	if err := checkSize("approval.arguments", a.GetArguments().GetInline(), MaxText); err != nil {
		return err
	}
	if a.GetDigest() != "" && CheckDigest(a.GetDigest()) != nil {
		return fault.Invalid("approval.digest", "must be the digest of a preview: 64 lower-case hexadecimal digits")
	}
	return checkSize("approval.reason", a.GetReason(), MaxReason)
}

func checkAnswer(a *harnessv1.ToolAnswer) error {
	const field = "tool_answer."
	switch {
	case a.GetCallId() == "":
		return fault.Invalid(field+"call_id", "must not be empty")
	case len(a.GetCallId()) > MaxID:
		return TooLarge(field+"call_id", len(a.GetCallId()), MaxID, "bytes")
	case a.GetResult().GetBlob() != nil:
		return fault.Invalid(field+"result", "send the text itself, not a reference to a blob")
	case a.GetAction() < 0 || a.GetAction() > harnessv1.AnswerAction_ANSWER_ACTION_CANCEL:
		return fault.Invalid(field+"action", "must be ACCEPT, DECLINE or CANCEL, or unset")
	}
	if err := checkSize(field+"result", a.GetResult().GetInline(), MaxText); err != nil {
		return err
	}
	return checkMedia(field+"media", a.GetMedia())
}

// checkMessage accepts a blank text with images or documents.
func checkMessage(m *harnessv1.UserMessage) error {
	const field = "user_message."
	if err := checkMedia(field+"media", m.GetMedia()); err != nil {
		return err
	}
	if len(m.GetMedia()) > 0 && m.GetContent().GetBlob() == nil && strings.TrimSpace(m.GetContent().GetInline()) == "" {
		return checkSize(field+"content", m.GetContent().GetInline(), MaxText)
	}
	return checkText(field+"content", m.GetContent())
}

// checkMode validates the name of a mode.
func checkMode(field, name string) error {
	if name == "" {
		return fault.Invalid(field, "must not be empty")
	}
	return checkSize(field, name, MaxID)
}

// checkNewModel validates the model of a change.
func checkNewModel(field, model string) error {
	if model == "" {
		return fault.Invalid(field, "must not be empty")
	}
	return checkModel(field, model)
}

func checkName(field, name string) error {
	if !runlog.Name.MatchString(name) {
		return fault.Invalid(field, "%q: must match [A-Za-z0-9_-]{1,64}", content.Cut(name, 80))
	}
	return nil
}

func checkID(field, id string) error {
	if len(id) > MaxID {
		return TooLarge(field, len(id), MaxID, "bytes")
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return fault.Invalid(field, "must consist of visible ASCII characters")
		}
	}
	return nil
}

func checkSize(field, text string, limit int) error {
	if len(text) > limit {
		return TooLarge(field, len(text), limit, "bytes")
	}
	return nil
}

// checkText refuses a text that is empty, too large, or a reference: only the gateway
// itself moves texts to blobs.
func checkText(field string, c *harnessv1.Content) error {
	if c.GetBlob() != nil {
		return fault.Invalid(field, "send the text itself, not a reference to a blob")
	}
	if err := checkSize(field, c.GetInline(), MaxText); err != nil {
		return err
	}
	if strings.TrimSpace(c.GetInline()) == "" {
		return fault.Invalid(field, "must not be empty")
	}
	return nil
}

// namesTool reports whether a pattern may match a tool: one of those that are known, or one of a
// server, whose tools are known once it has started.
func namesTool(pattern string, names []string, servers []*harnessv1.McpServer) bool {
	if slices.ContainsFunc(names, func(name string) bool { return tool.Matches(pattern, name) }) || pattern == "*" {
		return true
	}
	return slices.ContainsFunc(servers, func(s *harnessv1.McpServer) bool {
		whole := mcptool.Prefix(s)
		fixed, _, open := strings.Cut(pattern, "*")
		return strings.HasPrefix(fixed, whole) || open && strings.HasPrefix(whole, fixed)
	})
}

// CheckTools refuses rules for tools that do not exist, and sub-agents that name one, at all
// levels: a deny with an unknown name would deny nothing, and a sub-agent would lack the tool.
func CheckTools(agent *harnessv1.AgentSpec, names []string) error {
	for i, r := range agent.GetTools() {
		if !namesTool(r.GetName(), names, agent.GetMcp()) {
			return fault.Invalid(fmt.Sprintf("spec.agent.tools[%d].name", i), "unknown tool %q: must be one of %s",
				r.GetName(), strings.Join(names, ", "))
		}
	}
	return checkSubAgentTools("spec.agent.agents", agent.GetAgents(), names, agent.GetMcp())
}

func checkSubAgentTools(field string, agents []*harnessv1.SubAgent, names []string, servers []*harnessv1.McpServer) error {
	for i, a := range agents {
		at := fmt.Sprintf("%s[%d]", field, i)
		for j, name := range a.GetTools() {
			if !namesTool(name, names, servers) && tree.Lookup(a.GetAgents(), name) == nil {
				return fault.Invalid(fmt.Sprintf("%s.tools[%d]", at, j), "unknown tool %q: must be one of %s", name, strings.Join(names, ", "))
			}
		}
		if err := checkSubAgentTools(at+".agents", a.GetAgents(), names, servers); err != nil {
			return err
		}
	}
	return nil
}

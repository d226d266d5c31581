package explore

import (
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// What senders send. The id is the caller's request id.

func userMessage(id string) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Id: id, Input: &harnessv1.InboxItem_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline(id)}}}
}

func approve(id, call string) *harnessv1.InboxItem {
	return decide(id, call, harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE)
}

func deny(id, call string) *harnessv1.InboxItem {
	return decide(id, call, harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY)
}

func decide(id, call string, d harnessv1.ApprovalDecision) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Id: id, Input: &harnessv1.InboxItem_Approval{Approval: &harnessv1.Approval{CallId: call, Decision: d}}}
}

func approveAll(id, call string) *harnessv1.InboxItem {
	return decide(id, call, harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN)
}

func reply(id, call string) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Id: id, Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{CallId: call, Result: content.Inline(id)}}}
}

func interrupt(id string) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Id: id, Input: &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{}}}
}

func resume(id string, b *harnessv1.Budgets) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Id: id, Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Budgets: b}}}
}

func cancel(id string) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Id: id, Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{}}}
}

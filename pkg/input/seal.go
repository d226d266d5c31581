package input

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// Forged reports whether an input counts only if the gateway has sent it, and it has not: an approval, an
// answer, a resume, which approves calls that wait for a review, or a change of the mode. Other inputs permit
// nothing, so they count without a seal.
func Forged(item *harnessv1.InboxItem) bool {
	if !item.GetUnsealed() {
		return false
	}
	switch item.GetInput().(type) {
	case *harnessv1.InboxItem_Approval, *harnessv1.InboxItem_ToolAnswer, *harnessv1.InboxItem_Resume, *harnessv1.InboxItem_ModeChange:
		return true
	}
	return false
}

// ForgedText is why the run refuses a forged input.
const ForgedText = "it has no valid seal of the gateway: give it again through a gateway with the key of repair (--input-key, docs/security.md)"

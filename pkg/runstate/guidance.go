package runstate

import (
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// guidanceMark starts every text that the harness sends in the user's place.
const guidanceMark = "[harness] "

// MarkGuidance returns text as the harness sends it in the user's place.
func MarkGuidance(text string) string { return guidanceMark + text }

// GuidanceMessage returns the message in which the harness tells the model
// something in the user's place.
func GuidanceMessage(text string) *harnessv1.Message {
	return &harnessv1.Message{
		Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Content: content.Inline(MarkGuidance(text)),
	}
}

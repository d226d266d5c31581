package input

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// checkMessage accepts a blank text with images or documents.
func checkMessage(m *harnessv1.UserMessage) error {
	const field = "user_message."
	if err := CheckMedia(field+"media", m.GetMedia()); err != nil {
		return err
	}
	if len(m.GetMedia()) > 0 && m.GetContent().GetBlob() == nil && strings.TrimSpace(m.GetContent().GetInline()) == "" {
		return CheckSize(field+"content", m.GetContent().GetInline(), MaxText)
	}
	return CheckText(field+"content", m.GetContent())
}

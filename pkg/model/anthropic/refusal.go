package anthropic

import (
	"net/http"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// refusals classifies the errors of the service and of compatible servers.
var refusals = adapter.Refusals{
	KeyVariable: "ANTHROPIC_API_KEY", BaseVariable: "ANTHROPIC_BASE_URL", BaseHint: "does not include /v1",
	QuotaCodes: []string{"billing_error", "enforced_spend_limit_reached"},
	QuotaPhrases: []string{
		"credit balance is too low",
		"you have reached your api usage limits",           // 429: the cap of the organization's tier
		"you have reached your specified api usage limits", // 400: a limit that the organization has set
		"you have reached your specified workspace api usage limits",
	},
	Adjust: adjust,
}

// thinkingPhrases are parts of the messages with which the service refuses thinking that
// came back, in lower case and without the marks around names.
var thinkingPhrases = []string{
	"invalid signature in thinking",
	"bound to a different conversation",
	"blocks in the latest assistant message cannot be modified",
	"blocks must match the parameters",
	"expected thinking or redacted_thinking, but found",
	"final block in an assistant message cannot be thinking",
	"final position cannot contain thinking",
	"thinking.signature: field required",
}

// adjust returns NO_OPAQUE for a refusal of thinking that came back.
func adjust(status int, fault wire.Fault) harnessv1.Adjustment {
	message := strings.ReplaceAll(strings.ToLower(fault.Message), "`", "")
	refused := slices.ContainsFunc(thinkingPhrases, func(phrase string) bool { return strings.Contains(message, phrase) })
	if status != http.StatusBadRequest || !refused || !strings.Contains(message, "thinking") {
		return harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED
	}
	return harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE
}

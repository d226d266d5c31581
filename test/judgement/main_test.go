// Package judgement checks what the shipped binary promises about the judgement of a run:
// which subscribers are called, how the model is steered, when the run may stop, which
// evidence it needs, and what is classified, planned, verified, retried and delivered. A
// strict model server records every request.
//
// All tests share the background process of a fresh home, or harness serve if they use HTTP,
// and run in parallel.
package judgement

import (
	"os"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"
)

func TestMain(m *testing.M) {
	os.Exit(live.Main(m,
		"TestComplexWork",
		"TestContractEventsKeepTheirNames",
		"TestModesApprovalShowsTheWholeCall",
		"TestOutputOfARunningCommandOverHTTP",
	))
}

package shown

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// opaqueRatio is the usual number of bytes a token, by which opaque parts are weighed: only
// their provider can count them.
const opaqueRatio = 4

// Weight returns the tokens that a message needs of a model's window, as it is sent: its
// texts, exactly; its images and documents by the formula of the model; its opaque parts,
// by their size, whether or not they go back.
func Weight(model string, f media.Formula, m *harnessv1.Message) uint32 {
	n := uint64(tokens.Message(model, m)) + media.MessageTokens(m, f) //nolint:gosec // a count
	for _, p := range m.GetParts() {
		o := p.GetOpaque()
		n += (uint64(len(o.GetInline())) + o.GetBlob().GetSize() + opaqueRatio - 1) / opaqueRatio
	}
	return uint32(min(n, 1<<32-1))
}

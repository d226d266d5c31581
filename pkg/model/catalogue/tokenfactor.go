package catalogue

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// unknownTokenFactor is that of a model whose vocabulary and factor are unknown.
const unknownTokenFactor = 1.25

// scripted is the prefix of scripted models, which report what pkg/tokens counts.
const scripted = "script:"

// defaultTokenFactor is that of a model for which the catalogue has none.
func defaultTokenFactor(ref string) float64 {
	if tokens.Known(ref) || strings.HasPrefix(ref, scripted) {
		return 1
	}
	return unknownTokenFactor
}

package catalogue

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// The limits of a token factor: a model that needs fewer tokens than are counted is treated
// as if it needed as many, and one that needs more than MaxTokenFactor is not known.
const (
	MinTokenFactor = 1.0
	MaxTokenFactor = 2.5
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

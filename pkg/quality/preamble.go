package quality

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// PreambleWith describes the requirements of a kind for the system prompt: the numbers are
// those that Evaluate checks with the multiplier. text is that of the prompt quality_preamble.
// C may be nil. It is empty if nothing is required.
func PreambleWith(text string, k Kind, c *harnessv1.QualityComplexity, multiplier uint32) string {
	r := requirements(k, c.GetExpected(), multiplier)
	var lines []string
	line := func(format string, args ...any) { lines = append(lines, "- "+fmt.Sprintf(format, args...)) }
	for _, required := range r.counts {
		if n := required.GetCount(); n > 0 {
			line("At least %d of kind %s, each saved with save_artifact.", n, required.GetKind())
		}
	}
	if r.artifacts && len(lines) == 0 {
		line("At least one artifact (%s), saved with save_artifact.", alternatives(k.GetArtifactKinds()))
	}
	if r.citations {
		line("Citations: give artifacts the source and its exact words as a quote. Quotes are looked up in the sources.")
	}
	if r.chars > 0 {
		line("An output of at least %d characters.", r.chars)
	}
	if k.GetPreamble() != "" {
		lines = append(lines, k.GetPreamble())
	}
	if len(lines) == 0 {
		return ""
	}
	return text + "\n" + strings.Join(lines, "\n")
}

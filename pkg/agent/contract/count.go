package contract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// ArtifactKinds returns the kinds of artifacts that the outputs of a contract count, in its
// order.
func ArtifactKinds(c *harnessv1.TaskContract) []string {
	var kinds []string
	for _, o := range c.GetRequiredOutputs() {
		if p := o.GetPredicate(); p.GetType() == artifactCount && !slices.Contains(kinds, p.GetKind()) {
			kinds = append(kinds, p.GetKind())
		}
	}
	return kinds
}

// checkCount checks the fields of ARTIFACT_COUNT.
func checkCount(field string, p *harnessv1.Predicate) error {
	if !workitem.IsKind(p.GetKind()) {
		return fault.Invalid(field+".kind", "%q does not match [a-z][a-z0-9_]{0,31}", clip(p.GetKind(), 80))
	}
	if p.Min != nil && (p.GetMin() < 1 || p.GetMin() > MaxCount) {
		return fault.Invalid(field+".min", "is %d, must be between 1 and %d", p.GetMin(), MaxCount)
	}
	return nil
}

// checkCounts refuses required outputs that count more artifacts than a run can save. Several
// outputs may count the same artifacts, so of each kind the largest number is needed.
func checkCounts(c *harnessv1.TaskContract) error {
	needed, total := map[string]uint32{}, uint32(0)
	for i, o := range c.GetRequiredOutputs() {
		p := o.GetPredicate()
		if p.GetType() != artifactCount || o.GetOptional() {
			continue
		}
		if n := leastCount(p); n > needed[p.GetKind()] {
			total += n - needed[p.GetKind()]
			needed[p.GetKind()] = n
		}
		if total > MaxCount {
			return fault.Invalid(fmt.Sprintf("required_outputs[%d].predicate.min", i),
				"the required outputs up to %s count %d artifacts, and a run saves at most %d: lower it, or make an output optional", o.GetId(), total, MaxCount)
		}
	}
	return nil
}

// leastCount returns how many artifacts a predicate needs, resolved or not.
func leastCount(p *harnessv1.Predicate) uint32 {
	if p.Min == nil {
		return 1
	}
	return p.GetMin()
}

// CountText describes what a predicate counts, as the model reads it.
func CountText(p *harnessv1.Predicate) string {
	n := leastCount(p)
	text := "at least " + strconv.FormatUint(uint64(n), 10) + " artifacts of kind " + p.GetKind()
	each := ", each with"
	if n == 1 {
		text, each = "at least 1 artifact of kind "+p.GetKind(), " with"
	}
	if p.GetCited() {
		text += each + " a citation that quotes its source"
	}
	return text
}

// checkSaved counts the saved artifacts of a kind. Its evidence is bound to their contents.
func (o *output) checkSaved(src Sources) *harnessv1.RequirementCoverage {
	p := o.predicate()
	var counted []*harnessv1.Artifact
	unquoted := 0
	for _, a := range src.Saved() {
		switch {
		case a.GetKind() != p.GetKind():
		case p.GetCited() && !workitem.HasQuote(a):
			unquoted++
		default:
			counted = append(counted, a)
		}
	}
	have, want := uint64(len(counted)), uint64(leastCount(p))
	if have >= want {
		var ids []string
		var lines strings.Builder
		for _, a := range counted {
			ids = append(ids, a.GetId())
			fmt.Fprintf(&lines, "%s %s\n", a.GetId(), content.DigestOf(a.GetContent()))
		}
		return met("artifacts", digest(lines.String()), fmt.Sprintf("%d of %s: %s", have, p.GetKind(), strings.Join(ids, ", ")))
	}
	quoting := ""
	if p.GetCited() {
		quoting = " with a quote"
		if unquoted > 0 {
			quoting += fmt.Sprintf(" (and %d without)", unquoted)
		}
	}
	return unmet("have %d of kind %s%s, want %d", have, p.GetKind(), quoting, want)
}

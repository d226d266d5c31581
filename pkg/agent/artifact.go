package agent

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// ArtifactKinds returns the kinds of artifacts that a run saves: those of its kind of work if its
// work is judged, then those that its contract counts. A run without any saves none.
func (d *Definition) ArtifactKinds(s *harnessv1.Snapshot) []string {
	var kinds []string
	if q := s.GetQuality(); q != nil {
		kinds = quality.ArtifactKinds(quality.KindOf(q.GetKind(), d.Kinds, len(s.GetTask().GetSources())))
	}
	if !s.GetConfig().GetContract().GetEnabled() {
		return kinds
	}
	for _, counted := range d.Contract.ArtifactKinds() {
		if !slices.Contains(kinds, counted) {
			kinds = append(kinds, counted)
		}
	}
	return kinds
}

package quality

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

const (
	sourcesUnnamed = 3    // sources that insights are compared with if the task names none
	rounding       = 1e-9 // what sums of weights may lack to a half
)

// Scored has the inputs of the scores of an attempt.
type Scored struct { // lang: participle — the event that it becomes is named in the past tense
	Kind       Kind
	Expected   *harnessv1.Expected   // what replaces parts of the kind's requirements; nil: nothing
	Multiplier uint32                // percent by which the profile scales them; 0: 100
	Artifacts  []*harnessv1.Artifact // of the run
	Sources    []*harnessv1.Source
	Quotes     *harnessv1.QuotesSeen      // nil: no source could be read
	Verifier   *float64                   // 0 to 1; nil: not known
	Document   *harnessv1.DocumentFigures // of the output; nil: not known
	Chars      uint64                     // of the output
	Marked     bool                       // a marker of a citation is in the output or an artifact
	Attempt    uint32
}

// component is a part of a score: a nil value is not known.
type component struct {
	name   string
	weight float64
	value  *float64
}

// Scores returns the scores that the kind of the work gets, with grade, label and parts. The
// weight of a part that is not known is shared by the others in proportion. The data of
// artifacts must be inline.
func Scores(s Scored) []*harnessv1.QualityScored {
	types := []string{s.Kind.GetScore()}
	if s.Kind.BuiltIn && s.Kind.GetName() == FullPipeline {
		types = scoreTypes
	}
	r := requirements(s.Kind, s.Expected, s.Multiplier)
	var scores []*harnessv1.QualityScored
	for _, name := range types {
		var parts []component
		switch name {
		case RQS:
			parts = s.insightParts(r)
		case RecQS:
			parts = s.recommendationParts(r)
		case DocQS:
			parts = s.documentParts(r)
		default:
			continue
		}
		score, breakdown := weigh(parts)
		grade, label := gradeOf(score)
		scores = append(scores, &harnessv1.QualityScored{Type: name, Score: score, Grade: grade, Label: label, Breakdown: breakdown, Attempt: s.Attempt})
	}
	return scores
}

// insightParts are the parts of RQS.
func (s Scored) insightParts(r requirement) []component {
	insights := s.of(Insight)
	return []component{
		{"quoted", 0.25, share(insights, workitem.HasQuote)},
		{"quotes_found", 0.20, s.quotesFound(insights)},
		{"sources", 0.20, s.cited(insights)},
		{"count", 0.15, ratio(len(insights), uint64(r.count(Insight)))},
		{"verifier", 0.20, s.Verifier},
	}
}

// recommendationParts are the parts of RecQS.
func (s Scored) recommendationParts(r requirement) []component {
	saved := s.of(RecommendationOf)
	insights := map[string]bool{}
	for _, a := range s.Artifacts { // those of earlier segments too
		if a.GetKind() == Insight {
			insights[a.GetId()] = true
		}
	}
	evidence := func(a *harnessv1.Artifact) bool {
		return len(a.GetCitations()) > 0 || slices.ContainsFunc(list(data(a)["insights"]), func(id json.RawMessage) bool { return insights[stringOf(id)] })
	}
	return []component{
		{"next_steps", 0.30, share(saved, has("next_steps"))},
		{"evidence", 0.30, share(saved, evidence)},
		{"priority", 0.10, share(saved, has("priority"))},
		{"count", 0.10, ratio(len(saved), uint64(r.count(RecommendationOf)))},
		{"verifier", 0.20, s.Verifier},
	}
}

// documentParts are the parts of DocQS.
func (s Scored) documentParts(r requirement) []component {
	parts := []component{
		{"length", 0.25, ratio(int(min(s.Chars, math.MaxInt32)), 2*r.chars)},
		{"structure", 0.25, nil},
		{"citations", 0.20, known(0)},
		{"readability", 0.10, nil},
		{"verifier", 0.20, s.Verifier},
	}
	if s.Marked || slices.ContainsFunc(Current(s.Artifacts), func(a *harnessv1.Artifact) bool { return len(a.GetCitations()) > 0 }) {
		parts[2].value = known(1)
	}
	if d := s.Document; d != nil {
		structure := 0.0
		if d.GetHeadings() >= 2 {
			structure += 0.5
		}
		if d.GetList() {
			structure += 0.25
		}
		if d.GetParagraphs() >= 3 {
			structure += 0.25
		}
		parts[1].value, parts[3].value = &structure, known(0)
		if d.GetSentences() > 0 {
			parts[3].value = known(float64(d.GetShortSentences()) / float64(d.GetSentences()))
		}
	}
	return parts
}

// of returns the artifacts of a kind that the segment has saved.
func (s Scored) of(kind string) []*harnessv1.Artifact {
	return slices.DeleteFunc(Current(s.Artifacts), func(a *harnessv1.Artifact) bool { return a.GetKind() != kind })
}

// quotesFound is the share of the quotes of artifacts that their sources have, among those that
// could be looked up. It is not known if none could.
func (s Scored) quotesFound(saved []*harnessv1.Artifact) *float64 {
	var found, all int
	for _, q := range s.Quotes.GetQuotes() {
		if !slices.ContainsFunc(saved, func(a *harnessv1.Artifact) bool { return a.GetId() == q.GetArtifact() }) {
			continue
		}
		n := max(int(q.GetCount()), 1)
		all += n
		if q.GetFound() {
			found += n
		}
	}
	if all == 0 {
		return nil
	}
	return known(float64(found) / float64(all))
}

// cited is the share of sources that artifacts cite.
func (s Scored) cited(saved []*harnessv1.Artifact) *float64 {
	named, cited := map[string]bool{}, map[string]bool{}
	for _, source := range s.Sources {
		named[source.GetId()] = true
	}
	for _, a := range saved {
		for _, c := range a.GetCitations() {
			if len(named) == 0 || named[c.GetSource()] {
				cited[c.GetSource()] = true
			}
		}
	}
	all := len(named)
	if all == 0 {
		all = sourcesUnnamed
	}
	return known(min(1, float64(len(cited))/float64(all)))
}

func known(value float64) *float64 { return &value }

// ratio is the fulfilled share of a requirement, at most 1; 1 if nothing is required.
func ratio(have int, want uint64) *float64 {
	if want == 0 {
		return known(1)
	}
	return known(min(1, float64(have)/float64(want)))
}

// share is the share of artifacts with a property, 0 without artifacts.
func share(saved []*harnessv1.Artifact, property func(*harnessv1.Artifact) bool) *float64 {
	if len(saved) == 0 {
		return known(0)
	}
	n := 0
	for _, a := range saved {
		if property(a) {
			n++
		}
	}
	return known(float64(n) / float64(len(saved)))
}

func data(a *harnessv1.Artifact) fields { return object([]byte(content.Text(a.GetData()))) }

// has reports whether the data of an artifact has a field that is not empty.
func has(name string) func(*harnessv1.Artifact) bool {
	return func(a *harnessv1.Artifact) bool {
		switch value := data(a)[name]; strings.Join(strings.Fields(string(value)), "") {
		case "", "null", `""`, "[]", "{}", "false":
			return false
		default:
			return value[0] != '"' || stringOf(value) != ""
		}
	}
}

// weigh returns a score from 0 to 100, rounded half up, and its parts.
func weigh(parts []component) (uint32, *structpb.Struct) {
	breakdown := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	var sum, weights float64
	for _, p := range parts {
		if p.value == nil {
			breakdown.Fields[p.name] = structpb.NewNullValue()
			continue
		}
		breakdown.Fields[p.name] = structpb.NewNumberValue(*p.value)
		sum += float64(p.weight * *p.value)
		weights += p.weight
	}
	if weights == 0 {
		return 0, breakdown
	}
	return uint32(min(max(math.Floor(100*sum/weights+0.5+rounding), 0), 100)), breakdown
}

// gradeOf returns the grade and label of a score.
func gradeOf(score uint32) (grade, label string) {
	switch {
	case score >= 90:
		return "A", "excellent"
	case score >= 80:
		return "B", "good"
	case score >= 70:
		return "C", "fair"
	case score >= 60:
		return "D", "weak"
	}
	return "F", "poor"
}

package quality

import (
	"fmt"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

const (
	minChars         = 50   // code points of an output that scaling leaves at least
	maxExpectedChars = 5000 // code points of an output that can be expected
	freeCount        = 5    // artifacts of a kind that can be expected of any work
)

// How issues of a contract begin, by category.
const (
	issueShort           = "Output too short: "
	issueInsights        = "Insufficient insights: "
	issueRecommendations = "Insufficient recommendations: "
	issueDocuments       = "Insufficient documents: "
	issueCitations       = "Citations required but none found"
	issueArtifacts       = "No artifacts created"
)

// Produced are the figures and the artifacts of an attempt, for its contract.
type Produced struct { // lang: participle — what an attempt has produced
	Chars     uint64                // of the output, in code points
	Marked    bool                  // a marker of a citation is in the output or in the content of an artifact
	Artifacts []*harnessv1.Artifact // of the run
}

// requirement is what an attempt must have.
type requirement struct {
	counts               []*harnessv1.ArtifactCount
	citations, artifacts bool
	chars                uint64
}

// count returns how many artifacts of a kind are required.
func (r requirement) count(kind string) uint32 {
	for _, c := range r.counts {
		if c.GetKind() == kind {
			return c.GetCount()
		}
	}
	return 0
}

// requirements returns the requirements of a kind after expectations replaced parts of them and
// the multiplier, in percent, scaled insights and characters. Expected artifacts that the
// kind does not take are left out, and so are zero and false, which are no expectation. A count
// is at most the larger of freeCount and twice the one of the kind. 0 as multiplier is 100.
func requirements(k Kind, expected *harnessv1.Expected, multiplier uint32) requirement {
	r := requirement{citations: k.GetRequireCitations(), artifacts: k.GetRequireArtifacts(), chars: uint64(k.GetMinOutputChars())}
	for _, c := range k.GetCounts() {
		r.counts = append(r.counts, &harnessv1.ArtifactCount{Kind: c.GetKind(), Count: c.GetCount()})
	}
	scaled := k.BuiltIn || r.chars > 0
	if expected != nil {
		r.replace(k, Insight, expected.MinInsights)
		r.replace(k, RecommendationOf, expected.MinRecommendations)
		r.replace(k, Document, expected.MinDocuments)
		r.citations = r.citations || expected.GetRequireCitations()
		if n := expected.GetMinOutputChars(); n > 0 {
			r.chars = uint64(min(n, maxExpectedChars))
		}
		scaled = scaled || r.chars > 0
	}
	if multiplier == 0 {
		multiplier = 100
	}
	for _, c := range r.counts {
		if c.GetKind() == Insight && c.GetCount() > 0 {
			c.Count = max(1, c.GetCount()*multiplier/100)
		}
	}
	if scaled {
		r.chars = max(minChars, r.chars*uint64(multiplier)/100)
	}
	return r
}

// replace sets the count of a kind of artifact to the expected one.
func (r *requirement) replace(k Kind, kind string, expected *uint32) {
	if opinion(expected) == nil || !slices.Contains(k.GetArtifactKinds(), kind) {
		return
	}
	for _, c := range r.counts {
		if c.GetKind() == kind {
			c.Count = min(*expected, max(2*c.GetCount(), freeCount))
			return
		}
	}
	r.counts = append(r.counts, &harnessv1.ArtifactCount{Kind: kind, Count: min(*expected, freeCount)})
}

// Current returns the artifacts by which the work of a segment is judged: those that were saved or
// replaced in it.
func Current(saved []*harnessv1.Artifact) []*harnessv1.Artifact {
	return slices.DeleteFunc(slices.Clone(saved), (*harnessv1.Artifact).GetEarlier)
}

// Evaluate checks an attempt by the requirements of its kind. Expectations replace
// parts of them; multiplier scales insights and characters, in percent. Only items that are
// required are checked; the score is the share of these checks that passed, 1 without any.
func Evaluate(k Kind, expected *harnessv1.Expected, multiplier uint32, p Produced) *harnessv1.QualityContract {
	r := requirements(k, expected, multiplier)
	p.Artifacts = Current(p.Artifacts)
	c := &harnessv1.QualityContract{ArtifactCounts: map[string]uint32{}}
	for _, a := range p.Artifacts {
		c.ArtifactCounts[a.GetKind()]++
	}
	var passed, asked int
	var checked []string
	check := func(ok bool, what, issue string) {
		asked++
		checked = append(checked, what)
		if ok {
			passed++
		} else {
			c.Issues = append(c.Issues, issue)
		}
	}
	if r.chars > 0 {
		check(p.Chars >= r.chars, fmt.Sprintf("characters %d/%d", p.Chars, r.chars), fmt.Sprintf("%s%d chars (minimum %d)", issueShort, p.Chars, r.chars))
	}
	for _, required := range r.counts {
		kind, want := required.GetKind(), required.GetCount()
		if have := c.ArtifactCounts[kind]; want > 0 {
			check(have >= want, fmt.Sprintf("%s %d/%d", plural(kind), have, want), countIssue(kind, have, want))
		}
	}
	if r.citations {
		cited := p.Marked || slices.ContainsFunc(p.Artifacts, workitem.HasQuote)
		check(cited, "citations "+presence(cited), issueCitations+" — have 0, minimum 1: save artifacts with direct quotes from sources")
	}
	if r.artifacts {
		saved := len(p.Artifacts) > 0
		check(saved, "artifacts "+presence(saved), issueArtifacts+" — have 0, minimum 1: at least one "+alternatives(k.GetArtifactKinds())+" is required")
	}
	c.Passed, c.Score = passed == asked, 1
	if asked > 0 {
		c.Score = float64(passed) / float64(asked)
	}
	c.Reasoning = fmt.Sprintf("%d of %d checks passed", passed, asked)
	if asked > 0 {
		c.Reasoning += ": " + strings.Join(checked, ", ")
	}
	return c
}

// ShortOnly reports whether the length of the output is the only requirement that is not met.
func ShortOnly(c *harnessv1.QualityContract) bool {
	return len(c.GetIssues()) == 1 && strings.HasPrefix(c.GetIssues()[0], issueShort)
}

// countIssue names a kind of artifact of which there are too few.
func countIssue(kind string, have, want uint32) string {
	return fmt.Sprintf("Insufficient %s: %d created (minimum %d)", plural(kind), have, want)
}

func presence(found bool) string {
	if found {
		return "found"
	}
	return "missing"
}

// plural returns the name of a kind of artifact for several.
func plural(kind string) string { return strings.ReplaceAll(kind, "_", " ") + "s" }

// alternatives joins names as "a, b or c".
func alternatives(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// artifact returns a saved artifact with a citation of each quote.
func artifact(id, kind, text string, quotes ...string) *harnessv1.Artifact {
	a := &harnessv1.Artifact{Id: id, Kind: kind, Content: inline(text)}
	for _, q := range quotes {
		a.Citations = append(a.Citations, &harnessv1.Citation{Source: "s1", Quote: q})
	}
	return a
}

func TestSavedArtifactsAreCounted(t *testing.T) {
	long := strings.Repeat("long ", 9000)
	inBlob := &harnessv1.Artifact{Id: "a1", Kind: "finding", Content: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: content.Ref([]byte(long))}}}
	lines := func(of ...string) string {
		var b strings.Builder
		for i := 0; i < len(of); i += 2 {
			b.WriteString(of[i] + " " + content.Digest([]byte(of[i+1])) + "\n")
		}
		return content.Digest([]byte(b.String()))
	}
	for _, c := range []struct {
		name   string
		min    *uint32
		cited  bool
		saved  []*harnessv1.Artifact
		met    bool
		says   string // Why, or the text of the evidence.
		digest string
	}{
		{"nothing", nil, false, nil, false, "have 0 of kind finding, want 1", ""},
		{"one", nil, false, []*harnessv1.Artifact{artifact("a1", "finding", "x")}, true, "1 of finding: a1", lines("a1", "x")},
		{"of an earlier segment", nil, false, []*harnessv1.Artifact{{Id: "a1", Kind: "finding", Content: inline("x"), Earlier: true}}, true, "1 of finding: a1", lines("a1", "x")},
		{"another kind", nil, false, []*harnessv1.Artifact{artifact("a1", "findings", "x")}, false, "have 0 of kind finding, want 1", ""},
		{"too few", proto.Uint32(3), false, []*harnessv1.Artifact{artifact("a1", "finding", "x"), artifact("a2", "letter", "y"), artifact("b", "finding", "z")}, false, "have 2 of kind finding, want 3", ""},
		{"more than enough", proto.Uint32(1), false, []*harnessv1.Artifact{artifact("b", "finding", "x"), artifact("a1", "finding", "y")}, true, "2 of finding: b, a1", lines("b", "x", "a1", "y")},
		{"in a blob", nil, false, []*harnessv1.Artifact{inBlob}, true, "1 of finding: a1", lines("a1", long)},
		{"with and without quotes", proto.Uint32(2), true, []*harnessv1.Artifact{
			artifact("a1", "finding", "x", "", "words"), artifact("a2", "finding", "y", ""), artifact("a3", "finding", "z", " \n"), artifact("a4", "letter", "z", "words"),
		}, false, "have 1 of kind finding with a quote (and 2 without), want 2", ""},
		{"no quotes", nil, true, []*harnessv1.Artifact{artifact("a1", "letter", "x", "words")}, false, "have 0 of kind finding with a quote, want 1", ""},
		{"all with quotes", proto.Uint32(2), true, []*harnessv1.Artifact{artifact("a1", "finding", "x", "words"), artifact("a2", "finding", "y"), artifact("a3", "finding", "z", "w")}, true,
			"2 of finding: a1, a3", lines("a1", "x", "a3", "z")},
	} {
		seen := checkOnly(t, &harnessv1.Predicate{Type: artifactCount, Kind: "finding", Min: c.min, Cited: c.cited}, &memory{saved: c.saved})
		if seen.GetConfidence() != 1 || seen.GetUnknown() {
			t.Errorf("%s: %v", c.name, seen)
		}
		if !c.met {
			if seen.GetStatus() != isUnmet || seen.GetWhy() != c.says {
				t.Errorf("%s: %v", c.name, seen)
			}
			continue
		}
		if e := seen.GetEvidence(); seen.GetStatus() != isMet || len(e) != 1 || e[0].GetKind() != "artifacts" || e[0].GetText() != c.says || e[0].GetDigest() != c.digest {
			t.Errorf("%s: %v, want the digest %s", c.name, seen, c.digest)
		}
	}
}

// TestCountedArtifactsBindTheEvidence: another content has another digest, in the ledger too.
func TestCountedArtifactsBindTheEvidence(t *testing.T) {
	p := &harnessv1.Predicate{Type: artifactCount, Kind: "finding"}
	digests := map[string]bool{}
	for _, a := range []*harnessv1.Artifact{artifact("a1", "finding", "x"), artifact("a1", "finding", "y"), artifact("a2", "finding", "y")} {
		digests[checkOnly(t, p, &memory{saved: []*harnessv1.Artifact{a}}).GetEvidence()[0].GetDigest()] = true
	}
	if len(digests) != 3 {
		t.Errorf("3 states of the artifacts have %d digests", len(digests))
	}
}

// TestCountIsMonotone: with another artifact saved, an output that was met stays met, and the
// evidence has the ids of as many artifacts as it has place for.
func TestCountIsMonotone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &harnessv1.Predicate{Type: artifactCount, Kind: "finding", Min: proto.Uint32(rapid.Uint32Range(1, MaxCount).Draw(rt, "min")), Cited: rapid.Bool().Draw(rt, "cited")}
		w, met := &memory{}, false
		for n := range rapid.IntRange(0, MaxCount).Draw(rt, "artifacts") {
			quote := ""
			if rapid.Bool().Draw(rt, "quoted") {
				quote = "words"
			}
			w.saved = append(w.saved, artifact(fmt.Sprintf("a%d", n+1), rapid.SampledFrom([]string{"finding", "letter"}).Draw(rt, "kind"), "x", quote))
			counted := 0
			for _, a := range w.saved {
				if a.GetKind() == "finding" && (!p.GetCited() || workitem.HasQuote(a)) {
					counted++
				}
			}
			is := checkOnly(t, p, w).GetStatus() == isMet
			if is != (counted >= int(p.GetMin())) || met && !is {
				rt.Fatalf("%d of %d: met is %t", counted, p.GetMin(), is)
			}
			met = is
		}
	})
}

func TestArtifactKindsOfAContract(t *testing.T) {
	c := parse(t, `{"required_outputs": [{"id": "a", "predicate": {"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "letter"}},
		{"id": "b", "predicate": {"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "finding"}}, {"id": "c"},
		{"id": "d", "optional": true, "predicate": {"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "note"}},
		{"id": "e", "predicate": {"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "letter", "min": 2}}]}`)
	ready, err := Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"letter", "finding", "note"}
	if got := ready.ArtifactKinds(); !slices.Equal(got, want) || !slices.Equal(ArtifactKinds(c), want) {
		t.Errorf("got %v", got)
	}
	if !ready.Cheap("b") {
		t.Error("counting calls something")
	}
	if none := (*Contract)(nil); none.ArtifactKinds() != nil || ArtifactKinds(nil) != nil {
		t.Error("no contract counts artifacts")
	}
}

// TestOptionalCountsNeedNoPlace: optional artifacts may exceed those that a run saves.
func TestOptionalCountsNeedNoPlace(t *testing.T) {
	c := parse(t, counting(`200`))
	c.RequiredOutputs = append(c.RequiredOutputs, &harnessv1.RequiredOutput{
		Id: "b", Optional: true, Predicate: &harnessv1.Predicate{Type: artifactCount, Kind: "b", Min: proto.Uint32(200)},
	})
	if err := Validate(c); err != nil {
		t.Error(err)
	}
	c.RequiredOutputs[1].Optional = false
	if err := Validate(c); err == nil || !strings.Contains(err.Error(), "400 artifacts") {
		t.Errorf("required: %v", err)
	}
}

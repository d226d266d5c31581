package quality_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// parts returns the breakdown of a score, -1 for null.
func parts(s *harnessv1.QualityScored) map[string]float64 {
	values := map[string]float64{}
	for name, v := range s.GetBreakdown().GetFields() {
		values[name] = v.GetNumberValue()
		if _, null := v.GetKind().(*structpb.Value_NullValue); null {
			values[name] = -1
		}
	}
	return values
}

func checkScore(t *testing.T, s quality.Scored, want uint32, breakdown map[string]float64) {
	t.Helper()
	got := quality.Scores(s)
	if len(got) != 1 || got[0].GetScore() != want || fmt.Sprint(parts(got[0])) != fmt.Sprint(breakdown) {
		t.Errorf("%v, expected %d %v", got, want, breakdown)
	}
}

func cites(a *harnessv1.Artifact, source, quote string) *harnessv1.Artifact {
	a.Citations = append(a.Citations, &harnessv1.Citation{Source: source, Quote: quote})
	return a
}

func TestInsightScore(t *testing.T) {
	saved := artifactsOf(2, 0, 1)
	cites(cites(saved[0], "s1", "words"), "s9", "")
	cites(saved[2], "s2", "of a document")
	s := quality.Scored{
		Kind: quality.KindOf("synthesis", nil, 4), Artifacts: saved, Verifier: ptr(0.5),
		Sources: []*harnessv1.Source{{Id: "s1"}, {Id: "s2"}, {Id: "s3"}, {Id: "s4"}},
		Quotes:  &harnessv1.QuotesSeen{Read: []string{"s1"}, Quotes: []*harnessv1.QuoteSeen{{Artifact: "a1", Found: true}, {Artifact: "a3"}}},
	}
	// 0.25·0.5 + 0.20·1 + 0.20·0.25 + 0.15·0.5 + 0.20·0.5 = 0.55
	checkScore(t, s, 55, map[string]float64{"quoted": 0.5, "quotes_found": 1, "sources": 0.25, "count": 0.5, "verifier": 0.5})
	s.Quotes.Quotes = []*harnessv1.QuoteSeen{{Artifact: "a1", Found: true, Count: 3}, {Artifact: "a1", Count: 1}, {Artifact: "a3", Count: 9}}
	// 3 of 4 quotes of insights: 0.125 + 0.15 + 0.05 + 0.075 + 0.1 = 0.50
	checkScore(t, s, 50, map[string]float64{"quoted": 0.5, "quotes_found": 0.75, "sources": 0.25, "count": 0.5, "verifier": 0.5})
	s.Quotes.Quotes = []*harnessv1.QuoteSeen{{Artifact: "a1", Found: true}, {Artifact: "a3"}}
	s.Verifier = nil // 0.45 / 0.80 = 0.5625
	checkScore(t, s, 56, map[string]float64{"quoted": 0.5, "quotes_found": 1, "sources": 0.25, "count": 0.5, "verifier": -1})
	s.Quotes = nil // 0.25 / 0.60 = 0.4167
	checkScore(t, s, 42, map[string]float64{"quoted": 0.5, "quotes_found": -1, "sources": 0.25, "count": 0.5, "verifier": -1})
	s.Sources, s.Multiplier = nil, 50 // sources 2/3; count 2/2: (0.125 + 0.1333 + 0.15) / 0.60 = 0.6806
	s.Artifacts = saved[:2]
	s.Kind = quality.KindOf("synthesis", nil, 4)
	if got := quality.Scores(s)[0]; got.GetScore() != 68 || parts(got)["count"] != 1 || got.GetGrade() != "D" {
		t.Errorf("%v", got)
	}
	s.Quotes = &harnessv1.QuotesSeen{Read: []string{"s2"}}
	if got := parts(quality.Scores(s)[0])["quotes_found"]; got != -1 {
		t.Errorf("quotes that could not be looked up: %v", got)
	}
	s.Quotes = &harnessv1.QuotesSeen{Read: []string{"s2"}, Quotes: []*harnessv1.QuoteSeen{{Artifact: "a3", Found: true}}}
	s.Artifacts = append(artifactsOf(1, 0, 0), saved[2]) // only the document quotes
	if got := parts(quality.Scores(s)[0])["quotes_found"]; got != -1 {
		t.Errorf("no quotes of insights: %v", got)
	}
	s.Quotes.Quotes = append(s.Quotes.Quotes, &harnessv1.QuoteSeen{Artifact: "a1"})
	if got := parts(quality.Scores(s)[0])["quotes_found"]; got != 0 {
		t.Errorf("an invented quote: %v", got)
	}
}

func TestRecommendationScore(t *testing.T) {
	saved := artifactsOf(1, 4, 0)
	saved[1].Data = content.Inline(`{"next_steps":["do"],"priority":"high","insights":["a1"]}`)
	saved[2].Data = content.Inline(`{"next_steps":[ ],"priority":" ","insights":["a7"]}`)
	saved[3].Data = content.Inline(`{broken`)
	cites(saved[3], "s1", "")
	s := quality.Scored{Kind: quality.KindOf("recommendation", nil, 0), Artifacts: saved, Verifier: ptr(1.0)}
	// 0.30·0.25 + 0.30·0.5 + 0.10·0.25 + 0.10 + 0.20 = 0.55
	checkScore(t, s, 55, map[string]float64{"next_steps": 0.25, "evidence": 0.5, "priority": 0.25, "count": 1, "verifier": 1})
	s.Artifacts = nil
	checkScore(t, s, 20, map[string]float64{"next_steps": 0, "evidence": 0, "priority": 0, "count": 0, "verifier": 1})
}

func TestDocumentScore(t *testing.T) {
	s := quality.Scored{
		Kind: quality.KindOf("drafting", nil, 0), Chars: 200, Verifier: ptr(0.0), Attempt: 2,
		Document: &harnessv1.DocumentFigures{Headings: 1, List: true, Paragraphs: 3, Sentences: 4, ShortSentences: 3},
	}
	// 0.25·0.5 + 0.25·0.5 + 0.10·0.75 = 0.325, a half rounded up
	checkScore(t, s, 33, map[string]float64{"length": 0.5, "structure": 0.5, "citations": 0, "readability": 0.75, "verifier": 0})
	s.Document.Headings, s.Marked, s.Chars = 2, true, 4000
	checkScore(t, s, 78, map[string]float64{"length": 1, "structure": 1, "citations": 1, "readability": 0.75, "verifier": 0})
	if got := quality.Scores(s)[0]; got.GetAttempt() != 2 || got.GetLabel() != "fair" {
		t.Errorf("%v", got)
	}
	s.Document, s.Marked, s.Artifacts = nil, false, []*harnessv1.Artifact{cites(&harnessv1.Artifact{Kind: "document"}, "s", "")}
	checkScore(t, s, 69, map[string]float64{"length": 1, "structure": -1, "citations": 1, "readability": -1, "verifier": 0})
}

func TestScoresOfKinds(t *testing.T) {
	own := []*harnessv1.WorkKind{{Name: "memo", Score: "doc_qs"}, {Name: "free"}}
	for kind, want := range map[string]string{
		"synthesis": "rqs", "recommendation": "rec_qs", "drafting": "doc_qs", "full_pipeline": "rqs rec_qs doc_qs", "chat": "", "memo": "doc_qs", "free": "",
	} {
		var types []string
		for _, s := range quality.Scores(quality.Scored{Kind: quality.KindOf(kind, own, 0)}) {
			types = append(types, s.GetType())
		}
		if got := strings.Join(types, " "); got != want {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

func TestGrades(t *testing.T) {
	// The verifier alone moves a recommendation with everything from 80 to 100.
	saved := artifactsOf(0, 1, 0)
	saved[0].Data = content.Inline(`{"next_steps":"x","priority":1}`)
	cites(saved[0], "s", "")
	for verifier, want := range map[float64]string{1: "100 A excellent", 0.5: "90 A excellent", 0.45: "89 B good", 0: "80 B good"} {
		got := quality.Scores(quality.Scored{Kind: quality.KindOf("recommendation", nil, 0), Artifacts: saved, Verifier: &verifier})[0]
		if text := fmt.Sprint(got.GetScore(), " ", got.GetGrade(), " ", got.GetLabel()); text != want {
			t.Errorf("%v: %s", verifier, text)
		}
	}
	saved[0].Data = content.Inline(`{"next_steps":"x"}`)
	for verifier, want := range map[float64]string{0: "70 C fair"} {
		got := quality.Scores(quality.Scored{Kind: quality.KindOf("recommendation", nil, 0), Artifacts: saved, Verifier: &verifier})[0]
		if text := fmt.Sprint(got.GetScore(), " ", got.GetGrade(), " ", got.GetLabel()); text != want {
			t.Errorf("%v: %s", verifier, text)
		}
	}
	saved[0].Data = nil
	for verifier, want := range map[float64]string{1: "60 D weak", 0.9: "58 F poor"} {
		got := quality.Scores(quality.Scored{Kind: quality.KindOf("recommendation", nil, 0), Artifacts: saved, Verifier: &verifier})[0]
		if text := fmt.Sprint(got.GetScore(), " ", got.GetGrade(), " ", got.GetLabel()); text != want {
			t.Errorf("%v: %s", verifier, text)
		}
	}
}

func TestFiguresOfADocument(t *testing.T) {
	long := strings.Repeat("word ", 31)
	for _, c := range []struct {
		name, text string
		want       []uint32 // headings, list, paragraphs, sentences, short ones
	}{
		{"nothing", "", []uint32{0, 0, 0, 0, 0}},
		{"paragraphs", "One. Two?\nthree\n\nFour!\r\n\r\n  \nFive", []uint32{0, 0, 3, 5, 5}},
		{"headings", "# A\ntext\n#### B\n#tag", []uint32{2, 0, 2, 2, 2}},
		{"a list", "- one. two.\n2) three", []uint32{0, 1, 0, 3, 3}},
		{"a table", "| a | b |\n|---|---|\n| 1. x | 2 |", []uint32{0, 1, 0, 0, 0}},
		{"a rule is no table", "a\n\n---\n", []uint32{0, 0, 1, 1, 1}},
		{"code", "a\n```\n# no\n- no\n\nno.\n```\nb", []uint32{0, 0, 2, 2, 2}},
		{"long sentences", long + ". " + strings.TrimPrefix(long, "word ") + ".", []uint32{0, 0, 1, 2, 1}},
		{"numbers are no ends", "It is 3.5 at a.b", []uint32{0, 0, 1, 1, 1}},
	} {
		f := quality.Figures(c.text)
		list := uint32(0)
		if f.GetList() {
			list = 1
		}
		if got := []uint32{f.GetHeadings(), list, f.GetParagraphs(), f.GetSentences(), f.GetShortSentences()}; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
	}
}

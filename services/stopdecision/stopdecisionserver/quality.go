package stopdecisionserver

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// Bounds of the texts that are read of an attempt.
const (
	// maxJudged is how much of the output a verifier reads, in code points.
	maxJudged = 8000
	// shortOutput is the length below which the summary and the artifacts belong to the output.
	shortOutput = 200
	// maxSource is how much of a source is read, in bytes.
	maxSource = 1 << 20
	// maxGoal bounds the goal, in bytes.
	maxGoal = 16 << 10
)

// output reads the texts of the attempt: the agent's texts in order, and where they are
// short the summary and the artifacts after them.
func (o *observer) output(ctx context.Context) (*harnessv1.Observation, error) {
	src := &sources{observer: o}
	snapshot := src.snapshot()
	messages, err := src.Messages(ctx)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, m := range messages {
		if m.GetId() < snapshot.GetQuality().GetAttemptFirstMessage() || m.GetRole() != harnessv1.Role_ROLE_ASSISTANT {
			continue
		}
		text, err := src.Text(ctx, m.GetContent())
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(text) != "" {
			parts = append(parts, text)
		}
	}
	artifacts, err := o.artifactTexts(ctx, src)
	if err != nil {
		return nil, err
	}
	text := strings.Join(parts, "\n\n")
	if utf8.RuneCountInString(text) < shortOutput {
		summary, err := src.Text(ctx, snapshot.GetSummary())
		if err != nil {
			return nil, err
		}
		for _, t := range append([]string{summary}, artifacts...) {
			if strings.TrimSpace(t) != "" {
				parts = append(parts, t)
			}
		}
		text = strings.Join(parts, "\n\n")
	}
	answer, err := src.Text(ctx, snapshot.GetAnswer())
	if err != nil {
		return nil, err
	}
	goal := snapshot.GetGoalPreview()
	if snapshot.GetGoal() != nil {
		if goal, err = src.Text(ctx, snapshot.GetGoal()); err != nil {
			return nil, err
		}
	}
	seen := &harnessv1.OutputSeen{
		Text: firstRunes(text, maxJudged), Chars: uint64(utf8.RuneCountInString(text)), Marked: quality.HasMarker(text), //nolint:gosec // a length
		Document: quality.Figures(text), Goal: content.Cut(goal, maxGoal), Answer: quality.AnswerFigures(answer),
	}
	for _, t := range artifacts {
		seen.Marked = seen.Marked || quality.HasMarker(t)
	}
	return &harnessv1.Observation{Value: &harnessv1.Observation_Output{Output: seen}}, nil
}

// artifactTexts returns the contents of the artifacts of the segment.
func (o *observer) artifactTexts(ctx context.Context, src *sources) ([]string, error) {
	var texts []string
	for _, a := range quality.Current(src.snapshot().GetWorkItemLedger().GetArtifacts()) {
		text, err := src.Text(ctx, a.GetContent())
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// firstRunes returns the first n code points of a text.
func firstRunes(text string, n int) string {
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
}

// quotes looks up the quotes of the artifacts in those sources that are files of the workspace.
// A source that cannot be read is left out. One source is in memory at a time.
func (o *observer) quotes(ctx context.Context) (*harnessv1.Observation, error) {
	src, seen := &sources{observer: o}, &harnessv1.QuotesSeen{}
	bySource, saved := map[string][]quote{}, quality.Current(src.snapshot().GetWorkItemLedger().GetArtifacts())
	for i, a := range saved {
		for _, c := range a.GetCitations() {
			if strings.TrimSpace(c.GetQuote()) != "" {
				bySource[c.GetSource()] = append(bySource[c.GetSource()], quote{artifact: i, text: c.GetQuote()})
			}
		}
	}
	found, missing := make([]*harnessv1.QuoteSeen, len(saved)), make([]*harnessv1.QuoteSeen, len(saved))
	for _, s := range src.snapshot().GetTask().GetSources() {
		if s.GetPath() == "" || len(bySource[s.GetId()]) == 0 {
			continue
		}
		file, err := src.File(ctx, s.GetPath(), maxSource)
		if err != nil {
			return nil, err
		}
		if !file.GetExists() {
			continue
		}
		seen.Read = append(seen.Read, s.GetId())
		text := quality.Fold(file.GetText())
		for _, q := range bySource[s.GetId()] {
			sums, is := missing, quality.QuotedIn(text, q.text)
			if is {
				sums = found
			}
			sum := sums[q.artifact]
			if sum == nil {
				sum = &harnessv1.QuoteSeen{Artifact: saved[q.artifact].GetId(), Source: s.GetId(), Found: is}
				sums[q.artifact] = sum
			}
			if sum.Count++; sum.GetSource() != s.GetId() {
				sum.Source = ""
			}
		}
	}
	for i := range saved {
		for _, sum := range []*harnessv1.QuoteSeen{found[i], missing[i]} {
			if sum != nil {
				seen.Quotes = append(seen.Quotes, sum)
			}
		}
	}
	return &harnessv1.Observation{Value: &harnessv1.Observation_Quotes{Quotes: seen}}, nil
}

// quote is a quote of an artifact, by its place among those of the segment.
type quote struct {
	artifact int
	text     string
}

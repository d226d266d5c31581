package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Bounds of the stored values.
const (
	format        = 1
	maxSegments   = 512 // that are known to be counted
	maxRecent     = 20
	maxMismatches = 8
	maxForgotten  = 128
	maxExcerpt    = 300 // code points
	maxShown      = 3   // mismatches in an observation
)

// A verdict is a mismatch if the user is not content at a score of at least high, or content
// below low.
const (
	high = 0.7
	low  = 0.5
)

// Key returns the key of the profile with a name: 32 lower-case hexadecimal digits.
func Key(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// Excerpt returns the first 300 code points of a text.
func Excerpt(text string) string {
	n := 0
	for at := range text {
		if n == maxExcerpt {
			return text[:at]
		}
		n++
	}
	return text
}

func segmentOf(c *harnessv1.ProfileChange) uint64 {
	return runlog.HashID(fmt.Sprintf("%s/%d/%d", c.GetRunId(), c.GetFirstSequence(), c.GetSegment()))
}

func runOf(runID string, first uint64) uint64 {
	return runlog.HashID(fmt.Sprintf("%s/%d", runID, first))
}

// apply makes a change and reports whether there is anything to store. A change that was made
// before is not made again.
func apply(p *harnessv1.StoredProfile, c *harnessv1.ProfileChange) (changed bool) {
	if slices.Contains(p.GetForgotten(), runOf(c.GetRunId(), c.GetFirstSequence())) {
		return false
	}
	switch change := c.GetChange().(type) {
	case *harnessv1.ProfileChange_Count:
		return count(p, segmentOf(c), change.Count)
	case *harnessv1.ProfileChange_Thumb:
		return rate(p, c.GetRunId(), segmentOf(c), change.Thumb)
	}
	return false
}

// state returns the totals of a profile, which may be new.
func state(p *harnessv1.StoredProfile) *harnessv1.ProfileState {
	p.Format = format
	if p.State == nil {
		p.State = &harnessv1.ProfileState{}
	}
	return p.State
}

func count(p *harnessv1.StoredProfile, segment uint64, c *harnessv1.ProfileCount) bool {
	if numberOf(p, segment) > 0 {
		return false
	}
	s := state(p)
	s.TotalRuns++
	if c.Score != nil {
		s.ScoreSum += c.GetScore()
		s.ScoredRuns++
	}
	if s.Issues == nil {
		s.Issues = map[string]uint64{}
	}
	for _, category := range c.GetIssues() {
		s.Issues[category]++
	}
	p.Counted = newest(append(p.Counted, &harnessv1.CountedSegment{Segment: segment, Number: s.GetTotalRuns()}), maxSegments)
	p.Recent = newest(append(p.Recent, &harnessv1.SegmentIssues{Categories: c.GetIssues()}), maxRecent)
	return true
}

// numberOf returns the number of a segment among those that were counted, 0 if it was not.
func numberOf(p *harnessv1.StoredProfile, segment uint64) uint64 {
	for _, c := range slices.Backward(p.GetCounted()) {
		if c.GetSegment() == segment {
			return c.GetNumber()
		}
	}
	return 0
}

// rate stores feedback on a segment; the last one counts.
func rate(p *harnessv1.StoredProfile, runID string, segment uint64, t *harnessv1.ProfileThumb) bool {
	s := state(p)
	i := slices.IndexFunc(p.GetThumbed(), func(o *harnessv1.ThumbedSegment) bool { return o.GetSegment() == segment })
	switch {
	case i < 0:
		s.Thumbs++
		p.Thumbed = newest(append(p.Thumbed, &harnessv1.ThumbedSegment{Segment: segment, Thumb: t.GetThumb()}), maxSegments)
	case p.GetThumbed()[i].GetThumb() == t.GetThumb():
		return false
	default:
		p.Thumbed[i].Thumb = t.GetThumb()
	}
	s.Mismatches = slices.DeleteFunc(s.Mismatches, func(m *harnessv1.Mismatch) bool { return m.GetSegment() == segment })
	down := t.GetThumb() == harnessv1.Thumb_THUMB_DOWN
	if t.Score != nil && (down && t.GetScore() >= high || !down && t.GetScore() < low) {
		s.Mismatches = newest(append(s.Mismatches, &harnessv1.Mismatch{
			RunId: runID, Segment: segment, Query: Excerpt(t.GetQuery()), Answer: Excerpt(t.GetAnswer()), Score: t.GetScore(), Thumb: t.GetThumb(),
		}), maxMismatches)
	}
	return true
}

// forget removes the words of a run, and keeps later changes from storing some.
func forget(p *harnessv1.StoredProfile, runID string, first uint64) (changed bool) {
	hash := runOf(runID, first)
	if slices.Contains(p.GetForgotten(), hash) {
		return false
	}
	s := state(p)
	s.Mismatches = slices.DeleteFunc(s.Mismatches, func(m *harnessv1.Mismatch) bool { return m.GetRunId() == runID })
	p.Forgotten = newest(append(p.Forgotten, hash), maxForgotten)
	return true
}

// newest returns the last n elements.
func newest[T any](all []T, n int) []T { return all[max(len(all)-n, 0):] }

// seen returns what a decision observes of a profile after a change.
func seen(p *harnessv1.StoredProfile, c *harnessv1.ProfileChange) *harnessv1.ProfileState {
	s := proto.CloneOf(p.GetState())
	if s == nil {
		s = &harnessv1.ProfileState{}
	}
	s.Mismatches = newest(s.GetMismatches(), maxShown)
	counts := map[string]uint64{}
	for _, r := range p.GetRecent() {
		for _, category := range r.GetCategories() {
			counts[category]++
		}
	}
	var numbers []uint64
	for _, n := range counts {
		numbers = append(numbers, n)
	}
	s.IssueBits = quality.Bits(numbers)
	if c.GetCount() != nil {
		s.Number, s.Mismatches = numberOf(p, segmentOf(c)), nil
	}
	if c.GetThumb() != nil {
		s.Mismatches = nil
	}
	return s
}

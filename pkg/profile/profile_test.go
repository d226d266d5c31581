package profile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

const namespace = "default"

// with runs a test on a simulated log.
func with(t *testing.T, test func(t *testing.T, log runlog.Log)) {
	t.Helper()
	sim.WithLog(t, sim.Config{Seed: 1}, test)
}

func counted(run string, segment uint32, score *float64, issues ...string) *harnessv1.ProfileChange {
	return &harnessv1.ProfileChange{
		Profile: profile.Key("w"), RunId: run, FirstSequence: 7, Segment: segment,
		Change: &harnessv1.ProfileChange_Count{Count: &harnessv1.ProfileCount{Score: score, Issues: issues}},
	}
}

func thumbed(run string, thumb harnessv1.Thumb, score *float64, words string) *harnessv1.ProfileChange {
	return &harnessv1.ProfileChange{
		Profile: profile.Key("w"), RunId: run, FirstSequence: 7, Segment: 1,
		Change: &harnessv1.ProfileChange_Thumb{Thumb: &harnessv1.ProfileThumb{Thumb: thumb, Score: score, Query: words, Answer: words}},
	}
}

func observe(t *testing.T, p *profile.Profiles, c *harnessv1.ProfileChange) *harnessv1.ProfileState {
	t.Helper()
	o, err := p.Observe(t.Context(), namespace, c)
	if err != nil {
		t.Fatal(err)
	}
	return o.GetProfile()
}

// TestSegmentIsCountedOnce repeats decisions, as redelivery and the death of a worker do.
func TestSegmentIsCountedOnce(t *testing.T) {
	with(t, func(t *testing.T, log runlog.Log) {
		p := profile.New(profile.Config{Values: log})
		first := observe(t, p, counted("a", 1, proto.Float64(0.8), quality.TooShort))
		observe(t, p, counted("a", 2, nil, quality.TooShort, quality.Other))
		again := observe(t, profile.New(profile.Config{Values: log}), counted("a", 1, proto.Float64(0.1)))
		if first.GetNumber() != 1 || again.GetNumber() != 1 || again.GetTotalRuns() != 2 || again.GetScoredRuns() != 1 || again.GetScoreSum() != 0.8 {
			t.Errorf("%v, then %v", first, again)
		}
		if again.GetIssues()[quality.TooShort] != 2 || again.GetIssueBits() < 0.9 || again.GetIssueBits() > 0.93 {
			t.Errorf("%v", again)
		}
	})
}

// TestConcurrentCounts counts 64 segments at the same time, each twice: the numbers are 1 to 64
// and each threshold is crossed by one of them.
func TestConcurrentCounts(t *testing.T) {
	with(t, func(t *testing.T, log runlog.Log) {
		var mu sync.Mutex
		var group sync.WaitGroup
		numbers, milestones := map[uint64]int{}, map[uint64]int{}
		for n := range 64 {
			p := profile.New(profile.Config{Values: log})
			group.Go(func() {
				for range 2 {
					o, err := p.Observe(context.Background(), namespace, counted(fmt.Sprint("r", n), 1, nil))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					number := o.GetProfile().GetNumber()
					numbers[number]++
					if m := quality.Milestone(number-1, number, o.GetProfile()); m != nil {
						milestones[m.GetThreshold()]++
					}
					mu.Unlock()
				}
			})
		}
		group.Wait()
		for n := uint64(1); n <= 64; n++ {
			if numbers[n] != 2 {
				t.Errorf("number %d was given %d times", n, numbers[n])
			}
		}
		if milestones[10] != 2 || milestones[50] != 2 || len(milestones) != 2 {
			t.Errorf("%v", milestones)
		}
	})
}

// TestLostRevisionsAreDetected shows that the test above detects counts without a revision.
func TestLostRevisionsAreDetected(t *testing.T) {
	with(t, func(t *testing.T, log runlog.Log) {
		log = sim.UnfencedValues(log)
		var group sync.WaitGroup
		for n := range 16 {
			p := profile.New(profile.Config{Values: log})
			group.Go(func() { _, _ = p.Observe(context.Background(), namespace, counted(fmt.Sprint("r", n), 1, nil)) })
		}
		group.Wait()
		if s, err := profile.New(profile.Config{Values: log}).Read(t.Context(), namespace, profile.Key("w")); err != nil || s.GetTotalRuns() == 16 {
			t.Errorf("no count was lost: %v %v", s, err)
		}
	})
}

func TestFeedbackCountsLast(t *testing.T) {
	with(t, func(t *testing.T, log runlog.Log) {
		p, up, down := profile.New(profile.Config{Values: log}), harnessv1.Thumb_THUMB_UP, harnessv1.Thumb_THUMB_DOWN
		for _, c := range []struct {
			thumb      harnessv1.Thumb
			score      *float64
			mismatches int
		}{{up, proto.Float64(0.9), 0}, {down, proto.Float64(0.7), 1}, {down, proto.Float64(0.7), 1}, {up, proto.Float64(0.49), 1}, {down, proto.Float64(0.69), 0}, {up, nil, 0}} {
			observe(t, p, thumbed("a", c.thumb, c.score, strings.Repeat("é", 301)))
			s, err := p.Read(t.Context(), namespace, profile.Key("w"))
			if err != nil || s.GetThumbs() != 1 || len(s.GetMismatches()) != c.mismatches {
				t.Fatalf("%v %v: %v %v", c.thumb, c.score, s, err)
			}
			if c.mismatches > 0 && (s.GetMismatches()[0].GetThumb() != c.thumb || s.GetMismatches()[0].GetQuery() != strings.Repeat("é", 300)) {
				t.Errorf("%v", s)
			}
		}
		for n := range 10 {
			observe(t, p, thumbed(fmt.Sprint("r", n), down, proto.Float64(0.9), fmt.Sprint(n)))
		}
		if s, err := p.Read(t.Context(), namespace, profile.Key("w")); err != nil || s.GetThumbs() != 11 || len(s.GetMismatches()) != 3 || s.GetMismatches()[2].GetQuery() != "9" {
			t.Errorf("%v %v", s, err)
		}
	})
}

// TestDeletedRunLeavesNoWords also for feedback that is stored after the deletion.
func TestDeletedRunLeavesNoWords(t *testing.T) {
	with(t, func(t *testing.T, log runlog.Log) {
		p := profile.New(profile.Config{Values: log})
		change := thumbed("a", harnessv1.Thumb_THUMB_DOWN, proto.Float64(0.9), "secret")
		observe(t, p, change)
		observe(t, p, thumbed("b", harnessv1.Thumb_THUMB_DOWN, proto.Float64(0.9), "other"))
		if err := p.Forget(t.Context(), runlog.Run{Namespace: namespace, ID: "a"}, profile.Key("w"), 7); err != nil {
			t.Fatal(err)
		}
		change.Change.(*harnessv1.ProfileChange_Thumb).Thumb.Thumb = harnessv1.Thumb_THUMB_UP
		change.Change.(*harnessv1.ProfileChange_Thumb).Thumb.Score = proto.Float64(0.1)
		observe(t, p, change)
		data, _, err := log.Value(t.Context(), runlog.ValueKey{Namespace: namespace, Kind: "profile", Name: profile.Key("w")})
		if err != nil || strings.Contains(string(data), "secret") || !strings.Contains(string(data), "other") {
			t.Errorf("%q %v", data, err)
		}
		if err := p.Reset(t.Context(), namespace, profile.Key("w")); err != nil {
			t.Fatal(err)
		}
		if s, err := p.Read(t.Context(), namespace, profile.Key("w")); err != nil || proto.Size(s) != 0 {
			t.Errorf("%v %v", s, err)
		}
	})
}

func TestProfileOfNewerProgramIsUnchanged(t *testing.T) {
	with(t, func(t *testing.T, log runlog.Log) {
		key := runlog.ValueKey{Namespace: namespace, Kind: "profile", Name: profile.Key("w")}
		data, err := proto.Marshal(&harnessv1.StoredProfile{Format: 2, State: &harnessv1.ProfileState{TotalRuns: 60}})
		if err != nil {
			t.Fatal(err)
		}
		revision, err := log.PutValue(t.Context(), key, data, 0)
		if err != nil {
			t.Fatal(err)
		}
		p := profile.New(profile.Config{Values: log})
		for _, c := range []*harnessv1.ProfileChange{{Profile: profile.Key("w")}, counted("a", 1, nil), thumbed("a", harnessv1.Thumb_THUMB_UP, nil, "")} {
			if s := observe(t, p, c); !strings.Contains(s.GetProblem(), "newer program") || s.GetTotalRuns() != 0 {
				t.Errorf("%v", s)
			}
		}
		if err := p.Reset(t.Context(), namespace, profile.Key("w")); !errors.Is(err, profile.ErrNewer) {
			t.Errorf("reset: %v", err)
		}
		if err := p.Forget(t.Context(), runlog.Run{Namespace: namespace, ID: "a"}, profile.Key("w"), 7); err != nil {
			t.Errorf("forget: %v", err)
		}
		if _, now, err := log.Value(t.Context(), key); err != nil || now != revision {
			t.Errorf("revision %d after %d: %v", now, revision, err)
		}
	})
}

func TestProfileIsReadAtMostFiveMinutesOld(t *testing.T) {
	with(t, func(t *testing.T, log runlog.Log) {
		p, read := profile.New(profile.Config{Values: log}), &harnessv1.ProfileChange{Profile: profile.Key("w")}
		observe(t, p, read)
		observe(t, profile.New(profile.Config{Values: log}), counted("a", 1, nil))
		if s := observe(t, p, read); s.GetTotalRuns() != 0 {
			t.Errorf("%v", s)
		}
		time.Sleep(5 * time.Minute)
		if s := observe(t, p, read); s.GetTotalRuns() != 1 {
			t.Errorf("%v", s)
		}
	})
}

func TestWithoutProfiles(t *testing.T) {
	var p *profile.Profiles
	if s := observe(t, p, counted("a", 1, nil)); s.GetProblem() == "" {
		t.Errorf("%v", s)
	}
	if err := p.Forget(t.Context(), runlog.Run{}, "x", 1); err != nil {
		t.Error(err)
	}
}

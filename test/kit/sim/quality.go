package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// judgedState is the state of a run whose work is judged.
type judgedState struct {
	counted  map[string]bool // jobs whose usage is counted
	segment  uint32
	attempts []attempt // of the segment
}

// attempt is an attempt of a segment, by the events about it.
type attempt struct {
	number   uint32
	combined float64
	answer   string
}

// qualityInvariants returns what holds for runs whose work is judged. They need the simulated
// model as judge.
func (w *World) qualityInvariants() []Invariant {
	return []Invariant{
		{Name: "the answer of a judge is that to its request", Stored: answerToRequest},
		{Name: "a judge has one answer for a key", Stored: oneAnswer},
		{Name: "what judging used counts once", Stored: usageCounted},
		{Name: "the best attempt is delivered", Stored: bestDelivered},
		{Name: "a segment counts once in its profile", Stored: w.numberedOnce, Final: segmentsCounted},
	}
}

// endedJobs calls f for each job of a judge whose end the decision of a step has seen.
func endedJobs(e runlog.Entry, f func(key string, state *harnessv1.JobState) string) string {
	for _, o := range e.Record.GetStep().GetObserved() {
		if s := o.GetJob(); s.GetEnded() && len(o.GetKey()) > len(jobKey) {
			if wrong := f(o.GetKey()[len(jobKey):], s); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// jobKey begins the key of the observation of a job.
const jobKey = "job:"

// markOf returns the mark that the answer to a request has.
func markOf(prompt string) string {
	sum := sha256.Sum256([]byte(prompt))
	return "about " + hex.EncodeToString(sum[:8])
}

// answerToRequest: an answer that a decision has seen under a key was given to the request with the key.
func answerToRequest(l *Log, e runlog.Entry) string {
	return endedJobs(e, func(key string, s *harnessv1.JobState) string {
		job := l.jobs[key]
		if job == nil || s.GetError() != "" {
			return ""
		}
		request := &harnessv1.ModelRequest{}
		if err := proto.Unmarshal(l.blobs[job.job.GetRequest().GetDigest()], request); err != nil {
			return err.Error()
		}
		messages := request.GetMessages()
		if prompt := content.Text(messages[len(messages)-1].GetContent()); !strings.Contains(s.GetText(), markOf(prompt)) {
			return fmt.Sprintf("job %s of the purpose %s has the answer %q, which is not %s", key, job.job.GetPurpose(), s.GetText(), markOf(prompt))
		}
		return ""
	})
}

// oneAnswer: a decision sees the result that was stored first under a key.
func oneAnswer(l *Log, e runlog.Entry) string {
	return endedJobs(e, func(key string, s *harnessv1.JobState) string {
		first, ok := l.first[key]
		if !ok || s.GetText() == "" {
			return ""
		}
		result := &harnessv1.JobResult{}
		if err := proto.Unmarshal(first.data, result); err != nil {
			return err.Error()
		}
		if result.GetText() != s.GetText() || !proto.Equal(result.GetUsage(), s.GetUsage()) {
			return fmt.Sprintf("the first result of job %s is %q, and the decision has %q", key, result.GetText(), s.GetText())
		}
		return ""
	})
}

// usageCounted: the steps that judge add the usage of the jobs that they have seen for the first time, and
// nothing else.
func usageCounted(l *Log, e runlog.Entry) string {
	step := e.Record.GetStep()
	s := step.GetSnapshot()
	if !s.GetConfig().GetQuality().GetEnabled() || step.GetFrom() != workflow.Repair && step.GetFrom() != workflow.StopDecision || l.state.step.Record == nil {
		return ""
	}
	j := &l.state.judged
	if j.counted == nil {
		j.counted = map[string]bool{}
	}
	want := snapshotOf(l).GetSpent().GetUsage().GetOutputTokens()
	endedJobs(e, func(key string, state *harnessv1.JobState) string {
		if !j.counted[key] {
			want += state.GetUsage().GetOutputTokens()
		}
		j.counted[key] = true
		return ""
	})
	if have := s.GetSpent().GetUsage().GetOutputTokens(); have != want {
		return fmt.Sprintf("%d tokens of output are counted after a step of %s, want %d", have, step.GetFrom(), want)
	}
	return ""
}

// bestDelivered: a segment that ends delivers the answer of the attempt with the highest score, the later one of equals.
func bestDelivered(l *Log, e runlog.Entry) string {
	step := e.Record.GetStep()
	j := &l.state.judged
	if n := step.GetSnapshot().GetSegment(); step != nil && n != j.segment {
		j.segment, j.attempts = n, nil
	}
	for _, ev := range e.Record.GetEvents() {
		if c := ev.GetQualityContract(); c != nil {
			passed := 0.0
			if c.GetPassed() {
				passed = 1
			}
			j.attempts = append(j.attempts, attempt{number: c.GetAttempt(), combined: passed / 2, answer: content.Text(snapshotOf(l).GetAnswer())})
		}
		if v := ev.GetQualityVerified(); v != nil && len(j.attempts) > 0 {
			last := &j.attempts[len(j.attempts)-1]
			last.combined = (2*last.combined + v.GetScore()) / 2
		}
	}
	if step.GetTo() != runlog.End || step.GetFrom() != workflow.StopDecision || step.GetResult().GetQuality() == nil || len(j.attempts) == 0 {
		return ""
	}
	best := j.attempts[0]
	for _, a := range j.attempts {
		if a.combined >= best.combined {
			best = a
		}
	}
	if r := step.GetResult(); r.GetQuality().GetDelivered() != best.number || content.Text(r.GetAnswer()) != best.answer {
		return fmt.Sprintf("attempt %d with %q is delivered, and the best is attempt %d with %q, of %v",
			r.GetQuality().GetDelivered(), content.Text(r.GetAnswer()), best.number, best.answer, j.attempts)
	}
	return ""
}

// segmentID returns the identity of a segment in a profile.
func segmentID(l *Log, s *harnessv1.Snapshot) uint64 {
	return runlog.HashID(fmt.Sprintf("%s/%d/%d", l.Run.ID, s.GetFirstSequence(), s.GetSegment()))
}

func (w *World) profileOf(namespace, name string) (*harnessv1.StoredProfile, error) {
	p := &harnessv1.StoredProfile{}
	return p, proto.Unmarshal(w.store.values[runlog.ValueKey{Namespace: namespace, Kind: "profile", Name: name}].data, p)
}

// counts calls f with the profile that a step has counted its segment in, and the number that the segment got.
func counts(e runlog.Entry, f func(name string, number uint64) string) string {
	step := e.Record.GetStep()
	for _, o := range step.GetObserved() {
		if n := o.GetProfile().GetNumber(); o.GetKey() == "profile" && step.GetFrom() == workflow.StopDecision && n > 0 {
			return f(step.GetSnapshot().GetQuality().GetProfile(), n)
		}
	}
	return ""
}

// numberedOnce: no two segments have one number in a profile.
func (w *World) numberedOnce(l *Log, e runlog.Entry) string {
	return counts(e, func(name string, number uint64) string {
		if w.numbered == nil {
			w.numbered = map[string]uint64{}
		}
		key, id := fmt.Sprint(l.Run.Namespace, name, number), segmentID(l, e.Record.GetStep().GetSnapshot())
		if other, ok := w.numbered[key]; ok && other != id {
			return fmt.Sprintf("its segment has the number %d in the profile, as another one has", number)
		}
		w.numbered[key] = id
		return ""
	})
}

// segmentsCounted: each segment whose end has a number is in its profile, under this number and once.
func segmentsCounted(w *World) string {
	for _, l := range w.store.order {
		for _, e := range l.Records() {
			wrong := counts(e, func(name string, number uint64) string {
				p, err := w.profileOf(l.Run.Namespace, name)
				if err != nil {
					return err.Error()
				}
				found := 0
				for i, c := range p.GetCounted() {
					if c.GetNumber() != uint64(i)+1 || p.GetState().GetTotalRuns() != uint64(len(p.GetCounted())) {
						return fmt.Sprintf("the profile has %d segments, and these are counted: %v", p.GetState().GetTotalRuns(), p.GetCounted())
					}
					if c.GetSegment() == segmentID(l, e.Record.GetStep().GetSnapshot()) && c.GetNumber() == number {
						found++
					}
				}
				if found != 1 {
					return fmt.Sprintf("segment %d of %s has the number %d, and is %d times in %v",
						e.Record.GetStep().GetSnapshot().GetSegment(), l.Run, number, found, p.GetCounted())
				}
				return ""
			})
			if wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

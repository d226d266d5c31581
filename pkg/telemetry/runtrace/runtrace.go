// Package runtrace computes a run's position in its trace, and which of the spans that
// cross processes end with a record. It is pure: the process that commits a record
// calls it and stores the result in the snapshot (harnessv1.TraceState).
//
// # Spans
//
//	invoke_agent            one stretch of work: from the start or a wake to the next park or end
//	  turn 7                one cycle: from one RepairTrigger to the next, or to the park or end
//	    repair, turn, …     one execution of a step; made by the executor's process
//
// Stretches and cycles start in one process and end in another, and no process may live
// in between. So their ids are derived from the trace and the version of the record
// that they start with: the snapshot is enough to create child spans, and the process
// that commits their end creates them with their true start.
//
// # Chapters
//
// A trace has 100 turns of a run. The next one has an id derived from the first one's.
// Its root is linked to the previous chapter and to the first.
//
// # Invariants
//
//   - A stretch is open exactly while a cycle is, and exactly while the run is neither
//     parked nor ended.
//   - A record ends a cycle before it starts one. A stretch ends with its cycle, when
//     the run parks or ends or when a chapter starts.
package runtrace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// ChapterTurns is how many turns of a run are in one trace.
const ChapterTurns = 100

// TraceID and SpanID are ids as in W3C Trace Context. All zeros means none.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// String returns the id in lower-case hexadecimal.
func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// String returns the id in lower-case hexadecimal.
func (s SpanID) String() string { return hex.EncodeToString(s[:]) }

// Ref identifies a span.
type Ref struct {
	Trace TraceID
	Span  SpanID
}

// Kind is a kind of span that crosses processes.
type Kind byte

// The kinds.
const (
	Stretch Kind = 1 // invoke_agent
	Turn    Kind = 2 // turn N
)

// Span is a span that has ended.
type Span struct {
	Kind Kind
	Ref
	// Parent is the span above it in the same trace; zero for the root of a chapter.
	Parent SpanID
	// Links are the spans before it.
	Links []Ref
	// Start and End are commit times.
	Start, End time.Time
	// Chapter is the number of its trace, from 0.
	Chapter uint32
}

// maxName bounds TraceState.agent_name, in bytes.
const maxName = 64

// New returns the state at the first record of a run of an agent. parent is the span
// that starts the run. Without a parent the run is not traced, and the state is nil.
func New(parent Ref, agent string, at time.Time) *harnessv1.TraceState {
	if parent.Trace == (TraceID{}) {
		return nil
	}
	t := timestamppb.New(at)
	s := &harnessv1.TraceState{
		TraceId: parent.Trace[:], ChapterVersion: 1, StretchVersion: 1, StretchTime: t, TurnVersion: 1, TurnTime: t,
		AgentName: content.Cut(agent, maxName),
	}
	if parent.Span != (SpanID{}) {
		s.ParentSpanId = parent.Span[:]
	}
	return s
}

// Below returns the state at the first record of a sub-agent's run, which is a part of the trace of
// its parent: parent is the open cycle of that. id is the id of the run.
func Below(parent Ref, id, agent string, at time.Time) *harnessv1.TraceState {
	s := New(parent, agent, at)
	if s != nil {
		sum := sha256.Sum256([]byte(id))
		s.Seed = sum[:8]
	}
	return s
}

// Next returns the state at a record that contains step, with the given version and
// commit time, and the spans that end with it, inner spans first. before is the state
// at the step before. A run that is not traced has the state nil. Next modifies none of
// its arguments.
func Next(before *harnessv1.TraceState, step *harnessv1.Step, version uint64, at time.Time) (after *harnessv1.TraceState, ended []Span) {
	stops, starts := runlog.IsRest(step.GetTo()), step.GetRepairTrigger() != nil
	if before == nil || !stops && !starts {
		return before, nil
	}
	after = proto.CloneOf(before)
	chapter := step.GetSnapshot().GetTurnCount() / ChapterTurns
	turns := !stops && chapter > before.GetChapter()
	if before.GetTurnVersion() != 0 {
		ended = append(ended, endTurn(before, at))
	}
	if before.GetStretchVersion() != 0 && (stops || turns) {
		ended = append(ended, endStretch(before, at))
		after.PreviousStretchVersion = before.GetStretchVersion()
		after.StretchVersion, after.StretchTime = 0, nil
	}
	after.TurnVersion, after.TurnTime = 0, nil
	if stops {
		return after, ended
	}
	if turns {
		after.Chapter, after.ChapterVersion = chapter, version
	}
	if after.GetStretchVersion() == 0 {
		after.StretchVersion, after.StretchTime = version, timestamppb.New(at)
	}
	after.TurnVersion, after.TurnTime = version, timestamppb.New(at)
	return after, ended
}

// Current returns the open cycle, the parent of its work. While the run is parked or
// ended it returns the newest stretch. It returns zero if the run is not traced.
func Current(s *harnessv1.TraceState) Ref {
	switch {
	case s == nil:
		return Ref{}
	case s.GetTurnVersion() != 0:
		return at(s, s.GetChapter(), Turn, s.GetTurnVersion())
	}
	return previous(s)
}

// IDs returns the ids of all traces of a run so far, oldest first; none if it is not
// traced.
func IDs(s *harnessv1.TraceState) []TraceID {
	if s == nil {
		return nil
	}
	ids := make([]TraceID, s.GetChapter()+1)
	for chapter := range ids {
		ids[chapter] = traceOf(s, uint32(chapter))
	}
	return ids
}

// ID returns the id of a run's current trace, zero if it is not traced.
func ID(s *harnessv1.TraceState) TraceID {
	if s == nil {
		return TraceID{}
	}
	return traceOf(s, s.GetChapter())
}

// ChapterID returns the id of a chapter of the run whose first trace is first. seed is that of the
// run's state.
func ChapterID(first TraceID, seed []byte, chapter uint32) TraceID {
	if chapter == 0 {
		return first
	}
	var id TraceID
	copy(id[:], digest(first, seed, 'c', uint64(chapter)))
	return id
}

func endTurn(s *harnessv1.TraceState, now time.Time) Span {
	return Span{
		Kind: Turn, Ref: at(s, s.GetChapter(), Turn, s.GetTurnVersion()), Chapter: s.GetChapter(),
		Parent: at(s, s.GetChapter(), Stretch, s.GetStretchVersion()).Span,
		Start:  s.GetTurnTime().AsTime(), End: now,
	}
}

func endStretch(s *harnessv1.TraceState, now time.Time) Span {
	span := Span{
		Kind: Stretch, Ref: at(s, s.GetChapter(), Stretch, s.GetStretchVersion()), Chapter: s.GetChapter(),
		Start: s.GetStretchTime().AsTime(), End: now,
	}
	first := at(s, 0, Stretch, 1)
	switch {
	case s.GetStretchVersion() != s.GetChapterVersion(): // it continues where the chapter has started
		span.Parent = at(s, s.GetChapter(), Stretch, s.GetChapterVersion()).Span
	case s.GetChapter() == 0:
		copy(span.Parent[:], s.GetParentSpanId())
	}
	if before := previous(s); before.Span != (SpanID{}) {
		span.Links = append(span.Links, before)
		if s.GetStretchVersion() == s.GetChapterVersion() && before != first {
			span.Links = append(span.Links, first)
		}
	}
	return span
}

// previous returns the stretch before the current one. It is in the previous chapter if
// the current one is the first of its chapter.
func previous(s *harnessv1.TraceState) Ref {
	version, chapter := s.GetPreviousStretchVersion(), s.GetChapter()
	if version == 0 {
		return Ref{}
	}
	if version < s.GetChapterVersion() {
		return at(s, chapterBefore(s), Stretch, version)
	}
	return at(s, chapter, Stretch, version)
}

// chapterBefore returns the previous chapter. Turns are counted one by one, so none is
// skipped.
func chapterBefore(s *harnessv1.TraceState) uint32 { return max(s.GetChapter(), 1) - 1 }

func at(s *harnessv1.TraceState, chapter uint32, kind Kind, version uint64) Ref {
	trace := traceOf(s, chapter)
	ref := Ref{Trace: trace}
	copy(ref.Span[:], digest(trace, s.GetSeed(), byte(kind), version))
	return ref
}

func traceOf(s *harnessv1.TraceState, chapter uint32) TraceID {
	return ChapterID(TraceID(pad(s.GetTraceId(), len(TraceID{}))), s.GetSeed(), chapter)
}

// digest returns the bytes that ids are cut from. In practice they are never all zeros,
// which ids must not be.
func digest(trace TraceID, seed []byte, kind byte, n uint64) []byte {
	in := append(trace[:], kind)
	in = append(binary.BigEndian.AppendUint64(in, n), seed...)
	sum := sha256.Sum256(in)
	return sum[:]
}

// pad returns b with exactly n bytes: stored bytes may have any length.
func pad(b []byte, n int) []byte {
	out := make([]byte, n)
	copy(out, b)
	return out
}

package runtrace_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
)

var (
	began  = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	parent = runtrace.Ref{Trace: runtrace.TraceID{1, 2, 3}, Span: runtrace.SpanID{9}}
)

// step returns a step to an executor after the given number of turns.
func step(to string, turns uint32) *harnessv1.Step {
	s := &harnessv1.Step{To: to, Snapshot: &harnessv1.Snapshot{TurnCount: turns}}
	if to == "repair" {
		s.Message = &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{}}
	}
	return s
}

// walk commits steps from version 2 on, one second apart, and returns the state and the
// ended spans after each.
func walk(t *testing.T, steps ...*harnessv1.Step) (states []*harnessv1.TraceState, ended [][]runtrace.Span) {
	t.Helper()
	state := runtrace.New(parent, "teller", began)
	for i, s := range steps {
		kept := proto.CloneOf(state)
		next, spans := runtrace.Next(state, s, uint64(i+2), began.Add(time.Duration(i+1)*time.Second))
		if !proto.Equal(state, kept) {
			t.Fatalf("step %d changes the state that it is given", i)
		}
		if stopped := next.GetStretchVersion() == 0; stopped != runlog.IsRest(s.GetTo()) || stopped != (next.GetTurnVersion() == 0) {
			t.Fatalf("after step %d to %s the state is %v", i, s.GetTo(), next)
		}
		state = next
		states, ended = append(states, state), append(ended, spans)
	}
	return states, ended
}

func TestUntracedRunStaysUntraced(t *testing.T) {
	if s := runtrace.New(runtrace.Ref{}, "a", began); s != nil {
		t.Errorf("without a span it begins with %v", s)
	}
	next, ended := runtrace.Next(nil, step("repair", 3), 7, began)
	if next != nil || ended != nil {
		t.Errorf("it becomes %v and ends %v", next, ended)
	}
	if runtrace.Current(nil) != (runtrace.Ref{}) || runtrace.IDs(nil) != nil || runtrace.ID(nil) != (runtrace.TraceID{}) {
		t.Error("it has ids")
	}
}

func TestStepsBetweenChangeNothing(t *testing.T) {
	state := runtrace.New(parent, "", began)
	for _, to := range []string{"compaction", "turn", "stopdecision", "custom"} {
		if next, ended := runtrace.Next(state, step(to, 0), 2, began); next != state || ended != nil {
			t.Errorf("a step to %s makes it %v and ends %v", to, next, ended)
		}
	}
}

func TestCycleEndsWhereTheNextStarts(t *testing.T) {
	states, ended := walk(t, step("turn", 0), step("repair", 1), step("turn", 1), step(runlog.End, 2))
	first := runtrace.Current(runtrace.New(parent, "teller", began))
	if len(ended[0]) != 0 || len(ended[1]) != 1 || len(ended[3]) != 2 {
		t.Fatalf("ended: %v", ended)
	}
	turn := ended[1][0]
	if turn.Kind != runtrace.Turn || turn.Ref != first || !turn.Start.Equal(began) || !turn.End.Equal(began.Add(2*time.Second)) {
		t.Errorf("the first cycle is %+v, what was under it hangs on %v", turn, first)
	}
	if last := ended[3][0]; last.Ref != runtrace.Current(states[1]) || !last.Start.Equal(turn.End) {
		t.Errorf("the second cycle is %+v", last)
	}
	stretch := ended[3][1]
	if stretch.Kind != runtrace.Stretch || stretch.Parent != parent.Span || stretch.Trace != parent.Trace || len(stretch.Links) != 0 ||
		!stretch.Start.Equal(began) || stretch.Span != turn.Parent || stretch.Span != ended[3][0].Parent {
		t.Errorf("the stretch is %+v", stretch)
	}
}

func TestWokenRunContinuesItsTrace(t *testing.T) {
	states, ended := walk(t, step(runlog.Park, 0), step("repair", 0), step(runlog.Park, 0), step("repair", 0), step(runlog.End, 1))
	first, second, third := ended[0][1], ended[2][1], ended[4][1]
	for i, s := range []runtrace.Span{second, third} {
		if s.Parent != first.Span || s.Trace != first.Trace {
			t.Errorf("stretch %d has parent %v", i+2, s.Parent)
		}
	}
	if len(second.Links) != 1 || second.Links[0] != first.Ref || len(third.Links) != 1 || third.Links[0] != second.Ref {
		t.Errorf("links: %v, %v", second.Links, third.Links)
	}
	if at := runtrace.Current(states[0]); at != first.Ref {
		t.Errorf("a parked run is at %v", at)
	}
	if len(ended[1]) != 0 || len(ended[3]) != 0 {
		t.Errorf("a wake ends %v, %v", ended[1], ended[3])
	}
}

func TestChapterHas100Turns(t *testing.T) {
	var steps []*harnessv1.Step
	for turns := uint32(1); turns <= 205; turns++ {
		steps = append(steps, step("repair", turns))
	}
	steps = append(steps, step(runlog.Park, 205), step("repair", 205), step(runlog.End, 206))
	states, ended := walk(t, steps...)
	var stretches []runtrace.Span
	turns := map[runtrace.TraceID]int{}
	for _, spans := range ended {
		for _, s := range spans {
			if s.Kind == runtrace.Stretch {
				stretches = append(stretches, s)
			} else {
				turns[s.Trace]++
			}
		}
	}
	ids := runtrace.IDs(states[len(states)-1])
	if len(ids) != 3 || ids[0] != parent.Trace || ids[1] == ids[0] || ids[2] == ids[1] {
		t.Fatalf("traces %v", ids)
	}
	if turns[ids[0]] != 100 || turns[ids[1]] != 100 || turns[ids[2]] != 7 {
		t.Errorf("turns by trace: %v", turns)
	}
	if len(stretches) != 4 {
		t.Fatalf("%d stretches", len(stretches))
	}
	one, two, three, woken := stretches[0], stretches[1], stretches[2], stretches[3]
	if one.Parent != parent.Span || two.Parent != (runtrace.SpanID{}) || three.Parent != (runtrace.SpanID{}) || woken.Parent != three.Span {
		t.Errorf("parents %v %v %v %v", one.Parent, two.Parent, three.Parent, woken.Parent)
	}
	if len(two.Links) != 1 || two.Links[0] != one.Ref {
		t.Errorf("the second chapter leads to %v", two.Links)
	}
	if len(three.Links) != 2 || three.Links[0] != two.Ref || three.Links[1] != one.Ref {
		t.Errorf("the third chapter leads to %v", three.Links)
	}
	if len(woken.Links) != 1 || woken.Links[0] != three.Ref || woken.Trace != ids[2] {
		t.Errorf("the woken stretch leads to %v", woken.Links)
	}
	if !two.Start.Equal(one.End) {
		t.Error("there is time between two chapters")
	}
	for i, id := range ids {
		if runtrace.ChapterID(parent.Trace, nil, uint32(i)) != id {
			t.Errorf("chapter %d cannot be computed from the first", i)
		}
	}
}

func TestStateIsSmall(t *testing.T) {
	state := runtrace.New(parent, "teller", time.Now())
	for version := uint64(1 << 20); version < 1<<20+300; version++ {
		state, _ = runtrace.Next(state, step("repair", uint32(version%1000)), version, time.Now())
	}
	if n := proto.Size(state); n > 100 {
		t.Errorf("%d bytes", n)
	}
	if n := proto.Size(runtrace.New(parent, strings.Repeat("ü", 500), began)); n > 160 {
		t.Errorf("%d bytes with a long name", n)
	}
}

func TestDamagedIDsAreHarmless(t *testing.T) {
	for _, id := range [][]byte{nil, {1}, make([]byte, 400)} {
		state := runtrace.New(parent, "", began)
		state.TraceId = id
		if _, ended := runtrace.Next(state, step(runlog.End, 1), 2, began); len(ended) != 2 {
			t.Errorf("%d bytes of id: %v", len(id), ended)
		}
	}
}

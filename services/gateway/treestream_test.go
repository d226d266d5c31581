package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// forest makes the logs of a tree as the runs of one write them.
type forest struct {
	r    *rand.Rand
	logs map[string][]runlog.Entry
	runs []*grown
	seq  uint64
	// belongs are the answers of shown.
	belongs map[string]bool
}

// grown is a run of a forest.
type grown struct {
	id       string
	parent   *grown
	depth    int
	children []*harnessv1.Child
	// call is the call that it works for; empty between its end and the next one.
	call  string
	calls int
	ended bool
}

func (f *forest) append(g *grown, to string, events ...*harnessv1.Event) {
	f.seq += 1 + f.r.Uint64N(3)
	rec := &harnessv1.Record{Namespace: "default", RunId: g.id, Version: uint64(len(f.logs[g.id]) + 1), Events: events}
	if to != "" {
		s := &harnessv1.Snapshot{}
		for _, c := range g.children {
			s.Children = append(s.Children, &harnessv1.Child{RunId: c.GetRunId(), Report: &harnessv1.ChildReport{Version: c.GetReport().GetVersion()}})
		}
		rec.Body = &harnessv1.Record_Step{Step: &harnessv1.Step{To: to, Snapshot: s}}
	} else {
		rec.Body = &harnessv1.Record_Journal{Journal: &harnessv1.Journal{}}
	}
	f.logs[g.id] = append(f.logs[g.id], runlog.Entry{
		Run: runlog.Run{Namespace: "default", ID: g.id}, Sequence: f.seq, Header: runlog.Header{Version: rec.GetVersion()}, Record: rec,
	})
}

// some returns up to three events.
func (f *forest) some() (events []*harnessv1.Event) {
	for range f.r.IntN(3) {
		events = append(events, &harnessv1.Event{Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{}}})
	}
	return events
}

// find returns a run.
func (f *forest) find(id string) *grown {
	return f.runs[slices.IndexFunc(f.runs, func(g *grown) bool { return g.id == id })]
}

// work has one run do one thing.
func (f *forest) work() {
	g := f.runs[f.r.IntN(len(f.runs))]
	switch n := f.r.IntN(10); {
	case g.ended && f.r.IntN(8) > 0:
	case g.ended && g.parent != nil && g.call == "": // a message of a person reopens it
		g.ended = false
		f.append(g, "turn", f.some()...)
	case g.ended:
	case n < 4:
		f.append(g, []string{"", "turn", "park"}[f.r.IntN(3)], f.some()...)
	case n < 6 && g.depth < 3 && len(f.runs) < 12:
		g.calls++
		c := &grown{id: fmt.Sprintf("%s-%d", strings.Replace(g.id, "root", "a", 1), g.calls), parent: g, depth: g.depth + 1, call: fmt.Sprint("call", g.calls)}
		f.runs = append(f.runs, c)
		g.children = append(g.children, &harnessv1.Child{RunId: c.id, CallId: c.call})
		f.append(g, "park", append(f.some(), started(c, 0))...)
	case n < 8:
		f.takeReports(g)
	default:
		f.finish(g)
	}
}

func started(c *grown, after uint64) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_AgentStarted{AgentStarted: &harnessv1.AgentStarted{RunId: c.id, CallId: c.call, Agent: "helper", AfterVersion: after}}}
}

// takeReports has a run take what its children report, and continue one that has ended.
func (f *forest) takeReports(g *grown) {
	for _, c := range g.children {
		child := f.find(c.GetRunId())
		if len(f.logs[child.id]) == 0 {
			continue
		}
		c.Report = &harnessv1.ChildReport{Version: uint64(len(f.logs[child.id]))}
		switch {
		case child.ended && child.call != "":
			f.append(g, "turn", append(f.some(), &harnessv1.Event{Event: &harnessv1.Event_AgentEnded{AgentEnded: &harnessv1.AgentEnded{
				RunId: child.id, CallId: child.call, ChildVersion: c.GetReport().GetVersion(),
			}}})...)
			child.call = ""
		case child.ended && f.r.IntN(2) == 0:
			g.calls++
			child.call, child.ended = fmt.Sprint("call", g.calls), false
			f.append(g, "park", started(child, c.GetReport().GetVersion()))
			f.append(child, "turn", f.some()...)
		}
	}
}

// finish ends a run whose children have ended, and reported that.
func (f *forest) finish(g *grown) {
	for _, c := range g.children {
		if child := f.find(c.GetRunId()); !child.ended || child.call != "" {
			return
		}
	}
	g.ended = true
	f.append(g, "end", f.some()...)
}

// drain ends all runs, the deepest first.
func (f *forest) drain() {
	for range 200 {
		for _, g := range slices.Backward(f.runs) {
			if !g.ended {
				f.takeReports(g)
				f.finish(g)
			}
		}
		if f.runs[0].ended {
			return
		}
	}
}

// deliver returns the events of a stream after an offset, of logs that arrive in any order.
func (f *forest) deliver(t *testing.T, after string) (events []*harnessv1.Event) {
	t.Helper()
	from, err := gateway.ParseOffset("after", after)
	if err != nil {
		t.Fatal(err)
	}
	s := gateway.NewTreeStream("root", from)
	read := func(run string, sequence uint64) (runlog.Entry, error) {
		for _, e := range f.logs[run] {
			if e.Sequence == sequence {
				return e, nil
			}
		}
		return runlog.Entry{}, runlog.ErrNotFound
	}
	if err := s.Reopen("after", from, read); err != nil {
		t.Fatal(err)
	}
	for _, o := range s.Open() {
		if log := f.logs[o.Run]; after != "" && len(log) > 0 {
			newest := len(log) - 1
			for newest > 0 && log[newest].Record.GetStep() == nil {
				newest--
			}
			s.Known(log[newest])
		}
	}
	type openKey struct {
		run string
		n   int
	}
	next := map[openKey]uint64{} // versions that arrived
	for {
		for {
			d, ok := s.Next()
			if !ok {
				break
			}
			if d.Event != nil {
				events = append(events, d.Event)
			}
		}
		var ready []runlog.Entry
		for _, o := range s.Open() {
			key := openKey{o.Run, o.Opening}
			if _, known := next[key]; !known {
				next[key] = o.After
			}
			if at := next[key]; s.Wants(o.Run) && at < uint64(len(f.logs[o.Run])) {
				ready = append(ready, f.logs[o.Run][at])
			}
		}
		if len(ready) == 0 {
			break
		}
		e := ready[f.r.IntN(len(ready))]
		for _, o := range s.Open() {
			if o.Run == e.Run.ID {
				next[openKey{o.Run, o.Opening}]++
			}
		}
		if err := s.Arrive(e); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Complete() {
		t.Error("everything was delivered, and the stream waits for more")
	}
	return events
}

// TestTreeStream: whatever order the logs of a tree arrive in, every event is delivered once,
// by version in its run, and between agent.started and agent.ended of its parent; and so after
// a resume at each of them.
func TestTreeStream(t *testing.T) {
	t.Parallel()
	checkTreeStream(t, 4, 24, 1000)
}

// TestSystemTreeStream does so with a tree of 844 events.
func TestSystemTreeStream(t *testing.T) {
	t.Parallel()
	checkTreeStream(t, 0, 4, 800)
}

// checkTreeStream cuts the streams of the trees with seeds in [from, to) after each event, at
// least cuts times.
func checkTreeStream(t *testing.T, from, to uint64, cuts int) {
	t.Helper()
	cut := 0
	for seed := from; seed < to; seed++ {
		f := &forest{r: rand.New(rand.NewPCG(seed, 19)), logs: map[string][]runlog.Entry{}, belongs: map[string]bool{}}
		f.runs = []*grown{{id: "root"}}
		f.append(f.runs[0], "turn", f.some()...)
		for range 40 + f.r.IntN(40) {
			f.work()
		}
		f.drain()
		whole := f.deliver(t, "")
		f.check(t, whole, nil)
		for i, e := range whole {
			after := e.GetOffset()
			if after == "" {
				after = e.GetId()
			}
			rest := f.deliver(t, after)
			f.check(t, rest, whole[:i+1])
			cut++
			if t.Failed() {
				t.Fatalf("seed %d, cut after %s at %s", seed, e.GetId(), after)
			}
		}
	}
	if cut < cuts {
		t.Errorf("%d cuts", cut)
	}
}

// check checks events that a stream delivered, after others.
func (f *forest) check(t *testing.T, events, before []*harnessv1.Event) {
	t.Helper()
	seen, last, open := map[string]bool{}, map[string]string{}, map[string]string{"": "root"}
	note := func(e *harnessv1.Event) {
		if seen[e.GetId()] {
			t.Errorf("%s is doubled", e.GetId())
		}
		seen[e.GetId()] = true
		_, place, _ := strings.Cut("/"+e.GetId(), "/")
		if e.GetRunId() != "" {
			_, place, _ = strings.Cut(place, "/")
		}
		var version, index int
		if _, err := fmt.Sscanf(place, "%d-%d", &version, &index); err != nil {
			t.Errorf("%s: %v", e.GetId(), err)
		}
		at := fmt.Sprintf("%06d-%06d", version, index)
		if at <= last[e.GetRunId()] {
			t.Errorf("%s follows %s", e.GetId(), last[e.GetRunId()])
		}
		last[e.GetRunId()] = at
		if open[e.GetRunId()] == "" || e.GetRunId() != "" && open[e.GetRunId()] != e.GetCallId() {
			t.Errorf("%s, of call %q, is delivered while call %q of its run is open", e.GetId(), e.GetCallId(), open[e.GetRunId()])
		}
		if s := e.GetAgentStarted(); s != nil {
			open[s.GetRunId()] = s.GetCallId()
		}
		if s := e.GetAgentEnded(); s != nil {
			open[s.GetRunId()] = ""
			if got := last[s.GetRunId()]; got != "" && !f.has(s.GetRunId(), s.GetChildVersion(), got) {
				t.Errorf("%s: its child ended at %d, but %s was the last event of it", e.GetId(), s.GetChildVersion(), got)
			}
		}
	}
	for _, e := range append(slices.Clone(before), events...) {
		note(e)
	}
	for _, g := range f.runs {
		for _, e := range f.logs[g.id] {
			for i := range e.Record.GetEvents() {
				id := fmt.Sprintf("%d-%d", e.Header.Version, i)
				if g.parent != nil {
					id = g.id + "/" + id
				}
				if !seen[id] && f.shown(g, e.Header.Version) {
					t.Errorf("%s is missing", id)
				}
			}
		}
	}
}

// has reports whether a place is that of the last event of a run up to a version that the
// stream shows.
func (f *forest) has(run string, version uint64, place string) bool {
	want := ""
	for _, e := range f.logs[run][:version] {
		for i := range e.Record.GetEvents() {
			if f.shown(f.find(run), e.Header.Version) {
				want = fmt.Sprintf("%06d-%06d", e.Header.Version, i)
			}
		}
	}
	return want == place
}

// shown reports whether a version of a run belongs to a call. What a person has it do between
// two calls belongs to none.
func (f *forest) shown(g *grown, version uint64) bool {
	if g.parent == nil {
		return true
	}
	key := fmt.Sprint(g.id, "/", version)
	answer, known := f.belongs[key]
	if !known {
		answer = f.within(g, version)
		f.belongs[key] = answer
	}
	return answer
}

func (f *forest) within(g *grown, version uint64) bool {
	after, open := uint64(0), false
	for _, e := range f.logs[g.parent.id] {
		for _, ev := range e.Record.GetEvents() {
			if s := ev.GetAgentStarted(); s != nil && s.GetRunId() == g.id {
				after, open = s.GetAfterVersion(), f.shown(g.parent, e.Header.Version)
			}
			if s := ev.GetAgentEnded(); s != nil && s.GetRunId() == g.id {
				if open && version > after && version <= s.GetChildVersion() {
					return true
				}
				open = false
			}
		}
	}
	return false
}

// TestOffsetText: an offset has one text; other texts are refused.
func TestOffsetText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0", "14", "14-0", "14-2~", "14-2~0.91-1.0", "14~0.91-1.7-2~1.99-0.3~0.92-0.18"} {
		o, err := gateway.ParseOffset("after", text)
		if err != nil || o.String() != text {
			t.Errorf("%q: %q, %v", text, o.String(), err)
		}
	}
	for _, text := range []string{"x", "-", "14-", "1-2-3", "~", "14~1.91-1.0", "14~0.91-1", "14~0.91.1", "14~~0.91-1.0", "99999999999999999999", "14~0.91-1.99999999999999999999", "a-1/3-0"} {
		if o, err := gateway.ParseOffset("after", text); err == nil {
			t.Errorf("%q is taken for %v", text, o)
		}
	}
}

// TestMissingChild: an agent.ended whose child is not stored any more does not stop the stream,
// and one whose child is found after all waits for it.
func TestMissingChild(t *testing.T) {
	t.Parallel()
	f := &forest{r: rand.New(rand.NewPCG(1, 1)), logs: map[string][]runlog.Entry{}, belongs: map[string]bool{}}
	root, c := &grown{id: "root"}, &grown{id: "a-1", call: "call1"}
	f.append(root, "park", started(c, 0))
	f.append(root, "turn", &harnessv1.Event{Event: &harnessv1.Event_AgentEnded{AgentEnded: &harnessv1.AgentEnded{RunId: c.id, CallId: c.call, ChildVersion: 3}}})
	s := gateway.NewTreeStream("root", gateway.Offset{})
	pump := func() (ids []string) {
		for {
			d, ok := s.Next()
			if !ok {
				return ids
			}
			if d.Event != nil {
				ids = append(ids, d.Event.GetId())
			}
		}
	}
	step := func(what string, want ...string) {
		t.Helper()
		if got := pump(); !slices.Equal(got, want) {
			t.Fatalf("%s: %q is delivered, expected %q", what, got, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Arrive(f.logs["root"][0]))
	step("start", "1-0")
	s.Missing(c.id)
	s.Missing(c.id)
	must(s.Arrive(f.logs["root"][1]))
	step("end")
	s.Missing(c.id) // this search began before the end arrived
	step("one search")
	s.Missing(c.id)
	step("two searches", "2-0")
}

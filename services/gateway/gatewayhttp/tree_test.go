package gatewayhttp_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// calls appends a step with calls that start runs.
func (h *hand) calls(children ...*hand) *hand {
	h.b.t.Helper()
	var events []*harnessv1.Event
	for _, c := range children {
		events = append(events, &harnessv1.Event{Event: &harnessv1.Event_AgentStarted{AgentStarted: &harnessv1.AgentStarted{
			CallId: "call-" + c.run.ID, RunId: c.run.ID, Agent: "helper", AfterVersion: 1,
		}}})
	}
	return h.step("repair", func(s *harnessv1.Step) {
		for _, c := range children {
			s.Snapshot.Children = append(s.Snapshot.Children, &harnessv1.Child{RunId: c.run.ID, CallId: "call-" + c.run.ID, Order: 1})
		}
	}, events...)
}

// returned appends a step with the ends of children.
func (h *hand) returned(children ...*hand) *hand {
	h.b.t.Helper()
	var events []*harnessv1.Event
	for _, c := range children {
		events = append(events, &harnessv1.Event{Event: &harnessv1.Event_AgentEnded{AgentEnded: &harnessv1.AgentEnded{
			CallId: "call-" + c.run.ID, RunId: c.run.ID, Agent: "helper", Status: harnessv1.RunStatus_RUN_STATUS_DONE, ChildVersion: c.version,
		}}})
	}
	return h.step("repair", func(s *harnessv1.Step) {
		for _, child := range s.GetSnapshot().GetChildren() {
			for _, c := range children {
				if child.GetRunId() == c.run.ID {
					child.Report = &harnessv1.ChildReport{Version: c.version, Order: 1, Status: harnessv1.RunStatus_RUN_STATUS_DONE}
				}
			}
		}
	}, events...)
}

// byRun returns the names of events and their own ids in the order of each run: runs that work
// side by side are mixed.
func byRun(t *testing.T, events []sse) map[string][]string {
	t.Helper()
	runs := map[string][]string{}
	for _, e := range events {
		var line struct {
			ID   string `json:"id"`
			Run  string `json:"run_id"`
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(e.data), &line); err != nil || line.Type != e.name {
			t.Fatalf("%s: %v", e.data, err)
		}
		if e.name == "result" {
			line.Run = "" // it is that of the watched run
		}
		runs[line.Run] = append(runs[line.Run], line.ID+" "+e.name)
	}
	return runs
}

// A client that leaves a tree after any event and comes back with its id receives the remaining
// events of all runs, each of them once; with tree=false those of the root.
func TestAClientThatComesBackToATreeReceivesEachEventOnce(t *testing.T) {
	b := newBed(t)
	root, left, right, low := b.started("r"), b.started("a-left"), b.started("a-right"), b.started("a-low")
	root.works(1).calls(left, right)
	right.works(1)
	left.works(2).calls(low)
	low.works(2).end("Low.")
	left.returned(low).works(1).end("Left.")
	right.works(2).end("Right.")
	root.returned(left).park("interrupted").works(1).returned(right).works(2).end("Done.")

	whole := b.open("/v1/runs/r/events").rest()[1:]
	all := byRun(t, whole)
	if runs := slices.Sorted(maps.Keys(all)); !slices.Equal(runs, []string{"", "a-left", "a-low", "a-right"}) || len(whole) != 24 {
		t.Fatalf("%d events of %v:\n%s", len(whole), runs, named(whole))
	}
	if alone := byRun(t, b.open("/v1/runs/r/events?tree=false").rest()[1:]); len(alone) != 1 || !slices.Equal(alone[""], all[""]) {
		t.Errorf("the root alone: %v", alone)
	}
	for at, e := range whole[:len(whole)-1] {
		want := byRun(t, whole[at+1:])
		for _, stream := range []*stream{b.open("/v1/runs/r/events", "Last-Event-ID", e.id), b.open("/v1/runs/r/events?after=" + e.id)} {
			if got := byRun(t, stream.rest()[1:]); !maps.EqualFunc(got, want, slices.Equal) {
				t.Fatalf("after %s:\n%v\nwant\n%v", e.id, got, want)
			}
		}
		alone := byRun(t, b.open("/v1/runs/r/events?tree=false", "Last-Event-ID", e.id).rest()[1:])
		if len(alone) != 1 || !slices.Equal(alone[""], want[""]) {
			t.Fatalf("the root alone after %s:\n%v\nwant\n%v", e.id, alone, want[""])
		}
	}
	last := whole[len(whole)-1].id
	for _, path := range []string{"/v1/runs/r/events", "/v1/runs/r/events?tree=false"} {
		if got := b.open(path, "Last-Event-ID", last); got.status != http.StatusNoContent {
			t.Errorf("%s after the last event: %d", path, got.status)
		}
	}
}

package gatewayhttp_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayhttp"
)

func TestAStreamHasEventsWithIDsAndTheResult(t *testing.T) {
	b := newBed(t)
	b.started("r").works(2).end("All done.")
	s := b.open("/v1/runs/r/events")
	events := s.rest()
	last := events[len(events)-1]
	if want := regexp.MustCompile(`^attached \ntool.call 2-0\ntool.call 2-1\nsession.complete 3-0\nresult 3-0\.r[0-9a-f]{16}\n$`); !want.MatchString(named(events)) {
		t.Errorf("got\n%s", named(events))
	}
	if !strings.Contains(last.data, `"answer":"All done."`) || !strings.HasPrefix(last.data, `{"type":"result","run_id":"r"`) {
		t.Errorf("result %s", last.data)
	}
	for _, e := range events[1:4] {
		var line struct{ Type, ID string }
		if err := json.Unmarshal([]byte(e.data), &line); err != nil || line.Type != e.name || line.ID != e.id {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// A client that leaves after any event and comes back with its id receives the
// remaining events, each of them once.
func TestAClientThatComesBackReceivesEachEventOnce(t *testing.T) {
	b := newBed(t)
	b.started("r").works(3).park("interrupted").works(2).works(1).end("Done.")
	whole := b.open("/v1/runs/r/events").rest()[1:]
	if len(whole) != 9 { // six calls, the end, and two results
		t.Fatalf("%d events\n%s", len(whole), named(whole))
	}
	for left := range whole {
		got := b.open("/v1/runs/r/events", "Last-Event-ID", whole[left].id)
		if left == len(whole)-1 {
			if got.status != http.StatusNoContent {
				t.Errorf("after the last event: %d", got.status)
			}
			continue
		}
		if rest := got.rest()[1:]; !slices.Equal(rest, whole[left+1:]) {
			t.Errorf("after %s:\n%swant\n%s", whole[left].id, named(rest), named(whole[left+1:]))
		}
		if after := b.open("/v1/runs/r/events?after=" + whole[left].id).rest()[1:]; !slices.Equal(after, whole[left+1:]) {
			t.Errorf("?after=%s: %s", whole[left].id, named(after))
		}
	}
	if rest := b.open("/v1/runs/r/events?after=2").rest()[1:]; !slices.Equal(names(rest), names(whole[3:])) {
		t.Errorf("after the whole of version 2: %s", named(rest))
	}
	// An EventSource that reconnects sends its URL, and the newer id in a header.
	if rest := b.open("/v1/runs/r/events?after=1", "Last-Event-ID", whole[5].id).rest()[1:]; !slices.Equal(rest, whole[6:]) {
		t.Errorf("the header and ?after: %s", named(rest))
	}
}

func names(events []sse) (names []string) {
	for _, e := range events {
		names = append(names, e.name)
	}
	return names
}

func TestAStreamContinuesPastAParkAndSendsItOnce(t *testing.T) {
	b := newBed(t)
	h := b.started("r").works(1).park("approval", approvalCall("c0"))
	s := b.open("/v1/runs/r/events")
	parked := s.until("result")
	if !strings.Contains(parked[len(parked)-1].data, `"pending":[{"call_id":"c0"`) {
		t.Fatalf("%s", parked[len(parked)-1].data)
	}
	s.leave()
	again := b.open("/v1/runs/r/events", "Last-Event-ID", s.last)
	h.works(1)
	if got := again.until("tool.call"); named(got) != "attached \ntool.call 4-0\n" {
		t.Errorf("%s", named(got))
	}
	h.park("approval", approvalCall("c0"))
	got := again.until("result")
	if got[0].name != "result" || got[0].id == s.last {
		t.Errorf("the second park: %s", named(got))
	}
	rest := b.open("/v1/runs/r/events?until=rest")
	if events := rest.rest(); events[len(events)-1].name != "result" {
		t.Errorf("%s", named(events))
	}
	if over := b.open("/v1/runs/r/events?until=rest", "Last-Event-ID", again.last); over.status != http.StatusNoContent {
		t.Errorf("a park that was seen: %d", over.status)
	}
}

func TestAMessageReopensAStream(t *testing.T) {
	b := newBed(t)
	h := b.started("r").end("Done.")
	s := b.open("/v1/runs/r/events")
	s.rest()
	if a := b.post("/v1/runs/r/messages", `{"content":"And now?"}`); a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.body)
	}
	again := b.open("/v1/runs/r/events", "Last-Event-ID", s.last)
	if again.status != http.StatusOK {
		t.Fatalf("status %d", again.status)
	}
	h.works(1).end("Done again.")
	if got := names(again.rest()); !slices.Equal(got, []string{"attached", "tool.call", "session.complete", "result"}) {
		t.Errorf("%v", got)
	}
}

func TestLinesAreTheDataOfEvents(t *testing.T) {
	b := newBed(t)
	b.started("r").works(2).end("Done.")
	a := b.get("/v1/runs/r/events", "Accept", "application/x-ndjson")
	var data strings.Builder
	for _, e := range b.open("/v1/runs/r/events").rest() {
		data.WriteString(e.data + "\n")
	}
	if a.body != data.String() || a.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("got\n%swant\n%s", a.body, data.String())
	}
}

func TestNowEndsAfterAllStoredEvents(t *testing.T) {
	b := newBed(t)
	b.started("r").works(1)
	if got := names(b.open("/v1/runs/r/events?until=now").rest()); !slices.Equal(got, []string{"attached", "tool.call"}) {
		t.Errorf("%v", got)
	}
}

func TestTextArrivesWhileItIsWritten(t *testing.T) {
	b := newBed(t)
	h := b.started("r")
	s, silent := b.open("/v1/runs/r/events"), b.open("/v1/runs/r/events?no_deltas=true")
	s.until("attached")
	h.append(&harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{
		Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: 1, Attempt: 1}},
	}}, Events: []*harnessv1.Event{{Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}}}})
	s.until("step.start")
	b.must(shared.PublishDelta(h.run, &harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: 1, Text: "wörld"}))
	got := s.until("delta")
	if e := got[len(got)-1]; e.id != "" || e.data != `{"type":"delta","turn_number":1,"attempt":1,"try":1,"offset":0,"text":"wörld"}` {
		t.Errorf("%+v", e)
	}
	b.must(shared.PublishDelta(h.run, &harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: 1, Offset: 6, Text: " peace", Reasoning: "hm"}))
	got = s.until("delta")
	if len(got) != 2 || got[0].name != "reasoning.delta" || got[0].id != "" ||
		got[0].data != `{"type":"reasoning.delta","turn_number":1,"attempt":1,"try":1,"offset":0,"text":"hm"}` ||
		got[1].data != `{"type":"delta","turn_number":1,"attempt":1,"try":1,"offset":6,"text":" peace"}` {
		t.Errorf("%+v", got)
	}
	b.must(shared.PublishDelta(h.run, &harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: 1, Offset: 12, ReasoningOffset: 2, Reasoning: "m"}))
	if got := named(s.until("reasoning.delta")); got != "reasoning.delta \n" {
		t.Errorf("%s", got)
	}
	b.must(shared.PublishDelta(h.run, &harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: 1, Offset: 12, ReasoningOffset: 3,
		Alert: &harnessv1.QualityAlert{Severity: "critical", Checkpoint: 500, Issue: "No", Suggestion: "Work"}}))
	got = s.until("alert.delta")
	if e := got[len(got)-1]; len(got) != 1 || e.id != "" ||
		e.data != `{"type":"alert.delta","turn_number":1,"attempt":1,"try":1,"severity":"critical","checkpoint":500,"issue":"No","suggestion":"Work"}` {
		t.Errorf("%+v", got)
	}
	h.end("Done.")
	if got := names(s.rest()); slices.Contains(got, "delta") {
		t.Errorf("%v", got)
	}
	if got := names(silent.rest()); slices.ContainsFunc(got, func(name string) bool { return strings.HasSuffix(name, "delta") }) {
		t.Errorf("%v", got)
	}
}

// The seed names are exactly those of docs/events.md, and are used only on request.
func TestSeedNames(t *testing.T) {
	b := newBed(t)
	b.started("r").works(1).end("Done.")
	events := b.open("/v1/runs/r/events?names=seed").rest()
	if got := names(events); !slices.Equal(got, []string{"attached", "tool.call", "harness_completed", "result"}) {
		t.Errorf("%v", got)
	}
	if !strings.HasPrefix(events[2].data, `{"type":"harness_completed","id":"3-0"`) {
		t.Errorf("%s", events[2].data)
	}
	page, err := os.ReadFile("../../../docs/events.md")
	b.must(err)
	documented := map[string]string{}
	emitted, _, _ := strings.Cut(string(page), "## Reserved")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` .*\\| `([a-z_]+)` \\|$").FindAllStringSubmatch(emitted, -1) {
		documented[row[1]] = row[2]
	}
	named := map[string]string{}
	cases := (&harnessv1.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("event").Fields()
	for i := range cases.Len() {
		if seed := proto.GetExtension(cases.Get(i).Options(), harnessv1.E_SeedName).(string); seed != "" {
			named[proto.GetExtension(cases.Get(i).Options(), harnessv1.E_EventName).(string)] = seed
		}
	}
	if !maps.Equal(named, documented) {
		t.Errorf("docs/events.md has\n%v\nand event.proto\n%v", documented, named)
	}
}

// A score has the seed name of its type.
func TestSeedNamesOfScores(t *testing.T) {
	b := newBed(t)
	var sent []*harnessv1.Event
	for _, name := range []string{"rqs", "rec_qs", "doc_qs"} {
		sent = append(sent, event.QualityScored(&harnessv1.QualityScored{Type: name, Score: 90, Grade: "A", Label: "excellent", Attempt: 1}))
	}
	b.started("r").step("turn", nil, sent...).end("Done.")
	events := b.open("/v1/runs/r/events?names=seed").rest()
	want := []string{"attached", "harness_rqs", "harness_rec_qs", "harness_doc_qs", "harness_completed", "result"}
	if got := names(events); !slices.Equal(got, want) {
		t.Fatalf("%v", got)
	}
	for i, name := range want[1:4] {
		if data := events[i+1].data; !strings.HasPrefix(data, `{"type":"`+name+`","id":"`) {
			t.Errorf("%s", data)
		}
	}
	if got := names(b.open("/v1/runs/r/events").rest()); !slices.Equal(got[1:4], slices.Repeat([]string{"quality.scored"}, 3)) {
		t.Errorf("without the seed's names: %v", got)
	}
}

// Sub-agents of a swarm are its progress; others keep their names.
func TestSeedNamesOfASwarm(t *testing.T) {
	b := newBed(t)
	h := b.started("r")
	var sent []*harnessv1.Event
	for _, call := range []string{"swarm/specialist-1", "call"} {
		child := &harnessv1.Child{RunId: "a-" + call, CallId: call, Agent: "east"}
		sent = append(sent, event.AgentStarted(child), event.AgentEnded(child))
	}
	sent = append(sent, event.SwarmActivated(&harnessv1.SwarmActivated{}), event.SwarmCompleted(&harnessv1.SwarmCompleted{}))
	h.step("turn", nil, sent...).end("Done.")
	events := b.open("/v1/runs/r/events?names=seed&tree=false").rest()
	want := []string{"attached", "tool_sandbox", "tool_sandbox", "agent.started", "agent.ended", "harness_swarm_activated", "harness_swarm_complete", "harness_completed", "result"}
	if got := names(events); !slices.Equal(got, want) {
		t.Fatalf("%v", got)
	}
	for i, state := range []string{"started", "ended"} {
		if data := events[i+1].data; !strings.HasPrefix(data, `{"type":"tool_sandbox","tool_name":"synthesis_swarm","state":"`+state+`","id":"`) || !json.Valid([]byte(data)) {
			t.Errorf("%s", data)
		}
	}
}

func TestASilentStreamIsKeptAlive(t *testing.T) {
	b := newBed(t, func(c *gatewayhttp.Config) { c.KeepAlive = time.Millisecond })
	b.started("r")
	s := b.open("/v1/runs/r/events")
	for s.lines.Scan() {
		if s.lines.Text() == ": keep-alive" {
			return
		}
	}
	t.Fatal("the stream ended without a comment")
}

// A client that reads nothing is disconnected, and meanwhile does not delay other
// clients.
func TestAClientThatReadsNothingIsDisconnected(t *testing.T) {
	ended := make(chan struct{}, 2)
	b := newBed(t, func(c *gatewayhttp.Config) {
		c.Patience = 20 * time.Millisecond
		c.Guard = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				if r.Header.Get("Slow") != "" {
					ended <- struct{}{}
				}
			})
		}
	})
	h := b.started("r")
	slow := b.open("/v1/runs/r/events", "Slow", "yes")
	large := strings.Repeat("x", 8<<10)
	for range 40 { // more than sockets and windows on the way hold
		var events []*harnessv1.Event
		for range 24 {
			events = append(events, &harnessv1.Event{Event: &harnessv1.Event_PlanDraft{PlanDraft: &harnessv1.PlanDraft{Plan: large}}})
		}
		h.step("repair", nil, events...)
	}
	h.end("Done.")
	// The other client has the default patience: this machine may be busy.
	patient := httptest.NewServer(gatewayhttp.New(gatewayhttp.Config{Gateway: b.gateway}))
	t.Cleanup(patient.Close)
	other := *b
	other.http = patient
	if events := other.open("/v1/runs/r/events").rest(); len(events) != 1+40*24+2 {
		t.Errorf("the other client received %d events", len(events))
	}
	select {
	case <-ended:
	case <-b.ctx.Done():
		t.Fatal("the slow client is still served")
	}
	slow.leave()
}

func TestRunsAreSentAsTheyChange(t *testing.T) {
	b := newBed(t)
	b.started("a").end("Done.")
	s := b.open("/v1/events")
	if got := names(s.until("caught_up")); !slices.Equal(got, []string{"run", "caught_up"}) {
		t.Errorf("%v", got)
	}
	changes := b.open("/v1/events?changes_only=true&status=running,PARKED")
	changes.until("caught_up")
	b.started("b")
	for _, s := range []*stream{s, changes} {
		e := s.nextRun()
		for strings.HasPrefix(e.data, `{"type":"run","run_id":"a","status":"DONE"`) {
			e = s.nextRun() // the gateway may hear of its end after the list
		}
		if !strings.HasPrefix(e.data, `{"type":"run","run_id":"b","status":"RUNNING"`) || e.id != "" {
			t.Errorf("%+v", e)
		}
	}
}

func (s *stream) nextRun() sse {
	got := s.until("run")
	return got[len(got)-1]
}

func TestAStoppingGatewayEndsStreamsWithAnError(t *testing.T) {
	b := newBed(t)
	b.started("r")
	s := b.open("/v1/runs/r/events")
	s.until("attached")
	b.server.Close()
	got := s.rest()
	if len(got) != 1 || got[0].name != "stream.error" || !strings.Contains(got[0].data, `"code":"UNAVAILABLE","reason":"SHUTTING_DOWN"`) {
		t.Errorf("%+v", got)
	}
}

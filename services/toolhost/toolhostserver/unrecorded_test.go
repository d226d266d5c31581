package toolhostserver

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

const refused = harnessv1.ToolOutcome_TOOL_OUTCOME_REFUSED

// appends is a call that appends a word to a file, of a run whose log knows the entries up to a number.
func (h *host) appends(id, word string, known uint64, others ...string) *harnessv1.ExecuteToolRequest {
	h.t.Helper()
	req := h.request(tools.RunCommand, id, map[string]any{"command": "echo " + word + " | tee -a out"})
	req.KnownSequence, req.KnownCalls = proto.Uint64(known), others
	return req
}

// TestCallsThatTheLogHasLost: while the ledger has calls that the log of the run does not know, no call
// starts, a call that was made before gets its result, and one with other arguments does not.
func TestCallsThatTheLogHasLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	for i, id := range []string{"a", "b"} {
		resp := h.execute(h.appends(id, id, uint64(i)))
		expect(t, resp, done, false, id)
		if resp.GetLedgerSequence() != uint64(i+1) || len(resp.GetUnrecorded()) > 0 {
			t.Fatalf("call %s: %v", id, resp)
		}
	}
	for life := range 2 {
		h.execute(h.readsWith("reads", "path", ".")) // leaves no entry
		for name, c := range map[string]struct {
			req     *harnessv1.ExecuteToolRequest
			outcome harnessv1.ToolOutcome
			text    string
			lost    string // ids
		}{
			"a new call":                    {h.appends("c", "c", 0), refused, toolhost.LostCalls, "a b"},
			"one that knows the first":      {h.appends("c", "c", 1), refused, toolhost.LostCalls, "b"},
			"one that has started them":     {h.appends("a", "a", 0, "b"), done, "a", ""},
			"the first again":               {h.appends("a", "a", 0), done, "a", "b"},
			"the first with other content":  {h.appends("a", "A", 0), refused, toolhost.LostCalls, "a b"},
			"an id that the log knows":      {h.appends("a", "A", 2), refused, toolhost.TakenID, ""},
			"a request without a number":    {h.unnumbered("a", "a"), done, "a", ""},
			"one with other content":        {h.unnumbered("a", "A"), refused, toolhost.TakenID, ""},
			"a read with the id of another": {h.readsWith("reads", "path", "a"), refused, toolhost.TakenID, ""},
			"one of another ledger":         {h.ofAnotherLedger("n"), unknown, "", ""},
			"a call without an effect":      {h.reads("r", 0), refused, toolhost.LostCalls, "a b"},
			"one that knows all and reads":  {h.reads("s", 2), done, "out", ""},
			"one of another run, same name": {h.ofAnotherRun("a"), done, "other", ""},
		} {
			resp := h.execute(c.req)
			var lost []string
			for _, l := range resp.GetUnrecorded() {
				lost = append(lost, l.GetCallId())
				if l.GetOutcome() != done || !strings.Contains(l.GetResult(), l.GetCallId()) || !strings.Contains(l.GetArguments(), "tee -a out") || l.GetTool() != tools.RunCommand {
					t.Errorf("%s: %v", name, l)
				}
			}
			if resp.GetOutcome() != c.outcome || !strings.Contains(resp.GetResult(), c.text) || strings.Join(lost, " ") != c.lost {
				t.Errorf("life %d, %s: %v", life, name, resp)
			}
		}
		if got := h.read("out"); got != "a\nb\n" {
			t.Fatalf("a call ran that must not: %q", got)
		}
		h.close()
		h2 := newHost(t, Config{Dir: dir})
		h2.dir = h.dir
		h = h2
	}
	expect(t, h.execute(h.appends("c", "c", 2)), done, false, "c")
}

func (h *host) reads(id string, known uint64) *harnessv1.ExecuteToolRequest {
	req := h.request(tools.ListDirectory, id, nil)
	req.KnownSequence = proto.Uint64(known)
	return req
}

// unnumbered is appends of a worker of an earlier version.
func (h *host) unnumbered(id, word string) *harnessv1.ExecuteToolRequest {
	req := h.appends(id, word, 0)
	req.KnownSequence = nil
	return req
}

// readsWith is a read with one argument, of a run whose log knows all entries.
func (h *host) readsWith(id, name, value string) *harnessv1.ExecuteToolRequest {
	req := h.request(tools.ListDirectory, id, map[string]any{name: value})
	req.KnownSequence = proto.Uint64(100)
	return req
}

// ofAnotherLedger is a call that was started under another ledger: its numbers are not those of this one.
func (h *host) ofAnotherLedger(id string) *harnessv1.ExecuteToolRequest {
	req := h.appends(id, id, 0)
	req.LedgerId = "another"
	return req
}

func (h *host) ofAnotherRun(id string) *harnessv1.ExecuteToolRequest {
	req := h.request(tools.RunCommand, id, map[string]any{"command": "echo other"})
	req.FirstSequence, req.KnownSequence = 8, proto.Uint64(0)
	return req
}

// TestALostCallThatRunsIsAwaited: the response names it with its result, so it comes when that one has
// ended; and one whose host has died is unknown.
func TestALostCallThatRunsIsAwaited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	awaitGate := gate(t, h.dir)
	lost := h.request(tools.RunCommand, "lost", map[string]any{"command": "echo > gate; cat gate; echo whole"})
	lost.KnownSequence = proto.Uint64(0)
	first := h.startCall(context.Background(), lost)
	awaitGate()
	runs := h.execute(h.appends("new", "new", 0))
	if len(runs.GetUnrecorded()) != 1 || runs.GetUnrecorded()[0].GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNSPECIFIED {
		t.Fatalf("before the log was searched: %v", runs)
	}
	compared := h.appends("new", "new", 0)
	compared.Compared = true
	second := h.startCall(context.Background(), compared)
	h.write("gate", "") // ends the command
	if a := <-first; a.err != nil || a.resp.GetOutcome() != done {
		t.Fatalf("got %v", a)
	}
	b := <-second
	if b.err != nil || b.resp.GetOutcome() != refused || len(b.resp.GetUnrecorded()) != 1 || !strings.Contains(b.resp.GetUnrecorded()[0].GetResult(), "whole") {
		t.Fatalf("got %v", b)
	}
	killed := h.request(tools.RunCommand, "killed", map[string]any{"command": "echo > gate; cat gate"})
	killed.KnownSequence = proto.Uint64(1)
	third := h.startCall(context.Background(), killed)
	awaitGate()
	h.close()
	<-third
	h2 := newHost(t, Config{Dir: dir})
	h2.dir = h.dir
	resp := h2.execute(h2.appends("new", "new", 1))
	if resp.GetOutcome() != refused || len(resp.GetUnrecorded()) != 1 || resp.GetUnrecorded()[0].GetOutcome() != unknown {
		t.Fatalf("got %v", resp)
	}
}

package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// host is a tool host: a process with a ledger by call id, which outlives the process
// unless it is lost.
type host struct {
	world  *World
	name   string
	index  int
	ledger string
	lost   int
	down   bool
	// entries is the content of the ledger.
	entries map[string]*call
	running []*call
}

// call is an entry of a ledger.
type call struct {
	host       *host
	key        string
	run        string
	id         string
	tool       string
	operation  string
	idempotent bool
	state      callState
	response   *harnessv1.ExecuteToolResponse
	ready      bool
	waiters    []*op
	answers    []func(*harnessv1.ExecuteToolResponse)
}

type callState int

const (
	running callState = iota + 1
	finished
	cancelled
	orphaned
)

// ToolHost adds a tool host. A host may die and restart, with its ledger or without.
func (w *World) ToolHost(name string) {
	h := &host{world: w, name: name, index: len(w.hosts), entries: map[string]*call{}}
	h.newLedger()
	w.hosts = append(w.hosts, h)
}

// newLedger starts a ledger; its id has the form PLACE-RANDOM.
func (h *host) newLedger() {
	h.ledger = fmt.Sprintf("%012x-%016x", h.index+1, h.lost+1)
}

func callKey(namespace, run string, first uint64, id string) string {
	return fmt.Sprintf("%s/%s/%d/%s", namespace, run, first, id)
}

// execute makes a request arrive at its host.
func (w *World) execute(o *op, r *harnessv1.ExecuteToolRequest, answer func(*harnessv1.ExecuteToolResponse)) error {
	h := w.host(r.GetLedgerId())
	if h == nil {
		return away("the tool host")
	}
	key := callKey(r.GetNamespace(), r.GetRunId(), r.GetFirstSequence(), r.GetCallId())
	foreign := r.GetLedgerId() != "" && r.GetLedgerId() != h.ledger
	may := idempotent(r.GetTool())
	c := h.entries[key]
	switch {
	case c == nil && foreign && !may, c != nil && c.state == orphaned && !may:
		o.note = "unknown"
		answer(&harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN})
		return nil
	case c != nil && c.state == cancelled:
		o.note = "cancelled"
		answer(&harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED})
		return nil
	case c != nil && c.state == finished:
		o.note = "result"
		answer(c.response)
		return nil
	case c != nil && c.state == running:
		o.note = "joined"
	default:
		o.note = "started"
		c = h.run(key, r, may)
	}
	c.waiters = append(c.waiters, o)
	c.answers = append(c.answers, answer)
	return errWaiting
}

// check makes a command of the harness arrive at any host. It runs as a call does, and
// is neither idempotent nor known under another ledger.
func (w *World) check(o *op, r *harnessv1.CheckCommandRequest, answer func(*harnessv1.CheckCommandResponse)) error {
	call := &harnessv1.ExecuteToolRequest{
		Namespace: r.GetNamespace(), RunId: r.GetRunId(), CallId: r.GetKey(), FirstSequence: r.GetFirstSequence(), Tool: checkTool,
	}
	return w.execute(o, call, func(a *harnessv1.ExecuteToolResponse) {
		answer(&harnessv1.CheckCommandResponse{Outcome: a.GetOutcome()})
	})
}

// run starts a call; from here on it has its effect.
func (h *host) run(key string, r *harnessv1.ExecuteToolRequest, may bool) *call {
	w := h.world
	var arguments struct {
		Op string `json:"op"`
	}
	_ = json.Unmarshal([]byte(r.GetArguments()), &arguments) // the schema has been checked
	c := &call{host: h, key: key, run: r.GetRunId(), id: r.GetCallId(), tool: r.GetTool(), operation: arguments.Op, idempotent: may, state: running}
	h.entries[key] = c
	h.running = append(h.running, c)
	w.effect(r.GetRunId(), c)
	spans := [...]time.Duration{0, 0, 0, 10 * time.Millisecond, time.Second, w.ackWait, 2 * w.ackWait, 4 * w.ackWait}
	n := len(spans)
	if w.healing || w.cfg.Rates.ModelSlow == 0 || w.random.IntN(10) < 6 {
		n = 4
	}
	c.response = &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: "did " + c.operation, IsError: w.random.IntN(12) == 0,
		Duration: durationpb.New(time.Millisecond),
	}
	if w.random.IntN(12) == 0 {
		c.response.Result += strings.Repeat("\nand a long result", 600)
	}
	w.after(spans[w.random.IntN(n)], func() { c.ready = true })
	return c
}

// listHosts lists the calls that are over; mu is held.
func (w *World) listHosts() {
	for _, h := range w.hosts {
		if h.down {
			continue
		}
		for _, c := range h.running {
			if c.ready {
				w.choices = append(w.choices, choice{key: key{proc: busIndex + 1 + h.index, kind: onToolEnd, run: c.run, text: c.id}, do: func() { h.finish(c) }})
			}
		}
	}
}

// finish ends a call and answers all waiting callers. The host may die before.
func (h *host) finish(c *call) {
	w := h.world
	e := event{who: h.name, kind: onToolEnd, run: c.run, text: c.id, note: c.operation}
	if w.chance(w.cfg.Rates.CrashBefore) {
		e.fate = crashedBefore
		w.record(e)
		h.crash()
		return
	}
	h.running = without(h.running, c)
	c.state = finished
	died := w.chance(w.cfg.Rates.CrashAfter)
	if died {
		e.fate = crashedAfter
	}
	w.record(e)
	if died {
		h.crash() // which fails those that wait
	}
	waiters, answers := c.waiters, c.answers
	c.waiters, c.answers = nil, nil
	for i, o := range waiters {
		if died || w.chance(w.cfg.Rates.CallLost) {
			w.finish(o, away(h.name))
			continue
		}
		answers[i](c.response)
		w.finish(o, nil)
	}
}

// crash kills the host: its calls die with an unknown result.
func (h *host) crash() {
	w := h.world
	h.down = true
	for _, c := range h.running {
		c.state = orphaned
		if c.idempotent {
			delete(h.entries, c.key)
		}
		for _, o := range c.waiters {
			w.finish(o, away(h.name))
		}
		c.waiters, c.answers = nil, nil
	}
	h.running = nil
	lost := w.chance(w.cfg.Rates.HostLost)
	note := "dies"
	if lost {
		note = "dies and loses its ledger"
		h.lost++
		h.entries = map[string]*call{}
		h.newLedger()
	}
	w.record(event{who: h.name, kind: onFault, note: note})
	w.after(time.Duration(w.random.IntN(6000))*time.Millisecond, func() { h.down = false })
}

// cancel kills calls.
func (h *host) cancel(r *harnessv1.CancelToolsRequest) *harnessv1.CancelToolsResponse {
	resp := &harnessv1.CancelToolsResponse{}
	foreign := r.GetLedgerId() != "" && r.GetLedgerId() != h.ledger
	for _, id := range r.GetCallIds() {
		key := callKey(r.GetNamespace(), r.GetRunId(), r.GetFirstSequence(), id)
		c := h.entries[key]
		if c == nil {
			c = &call{host: h, key: key, run: r.GetRunId(), id: id, state: cancelled}
			h.entries[key] = c
			if foreign {
				c.operation = unknownFate
			}
		}
		switch c.state {
		case finished:
			resp.Finished = append(resp.Finished, id)
		case running:
			h.running = without(h.running, c)
			c.state, c.operation = cancelled, killedFate
			for i, o := range c.waiters {
				c.answers[i](&harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED})
				h.world.finish(o, nil)
			}
			c.waiters, c.answers = nil, nil
			resp.Killed = append(resp.Killed, id)
		case orphaned:
			c.state, c.operation = cancelled, unknownFate
			resp.Unknown = append(resp.Unknown, id)
		case cancelled:
			switch c.operation {
			case killedFate:
				resp.Killed = append(resp.Killed, id)
			case unknownFate:
				resp.Unknown = append(resp.Unknown, id)
			}
		}
	}
	return resp
}

// The state of a call in its tombstone.
const (
	killedFate  = ".killed"
	unknownFate = ".unknown"
)

// healHosts restarts all hosts.
func (w *World) healHosts() {
	for _, h := range w.hosts {
		h.down = false
	}
}

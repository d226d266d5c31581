package turn

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// running returns the calls that were started under a ledger and have no end.
func (p *Progress) running(ledger string) []toolcall.Call {
	var calls []toolcall.Call
	for _, c := range p.Calls {
		if _, ended := p.Finished[c.ID]; p.Started[c.ID] && !ended && p.Ledgers[c.ID] == ledger {
			calls = append(calls, c)
		}
	}
	return calls
}

// kill ends the calls that run, one ledger after another, and stores how each
// ended.
func (p *Progress) kill(s *State) Action {
	for _, c := range p.Calls {
		if _, ended := p.Finished[c.ID]; !p.Started[c.ID] || ended {
			continue
		}
		ledger := p.Ledgers[c.ID]
		switch k := p.execution.cancels[ledger]; {
		case k == nil:
			var ids []string
			for _, c := range p.running(ledger) {
				ids = append(ids, c.HostID())
			}
			return CancelCalls{Ledger: ledger, IDs: ids}
		case k.away != nil:
			return FindHost{Ledger: ledger}
		case k.ended[c.ID] && k.results[c.ID] == nil:
			return FetchResult{Call: c, Ledger: ledger, Known: p.marks.Request(ledger, c.HostID(), p.startedCalls())}
		default:
			return Append{Draft: p.finished(s, c, k.end(c.ID), nil, hook.Effects{}), Before: "tool_answered", After: "tool_finished"}
		}
	}
	return p.close(s)
}

// cancelled takes the answer of a tool host that was to kill calls.
func (p *Progress) cancelled(ledger string, c CallsCancelled, away error) {
	e := &p.execution
	if e.cancels == nil {
		e.cancels = map[string]*cancellation{}
	}
	k := &cancellation{
		calls: p.running(ledger), away: away, unknown: map[string]bool{}, ended: map[string]bool{},
		results: map[string]*harnessv1.ExecuteToolResponse{}, texts: map[string]string{},
	}
	for _, call := range k.calls {
		k.unknown[call.ID] = slices.Contains(c.Unknown, call.HostID())
		k.texts[call.ID] = c.Results[call.HostID()]
		k.ended[call.ID] = !k.unknown[call.ID] && slices.Contains(c.Finished, call.HostID())
	}
	e.cancels[ledger] = k
}

// hostFound adds whether another host replaces one that does not answer: then the
// calls of the first are unknown, else the turn fails.
func (p *Progress) hostFound(ledger, other string) bool {
	k := p.execution.cancels[ledger]
	switch {
	case k == nil || k.away == nil:
		return false
	case other == "":
		p.execution.failure = k.away
		return true
	}
	k.away = nil
	for _, c := range k.calls {
		k.unknown[c.ID] = true
	}
	return true
}

package explore

import (
	"fmt"
	"math/bits"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// effects is a set of things that may happen once in a run: a bit each, by name in
// bodies.effects.
type effects uint64

// body is what a record holds, without its place in the log.
type body struct {
	step    *harnessv1.Step   // nil for a journal record
	journal *harnessv1.Record // nil for a step
	cursor  seq               // of the step's snapshot
	awaited []string          // calls that the snapshot awaitedCall
	asked   uint64            // the same, a bit each
	pending map[string]bool   // calls that the snapshot holds, awaited or allowed
	rest    bool              // a step to park or end
	reads   bool              // the view of InboxRead must contain the step
	overdue bool              // a park that outlasts its timer
	effects effects           // what the record makes happen
	twice   string            // an effect that it holds more than once
	cause   harnessv1.TriggerCause
	segment uint32
}

// bodies gives numbers to what records hold and to items, so that a state is small
// and a decision is made once.
type bodies struct {
	all     []*body
	ids     map[string]bodyID
	items   []*harnessv1.InboxItem
	effects []string
	often   effects  // those that may happen more than once
	calls   []string // every call that was ever awaited
}

// step notes a step with what its record appends and tells. What was observed is left
// out: no decision reads it again.
func (b *bodies) step(step *harnessv1.Step, appended []*harnessv1.Message, events []*harnessv1.Event) bodyID {
	step = proto.CloneOf(step)
	step.Observed = nil
	n := &body{
		step: step, cursor: seq(step.GetSnapshot().GetInboxCursor()), rest: runlog.IsRest(step.GetTo()),
		cause: step.GetRepairTrigger().GetCause(), pending: map[string]bool{}, segment: step.GetSnapshot().GetSegment(),
	}
	_, first := repair.InboxRead{Trigger: runlog.Entry{Record: &harnessv1.Record{Body: &harnessv1.Record_Step{Step: step}}}}.Start()
	_, n.reads = first.(repair.ReadView)
	n.overdue = outlasts(step)
	for _, c := range step.GetSnapshot().GetPendingToolCalls() {
		n.pending[c.GetCallId()] = true
	}
	for _, c := range runstate.AwaitedCalls(step.GetSnapshot()) {
		n.awaited = append(n.awaited, c.GetCallId())
		n.asked |= b.call(c.GetCallId())
	}
	b.recordEffects(n, appended, events, step.GetSnapshot().GetSegment())
	return b.intern(n, step)
}

// journalled notes a journal record.
func (b *bodies) journalled(rec *harnessv1.Record) bodyID {
	n := &body{journal: rec}
	b.recordEffects(n, rec.GetAppended(), rec.GetEvents(), 0)
	return b.intern(n, rec)
}

func (b *bodies) intern(n *body, m proto.Message) bodyID {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // made by this program, and small
	}
	key := fmt.Sprintf("%v/%x/%s/%s", n.step != nil, n.effects, n.twice, data)
	if id, known := b.ids[key]; known {
		return id
	}
	if b.ids == nil {
		b.ids = map[string]bodyID{}
	}
	id := bodyID(len(b.all))
	b.all = append(b.all, n)
	b.ids[key] = id
	return id
}

// call is the bit of a call.
func (b *bodies) call(id string) uint64 {
	for i, c := range b.calls {
		if c == id {
			return 1 << i
		}
	}
	b.calls = append(b.calls, id)
	return 1 << (len(b.calls) - 1)
}

// note finds out what a record makes happen that may happen once only.
func (b *bodies) recordEffects(n *body, appended []*harnessv1.Message, events []*harnessv1.Event, segment uint32) {
	for _, m := range appended {
		switch {
		case m.GetRole() == harnessv1.Role_ROLE_TOOL:
			b.happens(n, resultOf(m.GetToolCallId()))
		case m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT:
			b.happens(n, messageOf(content.Text(m.GetContent())))
		}
	}
	for _, e := range events {
		switch e := e.GetEvent().(type) {
		case *harnessv1.Event_InputAccepted:
			b.happens(n, acceptanceOf(e.InputAccepted.GetItemId()))
		case *harnessv1.Event_InputRejected:
			b.happens(n, rejectionOf(e.InputRejected.GetItemId()))
			if e.InputRejected.GetKind() == "timer_fired" { // a park that was never committed may be made again, and its timer fires again
				b.often |= b.effect(rejectionOf(e.InputRejected.GetItemId()))
			}
		case *harnessv1.Event_ApprovalAnswered:
			b.happens(n, decisionOn(e.ApprovalAnswered.GetCallId()))
		case *harnessv1.Event_SessionStart:
			b.happens(n, fmt.Sprintf("session.start of segment %d", e.SessionStart.GetSegment()))
		case *harnessv1.Event_SessionComplete:
			b.happens(n, fmt.Sprintf("session.complete of segment %d", segment))
		case *harnessv1.Event_RunCancelled:
			b.happens(n, fmt.Sprintf("run.cancelled in segment %d", segment))
		}
	}
}

// Names of effects.
func acceptanceOf(item string) string { return "item " + item + " accepted" }
func rejectionOf(item string) string  { return "item " + item + " rejected" }
func messageOf(text string) string    { return "user message " + text + " appended" }
func resultOf(call string) string     { return "result of call " + call }
func decisionOn(call string) string {
	return "approval of call " + call
}

func (b *bodies) happens(n *body, name string) {
	e := b.effect(name)
	if n.effects&e&^b.often != 0 && n.twice == "" {
		n.twice = name
	}
	n.effects |= e
}

// effect is the bit of a name.
func (b *bodies) effect(name string) effects {
	for i, known := range b.effects {
		if known == name {
			return 1 << i
		}
	}
	if len(b.effects) == bits.UintSize {
		panic("more than 64 different effects: the scenario is too large for this model")
	}
	b.effects = append(b.effects, name)
	return 1 << (len(b.effects) - 1)
}

func (b *bodies) effectNames(e effects) []string {
	var names []string
	for i, name := range b.effects {
		if e&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// item gives an input its number.
func (b *bodies) item(item *harnessv1.InboxItem) itemID {
	for i, known := range b.items {
		if proto.Equal(known, item) {
			return itemID(i)
		}
	}
	b.items = append(b.items, item)
	return itemID(len(b.items) - 1)
}

// entry is a record of the stream as a reader gets it.
func (m *Model) entry(s *state, n seq) runlog.Entry {
	msg := s.at(n)
	b := m.all[msg.body]
	rec := &harnessv1.Record{
		Namespace: theRun.Namespace, RunId: theRun.ID, Version: uint64(msg.version), PrevSequence: uint64(msg.prev), Schema: runlog.Schema,
	}
	if b.journal != nil {
		rec.Appended, rec.Events, rec.Body = b.journal.GetAppended(), b.journal.GetEvents(), b.journal.GetBody()
	} else {
		rec.Body = &harnessv1.Record_Step{Step: b.step}
	}
	return runlog.Entry{Run: theRun, Sequence: uint64(n), Header: runlog.HeaderOf(rec), Record: rec}
}

// view is what a replica answers that has the stream up to u.
func (m *Model) view(s *state, u seq) runlog.View {
	newest := s.record(u)
	return runlog.View{Newest: m.entry(s, newest), Step: m.entry(s, m.stepAt(s, newest)), InboxSequence: uint64(s.item(u))}
}

// stepAt is the newest step up to u.
func (m *Model) stepAt(s *state, u seq) seq {
	for u = s.record(u); m.all[s.at(u).body].step == nil; u = s.record(u - 1) {
	}
	return u
}

// inbox is what Log.Inbox returns: the items in (after, upTo] along the links, cut
// at limit, 0 for no limit.
func (m *Model) inbox(s *state, after, upTo seq, limit int) []seq {
	var items []seq
	for n := upTo; n > after; n = s.at(n).prev {
		items = append([]seq{n}, items...)
	}
	if limit > 0 && len(items) > limit {
		items = items[:limit]
	}
	return items
}

// stored is an item as a reader gets it.
func (m *Model) stored(s *state, n seq) *harnessv1.InboxItem {
	item := proto.CloneOf(m.items[s.at(n).item])
	item.Sequence, item.PrevSequence = uint64(n), uint64(s.at(n).prev)
	return item
}

// theRun is the run that all of this is about.
var theRun = runlog.Run{Namespace: "default", ID: "r"}

// toRepair reports whether a step is addressed to repair.
func (b *body) toRepair() bool { return b.step.GetTo() == repair.Name }

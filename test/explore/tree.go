package explore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// edge is a model of one parent and one child: the orders that go down and the reports that go up, with the functions of
// package tree. The two runs are reduced to what these need; their logs are explored by Model.
type edge struct {
	// inputs of clients to the parent and to the child, each at most once, in any order.
	parentInputs, childInputs []string
	// late bounds the orders that are sent a second time, at any later moment; again the reports.
	late, again int
	mutation    Mutation
}

// Ways to break the protocol of a tree.
const (
	OrdersUnversioned Mutation = "a child takes any order"
	StartUnseen       Mutation = "a child that starts does not look at its parent"
	StopUnconfirmed   Mutation = "a run stops without the reports of its child"
	ReportForgotten   Mutation = "a child continues before its end is reported"
	ChildForgotten    Mutation = "a run is deleted without its child"
)

// States of a run in an edge.
const (
	edgeWaits = iota // parent only
	edgeWorks
	edgeParked
	edgeHalted // parent: interrupted
	edgeEnded
	edgeGone
)

var edgeWords = [...]string{"waits", "works", "is parked", "is halted", "has ended", "is gone"}

// edgeState is a state of both.
type edgeState struct {
	parent   int
	stopping string // cancel, finish or interrupt
	s        *harnessv1.Snapshot
	reports  []*harnessv1.ChildReport
	sent     bool // the orders of the newest step were sent
	results  int

	child    int
	exists   bool
	first    bool // its first decision is to be made
	free     bool // a client has it work again
	version  uint64
	reported uint64
	order    uint32
	items    []*harnessv1.InboxItem

	used  []string                  // inputs
	late  []*harnessv1.Child        // orders that are still on their way
	kept  *harnessv1.ChildReport    // that is still on its way
	spent struct{ late, again int } // faults
}

type edgeAction struct {
	do string
}

var (
	edgeRun    = runlog.Run{Namespace: "n", ID: "p"}
	edgeAgents = []*harnessv1.SubAgent{{Name: "helper"}}
)

func (m *edge) Start() *edgeState {
	s := &harnessv1.Snapshot{FirstSequence: 1, Status: harnessv1.RunStatus_RUN_STATUS_PARKED}
	call := &harnessv1.PendingCall{CallId: "c", Tool: "helper"}
	tree.Accept(s, edgeRun, call, edgeAgents, time.Unix(0, 0))
	s.PendingToolCalls = []*harnessv1.PendingCall{call}
	tree.Schedule(s, edgeRun, edgeAgents, false, time.Time{})
	return &edgeState{s: s}
}

// Fault reports whether an action may never happen. An answer is one: a client need not give it.
func (m *edge) Fault(a edgeAction) bool { return a.do == "late" || a.do == "again" || a.do == "answer" }

func (m *edge) Actions(s *edgeState, into []edgeAction) []edgeAction {
	add := func(do string) { into = append(into, edgeAction{do}) }
	if s.parent != edgeGone && !s.sent {
		add("send")
		if s.spent.late < m.late && len(tree.Due(s.s)) > 0 {
			add("late")
		}
	}
	if s.parent != edgeGone && s.sent {
		if len(s.reports) > 0 {
			add("decide")
		}
		for _, input := range m.parentInputs {
			if !slices.Contains(s.used, input) {
				add(input)
			}
		}
		if !slices.Contains(s.used, "delete") && !slices.ContainsFunc(s.s.GetChildren(), func(c *harnessv1.Child) bool { return !tree.Idle(c) }) {
			add("delete")
		}
	}
	if len(s.late) > 0 {
		add("late order arrives")
	}
	if s.kept != nil {
		add("late report arrives")
	}
	if !s.exists {
		return into
	}
	idle := s.child != edgeWorks && !s.first
	switch {
	case s.first:
		add("begin")
	case idle && s.reported != s.version:
		add("report")
		if s.spent.again < m.again {
			add("again")
		}
	case s.child == edgeWorks:
		add("done")
		if !slices.Contains(s.used, "ask") {
			add("ask")
		}
	}
	if !s.first && len(s.items) > 0 && (!idle || s.reported == s.version || m.mutation == ReportForgotten) {
		add("take")
	}
	if !s.first && (!idle || s.reported == s.version || m.mutation == ReportForgotten) {
		for _, input := range m.childInputs {
			if !slices.Contains(s.used, input) {
				add(input)
			}
		}
		if s.child == edgeParked && !slices.Contains(s.used, "answer") {
			add("answer")
		}
	}
	if s.parent == edgeGone && m.mutation != ChildForgotten && idle {
		add("expire")
	}
	return into
}

func (m *edge) Apply(before *edgeState, a edgeAction) (*edgeState, error) {
	s := *before
	s.s = proto.CloneOf(before.s)
	s.reports, s.items, s.used, s.late = slices.Clone(s.reports), slices.Clone(s.items), slices.Clone(s.used), slices.Clone(s.late)
	switch a.do {
	case "late":
		s.spent.late++
		s.late = append(s.late, proto.CloneOf(tree.Due(s.s)[0]))
		return &s, nil
	case "late order arrives":
		c := s.late[0]
		s.late = s.late[1:]
		m.send(&s, c)
		return &s, nil
	case "late report arrives":
		m.deliver(&s, s.kept)
		s.kept = nil
		return &s, nil
	case "send":
		for _, c := range tree.Due(s.s) {
			m.send(&s, c)
		}
		s.sent = true
		return &s, nil
	case "report", "again":
		r, _, _ := tree.ReportOf(runlog.Run{Namespace: "n", ID: s.s.GetChildren()[0].GetRunId()}, s.version, s.step())
		if a.do == "again" {
			s.spent.again++
			s.kept = r
		}
		m.deliver(&s, r)
		s.reported = s.version
		return &s, nil
	case "decide", "interrupt", "resume", "cancel", "finish":
		if a.do != "decide" {
			s.used = append(s.used, a.do)
		}
		return &s, m.decide(&s, a.do)
	case "delete":
		s.used, s.parent, s.reports = append(s.used, a.do), edgeGone, nil
		return &s, nil
	case "expire":
		s.exists, s.items, s.version, s.reported, s.order, s.free, s.child = false, nil, 0, 0, 0, false, edgeParked
		return &s, nil
	case "take":
		item := s.items[0]
		s.items = s.items[1:]
		return &s, m.take(&s, item)
	}
	return &s, m.childInput(&s, a.do)
}

// decide is a decision of the parent about its reports and an input, as repair makes it.
func (m *edge) decide(s *edgeState, input string) error {
	tree.Sent(s.s)
	s.sent = false
	for _, r := range s.reports {
		before := tree.Ended(s.s.GetChildren()[0])
		c := tree.Take(s.s, r)
		if c != nil && tree.Ended(c) && !before {
			if s.results++; s.results > 1 {
				return errors.New("a second result of one call")
			}
			s.s.PendingToolCalls = nil
		}
	}
	s.reports = nil
	if s.parent == edgeEnded {
		return nil
	}
	switch input {
	case "interrupt":
		if s.stopping == "" {
			s.stopping = input
		}
	case "cancel", "finish":
		s.stopping = "cancel"
	case "resume":
		if s.stopping != "cancel" {
			s.stopping, s.parent = "", edgeWaits
			tree.Continue(s.s, true)
		}
	}
	switch s.stopping {
	case "interrupt":
		if tree.Stop(s.s, harnessv1.ChildWant_CHILD_WANT_HALT) || m.mutation == StopUnconfirmed {
			s.parent, s.stopping = edgeHalted, ""
		}
	case "cancel":
		if tree.Stop(s.s, harnessv1.ChildWant_CHILD_WANT_END) || m.mutation == StopUnconfirmed {
			s.parent, s.stopping, s.s.PendingToolCalls = edgeEnded, "", nil
			s.s.Status = harnessv1.RunStatus_RUN_STATUS_CANCELLED
		}
	}
	return s.checkWork()
}

// send carries an order out, as the sender does.
func (m *edge) send(s *edgeState, c *harnessv1.Child) {
	switch {
	case !s.exists && (tree.WasThere(c) || c.GetWant() != harnessv1.ChildWant_CHILD_WANT_WORK):
		m.deliver(s, tree.AbsentItem(edgeRun, c).GetChildReport())
	case !s.exists:
		s.exists, s.first, s.child, s.version, s.order = true, true, edgeWorks, 1, 1
	case tree.OrderOf(c) != tree.Start:
		s.items = append(s.items, tree.OrderItem(edgeRun, c, nil))
	}
}

func (m *edge) deliver(s *edgeState, r *harnessv1.ChildReport) {
	if s.parent != edgeGone {
		s.reports = append(s.reports, r)
	}
}

// take has the child take an order.
func (m *edge) take(s *edgeState, item *harnessv1.InboxItem) error {
	if item.GetOrder() <= s.order && m.mutation != OrdersUnversioned {
		return nil
	}
	s.order = item.GetOrder()
	if s.child == edgeEnded {
		s.version++ // it ends again, with the number of the order
		return nil
	}
	switch item.GetInput().(type) {
	case *harnessv1.InboxItem_Interrupt:
		s.moveChild(edgeHalted)
	case *harnessv1.InboxItem_Cancel:
		s.moveChild(edgeEnded)
	default:
		s.moveChild(edgeWorks)
	}
	return s.checkWork()
}

// childInput is what the child does by itself, or what a client has it do.
func (m *edge) childInput(s *edgeState, input string) error {
	switch input {
	case "begin":
		s.first = false
		var parent *harnessv1.Step
		if s.parent != edgeGone {
			parent = &harnessv1.Step{Snapshot: s.s}
		}
		state := tree.StateOf(&harnessv1.Parent{RunId: edgeRun.ID, FirstSequence: 1, CallId: "c", Order: 1}, parent)
		switch {
		case m.mutation == StartUnseen:
		case !state.GetWaits(), state.GetWant() == harnessv1.ChildWant_CHILD_WANT_END:
			s.moveChild(edgeEnded)
		case state.GetWant() == harnessv1.ChildWant_CHILD_WANT_HALT:
			s.moveChild(edgeHalted)
		}
		if m.mutation != StartUnseen {
			s.order = max(s.order, state.GetOrder())
		}
		if s.child == edgeWorks && s.parent == edgeGone {
			return errors.New("the child works from its start, and its parent is gone")
		}
	case "done":
		s.moveChild(edgeEnded)
	case "ask":
		s.used = append(s.used, input)
		s.moveChild(edgeParked)
	case "answer":
		s.used = append(s.used, input)
		s.moveChild(edgeWorks)
	case "cancel child":
		s.used = append(s.used, input)
		s.moveChild(edgeEnded)
	case "resume child":
		s.used = append(s.used, input)
		if s.child == edgeEnded {
			s.free = true
			s.moveChild(edgeWorks)
		}
	}
	return s.checkWork()
}

func (s *edgeState) moveChild(to int) {
	s.child = to
	s.version++
}

// step is the newest step of the child, which is parked or has ended.
func (s *edgeState) step() *harnessv1.Step {
	snapshot := &harnessv1.Snapshot{
		Parent: &harnessv1.Parent{RunId: edgeRun.ID, FirstSequence: 1, CallId: "c", Order: s.order, Halted: s.child == edgeHalted},
		Status: harnessv1.RunStatus_RUN_STATUS_PARKED, StopReason: &harnessv1.StopReason{Kind: runstate.KindApproval},
	}
	to := runlog.Park
	if s.child == edgeEnded {
		snapshot.Status, to = harnessv1.RunStatus_RUN_STATUS_CANCELLED, runlog.End
	}
	return &harnessv1.Step{To: to, Snapshot: snapshot}
}

// checkWork returns an error if the child works and its parent has stopped. One that is deleted ends its child later.
func (s *edgeState) checkWork() error {
	if s.exists && !s.first && s.child == edgeWorks && !s.free && (s.parent == edgeHalted || s.parent == edgeEnded) {
		return fmt.Errorf("the child works, and its parent %s", edgeWords[s.parent])
	}
	return nil
}

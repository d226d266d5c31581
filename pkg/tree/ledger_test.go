package tree_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// TestTheLedgerNamesTheRunOfEachCall: a stored snapshot alone gives the run of each call of a sub-agent, which
// call each run works for, and whether it has ended. A copy of the run needs that: it answers the awaited calls with an error that
// names the original's run, and no child belongs to it.
func TestTheLedgerNamesTheRunOfEachCall(t *testing.T) {
	s := waiting("look", "write", "look")
	background := &harnessv1.PendingCall{CallId: "bg", Tool: "look", Delegation: &harnessv1.Delegation{Background: true}}
	if tree.Accept(s, parent, background, agents, time.Unix(0, 0)) == nil {
		t.Fatal("a call in the background waits")
	}
	schedule(s)
	report(t, s, "c", 4, 1, done, "agent_done")
	data, err := proto.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	stored := &harnessv1.Snapshot{}
	if err := proto.Unmarshal(data, stored); err != nil {
		t.Fatal(err)
	}
	for _, call := range runstate.AwaitedCalls(stored) {
		c := tree.ChildOf(stored, call.GetCallId())
		if call.GetKind() != runstate.KindAgent || c.GetRunId() != tree.ID(parent, 7, call.GetCallId()) || c.GetAgent() != call.GetTool() {
			t.Errorf("call %s has the child %v", call.GetCallId(), c)
		}
	}
	copied := proto.CloneOf(stored)
	copied.FirstSequence = 70 // that of the copy
	for _, c := range stored.GetChildren() {
		if tree.FindRun(stored, c.GetRunId()) != c || tree.Ended(c) != (c.GetCallId() == "c") {
			t.Errorf("%v is not found, or has ended: %v", c, tree.Ended(c))
		}
		known := &harnessv1.Parent{RunId: parent.ID, FirstSequence: 7, CallId: c.GetCallId()}
		if st := tree.StateOf(known, &harnessv1.Step{Snapshot: copied}); st.GetWaits() || st.GetGone() {
			t.Errorf("%s takes a copy of its parent for its parent: %v", c.GetRunId(), st)
		}
		if tree.ID(parent, copied.GetFirstSequence(), c.GetCallId()) == c.GetRunId() {
			t.Errorf("the copy would start %s", c.GetRunId())
		}
	}
	if n := len(tree.InBackground(stored)); n != 1 {
		t.Errorf("%d children in the background, want 1", n)
	}
}

// TestChildrenCountInASegment: a run may start 64 children for each message of its user, and its state stays small whatever they
// were.
func TestChildrenCountInASegment(t *testing.T) {
	s := &harnessv1.Snapshot{FirstSequence: 7}
	segments := 0
	for ; tree.Room(s) > 0 && segments < 9; segments++ {
		if room := tree.Room(s); room != tree.MaxChildren {
			t.Fatalf("segment %d has room for %d", segments, room)
		}
		for i := range tree.MaxChildren {
			call := fmt.Sprintf("%d-%d", segments, i)
			s.Children = append(s.Children, &harnessv1.Child{
				RunId: tree.ID(parent, 7, call), CallId: call, Agent: "look", Want: work, Order: 1, Lease: &harnessv1.Budgets{Tokens: proto.Uint64(1)},
				Report: &harnessv1.ChildReport{
					RunId: tree.ID(parent, 7, call), Version: 9, Order: 1, Status: done, Usage: &harnessv1.Usage{InputTokens: 1000},
					Reason: &harnessv1.StopReason{Kind: "agent_done", Message: strings.Repeat("m", 160)}, Files: &harnessv1.ChangedFiles{Paths: []string{strings.Repeat("p", 400)}},
				},
			})
		}
		if tree.Room(s) != 0 {
			t.Errorf("segment %d has room for %d more", segments, tree.Room(s))
		}
		tree.StartSegment(s)
	}
	if size := proto.Size(s); segments != 4 || size > 48<<10 {
		t.Errorf("%d segments, %d bytes", segments, size)
	}
	if c := s.GetChildren()[0]; !tree.Ended(c) || c.GetReport().GetVersion() != 9 || c.GetReport().GetUsage().GetInputTokens() != 1000 {
		t.Errorf("of a child is left %v", c)
	}
	untold := &harnessv1.Snapshot{Children: []*harnessv1.Child{{RunId: "a-1", Want: work, Order: 1, Background: true, Report: &harnessv1.ChildReport{Status: done, Files: &harnessv1.ChangedFiles{Paths: []string{"a"}}}}}}
	tree.StartSegment(untold)
	if untold.GetChildren()[0].GetReport().GetFiles() == nil {
		t.Error("a result that the model does not know yet is lost")
	}
}

// TestQueuedChildrenDoNotWork: a child that starts once another ends has the parent wait as that one does, also two
// levels up: for a budget of which nothing is left, for an answer, and for a key that a client has to give.
func TestQueuedChildrenDoNotWork(t *testing.T) {
	for _, c := range []struct {
		kind       string
		needsInput bool
		want       string
		idle       bool
	}{
		{"budget_exceeded:tokens", false, "budget_exceeded:tokens", true},
		{"approval", false, "agent", true},
		{"provider_unavailable", true, "agent", true},
		{"provider_unavailable", false, "agent", false},
	} {
		s := waiting("write", "write")
		if started, _ := schedule(s); len(started) != 1 {
			t.Fatalf("%d children have started, want the first", len(started))
		}
		if reason := tree.WaitReason(s, 1); reason.GetDetails().GetRunId() != "" || reason.GetMessage() != "2 sub-agents work: write, write." {
			t.Errorf("while the first works: %v", reason)
		}
		child := tree.Find(s, "a")
		tree.Take(s, &harnessv1.ChildReport{
			RunId: child.GetRunId(), CallId: "a", Version: 4, Order: 1, Status: harnessv1.RunStatus_RUN_STATUS_PARKED,
			Reason: &harnessv1.StopReason{Kind: c.kind}, NeedsInput: c.needsInput,
		})
		reason := tree.WaitReason(s, 1)
		if idle := reason.GetDetails().GetRunId() == child.GetRunId(); reason.GetKind() != c.want || idle != c.idle {
			t.Errorf("%s %v: %v", c.kind, c.needsInput, reason)
		}
	}
}

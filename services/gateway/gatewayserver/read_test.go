package gatewayserver_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

func (b *bed) blob(run, digest string) string {
	b.t.Helper()
	stream, err := b.client.GetBlob(b.ctx, &harnessv1.GetBlobRequest{Namespace: b.namespace, RunId: run, Digest: digest})
	b.must(err)
	var text strings.Builder
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		b.must(err)
		if len(part.GetChunk()) > 64<<10 {
			b.t.Fatalf("a chunk of %d bytes", len(part.GetChunk()))
		}
		text.Write(part.GetChunk())
	}
}

// aTurn appends the records of one turn with one tool call.
func (h *hand) aTurn(turn uint32) *hand {
	h.b.t.Helper()
	call := fmt.Sprintf("c%d", turn)
	h.step("turn", nil)
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: turn, Attempt: 1}}}, nil,
		&harnessv1.Event{TurnNumber: turn, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: &harnessv1.ModelResponded{}}},
		[]*harnessv1.Message{{Id: uint64(2*turn - 1), Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(fmt.Sprintf("text %d", turn)), ToolCalls: []*harnessv1.ToolCall{{Id: call}}}},
		&harnessv1.Event{TurnNumber: turn, Event: &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{}}})
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_ToolFinished{ToolFinished: &harnessv1.ToolFinished{CallId: call}}},
		[]*harnessv1.Message{{Id: uint64(2 * turn), Role: harnessv1.Role_ROLE_TOOL, ToolCallId: call, Content: content.Inline(fmt.Sprintf("result %d", turn))}},
		&harnessv1.Event{TurnNumber: turn, Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{CallId: call}}})
	return h.step("stopdecision", func(s *harnessv1.Step) { s.Snapshot.TurnCount = turn })
}

func TestRead(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").aTurn(1).aTurn(2).park("approval", approvalCall("c9")) // versions 1, 2–6, 7–11, 12

	got, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	if r := got.GetRun(); r.GetVersion() != 12 || r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED || r.GetTurnCount() != 2 || r.GetGoal() != "do it" || r.GetReason().GetKind() != "approval" {
		t.Fatalf("got %v", got)
	}
	if got.GetResult().GetPending()[0].GetCallId() != "c9" || got.GetSpec().GetGoal().GetInline() != "do it" {
		t.Fatalf("got %v", got)
	}
	for version, step := range map[uint64]uint64{0: 12, 12: 12, 11: 11, 10: 7, 7: 7, 6: 6, 5: 2, 1: 1} {
		state, err := b.client.GetState(b.ctx, &harnessv1.GetStateRequest{Namespace: b.namespace, RunId: "r1", Version: version})
		b.must(err)
		if state.GetStepVersion() != step || version != 0 && state.GetVersion() != version || state.GetSnapshot() == nil {
			t.Errorf("version %d: got step %d, want %d", version, state.GetStepVersion(), step)
		}
	}
	for version, ids := range map[uint64][]uint64{0: {1, 2, 3, 4}, 9: {1, 2, 3}, 4: {1}, 1: nil} {
		c, err := b.client.GetConversation(b.ctx, &harnessv1.GetConversationRequest{Namespace: b.namespace, RunId: "r1", Version: version})
		b.must(err)
		var got []uint64
		for _, m := range c.GetMessages() {
			got = append(got, m.GetId())
		}
		if !slices.Equal(got, ids) {
			t.Errorf("version %d: got messages %v, want %v", version, got, ids)
		}
	}
	_, err = b.client.GetState(b.ctx, &harnessv1.GetStateRequest{Namespace: b.namespace, RunId: "r1", Version: 13})
	b.refused(err, codes.NotFound, "NOT_STORED")
	_, err = b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "other"})
	b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
	for _, c := range []struct{ run, digest, reason string }{
		{"r1", strings.Repeat("0", 64), "NOT_STORED"},
		{"other", strings.Repeat("0", 64), "RUN_NOT_FOUND"},
	} {
		stream, err := b.client.GetBlob(b.ctx, &harnessv1.GetBlobRequest{Namespace: b.namespace, RunId: c.run, Digest: c.digest})
		b.must(err)
		_, err = stream.Recv()
		b.refused(err, codes.NotFound, c.reason)
	}

	h.resume()
	got, err = b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	if got.GetRun().GetStatus() != harnessv1.RunStatus_RUN_STATUS_RUNNING || got.GetResult() != nil || got.GetRun().GetReason() != nil {
		t.Fatalf("got %v", got)
	}
}

func TestList(t *testing.T) {
	b := newBed(t)
	var want []string
	for i := range 7 {
		id := fmt.Sprintf("r%d", i)
		h := b.started(id)
		if i%2 == 0 {
			h.park("approval", approvalCall("c"+id), approvalCall("d"+id))
		}
		want = append([]string{id}, want...)
	}
	parked := []harnessv1.RunStatus{harnessv1.RunStatus_RUN_STATUS_PARKED}
	list := func(statuses ...harnessv1.RunStatus) (ids []string) {
		token := ""
		for {
			page, err := b.client.ListRuns(b.ctx, &harnessv1.ListRunsRequest{Namespace: b.namespace, PageSize: 2, PageToken: token, Statuses: statuses})
			b.must(err)
			for _, r := range page.GetRuns() {
				ids = append(ids, r.GetRunId())
			}
			if token = page.GetNextPageToken(); token == "" {
				return ids
			}
		}
	}
	if got := list(); !slices.Equal(got, want) { // without delay: a gateway knows the runs that it has started
		t.Fatalf("got %v, want %v", got, want)
	}
	check := func(b *bed) {
		t.Helper()
		b.eventually("all parks are listed", func() bool {
			return slices.Equal(list(parked...), []string{"r6", "r4", "r2", "r0"})
		})
		pending, err := b.client.ListPending(b.ctx, &harnessv1.ListPendingRequest{Namespace: b.namespace})
		b.must(err)
		var calls []string
		for _, p := range pending.GetPending() {
			calls = append(calls, p.GetRunId()+" "+p.GetCall().GetCallId())
		}
		if fmt.Sprint(calls) != "[r0 cr0 r0 dr0 r2 cr2 r2 dr2 r4 cr4 r4 dr4 r6 cr6 r6 dr6]" {
			t.Fatalf("got %v", calls)
		}
	}
	check(b)
	other := newBed(t, func(c *gatewayserver.Config) { c.Instance = "other" }) // rebuilt from the log
	other.namespace = b.namespace
	b.client = other.client
	check(other)

	one, err := b.client.ListPending(b.ctx, &harnessv1.ListPendingRequest{Namespace: b.namespace, RunId: "r2"})
	b.must(err)
	if len(one.GetPending()) != 2 {
		t.Fatalf("got %v", one)
	}
	all, err := b.client.ListRuns(b.ctx, &harnessv1.ListRunsRequest{Namespace: "*", PageSize: 1000})
	b.must(err)
	if len(all.GetRuns()) < 7 {
		t.Fatalf("%d runs in all namespaces", len(all.GetRuns()))
	}
	for _, r := range []*harnessv1.ListRunsRequest{{PageToken: "x"}, {PageSize: 1001}, {Namespace: "a b"}, {Statuses: []harnessv1.RunStatus{0}}} {
		_, err := b.client.ListRuns(b.ctx, r)
		b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	}
}

package input

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// files returns images or documents with data.
func files(data ...string) []*harnessv1.Media {
	var list []*harnessv1.Media
	for _, d := range data {
		list = append(list, &harnessv1.Media{Data: []byte(d)})
	}
	return list
}

// refusedAt fails the test unless err names the field; size: the error is TOO_LARGE.
func refusedAt(t *testing.T, err error, field string, size bool) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a refusal of %s", err, field)
	}
	code, reason := codes.InvalidArgument, harnessv1.ErrorReason_ERROR_REASON_INVALID_FIELD
	if size {
		code, reason = codes.ResourceExhausted, harnessv1.ErrorReason_ERROR_REASON_TOO_LARGE
		if !slices.Contains(e.Metadata, "limit") || !slices.Contains(e.Metadata, "size") {
			t.Errorf("metadata %q", e.Metadata)
		}
	}
	if e.Code != code || e.Reason != reason || !strings.HasPrefix(e.Message, field+": ") {
		t.Errorf("got %v %v %q, want a refusal of %s", e.Code, e.Reason, e.Message, field)
	}
}

func TestCheckInput(t *testing.T) {
	approval := func(a *harnessv1.Approval) *harnessv1.InboxItem {
		return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Approval{Approval: a}}
	}
	message := func(text string, list ...*harnessv1.Media) *harnessv1.InboxItem {
		return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline(text), Media: list}}}
	}
	answer := func(list ...*harnessv1.Media) *harnessv1.InboxItem {
		return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{CallId: "c", Media: list}}}
	}
	long := strings.Repeat("x", MaxReason+1)
	once := harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE
	for _, c := range []struct {
		field string
		size  bool
		item  *harnessv1.InboxItem
	}{
		{"input", false, &harnessv1.InboxItem{}},
		{"input", false, &harnessv1.InboxItem{Input: &harnessv1.InboxItem_TimerFired{}}},
		{"request_id", false, &harnessv1.InboxItem{Id: "a b"}},
		{"user_message.content", false, &harnessv1.InboxItem{Input: &harnessv1.InboxItem_UserMessage{}}},
		{"user_message.content", true, message(strings.Repeat(" ", MaxText+1), files("x")...)},
		{"user_message.media[0].data", false, message("look", files("")...)},
		{"tool_answer.media", true, answer(slices.Repeat(files("x"), media.MaxParts+1)...)},
		{"tool_answer.media[0].blob", false, answer(&harnessv1.Media{Data: []byte("x"), Blob: &harnessv1.BlobRef{}})},
		{"approval.call_id", false, approval(&harnessv1.Approval{Decision: once})},
		{"approval.call_id", true, approval(&harnessv1.Approval{CallId: long, Decision: once})},
		{"approval.decision", false, approval(&harnessv1.Approval{CallId: "c"})},
		{"approval.decision", false, approval(&harnessv1.Approval{CallId: "c", Decision: 7})},
		{"approval.reason", true, approval(&harnessv1.Approval{CallId: "c", Decision: once, Reason: long})},
		{"mode_change.mode", false, &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ModeChange{}}},
		{"mode_change.mode", true, &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: long}}}},
		{"replan.reason", true, &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Replan{Replan: &harnessv1.ReplanRequest{Reason: long}}}},
		{"reason", true, &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{Reason: long}}}},
		{"reason", true, &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{Reason: long}}}},
		{"budgets.turns", false, &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Budgets: &harnessv1.Budgets{Turns: proto.Uint32(0)}}}}},
	} {
		t.Run(c.field, func(t *testing.T) { refusedAt(t, Check(c.item), c.field, c.size) })
	}
	for _, item := range []*harnessv1.InboxItem{
		approval(&harnessv1.Approval{CallId: "c", Decision: once}),
		{Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{CallId: runstate.ContractCallID("q.1", 9), Result: content.Inline("blue")}}},
		{Input: &harnessv1.InboxItem_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: "plan"}}},
		message("", files("x")...),
		message("look", slices.Repeat(files("x"), media.MaxParts)...),
		answer(files("x")...),
		{Input: &harnessv1.InboxItem_Replan{}},
		{Input: &harnessv1.InboxItem_Resume{}},
		{Input: &harnessv1.InboxItem_Interrupt{}},
		{Input: &harnessv1.InboxItem_Cancel{}},
	} {
		if err := Check(item); err != nil {
			t.Errorf("%v: %v", item, err)
		}
	}
}

// Each kind of input is either from outside, and then has a check, or is made by the mesh.
func TestEveryKindIsKnown(t *testing.T) {
	inside := []string{"timer_fired", "child_report"}
	fields := (&harnessv1.InboxItem{}).ProtoReflect().Descriptor().Oneofs().ByName("input").Fields()
	for i := range fields.Len() {
		item := &harnessv1.InboxItem{}
		item.ProtoReflect().Set(fields.Get(i), item.ProtoReflect().NewField(fields.Get(i)))
		name := string(fields.Get(i).Name())
		if got := Kind(item); got != name {
			t.Errorf("kind %q, want %q", got, name)
		}
		err := Check(item)
		if unknown := err != nil && strings.HasPrefix(err.Error(), "input: "); unknown != slices.Contains(inside, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := Kind(&harnessv1.InboxItem{}); got != "unknown" {
		t.Errorf("an input of no kind is %q", got)
	}
}

package judgement

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// itemsOn gives the agent work items.
func itemsOn(spec *harnessv1.RunSpec) {
	spec.Config.WorkItems = &harnessv1.WorkItemConfig{Enabled: proto.Bool(true)}
}

// itemsNoLoops lets a story repeat itself.
func itemsNoLoops(spec *harnessv1.RunSpec) {
	spec.Config.DoomLoop = &harnessv1.DoomLoopConfig{Enabled: proto.Bool(false)}
	spec.Config.Stall = &harnessv1.StallConfig{Enabled: proto.Bool(false)}
}

func itemsAdd(title string) modeltest.Call {
	return live.Call("work_item_add", live.Args{"title": title})
}

func itemsSet(id, status string) modeltest.Call {
	a := live.Args{"id": id, "status": status}
	if status == "SKIPPED" {
		a["notes"] = "not wanted"
	}
	return live.Call("work_item_update", a)
}

func itemsList() modeltest.Call { return live.Call("work_item_list", live.Args{}) }

// itemsArtifact stores an artifact; an empty role is left out.
func itemsArtifact(id, content, role string) modeltest.Call {
	a := live.Args{"id": id, "content": content}
	if role != "" {
		a["role"] = role
	}
	return live.Call("work_item_set_artifact", a)
}

func itemsFlag(id, reason string) modeltest.Call {
	return live.Call("work_item_flag_revision", live.Args{"id": id, "reason": reason})
}

// itemsAnswer is what a tool answered: its text, and the fields when it is JSON.
type itemsAnswer struct {
	text   string
	fields map[string]any
}

// id is the item that the answer is about.
func (a itemsAnswer) id() string { return fmt.Sprint(a.fields["id"]) }

// itemsAnswers are the answers to the calls of request n, from 0, in order.
func itemsAnswers(t *testing.T, s *live.Transcript, n int) []itemsAnswer {
	t.Helper()
	if n+1 >= len(s.Requests) {
		t.Fatalf("%d requests: none has the results of the calls of request %d", len(s.Requests), n+1)
	}
	var all []itemsAnswer
	for _, m := range s.Requests[n+1].Messages[len(s.Requests[n].Messages):] {
		if m.Role != "tool" {
			continue
		}
		a := itemsAnswer{text: m.Content}
		_ = json.Unmarshal([]byte(m.Content), &a.fields)
		all = append(all, a)
	}
	return all
}

// itemsListed are the items of an answer of work_item_list, each by the named fields,
// such as "w1 PENDING HIGH".
func itemsListed(t *testing.T, a itemsAnswer, fields ...string) []string {
	t.Helper()
	items, ok := a.fields["items"].([]any)
	if !ok {
		t.Fatalf("no list of items: %s", a.text)
	}
	var all []string
	for _, item := range items {
		var words []string
		for _, f := range fields {
			words = append(words, fmt.Sprint(item.(map[string]any)[f]))
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// itemsLedger are the items of the state, such as "w1 DONE MEDIUM DELIVERABLE".
func itemsLedger(s *harnessv1.Snapshot) []string {
	var all []string
	for _, i := range s.GetWorkItemLedger().GetItems() {
		all = append(all, i.GetId()+" "+itemsStatus(i)+" "+
			strings.TrimPrefix(i.GetPriority().String(), "WORK_ITEM_PRIORITY_")+" "+strings.TrimPrefix(i.GetRole().String(), "ARTIFACT_ROLE_"))
	}
	return all
}

func itemsStatus(i *harnessv1.WorkItem) string {
	return strings.TrimPrefix(i.GetStatus().String(), "WORK_ITEM_STATUS_")
}

// itemsFind is an item of the state.
func itemsFind(t *testing.T, s *harnessv1.Snapshot, id string) *harnessv1.WorkItem {
	t.Helper()
	for _, i := range s.GetWorkItemLedger().GetItems() {
		if i.GetId() == id {
			return i
		}
	}
	t.Fatalf("the state has no item %s: %v", id, itemsLedger(s))
	return nil
}

// itemsChanges are the changes of items that observers saw, such as
// "added w1 PENDING 0/1".
func itemsChanges(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		if c := e.GetWorkItemChanged(); c != nil {
			all = append(all, fmt.Sprintf("%s %s %s %d/%d", c.GetChange(), c.GetItem().GetId(), itemsStatus(c.GetItem()), c.GetFinished(), c.GetTotal()))
		}
	}
	return all
}

// itemsGuided are the kinds of guidance that a turn was given, in order.
func itemsGuided(s *live.Transcript, turn uint32) []string {
	var all []string
	for _, e := range s.Events {
		if g := e.GetGuidanceInjected(); g != nil && e.GetTurnNumber() == turn {
			all = append(all, g.GetKind())
		}
	}
	return all
}

// itemsTold is what the harness told the model with request n, from 0: the news in the
// user's place that are marked as the harness's.
func itemsTold(s *live.Transcript, n int) string {
	from := 0
	if n > 0 {
		from = len(s.Requests[n-1].Messages)
	}
	var b strings.Builder
	for _, m := range s.Requests[n].Messages[from:] {
		if m.Role == "user" && strings.HasPrefix(m.Content, "[harness]") {
			b.WriteString(m.Content + "\n")
		}
	}
	return b.String()
}

// itemsEqual fails the test unless two lists are equal.
func itemsEqual(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// itemsHas fails the test unless a text holds all words.
func itemsHas(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not say %q:\n%s", what, w, text)
		}
	}
}

// itemsLacks fails the test when a text holds one of the words.
func itemsLacks(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(text, w) {
			t.Errorf("%s says %q:\n%s", what, w, text)
		}
	}
}

// itemsStable fails the test unless each request begins with the one before it, byte
// for byte.
func itemsStable(t *testing.T, s *live.Transcript) {
	t.Helper()
	for n := 1; n < len(s.Requests); n++ {
		before, now := s.Requests[n-1], s.Requests[n]
		if !reflect.DeepEqual(before.Tools, now.Tools) {
			t.Errorf("request %d has other tools than the one before it", n+1)
		}
		for i, m := range before.Messages {
			if i >= len(now.Messages) || !reflect.DeepEqual(m, now.Messages[i]) {
				t.Fatalf("request %d does not begin with request %d: message %d was\n%+v", n+1, n, i+1, m)
			}
		}
	}
}

// itemsText reads a text of a run from outside.
func itemsText(t *testing.T, runID string, c *harnessv1.Content) string {
	t.Helper()
	ref := c.GetBlob()
	if ref == nil {
		return c.GetInline()
	}
	ctx, cancel := context.WithTimeout(t.Context(), live.Limit)
	defer cancel()
	stream, err := live.Gateway(t).GetBlob(ctx, &harnessv1.GetBlobRequest{RunId: runID, Digest: ref.GetDigest()})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for uint64(b.Len()) < ref.GetSize() {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		b.Write(m.GetChunk())
	}
	return b.String()
}

// itemsMade are the deliverables of a result, such as "w1 Report: text".
func itemsMade(t *testing.T, s *live.Transcript) []string {
	t.Helper()
	var all []string
	for _, d := range s.Result.GetDeliverables() {
		all = append(all, d.GetItemId()+" "+d.GetTitle()+": "+itemsText(t, s.ID, d.GetContent()))
	}
	return all
}

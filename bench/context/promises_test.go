package context

import (
	stdcontext "context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// fields are the fields of a summary.
var fields = []string{"facts", "decisions", "open_items", "tool_outcomes", "artifact_refs", "current_task", "current_plan"}

// promise is a fact in a result that belongs into a field.
func promise(field string) string { return "PROMISE-" + field }

// promisedFields returns a summary that has the promise of each field that is in messages,
// and a number of other facts, so that later summaries have no room for the first.
func promisedFields(messages []*harnessv1.Message) string {
	entries := map[string][]string{}
	for _, m := range messages {
		for _, field := range fields {
			if strings.Contains(content.Text(m.GetContent()), promise(field)) {
				entries[field] = append(entries[field], fmt.Sprintf(`{"text":%q,"messages":[%d],"status":"open"}`, promise(field), m.GetId()))
			}
		}
		if m.GetRole() == harnessv1.Role_ROLE_ASSISTANT {
			entries["facts"] = append(entries["facts"], fmt.Sprintf(`{"text":"Fact of message %d. %s","messages":[%d]}`, m.GetId(), strings.Repeat("x", 200), m.GetId()))
			entries["tool_outcomes"] = append(entries["tool_outcomes"], fmt.Sprintf(`{"text":"Outcome of message %d.","messages":[%d]}`, m.GetId(), m.GetId()))
		}
	}
	var object []string
	for field, list := range entries {
		value := "[" + strings.Join(list, ",") + "]"
		if field == "current_task" {
			value = list[0]
		}
		object = append(object, fmt.Sprintf("%q:%s", field, value))
	}
	return "{" + strings.Join(object, ",") + "}"
}

// TestPromises: after many passes, with the originals gone from the view, each promise is in
// the view, or one call of read_artifact with a reference of the view finds it.
func TestPromises(t *testing.T) {
	const (
		clearing, externalize = harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE
		summarize, drop       = harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE, harnessv1.CompactionAction_COMPACTION_ACTION_DROP
	)
	for name, c := range map[string]struct {
		strategies []harnessv1.CompactionAction
		window     uint32
		turns      int
		summaries  int
	}{
		"all strategies":    {nil, 16_000, 200, 5},
		"summaries alone":   {[]harnessv1.CompactionAction{summarize}, 16_000, 100, 5},
		"clear and drop":    {[]harnessv1.CompactionAction{clearing, drop}, 32_000, 60, 0},
		"without summaries": {[]harnessv1.CompactionAction{clearing, externalize, drop}, 32_000, 60, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, c.window, func(cfg *harnessv1.ContextConfig) { cfg.Strategies = c.strategies })
			r.summarize = promisedFields
			for n, turn := range newWork("coding", c.turns, 6).turns {
				if n > 0 && n <= len(fields) {
					call := &turn.calls[0]
					call.result = strings.Repeat("line\n", 200) + "The promise is " + promise(fields[n-1]) + ".\n" + strings.Repeat("line\n", 200)
				}
				r.play(turn)
			}
			if r.figures.passes < 5 || r.figures.summaries < c.summaries {
				t.Errorf("%d passes, %d summaries", r.figures.passes, r.figures.summaries)
			}
			view := r.lastRequest()
			for _, field := range fields {
				if strings.Contains(view, "The promise is "+promise(field)) {
					t.Errorf("the original of %s is in the view", field)
				}
				in, read := strings.Contains(view, promise(field)), r.readsBack(view, promise(field))
				if !in && !read {
					t.Errorf("%s is neither in the view nor one read away", promise(field))
				}
				t.Logf("%s: in the view %t, one read away %t", field, in, read)
			}
		})
	}
}

// lastRequest returns the texts of the last request.
func (r *run) lastRequest() string {
	var b strings.Builder
	for _, m := range r.sent {
		b.WriteString(content.Text(m.GetContent()) + "\n")
		for _, c := range m.GetToolCalls() {
			b.WriteString(content.Text(c.GetArguments()) + "\n")
		}
	}
	return b.String()
}

var (
	namedRefs = regexp.MustCompile(`\bm\d+(?:-m\d+)?\b`)
	spans     = regexp.MustCompile(`messages (\d+) to (\d+)`)
)

// readsBack reports whether one call of read_artifact with a reference of a view, or with
// the span that it names, finds a text.
func (r *run) readsBack(view, text string) bool {
	reader := &readback.Reader{
		Text: func(_ stdcontext.Context, c *harnessv1.Content) (string, error) {
			if b := c.GetBlob(); b != nil {
				return string(r.blobs[b.GetDigest()]), nil
			}
			return c.GetInline(), nil
		},
		Count: func(text string) int { return tokens.Count(gpt, text) }, Tokens: int(runstate.ShownTokens(r.s.GetConfig())),
	}
	refs := map[string]bool{}
	for _, ref := range namedRefs.FindAllString(view, -1) {
		refs[ref] = true
	}
	for _, span := range spans.FindAllStringSubmatch(view, -1) {
		refs["m"+span[1]+"-m"+span[2]] = true
	}
	for ref := range refs {
		result, err := reader.Read(r.t.Context(), r.c.Messages, readback.Request{Ref: ref, Pattern: text})
		if err != nil {
			r.t.Fatal(err)
		}
		if !result.Failed && strings.Contains(result.Text, "The promise is "+text) {
			return true
		}
	}
	return false
}

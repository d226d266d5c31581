package context

import (
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// request adds a request to the figures, and returns its exact tokens.
func (r *run) request(sent []*harnessv1.Message) uint32 {
	same := 0
	for same < min(len(sent), len(r.sent)) && (sent[same] == r.sent[same] || proto.Equal(sent[same], r.sent[same])) {
		same++
	}
	if passes := r.s.GetCompactionPlan().GetPasses(); passes == r.sentPasses && same < len(r.sent) {
		r.t.Errorf("turn %d: message %d of %d of the request before has changed without a pass", r.s.GetTurnCount(), same, len(r.sent))
	} else {
		r.sentPasses = passes
	}
	const toolBytes = 4 * toolTokens
	bytes, tokens := float64(toolBytes), uint32(toolTokens)
	f := &r.figures
	if len(r.sent) > 0 {
		f.cachedBytes, f.cachedTokens = f.cachedBytes+toolBytes, f.cachedTokens+toolTokens
	}
	for i, m := range sent {
		n, w := float64(runstate.MessageBytes(m)), r.weight(m)
		bytes, tokens = bytes+n, tokens+w
		if i < same {
			f.cachedBytes, f.cachedTokens = f.cachedBytes+n, f.cachedTokens+float64(w)
		}
	}
	f.requests++
	f.bytes, f.tokens = f.bytes+bytes, f.tokens+float64(tokens)
	r.sent = sent
	return tokens
}

// maxPlan bounds the plan in a snapshot, in bytes.
const maxPlan = 1 << 10

// check checks a request: it fits, it is a conversation, and what was planted is in it or
// named by a reference in it.
func (r *run) check(items []view.Item, sent []*harnessv1.Message, tokens uint32) {
	r.t.Helper()
	window := r.s.GetConfig().GetContext().GetMaxInputTokens()
	if tokens > window {
		r.t.Fatalf("turn %d: the request has %d tokens, the window %d", r.s.GetTurnCount(), tokens, window)
	}
	if n := proto.Size(r.s.GetCompactionPlan()); n > maxPlan {
		r.t.Fatalf("turn %d: the plan has %d bytes", r.s.GetTurnCount(), n)
	}
	var all strings.Builder
	open := map[string]bool{}
	for i, m := range sent {
		all.WriteString(content.Text(m.GetContent()))
		all.WriteByte('\n')
		if m.GetRole() != harnessv1.Role_ROLE_TOOL && len(open) > 0 || m.GetRole() == harnessv1.Role_ROLE_TOOL && !open[m.GetToolCallId()] {
			r.t.Fatalf("turn %d: message %d of the request is at the wrong place", r.s.GetTurnCount(), i)
		}
		delete(open, m.GetToolCallId())
		for _, c := range m.GetToolCalls() {
			open[c.GetId()] = true
			all.WriteString(content.Text(c.GetArguments()))
		}
	}
	for _, p := range r.wires {
		if _, err := p.Complete(r.t.Context(), &model.Request{Model: "m", Messages: sent}, nil); err != nil {
			r.t.Fatalf("turn %d: %v", r.s.GetTurnCount(), err)
		}
	}
	request := all.String()
	for _, ref := range references.FindAllStringSubmatch(request, -1) {
		if id := number(ref[1]); id == 0 || id > uint64(len(r.c.Messages)) {
			r.t.Fatalf("turn %d: the request refers to %s, and there are %d messages", r.s.GetTurnCount(), ref[0], len(r.c.Messages))
		}
	}
	for fact, id := range r.facts {
		if !strings.Contains(request, fact) && !r.named(items, sent, id) {
			r.t.Fatalf("turn %d: %s of message %d is neither in the request nor named by it", r.s.GetTurnCount(), fact, id)
		}
	}
}

var references = regexp.MustCompile(`ref m(\d+)`)

func number(digits string) (n uint64) {
	_, _ = fmt.Sscan(digits, &n)
	return n
}

// named reports whether an item stands for a message and names how to read it.
func (r *run) named(items []view.Item, sent []*harnessv1.Message, id uint64) bool {
	for i, it := range items {
		if id < it.First || id > it.Last || it.First == 0 {
			continue
		}
		text := content.Text(sent[i].GetContent())
		for _, c := range sent[i].GetToolCalls() {
			text += content.Text(c.GetArguments())
		}
		if strings.Contains(text, view.ReadArtifact) {
			return true
		}
	}
	return false
}

package script

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// step is the next step of a script: the errors that come first and the entry that
// responds, len(turns) if the script is exhausted.
type step struct {
	errors []int
	answer int
}

// next returns the step that follows from the request alone.
func (s *Script) next(req *model.Request) step {
	at := s.position(req)
	messages := news(req.Messages, len(req.Messages))
	st := step{answer: s.pick(at, messages)}
	for i := at; i < st.answer; i++ {
		if t := &s.turns[i]; t.fail != nil && t.when.holds(messages) {
			st.errors = append(st.errors, i)
		}
	}
	return st
}

// position returns the first entry that the conversation has not consumed.
func (s *Script) position(req *model.Request) int {
	at, from := s.evidence(req.Messages)
	if from == 0 {
		at = s.lost(req.Messages)
	}
	var last uint32
	for i, m := range req.Messages {
		if m.GetRole() != harnessv1.Role_ROLE_ASSISTANT {
			continue
		}
		last = m.GetTurnNumber()
		if i >= from {
			at = min(s.pick(at, news(req.Messages, i))+1, len(s.turns))
		}
	}
	messages := news(req.Messages, len(req.Messages))
	for silent := int64(req.Turn) - int64(last) - 1; silent > 0; silent-- {
		i := s.pick(at, messages)
		if i == len(s.turns) || !s.turns[i].empty() {
			break
		}
		at = i + 1
	}
	return at
}

// evidence finds the newest message that has an id of the script. at is the
// entry after the one that wrote it, from the message after it; both are 0 if
// there is none.
func (s *Script) evidence(messages []*harnessv1.Message) (at, from int) {
	for i := len(messages) - 1; i >= 0; i-- {
		for _, c := range messages[i].GetToolCalls() {
			if entry, ok := s.ids[c.GetId()]; ok {
				return entry + 1, i + 1
			}
		}
	}
	return 0, 0
}

// lost returns the entry of the first visible response if messages before it are
// missing from the request.
func (s *Script) lost(messages []*harnessv1.Message) int {
	for i, m := range messages {
		if m.GetRole() != harnessv1.Role_ROLE_ASSISTANT {
			continue
		}
		if m.GetId() <= uint64(i)+1 {
			return 0
		}
		at := 0
		for n := uint32(1); n < m.GetTurnNumber() && at < len(s.turns); n++ {
			at = min(s.pick(at, nil)+1, len(s.turns))
		}
		return at
	}
	return 0
}

// pick returns the first entry from at on that responds: it is no error and its
// condition is true. It returns len(turns) if there is none.
func (s *Script) pick(at int, messages []*harnessv1.Message) int {
	for ; at < len(s.turns); at++ {
		if t := &s.turns[at]; t.fail == nil && t.when.holds(messages) {
			break
		}
	}
	return at
}

// news returns the messages before end that follow the last assistant message.
func news(messages []*harnessv1.Message, end int) []*harnessv1.Message {
	start := end
	for start > 0 {
		role := messages[start-1].GetRole()
		if role == harnessv1.Role_ROLE_ASSISTANT || role == harnessv1.Role_ROLE_SYSTEM {
			break
		}
		start--
	}
	return messages[start:end]
}

// holds reports whether the condition is true; a missing condition is.
func (c *condition) holds(messages []*harnessv1.Message) bool {
	if c == nil {
		return true
	}
	for _, m := range messages {
		if strings.Contains(m.GetContent().GetInline(), c.lastContains) {
			return true
		}
		for _, p := range m.GetParts() {
			if file := p.GetMedia(); file != nil && strings.Contains(media.Label(file), c.lastContains) {
				return true
			}
		}
	}
	return false
}

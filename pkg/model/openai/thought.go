package openai

import (
	"encoding/json"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// The members of a message that can hold reasoning.
const (
	memberContent = "reasoning_content" // DeepSeek, Moonshot, Z.ai, Alibaba, llama.cpp, vLLM before 0.12
	memberText    = "reasoning"         // Groq, OpenRouter, Ollama, vLLM
	memberDetails = "reasoning_details" // OpenRouter, MiniMax
)

// thought is reasoning in members of a message, as far as it has arrived.
type thought struct {
	// member is the one that text came in, and text the JSON of the string. Servers that
	// send both members send the same text in both.
	member string
	text   json.RawMessage
	// details are the entries of reasoning_details; those that were streamed in pieces are one.
	details []entry
}

// addThought adds the reasoning of a reply and returns its text for people.
func (a *answer) addThought(r *reply) string {
	t := &a.thought
	first := t.empty()
	member, value := memberContent, r.ReasoningContent
	if text(value) == "" {
		member, value = memberText, r.Reasoning
	}
	said := text(value)
	if said != "" {
		t.addText(member, value)
	}
	inDetails := t.addDetails(r.ReasoningDetails)
	if t.member == "" {
		said = inDetails
	}
	if first && !t.empty() {
		a.order = append(a.order, piece{})
	}
	return said
}

func (t *thought) empty() bool { return t.member == "" && len(t.details) == 0 }

func (t *thought) addText(member string, value json.RawMessage) {
	if t.member == "" {
		t.member = member
	}
	t.text = join(t.text, value)
}

// addDetails adds the entries of one delta, or of a whole answer, and returns their text for
// people. Entries that came together are different ones: the entries of a whole answer stay
// as they came.
func (t *thought) addDetails(list json.RawMessage) string {
	var entries []json.RawMessage
	if json.Unmarshal(list, &entries) != nil {
		return ""
	}
	var said strings.Builder
	growing := make([]bool, len(t.details)) // may take an entry of this delta
	for i := range growing {
		growing[i] = true
	}
	for _, raw := range entries {
		e := parseEntry(raw)
		said.WriteString(detailText(e.object))
		t.addDetail(e, growing)
	}
	return said.String()
}

// grown are the members of an entry that are streamed in pieces. Encrypted data is not: two
// that are joined cannot be decrypted.
var grown = []string{"text", "summary"}

// addDetail adds an entry to the newest one of its type and index, or as a new one. A
// streamed entry comes in pieces, of which the last may have only the signature: an entry
// that is signed has all of its text. Entries with different ids are not the same one
// (openrouter.ai/docs/use-cases/reasoning-tokens).
func (t *thought) addDetail(e entry, growing []bool) {
	for i, may := range slices.Backward(growing) {
		have := t.details[i].object
		if !sameDetail(have, e.object) {
			continue
		}
		growing[i] = false
		if may && !complete(have, e.object) {
			t.details[i] = entry{object: merge(have, e.object)}
			return
		}
		break
	}
	t.details = append(t.details, e)
}

// sameDetail reports whether two entries can be pieces of one.
func sameDetail(a, b object) bool {
	if a.value("type") == nil {
		return false
	}
	same := func(name string) bool { return string(a.value(name)) == string(b.value(name)) }
	return same("type") && same("index") && (a.value("id") == nil || b.value("id") == nil || same("id"))
}

// complete reports whether an entry cannot take the contents of the next one: text after a
// signature, or data in addition to its own.
func complete(have, next object) bool {
	has := func(o object) func(string) bool {
		return func(name string) bool { return text(o.value(name)) != "" }
	}
	return has(have)("signature") && slices.ContainsFunc(grown, has(next)) || has(have)("data") && has(next)("data")
}

// merge adds a piece to an entry: text is appended, other members replace empty ones.
func merge(have, piece object) object {
	for _, m := range piece {
		old := have.value(m.name)
		switch {
		case slices.Contains(grown, m.name):
			have = have.set(m.name, join(old, m.value))
		case old == nil || text(old) == "" && isString(old):
			have = have.set(m.name, m.value)
		}
	}
	return have
}

// detailText returns the text of an entry for people.
func detailText(o object) string { return text(o.value("text")) + text(o.value("summary")) }

// forPeople returns the whole text for people.
func (t *thought) forPeople() string {
	if t.member != "" {
		return text(t.text)
	}
	var said strings.Builder
	for _, d := range t.details {
		said.WriteString(detailText(d.object))
	}
	return said.String()
}

// thoughtOpaque returns what goes back of the reasoning in members; nil if nothing does.
func (a *answer) thoughtOpaque() *harnessv1.Opaque {
	if a.reasoning.Chunks || !a.reasoning.goesBack(a.calls.Len() > 0) {
		return nil
	}
	o := a.thought.returned(a.reasoning.Field)
	if o == nil {
		return nil
	}
	return adapter.Opaque(o.json())
}

// returned returns the member that goes back: field, or the one that came.
func (t *thought) returned(field string) object {
	switch {
	case len(t.details) > 0 && (field == memberDetails || field == ""):
		return object{{memberDetails, list(t.details)}}
	case t.member != "" && (field == memberDetails || field == ""):
		return object{{t.member, t.text}}
	case t.member != "":
		return object{{field, t.text}}
	}
	var b body
	if b.value(t.forPeople()); b.Len() == len(`""`) {
		return nil
	}
	return object{{field, b.Bytes()}}
}

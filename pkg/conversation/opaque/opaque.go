// Package opaque decides which opaque parts of a conversation go back to a provider:
// reasoning with its signature, encrypted items, signatures of calls, phases of texts.
//
// Invariants, for each request:
//   - The parts of an answer go back all or none.
//   - They go back only to the wire and endpoint that made them, for the model that made
//     them or for one that reads them.
//   - The answers of the target whose parts go back are its newest ones: if the parts of
//     one cannot go back, those of older ones do not either. Answers of other models in
//     between send none and break nothing.
//   - Where the wire binds parts to what preceded them, they go back only while the
//     request up to their answer has the digest under which they were made, and only
//     after parts that were there too: an answer of a model that does not read those
//     of an older answer was made without them.
//
// The digest covers the tools and all messages with what models are shown of them, and
// no opaque part: a provider accepts that the parts of the oldest answers are left out.
//
// The package is pure. A digest that does not match is not an error: the parts are left
// out, and reasoning builds up again from there.
package opaque

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// encoding is the version of the form in which requests are encoded. A change of any
// wire that sends the same conversation as other bytes increments it, so that no part
// goes back after bytes that it was not made for.
const encoding = 1

// Target is the model that a request goes to.
type Target struct {
	// Wire, Endpoint and Model are compared with the Origin of answers.
	Wire, Endpoint, Model string
	// Reads returns the other models of the endpoint whose parts a model reads. Nil: none.
	Reads func(model string) []string
	// Bound reports whether the wire binds parts to the request before them.
	Bound bool
	// Refused is the id of the last message whose parts the target has refused; 0 if it
	// has refused none.
	Refused uint64
	// RefusedOf is the same for the parts that a model has made and been refused itself.
	RefusedOf map[string]uint64
}

// reads reports whether the target reads what origin made.
func (t Target) reads(origin *harnessv1.Origin) bool {
	return origin.GetWire() == t.Wire && origin.GetEndpoint() == t.Endpoint &&
		t.understands(t.Model, origin.GetModel())
}

// understands reports whether a model reads the parts of another one.
func (t Target) understands(model, other string) bool {
	return model == other || t.Reads != nil && slices.Contains(t.Reads(model), other)
}

// holds reports whether the parts of a message still hold for the target.
func (t Target) holds(m *harnessv1.Message, digest []byte) bool {
	origin := m.GetOrigin()
	return m.GetId() > max(t.Refused, t.RefusedOf[origin.GetModel()]) && (!t.Bound || bytes.Equal(origin.GetRequestDigest(), digest))
}

// Select returns the indexes of the messages whose opaque parts go back to the target,
// in ascending order. Messages and tools are those of the request, with media replaced
// as they are sent.
func Select(messages []*harnessv1.Message, tools []*harnessv1.ToolSpec, t Target) []int {
	var selected []int
	for i, m := range messages {
		if t.reads(m.GetOrigin()) && Has(m) {
			selected = append(selected, i)
		}
	}
	if len(selected) == 0 {
		return nil
	}
	digests := make([][]byte, len(selected))
	if t.Bound {
		digests = prefixes(messages, tools, selected)
	}
	makers := map[string]bool{} // of the parts that are selected
	for n := len(selected) - 1; n >= 0; n-- {
		m := messages[selected[n]]
		made := m.GetOrigin().GetModel()
		if !t.holds(m, digests[n]) || t.Bound && !t.readByAll(makers, made) {
			return selected[n+1:]
		}
		makers[made] = true
	}
	return selected
}

// readByAll reports whether each of models reads the parts of another one.
func (t Target) readByAll(models map[string]bool, other string) bool {
	for model := range models {
		if !t.understands(model, other) {
			return false
		}
	}
	return true
}

// Has reports whether a message has opaque parts.
func Has(m *harnessv1.Message) bool {
	return slices.ContainsFunc(m.GetParts(), func(p *harnessv1.Part) bool { return p.GetOpaque() != nil })
}

// Without returns a message without its opaque parts and their origin. It shares
// everything else with m, and is m if that has none.
func Without(m *harnessv1.Message) *harnessv1.Message {
	if !Has(m) {
		return m
	}
	parts := make([]*harnessv1.Part, 0, len(m.GetParts()))
	for _, p := range m.GetParts() {
		if p.GetOpaque() != nil {
			p = &harnessv1.Part{Kind: p.GetKind()}
		}
		parts = append(parts, p)
	}
	return WithParts(m, parts, nil)
}

// WithParts returns a message with other parts and another origin. It shares everything
// else with m.
func WithParts(m *harnessv1.Message, parts []*harnessv1.Part, origin *harnessv1.Origin) *harnessv1.Message {
	return &harnessv1.Message{
		Id: m.GetId(), Role: m.GetRole(), Kind: m.GetKind(), Content: m.GetContent(), ToolCalls: m.GetToolCalls(),
		ToolCallId: m.GetToolCallId(), ToolName: m.GetToolName(), IsError: m.GetIsError(), TurnNumber: m.GetTurnNumber(),
		Kept: m.GetKept(), Parts: parts, Origin: origin, Topic: m.GetTopic(), Durability: m.GetDurability(), Preserved: m.GetPreserved(),
		KeptContent: m.GetKeptContent(), ExternalizeTokens: m.GetExternalizeTokens(),
	}
}

// Digest returns the digest of a whole request, for the Origin of its answer: SHA-256,
// 32 bytes.
func Digest(messages []*harnessv1.Message, tools []*harnessv1.ToolSpec) []byte {
	return prefixes(messages, tools, []int{len(messages)})[0]
}

// prefixes returns the digests of the requests that end before the messages at the
// indexes, which are in ascending order.
func prefixes(messages []*harnessv1.Message, tools []*harnessv1.ToolSpec, before []int) [][]byte {
	w := writer{sha256.New()}
	w.number(encoding)
	w.number(uint64(len(tools)))
	for _, t := range tools {
		w.text(t.GetName())
		w.text(t.GetDescription())
		w.text(t.GetParametersSchema())
	}
	digests := make([][]byte, 0, len(before))
	next := 0
	for _, i := range before {
		for ; next < i; next++ {
			w.message(messages[next])
		}
		digests = append(digests, w.hash.Sum(nil))
	}
	return digests
}

// writer writes values without ambiguity: each text is preceded by its length.
type writer struct{ hash hash.Hash }

func (w writer) number(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	_, _ = w.hash.Write(b[:])
}

func (w writer) text(s string) {
	w.number(uint64(len(s)))
	_, _ = w.hash.Write([]byte(s))
}

func (w writer) content(c *harnessv1.Content) {
	if b := c.GetBlob(); b != nil {
		w.number(1)
		w.text(b.GetDigest())
		return
	}
	w.number(0)
	w.text(c.GetInline())
}

func (w writer) message(m *harnessv1.Message) {
	w.number(uint64(m.GetRole())) //nolint:gosec // a small enum
	w.content(m.GetContent())
	w.number(uint64(len(m.GetToolCalls())))
	for _, c := range m.GetToolCalls() {
		w.text(c.GetId())
		w.text(c.GetName())
		w.content(c.GetArguments())
	}
	w.text(m.GetToolCallId())
	isError := uint64(0)
	if m.GetIsError() {
		isError = 1
	}
	w.number(isError)
	for _, p := range m.GetParts() {
		if media := p.GetMedia(); media != nil {
			w.text(media.GetType())
			w.text(media.GetName())
			w.text(mediaDigest(media))
		}
	}
}

func mediaDigest(m *harnessv1.Media) string {
	if m.GetBlob() != nil {
		return m.GetBlob().GetDigest()
	}
	return content.Digest(m.GetData())
}

package modeltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"strings"
)

// thinkingMark is the content of a signature, by which the server checks a block when it
// comes back.
type thinkingMark struct {
	Model string `json:"model"`
	// Prefix is the digest of the request that the answer was for.
	Prefix string `json:"prefix"`
	// Number is the position among the blocks of the conversation, and From that of the
	// first one that the request had, or of this one.
	Number int `json:"number"`
	From   int `json:"from"`
	// Before is the name of the block before it; empty for the first one.
	Before string `json:"before"`
	// Index is the position among the Count blocks of the answer, after Texts and Calls.
	Index int `json:"index"`
	Count int `json:"count"`
	Texts int `json:"texts"`
	Calls int `json:"calls"`
	// Block is the digest of the block without the signature.
	Block string `json:"block"`
	// Padding makes the signature as long as the reply wants it.
	Padding string `json:"padding"`
}

func digestText(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// sign returns the signature of a block, at least size bytes long.
func (m thinkingMark) sign(size int) string {
	raw := mustJSON(m)
	if short := base64.StdEncoding.DecodedLen(size) + 3 - len(raw); short > 0 {
		m.Padding = strings.Repeat("+", short)
		raw = mustJSON(m)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// readMark reads a signature; false if the server has not made it.
func readMark(signature string) (m thinkingMark, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(signature)
	return m, err == nil && json.Unmarshal(raw, &m) == nil && m.Prefix != ""
}

// thinkingParts returns the member with the signature of a block, and the signature.
func thinkingParts(raw json.RawMessage) (member, signature string) {
	var b struct {
		Type      string `json:"type"`
		Signature string `json:"signature"`
		Data      string `json:"data"`
	}
	if json.Unmarshal(raw, &b) == nil && b.Type == "redacted_thinking" {
		return "data", b.Data
	}
	return "signature", b.Signature
}

// unsigned returns a block without its signature.
func unsigned(raw json.RawMessage, signature string) []byte {
	return bytes.Replace(raw, mustJSON(signature), []byte(`""`), 1)
}

// unchanged reports whether a block has the bytes and the place that it was made for.
func (m thinkingMark) unchanged(raw json.RawMessage, signature string, place thinkingPlace) bool {
	return m.Block == digestText(unsigned(raw, signature)) && m.Texts == place.texts && m.Calls == place.calls
}

// bound reports whether everything before a block is what it was made for. Blocks may be
// missing at the front, and must not be there if they were missing then.
func (m thinkingMark) bound(t *RequestThinking, place thinkingPlace) bool {
	if m.Prefix != place.prefix {
		return false
	}
	return t.first == nil || m.Before == t.last && m.From <= t.first.Number
}

// thinkingSigner makes the blocks of thinking of an answer.
type thinkingSigner struct {
	request *Request
	next    thinkingMark
	foreign bool // blocks have a member that the protocol does not know
}

func (r *Request) signer(parts []ReplyPart, foreign bool) *thinkingSigner {
	t := r.Thinking
	s := &thinkingSigner{request: r, foreign: foreign, next: thinkingMark{
		Model: r.Model, Prefix: t.prefix, Number: t.length, From: t.length, Before: t.last,
	}}
	if t.first != nil {
		s.next.From = t.first.Number
	}
	for _, p := range parts {
		if p.Thinking != nil {
			s.next.Count++
		}
	}
	return s
}

// addText counts a text, unless the service refuses it as empty when it comes back.
func (s *thinkingSigner) addText(text string) {
	if strings.TrimSpace(text) != "" {
		s.next.Texts++
	}
}

const defaultSignature = 32

// block returns the next block of thinking.
func (s *thinkingSigner) block(t *Thinking) map[string]any {
	member, block := "signature", map[string]any{"type": "thinking", "thinking": t.Text, "signature": ""}
	if s.request.Thinking.Type == "adaptive" && s.request.Thinking.Display != "summarized" {
		block["thinking"] = ""
	}
	if t.Redacted {
		member, block = "data", map[string]any{"type": "redacted_thinking", "data": ""}
	}
	if s.foreign {
		block["zz_unknown"] = map[string]any{"n": 1}
	}
	s.next.Block = digestText(mustJSON(block))
	signature := s.next.sign(max(t.Size, defaultSignature))
	block[member] = signature
	s.next.Number++
	s.next.Index++
	s.next.Before = digestText([]byte(signature))
	return block
}

func sumText(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:8]) }

// writePrefix adds blocks to the digest, without cache marks and thinking.
func writePrefix(h hash.Hash, role string, blocks []object) {
	_, _ = fmt.Fprintf(h, "\n%s", role)
	for _, b := range blocks {
		if isThinking(b) {
			continue
		}
		b = cloneWithout(b, "cache_control")
		_, _ = h.Write(append([]byte("\n"), mustJSON(b)...))
	}
}

func cloneWithout(o object, name string) object {
	c := object{}
	for k, v := range o {
		if k != name {
			c[k] = v
		}
	}
	return c
}

package openai

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// bridgeText is the answer between results and a message of the user. It is that of
// Mistral's client (mistralai/mistral-vibe).
const bridgeText = "Understood."

// bridge writes an answer that the model did not give, if the server demands one between
// results and a message of the user. It is written only with that message, so that a
// request still begins with the former one, which ended with the results.
func (e *encoder) bridge() {
	if e.bridged {
		e.err = errors.Join(e.err, e.message(&harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(bridgeText)}))
	}
}

// shortID is the length of the ids that ShortCallIDs leaves unchanged and makes.
const shortID = 9

// digits are the characters of a short id.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// callID returns the id of a call as the server takes it. A replaced id depends on the id
// only, so that a call and its result have the same one in each request.
func (e *encoder) callID(id string) string {
	id = model.SendableText(id)
	if !e.shortIDs || isShort(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	rest := binary.BigEndian.Uint64(sum[:])
	short := make([]byte, shortID)
	for i := range short {
		short[i] = digits[rest%uint64(len(digits))]
		rest /= uint64(len(digits))
	}
	return string(short)
}

// isShort reports whether an id is nine letters and digits.
func isShort(id string) bool {
	for i := range len(id) {
		if c := id[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return len(id) == shortID
}

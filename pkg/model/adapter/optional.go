package adapter

import (
	"net/http"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// Optional is a member of requests, or a few that belong together, without which a request
// has the same meaning. A service that refuses it gets the request again without it.
type Optional struct {
	// Member is its name, as in ModelAdjustment.
	Member string
	// Words are names with which refusals blame it, in lower case: its own and those of its
	// members.
	Words []string
	// Common are names that are words of the language too. They count only in a refusal that
	// complains of a member.
	Common []string
	// Setting is what a person can set so that no request is refused first; empty: nothing.
	Setting string
	// Sent reports whether a request to a model has it.
	Sent func(req *model.Request, name string) bool
}

// complaints are the words of services that do not take a member: those of OpenAI, then those of
// pydantic, of Go's decoder, of Java's, and of Bedrock and Gemini.
var complaints = []string{
	"unknown parameter", "unsupported parameter", "unrecognized request argument", "not supported", "does not support", "unsupported value",
	"extra inputs are not permitted", "extra fields not permitted", "extra_forbidden", "unknown field", "unrecognized field", "unexpected keyword",
	"additional properties", "unknown name", "not allowed", "not permitted", "unexpected field", "invalid parameter", "invalid field",
}

// refusedOptional returns the optional member that a refusal blames, of those that the request
// has; nil if it blames none.
func refusedOptional(optional []Optional, refused *wire.StatusError, req *model.Request, name string) *Optional {
	if refused.Status != http.StatusBadRequest && refused.Status != http.StatusUnprocessableEntity {
		return nil
	}
	fault := wire.ParseFault(refused.Body)
	text := strings.ToLower(fault.Message + " " + fault.Param + " " + fault.Code)
	if fault.Message == "" { // services have more forms of errors than are read
		text = strings.ToLower(string(refused.Body))
	}
	complains := slices.ContainsFunc(complaints, func(c string) bool { return strings.Contains(text, c) })
	for i := range optional {
		o := &optional[i]
		names := slices.ContainsFunc(o.Words, func(word string) bool { return hasWord(text, word) }) ||
			complains && slices.ContainsFunc(o.Common, func(word string) bool { return hasWord(text, word) })
		if names && o.Sent(req, name) && !req.Leaves(o.Member) {
			return o
		}
	}
	return nil
}

// leaveOut makes a refusal one that asks for the request without an optional member.
func leaveOut(failed *model.Error, o *Optional) {
	failed.Adjustment, failed.Member = harnessv1.Adjustment_ADJUSTMENT_NO_MEMBER, o.Member
	failed.Message += "; the request is sent without " + o.Member
	if o.Setting != "" {
		failed.Message += "; set " + o.Setting + " to leave it out from the start"
	}
}

// hasWord reports whether a text contains a word that is no part of a longer one.
func hasWord(text, word string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		begin, end := at+i, at+i+len(word)
		if (begin == 0 || !isName(text[begin-1])) && (end == len(text) || !isName(text[end])) {
			return true
		}
		at = begin + 1
	}
}

// isName reports whether a byte can be in the name of a member.
func isName(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z'
}

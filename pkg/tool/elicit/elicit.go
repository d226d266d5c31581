// Package elicit decides what a server of tools may ask a person in the middle of a call, and
// which answers fit.
//
// A question has one or more requests: a form, whose schema is an object of texts, numbers, truth
// values and choices, or an address to visit. Check bounds what a server can make a run keep and
// show. Responses maps the answer of a person to the responses that go back to the server, and
// names what is wrong with one that does not fit. The package is pure; all contents are inline.
//
// See https://modelcontextprotocol.io/specification, Elicitation and Multi Round-Trip Requests.
package elicit

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Bounds of a question, in bytes where nothing else is said.
const (
	// MaxRounds is how often one call may ask.
	MaxRounds = 10
	// MaxRequests is how many things a question may ask.
	MaxRequests = 8
	// MaxState bounds the state that goes back to the server.
	MaxState = 64 << 10
	// MaxFields is how many fields a form may have.
	MaxFields = 32

	maxID      = 64
	maxMessage = 4 << 10
	maxSchema  = 16 << 10
	maxURL     = 2 << 10
)

// Check returns why a question is not put to a person; nil if it is.
func Check(q *harnessv1.ServerQuestion) error {
	switch n := len(q.GetRequests()); {
	case n == 0:
		return errors.New("it asks nothing")
	case n > MaxRequests:
		return fmt.Errorf("it asks %d things, more than the limit of %d", n, MaxRequests)
	case len(q.GetState().GetInline()) > MaxState:
		return fmt.Errorf("its state has %d bytes, more than the limit of %d", len(q.GetState().GetInline()), MaxState)
	case q.GetRound() == 0 || q.GetRound() > MaxRounds:
		return fmt.Errorf("one call asks more than %d times", MaxRounds)
	}
	seen := map[string]bool{}
	for _, r := range q.GetRequests() {
		switch id := r.GetId(); {
		case id == "" || len(id) > maxID || content.Clean(id) != id:
			return fmt.Errorf("the id %q of a request must have 1 to %d printable bytes", content.Clip(content.Clean(id), maxID), maxID)
		case seen[id]:
			return fmt.Errorf("two requests have the id %q", id)
		}
		seen[r.GetId()] = true
		if err := checkRequest(r); err != nil {
			return fmt.Errorf("request %q: %w", r.GetId(), err)
		}
	}
	return nil
}

func checkRequest(r *harnessv1.ServerRequest) error {
	switch message := r.GetMessage().GetInline(); {
	case len(message) > maxMessage:
		return fmt.Errorf("its message has %d bytes, more than the limit of %d", len(message), maxMessage)
	case (r.Schema == nil) == (r.Url == nil):
		return errors.New("it must have either a form or an address")
	case r.Url != nil:
		return checkURL(r.GetUrl().GetInline())
	}
	_, err := Fields(r.GetSchema().GetInline())
	return err
}

// checkURL refuses addresses that a person cannot judge by reading them.
func checkURL(address string) error {
	if len(address) > maxURL {
		return fmt.Errorf("its address has %d bytes, more than the limit of %d", len(address), maxURL)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && u.Scheme != "http") || content.Visible(address) != address {
		return fmt.Errorf("%q is not the address of a web page", content.Clip(content.Visible(address), 200))
	}
	return nil
}

// Package calls joins the pieces of tool calls in the streams of all wires. Services
// agree on a protocol and deviate from it: indexes are missing, all the same, or change
// within a call; ids are missing, repeated, or new with each piece; names come in pieces or
// with each of them; arguments begin with an empty object or are repeated at their end.
//
// An Assembler assigns each piece to a call by five facts: its id,
// its index, its name, the order of arrival, and whether the JSON of a call's arguments is
// complete. The arguments of a call are decided once, from all of its text, so that they do
// not depend on its cuts.
//
// Invariants:
//   - A piece belongs to one call. Only an empty piece belongs to none.
//   - A call whose arguments are incomplete is continued by pieces without id and name.
//   - Calls are in the order of their first pieces.
//
// It does not fail: arguments that are no JSON are returned as they came, for the caller to
// refuse. It reads no clock and does no I/O.
package calls

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// Piece is a piece of a call as a service sent it. A member that it left out is empty.
type Piece struct {
	// Index is the place of the call in the answer; nil if the service gave none.
	Index *int64
	// ID and Name are those of the call, or a part of the name.
	ID, Name string
	// Arguments are a part of the JSON of the arguments, or all of it.
	Arguments string
	// Begins reports that the protocol marks the beginning of a call in a way that cannot be
	// missed, such as a separate event. Its Arguments count only if no piece follows
	// that has any.
	Begins bool
}

// Call is a call whose pieces have been joined.
type Call struct {
	// ID and Name are empty if no piece had one.
	ID, Name string
	// Arguments are the text that the model wrote; empty if there is none.
	Arguments string
	// Complete reports whether the arguments are one whole JSON value, or empty.
	Complete bool
	// At is the call's number as Add returned it.
	At int
}

// Assembler joins pieces. The zero value is ready.
type Assembler struct {
	calls []*call
	// places has the call that the last piece of an index belonged to, and ids the newest
	// call of an id.
	places map[int64]int
	ids    map[string]int
	// pending is an id that came alone after a whole call: the next piece may begin the
	// call that it is of.
	pending string
}

// call is a call as far as it has arrived.
type call struct {
	index     *int64
	id, name  string
	marked    bool   // a piece with Begins has begun it
	first     string // the arguments of that piece
	arguments wire.LongText
	json      scanner
}

// none is the number of a call that does not exist.
const none = -1

// Add takes a piece and returns the number of its call, and whether the piece has begun it.
// An empty piece that belongs to no call has the number -1.
func (a *Assembler) Add(p Piece) (at int, begun bool) {
	pending := a.pending
	a.pending = ""
	at = a.find(&p)
	if at == none {
		if p.ID == "" && p.Name == "" && strings.TrimSpace(p.Arguments) == "" && !p.Begins {
			return none, false
		}
		if p.ID == "" {
			p.ID = pending
		}
		at, begun = len(a.calls), true
		a.calls = append(a.calls, &call{index: p.Index})
	}
	a.calls[at].add(&p)
	if a.ids == nil {
		a.ids, a.places = map[string]int{}, map[int64]int{}
	}
	if p.Index != nil {
		a.places[*p.Index] = at
	}
	if id := a.calls[at].id; id != "" && (begun || p.ID == id) {
		a.ids[id] = at
	}
	return at, begun
}

func (c *call) add(p *Piece) {
	if c.id == "" {
		c.id = p.ID
	}
	c.addName(p.Name)
	if p.Begins {
		c.marked, c.first = true, p.Arguments
		return
	}
	c.arguments.WriteString(p.Arguments)
	c.json.read(p.Arguments)
}

// addName adds a name, or a part of one. A piece that begins with the name so far repeats
// it. The name of a call whose arguments have begun is whole.
func (c *call) addName(name string) {
	switch {
	case name == "", c.name != "" && c.json.begun:
	case strings.HasPrefix(name, c.name):
		c.name = name
	default:
		c.name += name
	}
}

// Len returns the number of calls so far.
func (a *Assembler) Len() int { return len(a.calls) }

// Calls returns the calls. One that repeats another with its id, name and arguments is left
// out: services send a whole call again at the end. So is one of several that has nothing
// but an id. A call whose beginning was marked is never left out.
func (a *Assembler) Calls() []Call {
	type identity struct{ id, name, arguments string }
	var joined []Call
	had := map[identity]bool{}
	for at, c := range a.calls {
		text := c.arguments.String()
		if strings.TrimSpace(text) == "" && c.first != "" {
			text = c.first
		}
		text, complete := Arguments(text)
		is := identity{c.id, c.name, strings.TrimSpace(text)}
		blank := c.name == "" && is.arguments == "" && len(a.calls) > 1
		if c.marked || !blank && (c.id == "" || !had[is]) {
			joined = append(joined, Call{ID: c.id, Name: c.name, Arguments: text, Complete: complete, At: at})
		}
		had[is] = true
	}
	return joined
}

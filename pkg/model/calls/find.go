package calls

import "strings"

// find returns the number of the call that a piece belongs to; none if it begins one.
func (a *Assembler) find(p *Piece) int {
	switch {
	case len(a.calls) == 0, p.Begins:
		return none
	case p.ID != "":
		return a.withID(p)
	case p.Name != "":
		return a.withName(p)
	}
	return a.bare(p)
}

// withID: the newest call with the id, unless the piece has a name and its call can take no
// more; the call at its place if that has no id yet; and the call at its place whose id
// changes with each piece.
func (a *Assembler) withID(p *Piece) int {
	if at := a.byID(p.ID); at != none {
		if a.calls[at].another(p) {
			return none
		}
		return at
	}
	at := a.placed(p)
	if at == none {
		return none
	}
	c := a.calls[at]
	switch {
	case c.id == "":
		return c.named(at, p)
	case p.Name == "" && c.name != "":
		if !p.given() && c.json.complete() {
			a.pending = p.ID
		}
		return at
	case p.Name == c.name && p.given() && c.json.open() && !isObject(p.Arguments):
		return at
	}
	return none
}

// another reports whether a piece with the id of a call begins another one: it has a name,
// and the call has a different index or whole arguments. An empty object that is followed
// by arguments of the same tool is not whole.
func (c *call) another(p *Piece) bool {
	switch {
	case p.Name == "":
		return false
	case !sameIndex(c.index, p.Index):
		return p.Name != c.name || c.json.complete() && p.given() && !c.empty()
	case c.json.complete():
		return p.Name != c.name || p.given() && !c.empty() && !c.has(p.Arguments)
	}
	return false
}

// named returns the number of a call that has no id if a piece with one can be part of it.
func (c *call) named(at int, p *Piece) int {
	same := p.Name == c.name
	if c.name == "" || p.Name == "" || p.Index != nil && (!c.json.complete() || same && c.empty()) || same && !c.json.begun {
		return at
	}
	return none
}

// withName: a piece that has a name and no id.
func (a *Assembler) withName(p *Piece) int {
	at := a.placed(p)
	known := at != none
	if !known { // the index differs from that of the pieces before
		if at = a.newest(func(c *call) bool { return c.name == "" }); at != none {
			return at
		}
		if at = len(a.calls) - 1; a.calls[at].id == "" { // nothing else separates calls
			return none
		}
	}
	c := a.calls[at]
	switch {
	case c.name == "":
		return at
	case c.json.open():
		if p.Name == c.name {
			return at
		}
	case c.json.complete():
		if (p.Index != nil || c.id != "") && p.Name == c.name && (known && !p.given() || c.empty() || c.has(p.Arguments)) {
			return at
		}
	case p.Index != nil, c.id != "", p.Name == c.name && p.given():
		return at
	}
	return none
}

// bare: a piece that has arguments only. It continues the call at its place, or else the
// newest call that has no arguments yet, or else the newest one whose arguments are open.
func (a *Assembler) bare(p *Piece) int {
	at := a.placed(p)
	if !p.given() { // white space counts only within arguments
		switch {
		case at == none:
			return a.newest(func(c *call) bool { return c.json.open() })
		case a.calls[at].json.complete():
			return none
		}
		return at
	}
	waiting := a.newest(func(c *call) bool { return !c.json.begun })
	if at != none {
		c := a.calls[at]
		if !c.json.complete() || waiting == none || c.empty() || c.has(p.Arguments) {
			return at
		}
		return waiting
	}
	if waiting != none {
		return waiting
	}
	if at = a.newest(func(c *call) bool { return c.json.open() }); at != none {
		return at
	}
	return len(a.calls) - 1
}

// placed returns the call at the place of a piece: the one that the last piece of its index
// belonged to, or without an index the newest one.
func (a *Assembler) placed(p *Piece) int {
	if p.Index == nil {
		return len(a.calls) - 1
	}
	if at, ok := a.places[*p.Index]; ok {
		return at
	}
	return none
}

// byID returns the newest call of an id; none if there is none.
func (a *Assembler) byID(id string) int {
	if at, ok := a.ids[id]; ok {
		return at
	}
	return none
}

// reach is how many calls are looked at, the newest first, for one that waits for pieces.
const reach = 256

// newest returns the newest call that is of a kind; none if there is none.
func (a *Assembler) newest(is func(*call) bool) int {
	for at := len(a.calls) - 1; at >= max(len(a.calls)-reach, 0); at-- {
		if is(a.calls[at]) {
			return at
		}
	}
	return none
}

// given reports whether a piece has arguments.
func (p *Piece) given() bool { return strings.TrimSpace(p.Arguments) != "" }

// empty reports whether the arguments so far are an empty object.
func (c *call) empty() bool { return c.json.emptyObject() }

// has reports whether the arguments so far are a text. It reads them only if the text can be
// all of them, so that many short pieces cost no more than their bytes.
func (c *call) has(text string) bool {
	text = strings.TrimSpace(text)
	if 2*len(text) < c.arguments.Len() {
		return false
	}
	said, _ := Arguments(c.arguments.String())
	return strings.TrimSpace(said) == text
}

func isObject(text string) bool { return strings.HasPrefix(strings.TrimLeft(text, blanks), "{") }

func sameIndex(a, b *int64) bool { return a == nil || b == nil || *a == *b }

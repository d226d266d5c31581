package toolhostserver

import "strings"

// life is one process's time on a ledger. Everything that it starts carries a
// mark: LEDGER.LIFE.CALL, the ledger's id and two random names.
type life struct{ ledger, place, name string }

func newLife(l *ledger) life {
	return life{ledger: l.id, place: l.place, name: randomHex(8)}
}

// mark is a new mark, for a call of this life.
func (l life) mark() string { return l.ledger + "." + l.name + "." + randomHex(8) }

// former says that a mark is of an earlier life: on this ledger, wherever it
// lay, or at this place on a ledger that is lost. Hosts that live share neither,
// as long as nobody copies a ledger.
func (l life) former(mark string) bool {
	if !strings.HasPrefix(mark, l.ledger+".") && !strings.HasPrefix(mark, l.place+"-") {
		return false
	}
	return !strings.HasPrefix(mark, l.ledger+"."+l.name+".")
}

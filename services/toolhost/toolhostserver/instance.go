package toolhostserver

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// instance identifies a process that serves from a ledger. The processes that it starts
// have marks of the form LEDGER.INSTANCE.CALL: the ledger's id and two random names.
type instance struct{ ledger, place, name string }

func newInstance(l *ledger.Ledger) instance {
	return instance{ledger: l.ID, place: l.Place, name: disk.RandomName(8)}
}

// newMark returns a new mark for a call of this instance.
func (i instance) newMark() string { return i.ledger + "." + i.name + "." + disk.RandomName(8) }

// isFormer reports whether a mark is of an earlier instance: one with this ledger, at any
// place, or one at this place with a ledger that is lost. Hosts that are alive share
// neither, unless a ledger was copied.
func (i instance) isFormer(mark string) bool {
	if !strings.HasPrefix(mark, i.ledger+".") && !strings.HasPrefix(mark, i.place+"-") {
		return false
	}
	return !strings.HasPrefix(mark, i.ledger+"."+i.name+".")
}

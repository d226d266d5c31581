package process

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// Marks are those of the processes that one host starts. They have the form
// LEDGER.INSTANCE.CALL: the id of its ledger and two random names.
type Marks struct{ ledger, place, instance string }

// NewMarks returns the marks of a new host, given the id of its ledger and the place where
// that is.
func NewMarks(ledger, place string) Marks {
	return Marks{ledger: ledger, place: place, instance: disk.RandomName(8)}
}

// New returns a new mark for a command of this host.
func (m Marks) New() string { return m.ledger + "." + m.instance + "." + disk.RandomName(8) }

// IsFormer reports whether a mark is of an earlier host: one with this ledger, at any
// place, or one at this place with a ledger that is lost. Hosts that are alive share
// neither, unless a ledger was copied.
func (m Marks) IsFormer(mark string) bool {
	if !strings.HasPrefix(mark, m.ledger+".") && !strings.HasPrefix(mark, m.place+"-") {
		return false
	}
	return !strings.HasPrefix(mark, m.ledger+"."+m.instance+".")
}

package places

import "github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"

// SetSettled has each change of a file count as one of long ago.
func (p *Places) SetSettled() { p.settled = 0 }

// StartAt is Start of one folder with the places that were found in it.
func (p *Places) StartAt(dir string, found guard.Places) *Watch {
	return p.startAt(&Watch{workspace: &workspace{dir: dir}}, found)
}

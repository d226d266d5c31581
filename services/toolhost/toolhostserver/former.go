package toolhostserver

import (
	"log/slog"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
)

// former is what earlier hosts at this place or on this ledger have left.
type former struct {
	marks process.Marks
	guard *guard.Guard
	log   *slog.Logger
	// ledger is the id of the ledger.
	ledger string
}

// kill returns when no process of earlier hosts is left, and what their calls have changed of
// what git runs programs by is put back. The error is UNAVAILABLE.
func (f former) kill() error {
	if left := process.KillFormer(f.marks.IsFormer); left > 0 {
		f.log.Error("commands of an earlier tool host could not be killed", "processes", left, "ledger", f.ledger)
		return toolhost.Unavailable("commands of an earlier tool host could not be killed yet; send the request again", nil)
	}
	f.guard.Recover()
	return nil
}

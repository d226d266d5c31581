package compaction

import (
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// recentFrom returns the first message of the recent part: the newest messages of the
// config as far as they hold its share of the window, and always the last turn, extended so
// that calls and results stay together.
func recentFrom(x *view.Index, rules *view.Rules, cfg *harnessv1.ContextConfig, window uint32, factor float64) uint64 {
	room := cfg.GetRecentShare() * float64(window) / factor
	from := uint64(len(x.Entries)) + 1
	for count := uint32(0); from > 1 && count < cfg.GetRecentMessages(); count++ {
		room -= float64(rules.Shown(&x.Entries[from-2]))
		if room < 0 {
			break
		}
		from--
	}
	from = min(from, lastTurn(x))
	for { // until no call is cut off from its results
		earliest := from
		for id := from; id <= uint64(len(x.Entries)); id++ {
			if call := x.Entry(id).Call; call != 0 {
				earliest = min(earliest, call)
			}
		}
		if earliest == from {
			return from
		}
		from = earliest
	}
}

// lastTurn returns the first message of the last turn, from the model's last message with
// what followed it; the one after the newest message if there is none.
func lastTurn(x *view.Index) uint64 {
	for i := len(x.Entries) - 1; i >= 0; i-- {
		if x.Entries[i].Class == harnessv1.MessageClass_MESSAGE_CLASS_ASSISTANT {
			return x.Entries[i].ID
		}
	}
	return uint64(len(x.Entries)) + 1
}

// sentThrough returns the last message that the model was sent, as far as its answers show it; 0 for none.
func sentThrough(x *view.Index) uint64 {
	if last := lastTurn(x); last <= uint64(len(x.Entries)) {
		return last - 1
	}
	return 0
}

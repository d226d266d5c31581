package compaction

import (
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// shownMedia returns the room that the images and documents need which a view shows.
func shownMedia(x *view.Index, rules *view.Rules) media.Room {
	var room media.Room
	if x.Media.Items == 0 {
		return room
	}
	for i := range x.Entries {
		if e := &x.Entries[i]; rules.SendsMedia(e) {
			room = room.Plus(e.Media)
		}
	}
	return room
}

// clearMedia clears images and documents, oldest first, until the window is down to target
// tokens and the rest needs at most half of the room in a request. If a request was refused as
// too long, it clears those as well that the run's model does not take: a fallback model that
// does may have refused it.
func (p *pass) clearMedia(limit, target uint64, exceeded bool) {
	if p.x.Media.Items == 0 {
		return
	}
	room := shownMedia(p.x, p.rules)
	st := strategy{"clear", clearing, []harnessv1.MessageClass{mediaClass}, 0}
	all := view.NewRules(p.moved(st, limit), p.x)
	left, reached := p.used, uint64(0)
	for id := uint64(1); id <= limit && (left > target || room.Exceeds(media.RequestRoom.Half())); id++ {
		e := p.x.Entry(id)
		sent := p.rules.SendsMedia(e)
		if !p.rules.ShowsMedia(e) || !sent && !exceeded {
			continue
		}
		p.unweighed = p.unweighed || !sent
		left -= min(left, scale(p.saved(all, e), p.factor))
		if sent {
			room = room.Minus(e.Media)
		}
		reached = id
	}
	if reached > 0 {
		p.change(st.name, clearing, mediaClass, p.moved(st, reached))
	}
}

// clearRecentMedia clears images and documents of the recent part as well, except for those of
// the newest message, if the view shows more than a request has room for. Without it the
// request would show lines instead of them that no view has (see pkg/media).
func (p *pass) clearRecentMedia() {
	if !shownMedia(p.x, p.rules).Exceeds(media.RequestRoom) {
		return
	}
	newest := uint64(len(p.x.Entries))
	for newest > 0 && !p.rules.SendsMedia(p.x.Entry(newest)) {
		newest--
	}
	if newest > 1 {
		p.clearMedia(newest-1, p.used, false)
	}
}

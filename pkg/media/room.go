package media

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// Room is what images and documents need in a request.
type Room struct {
	// Bytes as they are sent, in base64.
	Bytes uint64
	// Items are images and pages of documents.
	Items uint64
}

// RequestRoom is the room in a request that every service accepts.
var RequestRoom = Room{Bytes: MaxRequest, Items: DefaultItems}

// itemBytes is the part of a request's bytes that an image or a page is of its items.
const itemBytes = MaxRequest / DefaultItems

// roomOf returns the room that an image or document needs.
func roomOf(m *harnessv1.Media) Room {
	n := Room{Bytes: (Bytes(m) + 2) / 3 * 4, Items: 1}
	if IsDocument(m) {
		n.Items = uint64(max(m.GetPages(), 1))
	}
	return n
}

// MessageRoom returns the room that the images and documents of a message need.
func MessageRoom(m *harnessv1.Message) Room {
	var n Room
	for _, p := range m.GetParts() {
		if file := p.GetMedia(); file != nil {
			n = n.Plus(roomOf(file))
		}
	}
	return n
}

// Plus returns the room for both.
func (r Room) Plus(n Room) Room { return Room{r.Bytes + n.Bytes, r.Items + n.Items} }

// Minus returns the room that is left of r without n, which is part of it.
func (r Room) Minus(n Room) Room { return Room{r.Bytes - n.Bytes, r.Items - n.Items} }

// Half returns half of the room, rounded down.
func (r Room) Half() Room { return Room{Bytes: r.Bytes / 2, Items: r.Items / 2} }

// Exceeds reports whether r needs more than limit has.
func (r Room) Exceeds(limit Room) bool { return r.Bytes > limit.Bytes || r.Items > limit.Items }

// InBytes returns the room as a number of bytes. As long as the sum of such numbers is at most
// MaxRequest, the sum of the rooms does not exceed RequestRoom.
func (r Room) InBytes() uint64 { return max(r.Bytes, r.Items*itemBytes) }

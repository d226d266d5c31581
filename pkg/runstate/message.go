package runstate

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// AppendMessages numbers messages and counts their bytes against the model's
// window. It changes s and the messages, and returns them.
func AppendMessages(s *harnessv1.Snapshot, turn uint32, messages ...*harnessv1.Message) []*harnessv1.Message {
	b := OwnBudget(s)
	for _, m := range messages {
		s.MessageCount++
		m.Id = s.GetMessageCount()
		m.TurnNumber = turn
		b.UnreportedBytes += MessageBytes(m)
		AddMedia(s, media.MessageRoom(m))
	}
	return messages
}

// Counted returns a copy of s with the messages of journal entries counted that are stored after
// it: their number, their weight in bytes of text, and the room of their media.
func Counted(s *harnessv1.Snapshot, messages, weight uint64, room media.Room) *harnessv1.Snapshot {
	s = Clone(s)
	if s == nil {
		s = &harnessv1.Snapshot{}
	}
	s.MessageCount += messages
	if weight > 0 {
		OwnBudget(s).UnreportedBytes += weight
	}
	AddMedia(s, room)
	return s
}

// AddMedia counts images and documents that were appended, in a run with compaction. The
// number bounds those of the next request. It changes s.
func AddMedia(s *harnessv1.Snapshot, room media.Room) {
	if room.Items == 0 || !s.GetConfig().GetContext().GetCompaction() {
		return
	}
	OwnBudget(s).MediaBytes += room.InBytes()
}

// mediaBytes is how many bytes of text weigh as much as a token of an image or document:
// the usual ratio, with which bytes become an estimate of tokens.
const mediaBytes = 4

// MessageBytes returns the size of a message in bytes as the model receives it: an
// upper bound of its tokens, except for the few that frame a message. Images and
// documents count as text of the same number of tokens, by the usual estimate.
func MessageBytes(m *harnessv1.Message) uint64 {
	n := contentBytes(m.GetContent())
	for _, c := range m.GetToolCalls() {
		n += uint64(len(c.GetName())+len(c.GetId())) + contentBytes(c.GetArguments())
	}
	for _, p := range m.GetParts() {
		n += opaqueBytes(p.GetOpaque())
	}
	return n + mediaBytes*media.MessageTokens(m, nil)
}

// AttachmentBytes returns the stored size of the images and documents of a message.
func AttachmentBytes(m *harnessv1.Message) (bytes uint64) {
	for _, p := range m.GetParts() {
		bytes += p.GetMedia().GetBlob().GetSize()
	}
	return bytes
}

func opaqueBytes(o *harnessv1.Opaque) uint64 {
	if b := o.GetBlob(); b != nil {
		return b.GetSize()
	}
	return uint64(len(o.GetInline()))
}

func contentBytes(c *harnessv1.Content) uint64 {
	if b := c.GetBlob(); b != nil {
		return b.GetSize()
	}
	return uint64(len(c.GetInline()))
}

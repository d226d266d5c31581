package media

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Takes is what a model and its wire accept. The zero value accepts nothing.
type Takes struct {
	Images, Documents bool
	// MaxItems bounds the images of a request, together with the pages of its documents;
	// 0 means DefaultItems.
	MaxItems int
}

// Limits of a request.
const (
	// MaxRequest bounds the images and documents of a request, in bytes as they are sent
	// (base64). Its texts come on top.
	MaxRequest = 20_000_000
	// DefaultItems is what every service accepts in a request.
	DefaultItems = 100
)

// Show returns messages as a request shows their images and documents. A line of text at
// the end of a message's content replaces those that the target does not take, and those
// that no longer fit: when the request would exceed a limit, the oldest give way in one
// step, until the rest needs at most half of it. So the beginning of requests remains
// equal for many requests. The newest one is always shown, unless it exceeds the limit
// alone.
//
// refs is true if the model can read messages again by their ids, with read_artifact. The line
// of media that no longer fit then names the message.
//
// Messages are not changed: the result has copies of those that differ, with the same
// ids. Contents are inline. Only messages of the user and of tools have media.
func Show(messages []*harnessv1.Message, takes Takes, refs bool) []*harnessv1.Message {
	shown := window(messages, takes)
	if len(shown) == 0 {
		return messages
	}
	out := make([]*harnessv1.Message, len(messages))
	for i, m := range messages {
		out[i] = m
		if carries(m) {
			out[i], shown = replace(m, shown, refs)
		}
	}
	return out
}

// Hidden returns for each message why Show leaves out images or documents of it, for people;
// empty if it leaves out none.
func Hidden(messages []*harnessv1.Message, takes Takes) []string {
	why := make([]string, len(messages))
	shown := window(messages, takes)
	for i, m := range messages {
		if !carries(m) {
			continue
		}
		all, left := 0, map[state]int{}
		for _, p := range m.GetParts() {
			if p.GetMedia() != nil {
				left[shown[all]]++
				all++
			}
		}
		shown = shown[all:]
		var reasons []string
		for _, s := range [...]state{refused, oversized, outdated} {
			if left[s] > 0 {
				reasons = append(reasons, fmt.Sprintf("%d of %d images and documents are not sent: %s", left[s], all, whyHidden[s]))
			}
		}
		why[i] = strings.Join(reasons, ", ")
	}
	return why
}

// whyHidden are reasons for people.
var whyHidden = map[state]string{
	refused: "the model does not take them", oversized: "they exceed the limit of a request", outdated: "newer ones need the room in the request",
}

// state is what becomes of an image or document in a request.
type state int

const (
	taken     state = iota
	refused         // the target does not take its type
	oversized       // it exceeds the limit of a request alone
	outdated        // newer ones need its room
)

// window returns the state of each image and document, in order.
func window(messages []*harnessv1.Message, takes Takes) []state {
	limit := RequestRoom
	if takes.MaxItems > 0 {
		limit.Items = uint64(takes.MaxItems)
	}
	var used Room
	var states []state
	var needs []Room // by state
	oldest := 0
	for _, m := range messages {
		if !carries(m) {
			continue
		}
		for _, p := range m.GetParts() {
			media := p.GetMedia()
			if media == nil {
				continue
			}
			n, at := roomOf(media), len(states)
			switch {
			case IsDocument(media) && !takes.Documents, !IsDocument(media) && !takes.Images:
				states, needs = append(states, refused), append(needs, Room{})
				continue
			case n.Exceeds(limit):
				states, needs = append(states, oversized), append(needs, Room{})
				continue
			}
			states, needs = append(states, taken), append(needs, n)
			used = used.Plus(n)
			if !used.Exceeds(limit) {
				continue
			}
			for ; oldest < at && used.Exceeds(limit.Half()); oldest++ {
				if states[oldest] == taken {
					states[oldest] = outdated
					used = used.Minus(needs[oldest])
				}
			}
		}
	}
	return states
}

// carries reports whether a message may have media.
func carries(m *harnessv1.Message) bool {
	return m.GetRole() == harnessv1.Role_ROLE_USER || m.GetRole() == harnessv1.Role_ROLE_TOOL
}

// replace returns a message with lines instead of the media that are not taken. states
// begins with those of the message; rest are those of the next ones.
func replace(m *harnessv1.Message, states []state, refs bool) (shown *harnessv1.Message, rest []state) {
	var parts []*harnessv1.Part
	lines := make([]string, 0, 1+len(m.GetParts()))
	if text := m.GetContent().GetInline(); strings.TrimSpace(text) != "" {
		lines = append(lines, text)
	}
	texts := len(lines)
	for _, p := range m.GetParts() {
		media := p.GetMedia()
		if media == nil {
			parts = append(parts, p)
			continue
		}
		if states[0] == taken {
			parts = append(parts, p)
		} else {
			lines = append(lines, Line(media, states[0].why(m, media, refs)))
		}
		states = states[1:]
	}
	if len(lines) == texts {
		return m, states
	}
	out := opaque.WithParts(m, parts, m.GetOrigin())
	out.Content = content.Inline(strings.Join(lines, "\n"))
	return out, states
}

// why returns why an image or document is not shown, and how the model can look at it.
func (s state) why(m *harnessv1.Message, media *harnessv1.Media, refs bool) string {
	again := "To see it again, ask the user to attach it again."
	switch {
	case refs && m.GetId() > 0:
		again = fmt.Sprintf("See it again with read_artifact, ref m%d.", m.GetId())
	case m.GetRole() == harnessv1.Role_ROLE_TOOL:
		again = "To see it again, repeat the call of " + m.GetToolName() + "."
	}
	switch s {
	case refused:
		what := "images"
		if IsDocument(media) {
			what = "PDF documents"
		}
		return "not shown, because this model does not take " + what + ". Use a tool that returns its content as text, or ask the user what is in it."
	case oversized:
		return "not shown, because it is larger than a request may be. Look at it in smaller parts."
	default:
		return "no longer shown, to make room for newer ones. " + again
	}
}

// Line returns the line that replaces an image or document in a text, with a reason of
// whole sentences: [image chart.png, 1280×720, 240 KB: not shown, …]
func Line(m *harnessv1.Media, reason string) string { return "[" + Label(m) + ": " + reason + "]" }

// Label returns kind, name, extent and size: image chart.png, 1280×720, 240 KB.
func Label(m *harnessv1.Media) string {
	what := "image"
	if IsDocument(m) {
		what = "document"
	}
	if m.GetName() != "" {
		what += " " + m.GetName()
	}
	return what + ", " + Extent(m) + ", " + Size(Bytes(m))
}

package turnserver

import (
	"fmt"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// shownCache keeps how long results are shown, by digest and limit, so that a
// text is not counted again at each turn. It is bounded by number; an entry is
// at most what is shown.
type shownCache struct {
	mu      sync.Mutex
	entries map[shownKey]string
}

type shownKey struct {
	digest string
	limit  uint32
}

const maxShown = 1024

func (c *shownCache) get(key shownKey) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, ok := c.entries[key]
	return text, ok
}

func (c *shownCache) put(key shownKey, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxShown {
		clear(c.entries) // rare, and cheap to make again
	}
	c.entries[key] = text
}

// shorten shows the head and the tail of a text of more than limit tokens, cut
// at lines, with a line that says what is missing. Bytes bound tokens, so short
// texts are not counted.
func shorten(model, text string, limit uint32) string {
	if uint64(len(text)) <= uint64(limit) {
		return text
	}
	count := tokens.Count(model, text)
	if count <= int(limit) {
		return text
	}
	keep := len(text) / count * int(limit) / 2
	for keep > 0 {
		head, tail := text[:keep], text[len(text)-keep:]
		if i := strings.LastIndexByte(head, '\n'); i > keep/2 {
			head = head[:i+1]
		}
		if i := strings.IndexByte(tail, '\n'); i >= 0 && i < keep/2 {
			tail = tail[i+1:]
		}
		cut := fmt.Sprintf("%s\n[%d bytes left out here; ask for the part that you need, with an offset or a narrower call]\n%s",
			strings.ToValidUTF8(head, ""), len(text)-len(head)-len(tail), strings.ToValidUTF8(tail, ""))
		if tokens.Count(model, cut) <= int(limit) {
			return cut
		}
		keep -= keep/8 + 1
	}
	return fmt.Sprintf("[%d bytes left out here]", len(text))
}

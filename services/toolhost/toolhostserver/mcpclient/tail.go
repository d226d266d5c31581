package mcpclient

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/redraw"
)

// tail keeps the end of a written text, for messages.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 2 << 10

// Write keeps the last 2 KiB.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, data...)
	if len(t.text) > maxTail {
		t.text = append([]byte(nil), t.text[len(t.text)-maxTail:]...)
	}
	return len(data), nil
}

// last returns the line that explains an end best: the last one, or, after a crash of
// Node.js, which writes its version last, the error.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(redraw.Text(string(t.text)), "\uFFFD")), "\n")
	end := lines[len(lines)-1]
	if !strings.HasPrefix(end, "Node.js v") {
		return end
	}
	for _, line := range slices.Backward(lines) {
		if nodeError.MatchString(line) {
			return line
		}
	}
	return end
}

var nodeError = regexp.MustCompile(`^\w*Error\b.*: `)

var _ io.Writer = (*tail)(nil)

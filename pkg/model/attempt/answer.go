package attempt

import (
	"io"
	"net/http"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// Plain reads an answer that is one JSON object; its text is told as one delta.
func Plain(body io.Reader, read func([]byte) (*model.Response, error), delta func(string)) (*model.Response, error) {
	b, err := Whole(body)
	if err != nil {
		return nil, err
	}
	resp, err := read(b)
	if err == nil && resp.Text != "" {
		delta(resp.Text)
	}
	return resp, err
}

// AsEvents makes raw an answer whose body, what is left of it in body, a decoder of
// server-sent events reads.
func AsEvents(raw *http.Response, body io.Reader) {
	// An empty line after the end closes an event that the server left open; a
	// torn one does not parse and still counts as cut.
	raw.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(body, strings.NewReader("\n\n")), raw.Body}
	// The decoder is chosen by content type; the body has shown that it is events.
	raw.Header.Set("Content-Type", "text/event-stream")
}

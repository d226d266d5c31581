package servertest

import (
	"bytes"
	"io"
	"net/http"
)

// RawHandler is the raw server over HTTP. It answers with JSON, the last message of several, or with a
// stream of events.
func RawHandler(how string, stream bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			raw(how, r.Body, &fields{out: w})
			return
		}
		var written bytes.Buffer
		raw(how, r.Body, &written)
		lines := bytes.Split(bytes.TrimSpace(written.Bytes()), []byte("\n"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(lines[len(lines)-1])
	})
}

// fields writes each line as an event.
type fields struct {
	out    io.Writer
	within bool
}

// Write writes lines, or a part of one.
func (f *fields) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if !f.within {
			if _, err := io.WriteString(f.out, "data: "); err != nil {
				return 0, err
			}
		}
		if f.within = !bytes.HasSuffix(line, []byte("\n")); !f.within {
			line = append(bytes.Clone(line), '\n')
		}
		if _, err := f.out.Write(line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

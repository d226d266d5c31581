package gatewayhttp

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Media types of an answer.
const (
	formJSON   = "application/json"
	formEvents = "text/event-stream"
	formLines  = "application/x-ndjson"
)

// formOf returns the form that a client prefers among those of an operation, the first
// if it has no preference.
func formOf(r *http.Request, forms ...string) (string, error) {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return forms[0], nil
	}
	best, quality := "", 0.0
	for _, part := range strings.Split(accept, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		if q <= quality {
			continue
		}
		i := slices.IndexFunc(forms, func(form string) bool {
			kind, _, _ := strings.Cut(form, "/")
			return name == form || name == "*/*" || name == kind+"/*"
		})
		if i >= 0 {
			best, quality = forms[i], q
		}
	}
	if best == "" {
		return "", &mediaError{http.StatusNotAcceptable, "Accept", fmt.Sprintf("%q: there is %s", clip(accept), strings.Join(forms, ", "))}
	}
	return best, nil
}

// patient writes to a client that has a bounded time to read each piece.
type patient struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

func (s *server) patient(w http.ResponseWriter) *patient {
	return &patient{w: w, control: http.NewResponseController(w), patience: s.patience}
}

func (p *patient) Write(b []byte) (int, error) {
	if err := p.extend(); err != nil {
		return 0, err
	}
	return p.w.Write(b)
}

// flush sends the written bytes.
func (p *patient) flush() error {
	if err := p.extend(); err != nil {
		return err
	}
	return unsupported(p.control.Flush())
}

func (p *patient) extend() error {
	return unsupported(p.control.SetWriteDeadline(time.Now().Add(p.patience)))
}

// unsupported ignores the error of a writer without a feature.
func unsupported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// lines is a stream of events to one client.
type lines struct {
	*patient
	form string
	buf  bytes.Buffer
}

func (s *server) lines(w http.ResponseWriter, form string) *lines {
	return &lines{patient: s.patient(w), form: form}
}

// sendHead sends the head of the response.
func (l *lines) sendHead(code int) error {
	h := l.w.Header()
	h.Set("Content-Type", l.form)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events until there are many
	l.w.WriteHeader(code)
	return l.flush()
}

// event writes an event. data is one line; an empty id keeps the client's last id.
func (l *lines) event(id, name string, data []byte) error {
	l.buf.Reset()
	if l.form == formEvents {
		if id != "" {
			fmt.Fprintf(&l.buf, "id: %s\n", id)
		}
		fmt.Fprintf(&l.buf, "event: %s\ndata: ", name)
	}
	l.buf.Write(data)
	l.buf.WriteByte('\n')
	if l.form == formEvents {
		l.buf.WriteByte('\n')
	}
	_, err := l.Write(l.buf.Bytes())
	return err
}

// alive sends a comment, so that the client and proxies keep the stream open.
func (l *lines) alive() error {
	if l.form != formEvents {
		return nil
	}
	if _, err := l.Write([]byte(": keep-alive\n\n")); err != nil {
		return err
	}
	return l.flush()
}

// retry sets how long a client waits before it reconnects.
func (l *lines) retry(milliseconds int) error {
	if l.form != formEvents {
		return nil
	}
	_, err := fmt.Fprintf(l, "retry: %d\n\n", milliseconds)
	return err
}

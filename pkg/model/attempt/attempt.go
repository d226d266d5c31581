// Package attempt is what the adapters of HTTP providers share: one try that is
// broken off when the server is silent, and whose every end that is no answer is
// a *model.Error of one line.
//
// It knows no provider's protocol and no SDK. An adapter makes a Watch for each
// try, and hands whatever ended the try in vain to Failed.
package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/model"
)

const (
	// DefaultIdle stands in for a request without an idle timeout.
	DefaultIdle = 120 * time.Second
	// plainFactor is how many idle timeouts an answer may take that is not
	// streamed: nothing arrives before all of it is written.
	plainFactor = 5
	// MaxBody bounds an answer that is not streamed, in bytes.
	MaxBody = 64 << 20
	// maxErrorBody bounds a refusal, in bytes.
	maxErrorBody = 1 << 20
)

// errSilent is the cancel cause when nothing came for too long.
var errSilent = errors.New("silence")

// Watch breaks off a try when the server is silent: a limit that has passed
// cancels the try's context.
type Watch struct {
	timer *time.Timer
	limit time.Duration
}

// NewWatch starts the clock for a request; cancel ends the try.
func NewWatch(req *model.Request, cancel context.CancelCauseFunc) *Watch {
	limit := req.IdleTimeout
	if limit <= 0 {
		limit = DefaultIdle
	}
	if !req.Streaming {
		limit *= plainFactor
	}
	return &Watch{timer: time.AfterFunc(limit, func() { cancel(errSilent) }), limit: limit}
}

// Pause stops the clock while what arrived is handled.
func (w *Watch) Pause() { w.timer.Stop() }

// Resume starts it anew.
func (w *Watch) Resume() { w.timer.Reset(w.limit) }

// Shorten lowers the limit from the next Resume on; it never raises it.
func (w *Watch) Shorten(limit time.Duration) { w.limit = min(w.limit, limit) }

// Cut is a try that broke off: it may be made again.
func Cut(what string, cause error) *model.Error {
	return &model.Error{Retryable: true, RetryAfter: -1, Message: what, Err: cause}
}

// StatusError is an answer with a status of 400 or more.
type StatusError struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Error names the status.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d", e.Code) }

// StatusOr is the refusal that res holds, or err where there was none. SDKs lose
// the status of a refusal whose body is not JSON; the response has it.
func StatusOr(res *http.Response, err error) error {
	if res == nil || res.StatusCode < 400 {
		return err
	}
	body, readErr := io.ReadAll(res.Body)
	if readErr != nil {
		body = nil // the status says enough
	}
	return &StatusError{Code: res.StatusCode, Header: res.Header, Body: body}
}

// BoundErrorBody is a middleware of an SDK that keeps a refusal from filling the
// memory.
func BoundErrorBody(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if err == nil && res.StatusCode >= 400 {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxErrorBody), res.Body}
	}
	return res, err
}

// FirstByte looks at the first byte that is not white space.
func FirstByte(r io.ByteScanner) (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n\uFEFF", rune(b)) {
			return b, r.UnreadByte()
		}
	}
}

// Whole reads an answer that comes as one body.
func Whole(body io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(body, MaxBody+1))
	if err != nil {
		return nil, Cut("the answer broke off", err)
	}
	if len(b) > MaxBody {
		return nil, &model.Error{RetryAfter: -1, Message: fmt.Sprintf("the model's answer is longer than %d bytes", MaxBody)}
	}
	return b, nil
}

// Server is who was asked.
type Server struct {
	// Host is named in messages.
	Host string
	// Key is cut out of them; may be empty.
	Key string
	// Classify decides what a refusal means.
	Classify func(*StatusError) *model.Error
}

// Failed turns whatever ended a try into a *model.Error without the key. parent
// is the caller's context, try the one that the watch may have cancelled.
func (s *Server) Failed(parent, try context.Context, w *Watch, err error) *model.Error {
	if parent.Err() != nil {
		return &model.Error{RetryAfter: -1, Message: "the model call was broken off: " + parent.Err().Error(), Err: parent.Err()}
	}
	if errors.Is(context.Cause(try), errSilent) {
		return Cut(fmt.Sprintf("%s sent nothing for %s", s.Host, w.limit), errSilent)
	}
	var failed *model.Error
	var status *StatusError
	var unreachable *url.Error
	switch {
	case errors.As(err, &failed):
	case errors.As(err, &status):
		failed = s.Classify(status)
	case errors.As(err, &unreachable):
		failed = Cut(fmt.Sprintf("cannot reach %s: %v", s.Host, unreachable.Err), unreachable.Err)
	default:
		failed = Cut(fmt.Sprintf("the answer of %s cannot be read: %v", s.Host, err), nil)
	}
	failed.Message = Clean(failed.Message, s.Key)
	return failed
}

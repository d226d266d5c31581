package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxErrorBody bounds the body of a refusal, in bytes; the rest is dropped.
const maxErrorBody = 1 << 20

// StatusError is a response with a status of 400 or more.
type StatusError struct {
	// Status is the HTTP status.
	Status int
	// Header of the response.
	Header http.Header
	// Body is what could be read of it.
	Body []byte
}

// Error names the status.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d", e.Status) }

// refusal reads a response of status 400 or more. A body that breaks off is
// dropped: the status says enough.
func refusal(res *http.Response) *StatusError {
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	if err != nil {
		body = nil
	}
	return &StatusError{Status: res.StatusCode, Header: res.Header, Body: body}
}

// Absent reports whether a member is missing or null.
func Absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// Text returns the text of a member that should be a string. Of another value
// it returns the JSON, of an absent one nothing.
func Text(raw json.RawMessage) string {
	if Absent(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// day is the longest wait that a service can ask for.
const day = 24 * time.Hour

// RetryAfter reads retry-after-ms (milliseconds, not in any standard) and
// Retry-After (RFC 9110: seconds or an HTTP date; fractions are accepted too).
// The result is at most a day, and negative when the service gave none. now is
// the time that a date is compared with.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return duration(ms, time.Millisecond)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return duration(s, time.Second)
	}
	if date, err := http.ParseTime(v); err == nil {
		return min(max(date.Sub(now), 0), day)
	}
	return -1
}

// duration returns n units, at most a day; -1 for a number below 0 or NaN.
func duration(n float64, unit time.Duration) time.Duration {
	if !(n >= 0) {
		return -1
	}
	if n > float64(day/unit) {
		return day
	}
	return time.Duration(n * float64(unit))
}

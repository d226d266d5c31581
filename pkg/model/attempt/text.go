package attempt

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxMessage is the length of a message in bytes, before the sign that it was cut.
const MaxMessage = 400

// Clean makes a message one short line without the key. Services quote a part
// of a wrong key; that part is not the key.
func Clean(message, key string) string {
	if key != "" {
		message = strings.ReplaceAll(message, key, "[key]")
	}
	message = strings.Join(strings.Fields(strings.ToValidUTF8(message, "")), " ")
	if len(message) > MaxMessage {
		message = strings.ToValidUTF8(message[:MaxMessage], "") + "…"
	}
	return message
}

// RetryAfter reads retry-after-ms (milliseconds, not of the standard) and
// Retry-After (RFC 9110: seconds or an HTTP date; fractions are taken too).
// Negative means that the provider did not say. now serves to read a date.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return duration(ms, time.Millisecond)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return duration(s, time.Second)
	}
	if date, err := http.ParseTime(v); err == nil {
		return max(date.Sub(now), 0)
	}
	return -1
}

// duration is n units, at most a day; a number that makes no sense says nothing.
func duration(n float64, unit time.Duration) time.Duration {
	if !(n >= 0) {
		return -1
	}
	const day = 24 * time.Hour
	if n > float64(day/unit) {
		return day
	}
	return time.Duration(n * float64(unit))
}

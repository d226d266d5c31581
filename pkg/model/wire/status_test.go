package wire

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		header [2]string
		want   time.Duration
	}{
		{[2]string{"X", "1"}, -1},
		{[2]string{"Retry-After", "7"}, 7 * time.Second},
		{[2]string{"Retry-After", " 0.5 "}, 500 * time.Millisecond},
		{[2]string{"Retry-After", "-1"}, -1},
		{[2]string{"Retry-After", "NaN"}, -1},
		{[2]string{"Retry-After", "1e300"}, 24 * time.Hour},
		{[2]string{"Retry-After", "soon"}, -1},
		{[2]string{"Retry-After", "Sat, 21 Nov 2026 12:00:30 GMT"}, 30 * time.Second},
		{[2]string{"Retry-After", "Sat, 21 Nov 2026 11:00:00 GMT"}, 0},
		{[2]string{"Retry-After", "Sat, 21 Nov 2099 11:00:00 GMT"}, 24 * time.Hour},
		{[2]string{"Retry-After-Ms", "250"}, 250 * time.Millisecond},
	} {
		h := http.Header{}
		h.Set(c.header[0], c.header[1])
		if got := RetryAfter(h, now); got != c.want {
			t.Errorf("%s: got %s, want %s", c.header, got, c.want)
		}
	}
}

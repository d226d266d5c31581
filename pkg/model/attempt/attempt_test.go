package attempt_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/model/attempt"
)

func TestClean(t *testing.T) {
	for _, c := range [][3]string{
		{"a\n b\t c", "", "a b c"},
		{"with s3cret in it", "s3cret", "with [key] in it"},
		{"broken \xff text", "", "broken text"},
	} {
		if got := attempt.Clean(c[0], c[1]); got != c[2] {
			t.Errorf("%q became %q, want %q", c[0], got, c[2])
		}
	}
	if got := attempt.Clean(strings.Repeat("ä", 1000), ""); len(got) > attempt.MaxMessage+len("…") {
		t.Errorf("a long message has %d bytes", len(got))
	}
}

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
		{[2]string{"Retry-After-Ms", "250"}, 250 * time.Millisecond},
	} {
		h := http.Header{}
		h.Set(c.header[0], c.header[1])
		if got := attempt.RetryAfter(h, now); got != c.want {
			t.Errorf("%s: %s, want %s", c.header, got, c.want)
		}
	}
}

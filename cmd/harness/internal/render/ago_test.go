package render

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for past, want := range map[time.Duration]string{
		-time.Hour: "just now", 59 * time.Second: "just now", time.Minute: "1 min ago", 119 * time.Minute: "119 min ago",
		2 * time.Hour: "2 h ago", 47 * time.Hour: "47 h ago", 48 * time.Hour: "2 d ago", 29 * 24 * time.Hour: "29 d ago",
		40 * 24 * time.Hour: now.Add(-40 * 24 * time.Hour).Local().Format("2006-01-02"),
	} {
		if got := Ago(now.Add(-past), now); got != want {
			t.Errorf("%s: %q, want %q", past, got, want)
		}
	}
}

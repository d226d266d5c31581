package render

import (
	"fmt"
	"time"
)

// Ago returns how long ago a time was, with the precision that people need, and a date
// for what is older than a month.
func Ago(at, now time.Time) string {
	switch past := now.Sub(at); {
	case past < time.Minute:
		return "just now" // also for a clock that is ahead
	case past < 2*time.Hour:
		return fmt.Sprintf("%d min ago", past/time.Minute)
	case past < 48*time.Hour:
		return fmt.Sprintf("%d h ago", past/time.Hour)
	case past < 30*24*time.Hour:
		return fmt.Sprintf("%d d ago", past/(24*time.Hour))
	}
	return at.Local().Format(time.DateOnly)
}

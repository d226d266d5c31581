package render

import (
	"fmt"
	"time"
)

// Ago returns the age of a time, with the precision that people need, or the date if the
// time is 30 days old.
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

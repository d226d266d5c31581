package console

import (
	"fmt"
	"regexp"
	"sync"
	"time"
)

// Duration is a duration above zero.
type Duration struct {
	D time.Duration
}

// UnmarshalText parses the format of time.ParseDuration.
func (f *Duration) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q: expected a duration above zero, such as 90s or 1h30m", text)
	}
	f.D = d
	return nil
}

// RunName checks the form of a run's id.
func RunName(flag, id string) error {
	if !NameForm().MatchString(id) {
		return fmt.Errorf("%s: %q: expected letters, digits, - and _, at most 64", flag, id)
	}
	return nil
}

var NameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

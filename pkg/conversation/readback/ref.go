package readback

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// Request is what a call asks for.
type Request struct {
	// Ref names the messages: m12 or m12-m20.
	Ref string
	// Offset is where to begin, in bytes of their text.
	Offset int
	// Limit is the number of bytes to show at most; 0: as many as a result may have.
	Limit int
	// Pattern in RE2 syntax selects lines; empty: all of the text.
	Pattern string
}

var refs = regexp.MustCompile(`^m([0-9]{1,18})(?:-m([0-9]{1,18}))?$`)

// quoted bounds how much of an argument an error quotes, in bytes.
const quoted = 64

// parseRef returns the messages that a reference names. count is how many there are. An
// error is a text for the model.
func parseRef(ref string, count int) (first, last int, err error) {
	parts := refs.FindStringSubmatch(strings.TrimSpace(ref))
	if parts == nil {
		return 0, 0, fmt.Errorf("ref %q: expected one message such as m12, or several such as m12-m20", content.Clip(ref, quoted))
	}
	first, _ = strconv.Atoi(parts[1]) // at most 18 digits
	last = first
	if parts[2] != "" {
		last, _ = strconv.Atoi(parts[2])
	}
	switch {
	case first > last:
		return 0, 0, fmt.Errorf("ref %s: the first message must not follow the last; use m%d-m%d", ref, last, first)
	case count == 0:
		return 0, 0, fmt.Errorf("ref %s: this run has no messages yet", ref)
	case first == 0 || last > count:
		return 0, 0, fmt.Errorf("ref %s: not found; this run has messages m1 to m%d", ref, count)
	}
	return first, last, nil
}

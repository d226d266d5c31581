package gatewayhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// place is how much of a run a client has seen. Its text is the id of an event,
// VERSION-INDEX; or VERSION, if all of that version was seen; or either with .r and a
// hash, if the result after it was seen too. In a tree the rest of gateway.Offset follows.
type place struct {
	version uint64
	// whole: all events of the version were seen; otherwise index is the last.
	whole bool
	index uint64
	// result is the hash of the last seen result, if no event of the watched run was seen
	// since; otherwise empty.
	result string
	// below is the part of a tree's offset that follows the root's position, with its first
	// separator; empty outside of trees.
	below string
}

var placeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d{1,20})(?:-(\d{1,10}))?(?:\.r([0-9a-f]{16}))?$`) })

// placeOf parses a place; field is where the text comes from.
func placeOf(text, field string) (place, error) {
	root, below, tree := strings.Cut(text, "~")
	m := placeForm().FindStringSubmatch(root)
	if m == nil {
		return place{}, fault.Invalid(field, "%q: expected the id of an event, such as 14-0, or a version", clip(text))
	}
	version, err := strconv.ParseUint(m[1], 10, 64)
	if err != nil {
		return place{}, fault.Invalid(field, "%q: the version is too large", clip(text))
	}
	p := place{version: version, whole: m[2] == "", result: m[3]}
	if !p.whole {
		p.index, _ = strconv.ParseUint(m[2], 10, 64) // ten digits fit
	}
	if tree {
		p.below = "~" + below
	}
	return p, nil
}

// offset returns the offset to watch from in a tree; empty outside of trees.
func (p place) offset() string {
	if p.below == "" {
		return ""
	}
	p.result = ""
	return p.String()
}

// after returns the version after which the gateway is to send.
func (p place) after() uint64 {
	if p.whole || p.version == 0 {
		return p.version
	}
	return p.version - 1 // the rest of it may be missing
}

// see records an event. It returns false if the event was seen before. An event of a run below
// keeps the last result, because the gateway may send the record of that result again after it.
func (p *place) see(event *harnessv1.Event) (bool, error) {
	if event.GetOffset() != "" && (p.below != "" || event.GetRunId() != "") {
		e, err := placeOf(event.GetOffset(), "id")
		if event.GetRunId() != "" {
			e.result = p.result
		}
		*p = e
		return true, err
	}
	e, err := placeOf(event.GetId(), "id")
	if err != nil {
		return false, err
	}
	if e.version < p.version || e.version == p.version && (p.whole || e.index <= p.index) {
		return false, nil
	}
	*p = place{version: e.version, index: e.index}
	if event.GetOffset() != "" {
		*p, err = placeOf(event.GetOffset(), "id")
	}
	return true, err
}

// rest records a result. It returns false if it was seen before, with nothing since.
func (p *place) rest(line []byte) bool {
	hash := resultHash(line)
	if p.result == hash {
		return false
	}
	p.result = hash
	return true
}

func resultHash(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:8])
}

func (p place) String() string {
	text := strconv.FormatUint(p.version, 10)
	if !p.whole {
		text += "-" + strconv.FormatUint(p.index, 10)
	}
	if p.result != "" {
		text = fmt.Sprintf("%s.r%s", text, p.result)
	}
	return text + p.below
}

package gateway

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// Position is how much of a run's log was delivered: all of Version, or, if Part is set,
// its events up to Index. The zero Position is the start.
type Position struct {
	Version uint64
	Part    bool
	Index   int
}

// After returns the version after which the log is to be read: the rest of a version that
// was delivered in part is missing.
func (p Position) After() uint64 {
	if p.Part && p.Version > 0 {
		return p.Version - 1
	}
	return p.Version
}

// Has reports whether an event was delivered.
func (p Position) Has(version uint64, index int) bool {
	return version < p.Version || version == p.Version && (!p.Part || index <= p.Index)
}

// covers reports whether all of a version was delivered.
func (p Position) covers(version uint64) bool {
	return version < p.Version || version == p.Version && !p.Part
}

// String returns VERSION or VERSION-INDEX.
func (p Position) String() string {
	text := strconv.FormatUint(p.Version, 10)
	if p.Part {
		text += "-" + strconv.Itoa(p.Index)
	}
	return text
}

// Offset is a place in the stream of a tree. Its text is the position in the root; after it,
// if the root has called sub-agents, ~ and for each child that is open there
// PARENT.SEQUENCE-INDEX.POSITION, separated by ~: the number of its parent among the open
// runs, of which the root is 0, the place of the agent.started that opened it, and the
// position in its log.
type Offset struct {
	Root Position
	// Tree reports that Open is complete. Otherwise the children that are open at Root are
	// not known.
	Tree bool
	Open []OpenChild
}

// OpenChild is a child that is open at an Offset.
type OpenChild struct {
	// Parent is the number of its parent: 0 is the root, n the child at n-1.
	Parent int
	// Sequence is the stream sequence of its parent's record, and Index the event in it,
	// that opened it.
	Sequence uint64
	Index    int
	At       Position
}

const (
	// maxOpen bounds the children in an offset.
	maxOpen = 1024
	// offsetSeparator separates the parts of an offset.
	offsetSeparator = "~"
)

var offsetForms = sync.OnceValues(func() (root, child *regexp.Regexp) {
	return regexp.MustCompile(`^(\d{1,20})(?:-(\d{1,9}))?$`), regexp.MustCompile(`^(\d{1,4})\.(\d{1,20})-(\d{1,9})\.(\d{1,20})(?:-(\d{1,9}))?$`)
})

// ParseOffset parses an offset; field is where the text comes from. The empty text is the
// start.
func ParseOffset(field, text string) (Offset, error) {
	if text == "" {
		return Offset{}, nil
	}
	parts := strings.Split(text, offsetSeparator)
	rootForm, childForm := offsetForms()
	m := rootForm.FindStringSubmatch(parts[0])
	if m == nil {
		return Offset{}, badOffset(field, text)
	}
	o := Offset{Tree: len(parts) > 1}
	ok := true
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 10, 64)
		ok = ok && err == nil
		return n
	}
	position := func(version, index string) Position {
		p := Position{Version: number(version)}
		if index != "" {
			p.Part, p.Index = true, int(number(index)) //nolint:gosec // nine digits
		}
		return p
	}
	o.Root = position(m[1], m[2])
	if len(parts) == 2 && parts[1] == "" {
		parts = parts[:1] // no child is open
	}
	if len(parts) > maxOpen+1 {
		return Offset{}, badOffset(field, text)
	}
	for i, part := range parts[1:] {
		m := childForm.FindStringSubmatch(part)
		if m == nil {
			return Offset{}, badOffset(field, text)
		}
		c := OpenChild{Parent: int(number(m[1])), Sequence: number(m[2]), Index: int(number(m[3])), At: position(m[4], m[5])} //nolint:gosec // few digits
		if ok = ok && c.Parent <= i; !ok {
			break
		}
		o.Open = append(o.Open, c)
	}
	if !ok {
		return Offset{}, badOffset(field, text)
	}
	return o, nil
}

// OffsetOf returns the offset of a request: that of version, or text, but not both.
func OffsetOf(version uint64, text string) (Offset, error) {
	if text == "" {
		return Offset{Root: Position{Version: version}}, nil
	}
	if version > 0 {
		return Offset{}, fault.Invalid("after", "excludes after_version: set one of them")
	}
	return ParseOffset("after", text)
}

func badOffset(field, text string) error {
	const most = 64
	if len(text) > most {
		text = text[:most] + "..."
	}
	return fault.Invalid(field, "%q: expected the offset of an event, the id of an event, such as 14-0, or a version", text)
}

// String returns the text of an offset.
func (o Offset) String() string {
	if !o.Tree {
		return o.Root.String()
	}
	var text strings.Builder
	text.WriteString(o.Root.String())
	if len(o.Open) == 0 {
		text.WriteString(offsetSeparator)
	}
	for _, c := range o.Open {
		fmt.Fprintf(&text, "%s%d.%d-%d.%s", offsetSeparator, c.Parent, c.Sequence, c.Index, c.At)
	}
	return text.String()
}

package quality

import (
	"slices"
	"strings"
	"unicode/utf8"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	// MonitorChars is the last checkpoint: the monitor reads no code points after it.
	MonitorChars = 5000
	// MonitorBytes is the most that these code points need.
	MonitorBytes = MonitorChars * utf8.UTFMax
)

// Severities of alerts.
const (
	Critical = "critical"
	Warning  = "warning"
)

// checkpoints are the lengths at which the monitor reads a text, in code points.
var checkpoints = []uint32{500, 2000, MonitorChars}

// apostrophe replaces the typographic apostrophe.
var apostrophe = strings.NewReplacer("’", "'")

// Monitor reads the text of an attempt at the checkpoints that it reaches: 500, 2,000 and
// 5,000 code points, of which each is read up to itself and once. How the text is divided
// makes no difference. It keeps the first 5,000 code points, and takes time in proportion to
// the text.
type Monitor struct {
	kind string
	next []uint32 // the checkpoints that it has not read, in order
	head []byte
	size uint32 // whole code points in head
	cut  int    // bytes at the end of head of a code point that is not whole
}

// NewMonitor returns a Monitor for work of a kind. Passed are the checkpoints that were read
// before.
func NewMonitor(kind string, passed []uint32) *Monitor {
	return &Monitor{kind: kind, next: slices.DeleteFunc(slices.Clone(checkpoints), func(n uint32) bool { return slices.Contains(passed, n) })}
}

// Add takes the next piece of the text and returns an alert for each problem at the checkpoints in it.
func (m *Monitor) Add(piece string) (alerts []*harnessv1.QualityAlert) {
	for piece != "" && len(m.next) > 0 {
		if n := plain(piece, int(m.next[0]-m.size)); m.cut == 0 && n > 0 {
			m.head, piece = append(m.head, piece[:n]...), piece[n:]
			m.size += uint32(n) //nolint:gosec // at most the next checkpoint
		} else {
			m.head, piece = append(m.head, piece[0]), piece[1:]
			if m.cut++; !utf8.FullRune(m.head[len(m.head)-m.cut:]) {
				continue
			}
			_, bytes := utf8.DecodeRune(m.head[len(m.head)-m.cut:])
			m.cut -= bytes
			m.size++
		}
		if m.size == m.next[0] {
			text := string(m.head[:len(m.head)-m.cut])
			alerts = append(alerts, alertsAt(m.size, text, m.kind)...)
			m.next = m.next[1:]
		}
	}
	if len(m.next) == 0 {
		m.head = nil
	}
	return alerts
}

// plain returns how many of the first limit bytes of a text come before one that is no ASCII.
func plain(text string, limit int) int {
	text = text[:min(len(text), limit)]
	for n := range len(text) {
		if text[n] >= utf8.RuneSelf {
			return n
		}
	}
	return len(text)
}

// alertsAt returns the problems of the text up to a checkpoint.
func alertsAt(n uint32, text, kind string) []*harnessv1.QualityAlert {
	var alerts []*harnessv1.QualityAlert
	alert := func(severity, issue, suggestion string) {
		alerts = append(alerts, &harnessv1.QualityAlert{Severity: severity, Checkpoint: n, Issue: issue, Suggestion: suggestion})
	}
	cited := kind == Synthesis || kind == FullPipeline
	reported := cited || kind == Recommendation
	switch n {
	case 500:
		text = apostrophe.Replace(text)
		if found := refusalIn(text); found != "" {
			alert(Critical, "The answer contains the words of a refusal: “"+strings.ToLower(found)+"”",
				"Do the work with the material and tools that are available, and name what is missing.")
		}
		if reported && filler.MatchString(text) {
			alert(Warning, "The answer opens with filler", "Start with the first finding.")
		}
	case 2000:
		if (reported || kind == Drafting) && !hasForm(text) {
			alert(Warning, "No headings or lists in the first 2,000 characters", "Divide the answer with headings and lists.")
		}
	default:
		if cited && !HasMarker(text) {
			alert(Warning, "No citations in the first 5,000 characters", "Quote the sources, and name the source of each claim.")
		}
	}
	return alerts
}

package quality

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// MonitorChars is the last checkpoint: the monitor reads no code points after it.
const MonitorChars = 5000

// Severities of alerts.
const (
	Critical = "critical"
	Warning  = "warning"
)

// checkpoints are the lengths at which the monitor reads a text, in code points.
var checkpoints = []uint32{500, 2000, MonitorChars}

// What the monitor looks for. The expressions take time in proportion to the text.
var (
	refusal = regexp.MustCompile(`(?i)\b(i can't|i cannot|i am unable to|i'm unable to|i (don't|do not) have (access|the ability)|unfortunately|as an ai( language)? model)\b`)
	filler  = regexp.MustCompile(`(?i)^\s*(sure|of course|certainly|absolutely)[,!.]|^\s*(that's a )?great question`)
	form    = regexp.MustCompile(`(?m)^ {0,3}(#{1,6}\s|[-*]\s|\d{1,3}[.)]\s)`)
	marker  = regexp.MustCompile(`(?i)according to|\[\d{1,3}\]|https?://|(?m:^>\s)|["“][^"”\n]{15,}["”]`)
)

// apostrophe replaces the typographic apostrophe.
var apostrophe = strings.NewReplacer("’", "'")

// Checkpoints reads the text of an attempt at the checkpoints that it has reached: 500, 2,000
// and 5,000 code points, of which each is read up to itself and once. Head is the first 5,000
// code points of the text or less; passed are the checkpoints of the segment before. It
// returns what is wrong and the checkpoints that the text has passed now.
func Checkpoints(head, kind string, passed []uint32) (alerts []*harnessv1.QualityAlert, now []uint32) {
	length := utf8.RuneCountInString(head)
	for _, n := range checkpoints {
		if length < int(n) {
			break
		}
		if slices.Contains(passed, n) {
			continue
		}
		now = append(now, n)
		alerts = append(alerts, alertsAt(n, apostrophe.Replace(first(head, int(n))), kind)...)
	}
	return alerts, now
}

// alertsAt returns what is wrong with the text up to a checkpoint.
func alertsAt(n uint32, text, kind string) []*harnessv1.QualityAlert {
	var alerts []*harnessv1.QualityAlert
	alert := func(severity, issue, suggestion string) {
		alerts = append(alerts, &harnessv1.QualityAlert{Severity: severity, Checkpoint: n, Issue: issue, Suggestion: suggestion})
	}
	cited := kind == Synthesis || kind == FullPipeline
	reported := cited || kind == Recommendation
	switch n {
	case 500:
		if found := refusal.FindString(text); found != "" {
			alert(Critical, "The answer contains the words of a refusal: “"+strings.ToLower(found)+"”",
				"Do the work with the material and tools that are available, and name what is missing.")
		}
		if reported && filler.MatchString(text) {
			alert(Warning, "The answer opens with filler", "Start with the first finding.")
		}
	case 2000:
		if (reported || kind == Drafting) && !form.MatchString(text) {
			alert(Warning, "No headings or lists in the first 2,000 characters", "Divide the answer with headings and lists.")
		}
	default:
		if cited && !marker.MatchString(text) {
			alert(Warning, "No citations in the first 5,000 characters", "Quote the sources, and name the source of each claim.")
		}
	}
	return alerts
}

// Refusal reports whether an alert is that of a refusal.
func Refusal(a *harnessv1.QualityAlert) bool { return a.GetSeverity() == Critical }

// HasMarker reports whether a text has the marker of a citation: a number in brackets, the
// address of a page, a quoted line, at least 15 characters in quotation marks, or "according
// to".
func HasMarker(text string) bool { return marker.MatchString(text) }

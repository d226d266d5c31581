package turn

import (
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// NewMonitor returns what reads the text of a turn after that of its attempt; nil if
// nothing of it is to be read. Written is the text of Written.
func NewMonitor(s runstate.SharedFields, written string) *quality.Monitor {
	q := s.GetQuality()
	if q == nil || q.GetAttemptChars() >= quality.MonitorChars {
		return nil
	}
	m := quality.NewMonitor(q.GetKind(), q.GetCheckpoints())
	m.Add(written)
	return m
}

// Written returns the text of the agent in the attempt before this turn, as far as the
// monitor reads it.
func Written(s runstate.SharedFields, c *conversation.Conversation) []*harnessv1.Content {
	q := s.GetQuality()
	if q == nil || q.GetAttemptChars() >= quality.MonitorChars {
		return nil
	}
	var written []*harnessv1.Content
	for _, m := range c.Messages {
		if m.GetId() >= q.GetAttemptFirstMessage() && m.GetRole() == harnessv1.Role_ROLE_ASSISTANT {
			written = append(written, m.GetContent())
		}
	}
	return written
}

// monitor reads a text of the agent, and stores what it finds with the response.
func (p *Progress) monitor(s *State, d *runstate.Draft, responded *harnessv1.ModelResponded, text string) {
	if s.Snapshot.GetQuality() == nil {
		return
	}
	responded.TextChars, responded.Marked = uint64(utf8.RuneCountInString(text)), quality.HasMarker(text) //nolint:gosec // a length
	if m := NewMonitor(s.Snapshot, p.execution.written); m != nil {
		responded.Alerts = m.Add(text)
	}
	for _, alert := range responded.GetAlerts() {
		d.Emit(event.QualityAlert(alert))
	}
}

// addQuality adds to the state what judging the work needs of the turn.
func (c *completion) addQuality() {
	q := c.s.GetQuality()
	if q == nil {
		return
	}
	q.AttemptChars += c.p.Response.GetTextChars()
	q.Marked = q.GetMarked() || c.p.Response.GetMarked()
	q.Checkpoints = quality.Passed(q.GetAttemptChars(), q.GetCheckpoints())
	for _, alert := range c.p.Response.GetAlerts() {
		q.Refused = q.GetRefused() || alert.GetSeverity() == quality.Critical
	}
}

package explore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway"
	"github.com/harnessmesh/harnessmesh/services/repair"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// prepare brings a new run to where the exploration begins, by the same model and so
// by the same decisions, without faults. Nothing of what it finds there is made by
// hand.
func (m *Model) prepare() error {
	sc := m.Scenario
	m.Senders, m.Faults, m.Mutation, m.Timers, m.Sweeps = sc.Before, Faults{}, "", false, false
	m.floor = 1
	s := &state{wakers: make([]worker, max(1, sc.Wakers)), repairers: make([]worker, max(1, sc.Repairers))}
	for _, c := range m.Senders {
		s.senders = append(s.senders, sender{item: m.item(c.Item), again: c.Again})
	}
	if err := m.take(s, flight{item: noItem, body: m.step(m.first(), nil, nil), version: 1}); err != nil {
		return err
	}
	for range 1000 {
		if sc.From != nil && sc.From(m.entry(s, s.record(s.newest())).Record) {
			return m.startAt(s, sc)
		}
		actions := m.Actions(s, nil)
		if len(actions) == 0 {
			if err := m.CheckTerminal(s); err != nil {
				return err
			}
			if sc.From != nil {
				return errors.New("the run is parked or has ended before the exploration starts")
			}
			return m.startAt(s, sc)
		}
		next := m.choose(s, actions)
		after, err := m.Apply(s, next)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Explain(s, next, after), err)
		}
		s = after
	}
	return errors.New("the run comes to no rest")
}

// choose returns the next action before the exploration starts: a sender is first as
// soon as its item is admitted, so that it writes while the run works.
func (m *Model) choose(s *state, actions []action) action {
	next := actions[len(actions)-1]
	for _, a := range slices.Backward(actions) {
		switch {
		case a.do > sendStart && a.do <= sendCompare:
			return a
		case a.do != sendStart:
			next = a
		case m.admission(s, s.senders[a.who].item, s.newest()).answer == stored:
			return a
		}
	}
	return next
}

// begin makes s the state that the exploration begins in.
func (m *Model) startAt(s *state, sc Scenario) error {
	m.Scenario = sc
	s.senders, s.left = nil, sc.Faults
	for _, c := range sc.Senders {
		s.senders = append(s.senders, sender{item: m.item(c.Item), again: c.Again})
	}
	for m.fixed < s.newest() && (s.at(m.fixed+1).status == acked || s.at(m.fixed+1).status == untracked) {
		m.fixed++
	}
	newest := s.record(s.newest())
	m.floor = newest
	for range max(1, sc.Lag) {
		m.floor = max(1, s.record(m.floor-1))
	}
	if m.setsTimer(s.at(newest).body, s.at(newest).version) {
		m.setTimer(s, s.at(newest).body)
	}
	m.base = s
	return nil
}

// first is the step that a run begins with.
func (m *Model) first() *harnessv1.Step {
	tools := m.Tools
	if tools == nil {
		tools = &harnessv1.ToolConfig{ApprovalTimeout: durationpb.New(time.Hour), AnswerTimeout: durationpb.New(time.Hour)}
	}
	return &harnessv1.Step{
		From: gateway.Writer, To: repair.Name,
		Snapshot: &harnessv1.Snapshot{Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_IDLE},
		Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
			Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_START,
			Spec: &harnessv1.RunSpec{
				Goal:     content.Inline("the goal"),
				Agent:    &harnessv1.AgentSpec{Model: "script:x"},
				Workflow: []string{repair.Name, turn.Name, stopdecision.Name},
				Config: &harnessv1.LoopConfig{
					Budgets: m.Budgets, Tools: tools,
					Model: &harnessv1.ModelConfig{OutageRetry: durationpb.New(time.Hour)},
				},
			},
		}},
	}
}

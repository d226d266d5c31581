package explore

import (
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Scenario is a run, its senders, and the faults that may happen.
type Scenario struct {
	Name string
	// Turns are what the model does in a turn, by the turn's number. In all other turns
	// it calls work_complete.
	Turns map[uint32]Turn
	// Budgets of the run; nil for none.
	Budgets *harnessv1.Budgets
	// Tools sets how long calls wait for an answer, in whole hours; nil for an hour.
	Tools *harnessv1.ToolConfig
	// Before are inputs that are sent before the exploration starts, without faults.
	Before []Sender
	// From is true of the newest record at which the exploration starts; nil starts it
	// when the run is parked or has ended.
	From func(*harnessv1.Record) bool
	// Senders write to the run at any moment from then on.
	Senders []Sender
	// Timers lets the timers of parks fire at any moment. Without it they never fire.
	Timers bool
	// Sweeps lets the sweeper sweep at any moment.
	Sweeps bool
	// Wakers and Repairers are the numbers of workers; 0 counts as 1.
	Wakers, Repairers int
	// Batch bounds the items that one decision of repair takes in; 0 is no bound.
	Batch int
	// Replicated makes the stream refuse an append while another one after the same
	// message is pending. Without it the stream stores the first that arrives.
	Replicated bool
	// Faults that may happen.
	Faults Faults
	// Fine makes every interaction with the bus a separate action. Without it those of
	// which no other actor can observe the difference are one, see the package comment.
	Fine bool
	// Mutation breaks the protocol in one place; empty for the unchanged protocol.
	Mutation Mutation
	// TwiceStored drops the rule that an item is in the inbox once, to find what else
	// would break. The rule that it has one effect always holds.
	TwiceStored bool
	// Tries bounds the attempts of a sender that gets no answer; 0 is two.
	Tries uint8
	// Lag is the number of records that a replica may lack for a read that names no
	// message; 0 is one.
	Lag int
}

// Sender sends one input, and sends it again under the same id if it gets no answer.
type Sender struct {
	Item *harnessv1.InboxItem
	// Again is how often it sends the item although it has an answer.
	Again uint8
}

// Model is the wake protocol in a scenario, for Search.
type Model struct {
	Scenario
	bodies
	base       *state // where the exploration begins
	made       map[string]decision
	wakes      map[wakeKey]decision
	admissions map[string]admission
	fixed      seq // what lies in the stream up to here is the same in all states
	floor      seq // how far behind a replica may be that need not have any message
}

// verb is what an actor does in one action.
type verb uint8

const (
	deliverWake verb = iota
	wakeTake         // delivered, and reads
	wakeView
	wakeAppend
	wakeAck
	wakeCrash
	wakeLapse
	deliverStep
	stepTake // delivered, and reads
	stepCheck
	stepObserve
	stepCommit
	stepAck
	stepCrash
	stepLapse
	sendStart
	sendConfirm
	sendSeek
	sendPublish
	sendCompare
	sendCrash
	fireTimer
	land
	vanish
	loopTurn
	loopStop
	sweepView
	sweepAppend
	sweepTimer
)

// cost is the fault that an action is.
type cost uint8

const (
	free cost = iota
	crash
	lost
	stale
	lapse
)

// Results of an append or an acknowledgement.
const (
	answered    seq = iota // it arrives, and so does its answer
	unknown                // no answer: stored now, later or never. The sender gives up
	retried                // no answer, and the sender reads again
	abandoned              // given up while another append is under way
	thenDies               // it arrives, and the sender dies
	timerOnly              // the timer of a park is set, and the worker dies before it commits the park
	thenUnacked            // it arrives, and the acknowledgement that follows is lost
	broken                 // of a turn: it is stopped by an item in the inbox
)

// action is one interaction of an actor with the bus.
type action struct {
	do      verb
	who     uint8
	message seq // that is delivered
	arg     seq // how far a replica is, or how an append goes
	cost    cost
}

// New makes the model of a scenario.
func New(sc Scenario) (*Model, error) {
	m := &Model{Scenario: sc, made: map[string]decision{}, wakes: map[wakeKey]decision{}, admissions: map[string]admission{}}
	if err := m.prepare(); err != nil {
		return nil, fmt.Errorf("%s: before the exploration: %w", sc.Name, err)
	}
	return m, nil
}

// Start is the state that the exploration begins in.
func (m *Model) Start() *state { return m.base }

// Fault reports whether an action is a fault.
func (m *Model) Fault(a action) bool { return a.cost != free }

// Encode appends the canonical form of a state.
func (m *Model) Encode(s *state, into []byte) []byte { return s.encode(m.fixed, into) }

// Actions appends what may happen next in s.
func (m *Model) Actions(s *state, into []action) []action {
	into = m.deliveries(s, into)
	for i := range s.wakers {
		into = m.wakerActions(s, uint8(i), into)
	}
	for i := range s.repairers {
		into = m.repairerActions(s, uint8(i), into)
	}
	for i := range s.senders {
		into = m.senderActions(s, uint8(i), into)
	}
	for i, f := range s.flights {
		if m.fits(s, f) {
			into = append(into, action{do: land, who: uint8(i)})
		}
		into = append(into, action{do: vanish, who: uint8(i)})
	}
	return m.sweeperActions(s, m.loopActions(s, into))
}

// Apply carries an action out.
func (m *Model) Apply(before *state, a action) (*state, error) {
	s := before.clone()
	switch a.cost {
	case crash:
		s.left.Crashes--
	case lost:
		s.left.Lost--
	case stale:
		s.left.Stale--
	case lapse:
		s.left.Lapses--
	}
	err := m.carryOut(s, a)
	s.canonical()
	return s, err
}

func (m *Model) carryOut(s *state, a action) error {
	switch a.do {
	case deliverWake, deliverStep:
		return m.deliver(s, a)
	case wakeTake, wakeView, wakeAppend, wakeAck, wakeCrash, wakeLapse:
		return m.wake(s, &s.wakers[a.who], a)
	case stepTake, stepCheck, stepObserve, stepCommit, stepAck, stepCrash, stepLapse:
		return m.repair(s, &s.repairers[a.who], a)
	case sendStart, sendConfirm, sendSeek, sendPublish, sendCompare, sendCrash, fireTimer:
		return m.send(s, &s.senders[a.who], a)
	case land:
		f := s.flights[a.who]
		s.flights = append(s.flights[:a.who:a.who], s.flights[a.who+1:]...)
		return m.take(s, f)
	case vanish:
		s.flights = append(s.flights[:a.who:a.who], s.flights[a.who+1:]...)
		return nil
	case loopTurn, loopStop:
		return m.loop(s, a)
	case sweepView, sweepAppend, sweepTimer:
		return m.sweep(s, a)
	}
	return fmt.Errorf("the model has no action %d", a.do)
}

// whole reports whether what follows from an action is part of it. A delivery that may be
// repeated while it is handled makes the difference between a message that will be
// acknowledged and one that is.
func (m *Model) whole(s *state) bool { return !m.Fine && s.left.Lapses == 0 }

// reads appends an action for every answer that a replica may give to a read that
// must contain the message with sequence from.
func (s *state) reads(a action, from seq, into []action) []action {
	a.arg = s.newest()
	into = append(into, a)
	if s.left.Stale == 0 {
		return into
	}
	a.cost = stale
	for a.arg--; a.arg >= from && a.arg > 0; a.arg-- {
		into = append(into, a)
	}
	return into
}

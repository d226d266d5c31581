// Package follow follows a run until it is parked or has ended: it prints events,
// prompts a user at a terminal for approvals and answers, and turns the first signal
// into an interrupt of the run.
//
// One goroutine with one select owns all state; a second one reads the stream. Output is
// strictly in the order of versions and events, whatever the connection does: a broken
// stream is reopened after the last event that was seen.
//
// The gateway reports that a run is parked or has ended. While an input that was sent
// has not been accepted, such a result is older than the input and is ignored.
package follow

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Printer prints a run.
type Printer interface {
	// Event prints a committed event.
	Event(*harnessv1.Event)
	// Delta prints a piece of the model's text.
	Delta(*harnessv1.Delta)
	// Note prints a remark of the program.
	Remark(text string)
	// Asking reports that a prompt is open on the terminal, or no longer. Repeating it
	// has no effect.
	Asking(bool)
	// Err returns the first write error.
	Err() error
}

// Config selects a run and how to follow it.
type Config struct {
	Client harnessv1.GatewayServiceClient
	// Namespace and Run name the run.
	Namespace, Run string
	// After is the version after which events are printed.
	After uint64
	// Sent are the ids of inputs that were sent before.
	Sent []string
	// NoDeltas omits the model's text until it is committed.
	NoDeltas bool
	// Printer prints the run.
	Printer Printer
	// Tree prints the runs below too: what happened in them from Since on.
	Tree  bool
	Since time.Time
	// Prompt prompts a user for approvals and answers; nil without a terminal.
	Prompt *Prompt
	// Keys are those that a user types while no prompt is open; nil without them.
	Keys Keys
	// Signals interrupt the run; nil disables that.
	Signals <-chan os.Signal
	// Answered reports that the gateway has answered a call before.
	Answered bool
	// Lost is closed when the gateway is permanently gone; may be nil.
	Lost <-chan struct{}
	// Rejoin connects again to a gateway that has gone away, and starts it if it is a
	// background process that died; nil: the connection does so. resume asks that the run
	// continues. sent is the input for that, empty without one. ErrStopped ends Follow.
	Rejoin func(ctx context.Context, resume bool) (client harnessv1.GatewayServiceClient, sent string, err error)
	// Leave reports that a signal other than an interrupt only ends Follow.
	Leave bool
	// Stored ends Follow with ErrStored when all that is stored has been printed and the run
	// has not ended.
	Stored bool
	// Unread ends Follow when the reader of the output has gone away.
	Unread bool
	// Enough reports whether a result is the aim of the sent inputs, accepted or not;
	// may be nil.
	Enough func(*harnessv1.HarnessResult) bool
	// Grace is how long a result may be held back because a sent input is not yet
	// accepted. Default 15 s.
	Grace time.Duration
	// Patience is how long the gateway may be unavailable. Default 60 s.
	Patience time.Duration
}

// Keys drops keys while no prompt is open.
type Keys interface {
	// Asking reports that a prompt is open, or no longer. Repeating it has no effect.
	Asking(bool)
	// Typed has a value when keys were dropped.
	Typed() <-chan struct{}
}

// Outcome is the end of Follow.
type Outcome struct {
	// Result is the result of the parked or ended run.
	Result *harnessv1.HarnessResult
	// Rejected are sent inputs that had no effect, by id, without the answers that a
	// user gave here: events report those.
	Rejected map[string]string
	// Moved: the run was seen to start or continue.
	Moved bool
	// Interrupted: a signal interrupted the run.
	Interrupted bool
}

var (
	// ErrLeft is returned if a second signal, or one that could not be passed on, ended
	// Follow; the run may still be running.
	ErrLeft = errors.New("detached before the run was parked or ended")
	// ErrStopped is returned by Rejoin if the background process was stopped on purpose.
	ErrStopped = errors.New("the background process was stopped")
	// ErrUnread is returned if the reader of the output has gone away.
	ErrUnread = errors.New("the reader of the output has gone away")
	// ErrStored is returned if all that is stored was printed; see Config.Stored.
	ErrStored = errors.New("the run has not ended, and nothing continues it here")
	// errLost is returned if the local mesh ended before the run.
	errLost = errors.New("the mesh in this process ended before the run was parked or ended; see its log")
)

// NewID returns a new id for an input or a request.
func NewID() string { return "cli-" + rand.Text() }

// NewRunID returns a new id for a run, short enough to type: 40 random bits. The gateway
// rejects one that another run has.
func NewRunID() string { return "r-" + strings.ToLower(rand.Text()[:8]) }

type follower struct {
	Config
	pos position
	// offset is that of the last event of a tree; empty without sub-agents.
	offset   string
	awaiting map[string]bool
	// answers are the inputs that a user gave here.
	answers map[string]bool
	// held is a result that is held back; past: it is older than the newest version at
	// the start.
	held *harnessv1.HarnessResult
	past bool
	// newest is the version of the log when the stream was attached.
	newest  uint64
	grace   <-chan time.Time
	retry   <-chan time.Time
	failing time.Time
	// answered: the gateway has answered at this address.
	answered bool
	waits    int
	asking   dialogue
	signals  int
	stopped  chan error
	text     textPosition
	out      Outcome
	below    below
}

// position is the last event that was seen.
type position struct {
	version uint64
	index   int
}

// Follow follows the run until it is parked or has ended.
func Follow(ctx context.Context, cfg Config) (*Outcome, error) {
	if cfg.Grace == 0 {
		cfg.Grace = 15 * time.Second
	}
	if cfg.Patience == 0 {
		cfg.Patience = time.Minute
	}
	f := &follower{
		Config: cfg, pos: position{version: cfg.After, index: 1 << 30},
		awaiting: map[string]bool{}, answers: map[string]bool{}, below: newBelow(), stopped: make(chan error, 1),
		out: Outcome{Rejected: map[string]string{}},
	}
	for _, id := range cfg.Sent {
		f.awaiting[id] = true
	}
	err := f.loop(ctx)
	return &f.out, err
}

func (f *follower) loop(ctx context.Context) error {
	stream := f.watch(ctx)
	defer func() { stream.stop() }()
	updates := stream.updates
	var typed <-chan struct{}
	if f.Keys != nil {
		typed = f.Keys.Typed()
	}
	for f.out.Result == nil {
		var err error
		select {
		case u, ok := <-updates:
			if ok {
				f.back()
				f.update(ctx, u)
				break
			}
			stream.stop()
			updates = nil
			err = f.ended(ctx, stream.err)
		case <-f.retry:
			f.retry = nil
			stream = f.watch(ctx)
			updates = stream.updates
		case <-f.grace:
			f.grace = nil
			f.awaiting = map[string]bool{}
			f.out.Result = f.held
		case <-f.below.lag:
			f.below.lag = nil
			f.rest(ctx, f.below.late)
			f.below.late = nil
		case <-typed:
			typed = nil // said once
			f.Printer.Remark("keys typed while the run works are dropped; from another terminal, harness send " + f.Run + " TEXT tells it something")
		case line, ok := <-f.asking.lines:
			err = f.answer(ctx, line, ok)
		case s := <-f.Signals:
			if f.Leave && s != os.Interrupt {
				err = ErrLeft
				break
			}
			err = f.signal(ctx)
		case err = <-f.stopped:
		case <-f.Lost:
			err = errLost
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if !f.asking.open() {
			f.Printer.Asking(false)
			if f.Keys != nil {
				f.Keys.Asking(false)
			}
		}
		if f.Unread && f.Printer.Err() != nil {
			return ErrUnread
		}
	}
	return nil
}

// update processes one message of the gateway.
func (f *follower) update(ctx context.Context, u *harnessv1.RunUpdate) {
	switch v := u.GetUpdate().(type) {
	case *harnessv1.RunUpdate_Attached:
		f.newest = v.Attached.GetVersion()
		if f.held != nil && f.grace == nil && !f.asking.open() {
			f.grace = time.After(f.Grace)
		}
	case *harnessv1.RunUpdate_Event:
		below := v.Event.GetRunId() != "" // resumed by its offset, it comes once
		if !below && f.seen(v.Event) {
			return
		}
		f.offset = v.Event.GetOffset()
		f.below.event(v.Event)
		if f.past && !below {
			f.held, f.grace, f.past = nil, nil, false
		}
		asked := f.answeredElsewhere(v.Event)
		f.print(v.Event)
		moved := v.Event.GetSessionStart() != nil || v.Event.GetSessionResume() != nil || v.Event.GetStepStart() != nil
		f.out.Moved = f.out.Moved || moved && !below
		f.resolve(v.Event)
		if asked {
			f.next()
		}
		f.catchUp(ctx)
	case *harnessv1.RunUpdate_Delta:
		below := v.Delta.GetRunId() != ""
		if below && f.Tree || !below && (v.Delta.GetToolOutput() != nil || f.text.add(v.Delta)) {
			f.Printer.Delta(v.Delta)
		}
	case *harnessv1.RunUpdate_Result:
		f.rest(ctx, v.Result)
	}
}

// inThePast reports whether a result of a replayed history is outdated: more events
// follow, and the current result of the run is another one. If the run cannot be read,
// the next message decides.
func (f *follower) inThePast(ctx context.Context, r *harnessv1.HarnessResult) bool {
	if f.pos.version >= f.newest {
		return false
	}
	now, err := f.Client.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: f.Namespace, RunId: f.Run})
	return f.away(err) || err == nil && !proto.Equal(now.GetResult(), r)
}

// seen reports whether an event was printed before, and records it.
func (f *follower) seen(e *harnessv1.Event) bool {
	at := position{version: e.GetVersion()}
	if _, err := fmt.Sscanf(e.GetId(), "%d-%d", new(uint64), &at.index); err != nil {
		at.index = 0
	}
	if at.version < f.pos.version || at.version == f.pos.version && at.index <= f.pos.index {
		return true
	}
	f.pos = at
	return false
}

// settle removes a sent input that was accepted or rejected. A held result is older and
// no longer counts.
func (f *follower) resolve(e *harnessv1.Event) {
	accepted, rejected := e.GetInputAccepted().GetItemId(), e.GetInputRejected().GetItemId()
	switch {
	case f.awaiting[accepted]:
		delete(f.awaiting, accepted)
	case f.awaiting[rejected]:
		delete(f.awaiting, rejected)
		if !f.answers[rejected] {
			f.out.Rejected[rejected] = e.GetInputRejected().GetReason()
		}
	default:
		return
	}
	if len(f.awaiting) == 0 {
		f.held, f.grace = nil, nil
	}
}

// rest decides whether a result ends Follow.
func (f *follower) rest(ctx context.Context, r *harnessv1.HarnessResult) {
	f.past = f.inThePast(ctx, r)
	if !f.past && (f.Enough != nil && f.Enough(r) || f.out.Interrupted && IsInterrupted(r)) {
		f.out.Result = r
		return
	}
	if f.past || len(f.awaiting) > 0 {
		f.hold(r)
		return
	}
	if !f.Stored && runstate.IsWaiting(r.GetStatus(), r.GetReason()) {
		return // it continues by itself
	}
	if f.below.delays(r) {
		return
	}
	if f.Prompt != nil && f.signals == 0 && f.ask(ctx, r) {
		return
	}
	f.out.Result = r
}

// IsInterrupted reports whether a run is parked because it was interrupted.
func IsInterrupted(r *harnessv1.HarnessResult) bool {
	return r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED && r.GetReason().GetKind() == "interrupted"
}

// signal interrupts the run on the first signal and ends Follow on the second. At a prompt it
// only leaves: the call still waits.
func (f *follower) signal(ctx context.Context) error {
	if f.asking.open() {
		f.Prompt.print("\n") // the signal was typed after the prompt
		f.out.Result = f.asking.park
		return nil
	}
	f.signals++
	if f.signals > 1 {
		return ErrLeft
	}
	f.out.Interrupted = true
	f.asking = dialogue{}
	f.Printer.Remark("interrupting the run; a second signal leaves immediately")
	id := NewID()
	f.awaiting[id] = true
	go func() {
		err := f.callWithRetry(ctx, nil, func(ctx context.Context) error {
			_, err := f.Client.InterruptRun(ctx, &harnessv1.InterruptRunRequest{
				Namespace: f.Namespace, RunId: f.Run, RequestId: id, Reason: "interrupted at the command line",
			})
			return err
		})
		if err != nil {
			f.stopped <- fmt.Errorf("%w: the interrupt was not delivered: %s", ErrLeft, status.Convert(err).Message())
		}
	}()
	return nil
}

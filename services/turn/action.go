package turn

import (
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/known"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// Action is the next step of a turn. Each action leads to one event.
// Failed is possible for each but SendCall, AwaitCall and the terminal actions
// Return and Fail.
type Action interface{ action() }

// Return ends the turn with an outcome. It is terminal.
type Return struct {
	Outcome *harnessv1.Outcome
	// Stopped is true if this worker has stopped the turn and killed its calls.
	Stopped bool
}

// Fail gives the turn up without an outcome, so that its step is delivered
// again. It is terminal.
type Fail struct{ Err error }

// Append stores a draft in the journal. It must not be stored twice. Leads to
// Appended.
type Append struct {
	Draft *runstate.Draft
	// Before and After name the fault points around the append; either may be
	// empty.
	Before, After string
}

// Inspect reads the instruction files and the changed files of the
// workspace. Leads to Inspected.
type Inspect struct{ InstructionsOnly bool }

// FireHooks calls the subscribers of a point, whose run is left unset. Leads to
// HooksFired.
type FireHooks struct{ Point hook.Point }

// LoadConversation reads the run's conversation. Leads to ConversationLoaded.
type LoadConversation struct {
	// Closing is true if the turn has ended, so that a stop does not break the read
	// off.
	Closing bool
}

// PrepareRequest makes the request out of a conversation and keeps it for AskModel. Leads to
// RequestPrepared.
type PrepareRequest struct{ Conversation *conversation.Conversation }

// AskModel makes one try at a model. Leads to ModelAnswered, ModelFailed or
// ModelUnusable.
type AskModel struct {
	// Ref is PROVIDER:NAME.
	Ref string
	// Try is the number of the try in this step, from 1.
	Try uint32
	// FailedTries are those since the last response, those of earlier steps
	// included.
	FailedTries uint32
	// Adjustments of the requests to the model.
	Adjustments []*harnessv1.ModelAdjustment
}

// Wait waits until the next try. Leads to Waited, early if the turn is stopped.
type Wait struct{ For time.Duration }

// ReadArguments reads the arguments of calls that are stored as blobs. Leads to
// ArgumentsRead.
type ReadArguments struct{ Arguments map[string]*harnessv1.Content }

// ReadMessages reads messages of the run for a call. Leads to MessagesRead.
type ReadMessages struct {
	Request readback.Request
	// Messages of the run that the call may read, from the first.
	Messages []*harnessv1.Message
}

// CheckInbox reads the inbox for interrupts and changes of the mode of work, unless it has
// been read recently. Leads to InboxChecked.
type CheckInbox struct {
	// Newest is true if the inbox is read also if it has been read recently.
	Newest bool
}

// SendCall starts to deliver a call to the tool host with a ledger, without
// waiting for its end. Leads to CallSent.
type SendCall struct {
	Call   toolcall.Call
	Ledger string
	// Fresh is true if no worker can have sent the call under this ledger before.
	Fresh bool
	// Known are the entries in the ledger that the log knows.
	Known *known.Request
}

// AwaitCall waits for the end of any call that was sent. Leads to CallEnded,
// CallMoved or CallBroken.
type AwaitCall struct{}

// CancelCalls kills calls on the tool host with a ledger. It returns when they
// are dead. Leads to CallsCancelled or HostAway.
type CancelCalls struct {
	Ledger string
	IDs    []string
}

// FindHost looks for a tool host that answers and has another ledger. Leads to
// HostFound.
type FindHost struct{ Ledger string }

// FetchResult reads the result of a call that ended before it could be killed.
// Leads to CallEnded.
type FetchResult struct {
	Call   toolcall.Call
	Ledger string
	// Known are the entries in the ledger that the log knows.
	Known *known.Request
}

func (Return) action()           {}
func (Fail) action()             {}
func (Append) action()           {}
func (Inspect) action()          {}
func (FireHooks) action()        {}
func (LoadConversation) action() {}
func (PrepareRequest) action()   {}
func (AskModel) action()         {}
func (Wait) action()             {}
func (ReadArguments) action()    {}
func (ReadMessages) action()     {}
func (CheckInbox) action()       {}
func (SendCall) action()         {}
func (AwaitCall) action()        {}
func (CancelCalls) action()      {}
func (FindHost) action()         {}
func (FetchResult) action()      {}

// ProposeCalls asks a tool host what calls that wait for a person would change. Leads to
// Proposals, also if no host answers.
type ProposeCalls struct {
	// Calls have their tools and their arguments.
	Calls []toolcall.Call
}

func (ProposeCalls) action() {}

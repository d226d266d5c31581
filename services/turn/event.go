package turn

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

// Event is the result of an action.
type Event interface{ event() }

// Failed: the action could not be performed.
type Failed struct{ Err error }

// Appended: the draft is stored, and its messages have their ids.
type Appended struct{}

// Inspected: the state of the workspace; nil if it cannot be read now.
type Inspected struct {
	Response *harnessv1.InspectWorkspaceResponse
}

// HooksFired: the merged answer of the subscribers.
type HooksFired struct{ Result hook.Result }

// ConversationLoaded: the conversation up to the newest record.
type ConversationLoaded struct{ Conversation *conversation.Conversation }

// RequestPrepared: the request can be sent.
type RequestPrepared struct {
	// Written is the text of the agent in the attempt before, of which 5,000 code points are
	// enough: the text of Written of the conversation.
	Written string
}

// ModelAnswered: the model answered. The usage has its price.
type ModelAnswered struct {
	Response *model.Response
	// Request has the facts of the request; nil in a run without compaction, and if it
	// could not be described.
	Request *RequestFacts
}

// RequestFacts describe a request that was sent.
type RequestFacts struct {
	// Weights of the messages of the conversation that had none; nil if none was counted.
	Weights *harnessv1.Weights
	// Counted is the tokens of the whole request; 0 if messages without weights are left.
	Counted uint32
	// ViewDigest is the digest of the messages, of pkg/conversation/shown.
	ViewDigest []byte
	// Tools is the blob with the ToolList, unless it is that of the request before.
	Tools *harnessv1.BlobRef
}

// ModelFailed: a try failed. Random is in [0, 1), for the jitter of the wait.
type ModelFailed struct {
	Err    *model.Error
	Random float64
}

// ModelUnusable: there is no provider for the model, so no request was sent.
type ModelUnusable struct{ Err error }

// Waited: the wait is over.
type Waited struct{}

// ArgumentsRead: the arguments by call id, as texts.
type ArgumentsRead struct{ Texts map[string]string }

// MessagesRead: the result of the call that reads messages.
type MessagesRead struct{ Result readback.Result }

// InboxChecked: the inbox has been read. A change of the mode of work in it acts on the
// calls of the turn that have not started.
type InboxChecked struct {
	// Offer is that of the turn in the mode of work that the inbox asks for; nil for that of the
	// step.
	Offer *offer.Offer
}

// CallSent: the call is being delivered.
type CallSent struct{}

// CallEnded: a call has ended.
type CallEnded struct {
	ID       string
	Response *harnessv1.ExecuteToolResponse
}

// CallMoved: a call has not begun on its host, and another host can take it.
type CallMoved struct{ ID, Ledger string }

// CallBroken: a call was not delivered, or its end is not known here, because the
// turn was stopped or its arguments cannot be read.
type CallBroken struct {
	ID  string
	Err error
}

// CallsCancelled: none of the calls runs any more. Those in neither list were
// killed.
type CallsCancelled struct {
	// Unknown are calls that the host has no record of.
	Unknown []string
	// Finished are calls that had ended before.
	Finished []string
	// Results are what killed calls had returned by then.
	Results map[string]string
}

// HostAway: the tool host does not answer. Err fails the turn unless
// another host replaces it.
type HostAway struct{ Err error }

// HostFound: another tool host answers; its ledger is empty if none does.
type HostFound struct{ Ledger string }

func (Failed) event()             {}
func (Appended) event()           {}
func (Inspected) event()          {}
func (HooksFired) event()         {}
func (ConversationLoaded) event() {}
func (RequestPrepared) event()    {}
func (ModelAnswered) event()      {}
func (ModelFailed) event()        {}
func (ModelUnusable) event()      {}
func (Waited) event()             {}
func (ArgumentsRead) event()      {}
func (MessagesRead) event()       {}
func (InboxChecked) event()       {}
func (CallSent) event()           {}
func (CallEnded) event()          {}
func (CallMoved) event()          {}
func (CallBroken) event()         {}
func (CallsCancelled) event()     {}
func (HostAway) event()           {}
func (HostFound) event()          {}

// Rejected is the error of an event that does not follow from its action. It changes
// nothing.
type Rejected struct {
	Action Action
	Event  Event
}

// Error names both.
func (r *Rejected) Error() string {
	return fmt.Sprintf("turn: event %T does not follow from action %T", r.Event, r.Action)
}

// Proposals are the changes that the calls of ProposeCalls would make, in their order; empty if no host
// has answered.
type Proposals struct{ Previews []*harnessv1.CallPreview }

func (Proposals) event() {}

package turn

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/services/turn/hookpoint"
	"github.com/harnessmesh/harnessmesh/services/turn/judge"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// execution is what this worker has observed of a turn and the journal does not
// record.
type execution struct {
	now     time.Time // of the newest event
	stop    *stop     // nil until the turn is stopped
	failure error     // why the turn is given up; nil if it is not
	fenced  bool      // an append has failed: nothing may be stored any more

	inspected bool
	workspace *harnessv1.InspectWorkspaceResponse // nil if it cannot be read
	claimed   bool
	admission *hook.Effects // of before_step

	conversation *conversation.Conversation
	written      string // in the attempt before this turn; at least its beginning
	prepareSince time.Time
	preparation  *durationpb.Duration // nil until the request is prepared
	askSince     time.Time            // since when the current model is tried
	answer       *answer              // not stored yet
	failedTry    *harnessv1.ModelRetried
	unusable     map[string]error // models without a provider
	wait         *time.Duration   // before the next try

	texts     map[string]string // of arguments that are stored as blobs
	judgement *judge.Calls

	inboxChecked bool
	// recent is true while no call was sent after the inbox was read last.
	recent bool
	// modeRead is true once the inbox was read after the model has answered, or could not
	// be read then.
	modeRead bool
	offer    *offer.Offer    // in the mode of work that the inbox asks for; nil if it asks for none
	fresh    map[string]bool // calls that this worker has started or moved
	sent     map[string]bool // calls that are not to be sent again
	inFlight map[string]bool
	ended    []*endedCall // not stored yet
	moved    []CallMoved  // not stored yet
	broken   bool         // the stop has broken off a call that may still run

	cancels map[string]*cancellation // by ledger; nil until calls are killed

	// proposed is what calls would change that a person decides about; nil until there is a
	// response of a tool host.
	proposed map[string]*harnessv1.CallPreview

	afterStep *hook.Effects
}

// stop is why a turn is stopped.
type stop struct {
	cause       error
	interrupted bool
}

// answer is the answer of a model that is not stored yet.
type answer struct {
	ref      string
	response *model.Response
	request  *RequestFacts // nil if it was not described
	latency  *durationpb.Duration
}

func newExecution() execution {
	return execution{
		unusable: map[string]error{}, texts: map[string]string{},
		fresh: map[string]bool{}, sent: map[string]bool{}, inFlight: map[string]bool{},
	}
}

// drained reports whether no call is on its way and no end of a call is left to
// be stored.
func (e *execution) drained() bool {
	return len(e.inFlight) == 0 && (e.fenced || len(e.ended) == 0 && len(e.moved) == 0)
}

// endedCall is a call that a tool host has ended, before its end is stored.
type endedCall struct {
	call     toolcall.Call
	response *harnessv1.ExecuteToolResponse
	point    point
	effects  hook.Effects
	// lost are entries of the response that the log has lost; nil before they were looked up.
	lost []*harnessv1.LedgerCall
}

// point is the next topic that an ended call fires.
type point int

const (
	pointFailed point = iota // on_error
	pointAfter               // after_tool_call
	pointNone
)

// fired applies the effects of the subscribers of a topic on the call.
func (c *endedCall) fired(topic harnessv1.HookTopic, e hook.Effects) {
	if topic == hookpoint.OnError {
		e.Replaced = nil // only after_tool_call replaces results
		c.point = pointAfter
	} else {
		c.point = pointNone
	}
	c.effects.Merge(e)
}

// started notes that calls can be sent under a ledger for the first time.
func (e *execution) started(ids []string) {
	for _, id := range ids {
		e.fresh[id] = true
		delete(e.sent, id)
	}
	e.moved = slices.DeleteFunc(e.moved, func(m CallMoved) bool { return slices.Contains(ids, m.ID) })
}

// cancellation is how the calls of one ledger were killed.
type cancellation struct {
	calls   []toolcall.Call
	away    error           // of a host that does not answer; nil if it does
	unknown map[string]bool // calls that the host has no record of
	ended   map[string]bool // calls that had ended before
	results map[string]*harnessv1.ExecuteToolResponse
	texts   map[string]string // what killed calls had returned by then
}

// killedResult is the result of a call that was killed.
const killedResult = "The run was interrupted and this call was killed. What it had done until then stays."

// end returns how a call ended that was to be killed.
func (k *cancellation) end(id string) *harnessv1.ExecuteToolResponse {
	switch {
	case k.results[id] != nil:
		return k.results[id]
	case k.unknown[id]:
		return &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}
	}
	result := killedResult
	if text := k.texts[id]; text != "" {
		result = strings.TrimSuffix(text, "\n") + "\n[" + killedResult + "]"
	}
	return &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED, Result: result}
}

package judge

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

// Turn has the data by which the calls of a turn are judged. It is shared, never changed.
type Turn struct {
	// Number of the turn.
	Number     uint32
	Snapshot   *harnessv1.Snapshot
	Definition *agent.Definition
	// Sandbox is how far the tool host can confine commands; nil for one that cannot.
	Sandbox *harnessv1.SandboxSupport
	// Offer is that of the step, and Changed that in the mode of work that the inbox asks for; nil
	// if it asks for none.
	Offer, Changed *offer.Offer
}

// present returns the offer in the present mode of work.
func (t Turn) present() *offer.Offer {
	if t.Changed != nil {
		return t.Changed
	}
	return t.Offer
}

// mode returns the present mode of work.
func (t Turn) mode() string {
	if t.Changed != nil {
		return t.Changed.Mode
	}
	return runstate.Mode(t.Snapshot)
}

// Calls are the calls of a response as they are judged.
type Calls struct {
	t     Turn
	draft *runstate.Draft

	ledger  *harnessv1.WorkItemLedger
	waiting int // calls that wait for an answer
	// delegated is the number of children that the calls of the response make.
	delegated int
	calls     []*harnessv1.PreparedCall
	items     []*harnessv1.WorkItem
	artifacts []*harnessv1.Artifact

	// The rest is for calls that are judged after the response is stored.
	queue    []*harnessv1.ToolCall // with their arguments inline
	next     int                   // in queue
	point    point                 // of that call
	prepared *harnessv1.PreparedCall
	reading  *readCall // nil unless the call is reading messages
	reply    *reply
	failed   hook.Effects // of on_error
	notes    []hook.Note
	wants    hook.Effects // their reasons only
	firing   *hook.Point  // nil when all calls are judged
}

// point is where in a call subscribers are called.
type point int

const (
	pointBefore point = iota // before_tool_call
	pointFailed              // on_error
	pointAfter               // after_tool_call
)

// reply is the harness's own answer to a call.
type reply struct {
	text      string
	failed    bool
	hooked    bool   // on_error is fired: the call was not denied
	ran       bool   // after_tool_call is fired
	arguments string // that the call was carried out with
	message   *harnessv1.Message
	marks     *harnessv1.ResultMarks
}

// readCall is a call that reads messages of the run.
type readCall struct {
	call    *harnessv1.ToolCall // with the arguments that it is carried out with
	request readback.Request
}

// New returns the judge of the calls of a response, which writes their messages and events to d.
func New(t Turn, d *runstate.Draft) *Calls {
	j := &Calls{t: t, draft: d, waiting: len(t.Snapshot.GetPendingToolCalls())}
	if t.Snapshot.GetConfig().GetWorkItems().GetEnabled() || len(t.Definition.ArtifactKinds(t.Snapshot)) > 0 {
		j.ledger = proto.CloneOf(t.Snapshot.GetWorkItemLedger())
		if j.ledger == nil {
			j.ledger = &harnessv1.WorkItemLedger{}
		}
	}
	return j
}

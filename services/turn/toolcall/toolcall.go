// Package toolcall decides what carries out a call of the model, and how it is delivered.
//
// Request is total: each call of a response is carried out by exactly one of a tool host (for
// itself or for a server), the harness, or an answer from outside (of a client, a sub-agent or a
// person, or a wait); what remains is refused. HostRequest makes the message to a tool host, and
// Delivery decides where it is sent until the call has ended.
//
// Everything here is a function of its input. A call that cannot be carried out is a Refusal, and a
// response of a tool host that cannot be used is the response that CheckResponse replaces it with.
package toolcall

import (
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Call is a call that a tool host runs.
type Call struct {
	ID           string
	Tool         string
	Arguments    *harnessv1.Content
	ParallelSafe bool
	Idempotent   bool
	// Marks of the result; nil in runs without compaction.
	Marks *harnessv1.ResultMarks
	// Level of a command, and hosts that it reaches in addition to those of its run.
	Level harnessv1.SandboxLevel
	Hosts []string
	// Guarded is true if the call may write the guarded file that its path names.
	Guarded bool
	// Approved is true if a person has approved the call.
	Approved bool
	// Shown is what a person was shown that the call changes.
	Shown []*harnessv1.FilePreview
	// Changes is what a person changed in its arguments, with which its result begins.
	Changes string
	// Question is the last question of its server, with the answers, after which the call
	// continues; nil at its beginning.
	Question *harnessv1.ServerQuestion
}

// Approved returns the call of a pending call that a person has approved, or whose question is answered.
func Approved(c *harnessv1.PendingCall) Call {
	return Call{
		ID: c.GetCallId(), Tool: c.GetTool(), Arguments: c.GetArguments(), Marks: c.GetMarks(), Level: c.GetSandboxLevel(), Hosts: c.GetSandboxHosts(),
		Guarded: c.GetGuarded(), Approved: c.GetKind() == runstate.KindApproval || c.GetKind() == runstate.KindReview,
		Shown: shown(c.GetPreview()), Changes: c.GetChanges(), Question: c.GetQuestion(),
	}
}

// shown returns of a preview what a tool host compares when the call is to run.
func shown(p *harnessv1.CallPreview) []*harnessv1.FilePreview {
	var files []*harnessv1.FilePreview
	for _, f := range p.GetFiles() {
		files = append(files, &harnessv1.FilePreview{Path: f.GetPath(), Before: f.GetBefore(), Hunks: f.GetHunks()})
	}
	return files
}

// HostID returns the id of the call for its tool host, which runs each part of a call once.
func (c Call) HostID() string { return runstate.RoundID(c.ID, c.Question.GetRound()) }

// Held reports whether the call still runs at the tool host that has its ledger, and waits for the
// answer to a question. No other host can continue it.
func (c Call) Held() bool { return c.Question.GetLedgerId() != "" }

// Result returns the message with the result of a call.
func Result(id, tool, text string, failed bool) *harnessv1.Message {
	return &harnessv1.Message{
		Role: harnessv1.Role_ROLE_TOOL, Content: content.Inline(text), ToolCallId: id, ToolName: tool, IsError: failed,
	}
}

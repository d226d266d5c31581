package toolhost

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Bounds of the entries in a response that the log of a run may not know.
const (
	// MaxUnrecorded is the number of entries, the oldest.
	MaxUnrecorded = 32
	// describedBytes bounds the arguments of a call in its description.
	describedBytes = 1 << 10
	// UnrecordedBytes bounds the results of all entries in a response, in equal shares.
	UnrecordedBytes = 48 << 10
)

// Texts for the model about a call that was refused because of the entries of its run.
const (
	// LostCalls: the log of the run has lost calls.
	LostCalls = "This call did not run: calls had been made that you do not know. They are listed in a message. Read it, and decide again."
	// TakenID: another call has the id.
	TakenID = "This call did not run: an earlier call of this run has its id. Make the call again."
)

// Describe returns the description of a call, without a number.
func Describe(id, tool, arguments string) *harnessv1.LedgerCall {
	return &harnessv1.LedgerCall{
		CallId: id, Tool: tool, Arguments: content.Clip(arguments, describedBytes), Digest: content.Digest([]byte(arguments)),
	}
}

// IsOther reports whether an entry is that of a call with another tool or other arguments. An
// entry without a description, nil, may be that of any call.
func IsOther(entry, call *harnessv1.LedgerCall) bool {
	return entry != nil && (entry.GetTool() != call.GetTool() || entry.GetDigest() != call.GetDigest())
}

// Unrecorded returns which of the entries of a run, all later than those that its log knows, are not
// those of calls that it knows. own is the call of the request: its entry counts only if it is that of
// another call. Later ones than the first MaxUnrecorded follow when these are known: a caller never
// skips one.
func Unrecorded(later []*harnessv1.LedgerCall, known []string, own *harnessv1.LedgerCall) []*harnessv1.LedgerCall {
	var unrecorded []*harnessv1.LedgerCall
	for _, c := range later {
		isOwn := c.GetCallId() == own.GetCallId() && !IsOther(c, own)
		if !isOwn && !slices.Contains(known, c.GetCallId()) {
			unrecorded = append(unrecorded, c)
		}
	}
	return unrecorded[:min(len(unrecorded), MaxUnrecorded)]
}

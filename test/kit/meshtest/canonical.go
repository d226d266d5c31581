package meshtest

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// volatile are the fields that differ between two runs of the same work: sequences,
// writers, and numbers of attempts.
var volatile = map[protoreflect.Name]bool{
	"child_version": true, "after_version": true, // a child that was disturbed has more records
	"version": true, "prev_sequence": true, "prev_nonce": true, "appended_before": true, "view_digest": true, "writer": true, "attempt": true, "sequence": true, "first_sequence": true,
	"inbox_cursor": true, "inbox_sequence": true, "cursor": true, "park_version": true, "ledger_id": true, "worker": true,
	"run_id": true, "id": true, "drained": true, "workspace": true, "item_id": true, "drained_items": true, "request_id": true, "waited_since": true,
	"trace": true, "traceparent": true, "answered_by": true,
	"inode": true,
}

// Canonical returns a log as text, without the volatile fields, times, durations, and
// records that only show a takeover, and without further firings of a timer, which a bus
// that restarts may repeat. In each path, the given replacements replace one
// text by another. Logs of the same work are equal, whatever died meanwhile.
func Canonical(entries []runlog.Entry, replace ...string) string {
	var b strings.Builder
	fired := map[string]bool{}
	for _, e := range entries {
		rec := proto.CloneOf(e.Record)
		switch j := rec.GetJournal(); {
		case j.GetTurnStarted().GetAttempt() > 1, j.GetExecutorFailed() != nil, j.GetStepTaken() != nil:
			continue
		}
		for _, ev := range rec.GetEvents() {
			ev.Id = ""
		}
		for _, o := range rec.GetStep().GetObserved() {
			if inbox := o.GetInbox(); inbox != nil {
				inbox.Items = slices.DeleteFunc(inbox.Items, func(item *harnessv1.InboxItem) bool {
					again := item.GetTimerFired() != nil && fired[item.GetId()]
					fired[item.GetId()] = true
					return again
				})
			}
		}
		scrub(rec.ProtoReflect())
		text := prototext.MarshalOptions{Multiline: true, Indent: " "}.Format(rec)
		// The text format adds random spaces, so that no program depends on it.
		fmt.Fprintf(&b, "---\n%s", strings.Join(strings.Fields(text), " "))
		b.WriteString("\n")
	}
	return strings.NewReplacer(replace...).Replace(b.String())
}

func scrub(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if volatile[f.Name()] && (f.Name() != "id" || m.Descriptor().Name() != "Message") {
			m.Clear(f)
			return true
		}
		if f.Message() == nil || f.IsMap() {
			return true
		}
		switch f.Message().FullName() {
		case "google.protobuf.Timestamp", "google.protobuf.Duration":
			m.Clear(f)
			return true
		}
		if f.IsList() {
			for i := range v.List().Len() {
				scrub(v.List().Get(i).Message())
			}
			return true
		}
		scrub(v.Message())
		return true
	})
}

// Check returns what is wrong with a log: versions must have no gap, each record must
// be linked to the one before it, and at most one end may be the last.
func Check(entries []runlog.Entry) error {
	for i, e := range entries {
		if e.Header.Version != uint64(i+1) {
			return fmt.Errorf("record %d has version %d", i+1, e.Header.Version)
		}
		if i > 0 && !runlog.Follows(e.Record, entries[i-1]) {
			return fmt.Errorf("version %d is linked to sequence %d with nonce %x, the one before has %d and %x", i+1,
				e.Record.GetPrevSequence(), e.Record.GetPrevNonce(), entries[i-1].Sequence, entries[i-1].Record.GetWriter().GetNonce())
		}
	}
	if n := len(entries); n > 0 && !runlog.IsRest(entries[n-1].Record.GetStep().GetTo()) {
		return fmt.Errorf("the last record, version %d, is no rest: %v", n, entries[n-1].Record)
	}
	return nil
}

// Outcomes returns the ends of all calls in a log, by call id.
func Outcomes(entries []runlog.Entry) map[string]harnessv1.ToolOutcome {
	outcomes := map[string]harnessv1.ToolOutcome{}
	for _, e := range entries {
		if f := e.Record.GetJournal().GetToolFinished(); f != nil {
			outcomes[f.GetCallId()] = f.GetOutcome()
		}
	}
	return outcomes
}

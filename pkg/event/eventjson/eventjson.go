// Package eventjson is the JSON in which people and scripts see a run: the
// lines of jsonl output, the bodies of the HTTP API and the data of its event
// stream are the same bytes.
//
// It is not protojson. Names are snake_case, enum values stand without their
// prefix, counts are numbers whatever their width, a duration is a whole number
// of milliseconds under a key that ends in _ms, a time is an ISO string in UTC, a
// content is its text. Every field of a message is always there, so that a
// script never has to ask whether a key exists. Objects are walked by
// reflection in the order of their declaration: a new field of a proto appears
// without a change here; a new event needs its dotted name in the table below,
// which the test demands.
//
// The package is pure and fails only when it is handed nil.
package eventjson

import (
	"errors"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// typeNames is the one table of the dotted names, by the field of the oneof.
var typeNames = map[protoreflect.Name]string{
	"session_start":        "session.start",
	"session_pause":        "session.pause",
	"session_resume":       "session.resume",
	"session_complete":     "session.complete",
	"plan_draft":           "plan.draft",
	"plan_commit":          "plan.commit",
	"step_start":           "step.start",
	"step_end":             "step.end",
	"model_response":       "model.response",
	"model_retry":          "model.retry",
	"tool_call":            "tool.call",
	"tool_result":          "tool.result",
	"tool_error":           "tool.error",
	"tool_denied":          "tool.denied",
	"budget_warn":          "budget.warn",
	"continuation_prompt":  "continuation.prompt",
	"stop_rejected":        "stop.rejected",
	"context_pressure":     "context.pressure",
	"context_usage":        "context.usage",
	"repair":               "repair",
	"approval_requested":   "approval.requested",
	"approval_answered":    "approval.answered",
	"input_accepted":       "input.accepted",
	"input_rejected":       "input.rejected",
	"run_interrupted":      "run.interrupted",
	"run_cancelled":        "run.cancelled",
	"worker_takeover":      "worker.takeover",
	"executor_missing":     "executor.missing",
	"executor_error":       "executor.error",
	"stall_detected":       "stall.detected",
	"doom_loop_detected":   "doom_loop.detected",
	"guidance_injected":    "guidance.injected",
	"work_item_changed":    "work_item.changed",
	"deliverables_updated": "deliverables.updated",
	"contract_evaluated":   "contract.evaluated",
	"hook_result":          "hook.result",
	"hook_error":           "hook.error",
	"mode_changed":         "mode.changed",
}

// TypeUnknown is the type of an event that this program does not know, which a
// newer server may send. Its data is empty.
const TypeUnknown = "unknown"

var errNil = errors.New("eventjson: nil message")

// Type is the dotted name of an event, such as tool.call.
func Type(e *harnessv1.Event) string {
	if set := eventCase(e); set != nil {
		if name, ok := typeNames[set.Name()]; ok {
			return name
		}
	}
	return TypeUnknown
}

// Event is an event as one object.
func Event(e *harnessv1.Event) ([]byte, error) {
	if e == nil {
		return nil, errNil
	}
	w := newWriter(full)
	w.open('{')
	w.key("type")
	w.str(Type(e))
	m := e.ProtoReflect()
	w.fields(m, "id", "version", "time", "turn_number", "max_turns", "trace_id")
	w.key("data")
	if set := eventCase(e); set != nil {
		w.message(m.Get(set).Message())
	} else {
		w.raw("{}")
	}
	w.close('}')
	return w.bytes(), nil
}

// Delta is a piece of the model's text as one object of type delta. It has no
// version, because it is not stored.
func Delta(d *harnessv1.Delta) ([]byte, error) {
	if d == nil {
		return nil, errNil
	}
	w := newWriter(full)
	w.open('{')
	w.key("type")
	w.str("delta")
	w.fields(d.ProtoReflect(), "turn_number", "attempt", "try", "offset", "text")
	w.close('}')
	return w.bytes(), nil
}

// Result is how a run ended or stands, as one object.
func Result(runID string, r *harnessv1.HarnessResult) ([]byte, error) {
	return result("", runID, r)
}

// ResultLine is Result with type result in front, the last line of jsonl.
func ResultLine(runID string, r *harnessv1.HarnessResult) ([]byte, error) {
	return result("result", runID, r)
}

func result(kind, runID string, r *harnessv1.HarnessResult) ([]byte, error) {
	if r == nil {
		return nil, errNil
	}
	w := newWriter(full)
	w.open('{')
	if kind != "" {
		w.key("type")
		w.str(kind)
	}
	w.key("run_id")
	w.str(runID)
	m := r.ProtoReflect()
	w.fields(m, "status", "accepted", "reason", "answer", "summary", "turn_count", "tool_calls", "usage",
		"deliverables", "coverage", "pending", "wake_at", "duration")
	w.close('}')
	return w.bytes(), nil
}

// Run is a run in a list, as one object; reason is null while it runs.
func Run(r *harnessv1.Run) ([]byte, error) {
	if r == nil {
		return nil, errNil
	}
	w := newWriter(sparse)
	w.open('{')
	w.fields(r.ProtoReflect(), "run_id", "status", "goal", "turn_count", "max_turns",
		"namespace", "model", "segment", "version", "create_time", "update_time", "reason", "trace_id", "trace_ids")
	w.close('}')
	return w.bytes(), nil
}

// Pending are calls that wait for somebody, as an array of objects.
func Pending(calls []*harnessv1.PendingCall) ([]byte, error) {
	w := newWriter(full)
	w.open('[')
	for _, p := range calls {
		if p == nil {
			return nil, errNil
		}
		w.separate()
		w.message(p.ProtoReflect())
	}
	w.close(']')
	return w.bytes(), nil
}

// Time is a moment as an ISO string in UTC, null when it is unset.
func Time(t *timestamppb.Timestamp) []byte {
	w := newWriter(full)
	if t == nil {
		w.raw("null")
	} else {
		w.time(t)
	}
	return w.bytes()
}

// Message is any other message, such as a state or a spec, by the same rules.
// What is unset is null, because there "unset" often means "the default".
func Message(m protoreflect.ProtoMessage) ([]byte, error) {
	if m == nil || !m.ProtoReflect().IsValid() {
		return nil, errNil
	}
	w := newWriter(sparse)
	w.message(m.ProtoReflect())
	return w.bytes(), nil
}

// eventCase is the field of the oneof that is set, nil when none is.
func eventCase(e *harnessv1.Event) protoreflect.FieldDescriptor {
	m := e.ProtoReflect()
	return m.WhichOneof(m.Descriptor().Oneofs().ByName("event"))
}

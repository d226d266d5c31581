// Package eventjson encodes runs and events as JSON for people and scripts. The lines of
// jsonl output, the bodies of the HTTP API and the data of its event stream have the
// same bytes.
//
// The encoding differs from protojson: names are snake_case, enum values have no prefix,
// counts are numbers of any size, a duration is a whole number of milliseconds under a
// key that ends in _ms, a time is an ISO string in UTC, and a content is its text. Every
// field of a message is always present, so a script never has to check whether a key
// exists; only the run and the offset of an event, a delta or a call are left out where they are
// empty, as without sub-agents, and opaque bytes of providers are never written. Objects are encoded by reflection in declaration order: a new proto field
// appears without a change here. The dotted name of an event is an option of its field in event.proto.
//
// The package is pure and returns an error only for a nil message.
package eventjson

import (
	"errors"
	"strconv"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// typeNames returns the dotted names of the events by the field of the oneof.
var typeNames = sync.OnceValue(func() map[protoreflect.Name]string {
	cases := (&harnessv1.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("event").Fields()
	names := make(map[protoreflect.Name]string, cases.Len())
	for i := range cases.Len() {
		names[cases.Get(i).Name()] = proto.GetExtension(cases.Get(i).Options(), harnessv1.E_EventName).(string)
	}
	return names
})

// typeUnknown is the type of an event that this program does not know, which a newer
// server may send. Its data is empty.
const typeUnknown = "unknown"

var errNil = errors.New("eventjson: nil message")

// Type returns the dotted name of an event, such as tool.call.
func Type(e *harnessv1.Event) string {
	if set := eventCase(e); set != nil {
		if name, ok := typeNames()[set.Name()]; ok {
			return name
		}
	}
	return typeUnknown
}

// Event encodes an event as one object.
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
	if e.GetRunId() != "" {
		w.fields(m, "run_id", "parent_run_id", "call_id", "agent", "depth")
	}
	if e.GetOffset() != "" {
		w.fields(m, "offset")
	}
	w.key("data")
	if set := eventCase(e); set != nil {
		w.message(m.Get(set).Message())
	} else {
		w.raw("{}")
	}
	w.close('}')
	return w.bytes(), nil
}

// TypeReasoning is the type of the lines of ReasoningDelta.
const TypeReasoning = "reasoning.delta"

// Delta encodes a piece of the model's text as one object of type delta. It has no
// version, because it is not stored.
func Delta(d *harnessv1.Delta) ([]byte, error) {
	return delta("delta", d, d.GetOffset(), d.GetText())
}

// ReasoningDelta encodes a piece of the model's reasoning as an object with the keys of
// Delta, of type TypeReasoning.
func ReasoningDelta(d *harnessv1.Delta) ([]byte, error) {
	return delta(TypeReasoning, d, d.GetReasoningOffset(), d.GetReasoning())
}

// TypeToolOutput is the type of the lines of ToolOutput.
const TypeToolOutput = "tool.output"

// ToolOutput encodes a piece of the output of a running command as an object of type
// TypeToolOutput. It has no version, because it is not stored.
func ToolOutput(d *harnessv1.Delta) ([]byte, error) {
	out := d.GetToolOutput()
	if out == nil {
		return nil, errNil
	}
	w := newWriter(full)
	w.open('{')
	w.key("type")
	w.str(TypeToolOutput)
	w.fields(d.ProtoReflect(), "turn_number")
	w.runOf(d)
	w.key("call_id")
	w.str(out.GetCallId())
	w.key("offset")
	w.raw(strconv.FormatUint(out.GetOffset(), 10))
	w.key("text")
	w.str(out.GetText())
	w.close('}')
	return w.bytes(), nil
}

// TypeAlert is the type of the lines of Alert.
const TypeAlert = "alert.delta"

// Alert encodes a finding of the monitor in the text of a try while the model writes it, as an
// object of type TypeAlert with the fields of quality.alert. It has no version, because it is
// not stored.
func Alert(d *harnessv1.Delta) ([]byte, error) {
	if d.GetAlert() == nil {
		return nil, errNil
	}
	w := newWriter(full)
	w.open('{')
	w.key("type")
	w.str(TypeAlert)
	w.fields(d.ProtoReflect(), "turn_number", "attempt", "try")
	w.runOf(d)
	w.fields(d.GetAlert().ProtoReflect(), "severity", "checkpoint", "issue", "suggestion")
	w.close('}')
	return w.bytes(), nil
}

func delta(kind string, d *harnessv1.Delta, offset uint64, text string) ([]byte, error) {
	if d == nil {
		return nil, errNil
	}
	w := newWriter(full)
	w.open('{')
	w.key("type")
	w.str(kind)
	w.fields(d.ProtoReflect(), "turn_number", "attempt", "try")
	w.runOf(d)
	w.key("offset")
	w.raw(strconv.FormatUint(offset, 10))
	w.key("text")
	w.str(text)
	w.close('}')
	return w.bytes(), nil
}

// runOf writes the run of a delta, if it is one below the run that is watched.
func (w *writer) runOf(d *harnessv1.Delta) {
	if d.GetRunId() != "" {
		w.fields(d.ProtoReflect(), "run_id")
	}
}

// Result encodes the end or the current status of a run as one object.
func Result(runID string, r *harnessv1.HarnessResult) ([]byte, error) {
	return result("", runID, r)
}

// ResultLine is Result with type result as the first key: the last line of jsonl.
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
		"deliverables", "coverage", "output", "model", "transcript", "quality", "pending", "wake_at", "duration")
	w.close('}')
	return w.bytes(), nil
}

// Run encodes a run of a list as one object. reason is null while the run is running.
func Run(r *harnessv1.Run) ([]byte, error) {
	if r == nil {
		return nil, errNil
	}
	w := newWriter(sparse)
	w.open('{')
	w.fields(r.ProtoReflect(), "run_id", "status", "goal", "turn_count", "max_turns",
		"namespace", "model", "segment", "version", "create_time", "update_time", "reason", "trace_id", "trace_ids", "started_by", "parent_run_id", "root_run_id",
		"children", "features")
	w.close('}')
	return w.bytes(), nil
}

// Pending encodes calls that wait for an answer as an array of objects.
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

// Time encodes a time as an ISO string in UTC, or null if it is unset.
func Time(t *timestamppb.Timestamp) []byte {
	w := newWriter(full)
	if t == nil {
		w.raw("null")
	} else {
		w.time(t)
	}
	return w.bytes()
}

// Message encodes any other message, such as a state or a spec, by the same rules. An
// unset field is null, because unset often means "the default" there.
func Message(m protoreflect.ProtoMessage) ([]byte, error) {
	if m == nil || !m.ProtoReflect().IsValid() {
		return nil, errNil
	}
	w := newWriter(sparse)
	w.message(m.ProtoReflect())
	return w.bytes(), nil
}

// eventCase returns the field of the oneof that is set, nil if none is.
func eventCase(e *harnessv1.Event) protoreflect.FieldDescriptor {
	m := e.ProtoReflect()
	return m.WhichOneof(m.Descriptor().Oneofs().ByName("event"))
}

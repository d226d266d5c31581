package transcripts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// render is a record as it stands in a story: its place, the changes of phase,
// what its decision observed of
// judged work (?), what it appends (+) and what observers see (*).
func render(rec *harnessv1.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "v%d ", rec.GetVersion())
	if step := rec.GetStep(); step != nil {
		renderStep(&b, step)
	} else {
		entry := rec.GetJournal().ProtoReflect()
		fd := entry.WhichOneof(entry.Descriptor().Oneofs().ByName("entry"))
		fmt.Fprintf(&b, "journal: %s%s", fd.Name(), fields(entry.Get(fd).Message()))
	}
	b.WriteByte('\n')
	b.WriteString(renderWork(rec.GetStep()))
	for _, m := range rec.GetAppended() {
		renderMessage(&b, m)
	}
	for _, e := range rec.GetEvents() {
		r := e.ProtoReflect()
		fd := r.WhichOneof(r.Descriptor().Oneofs().ByName("event"))
		fmt.Fprintf(&b, "   * %s [turn %d]%s\n", eventjson.Type(e), e.GetTurnNumber(), fields(r.Get(fd).Message()))
	}
	return b.String()
}

func renderStep(b *strings.Builder, step *harnessv1.Step) {
	r := step.ProtoReflect()
	fd := r.WhichOneof(r.Descriptor().Oneofs().ByName("message"))
	fmt.Fprintf(b, "%s → %s: %s%s", step.GetFrom(), step.GetTo(), fd.Name(), fields(r.Get(fd).Message()))
	for i, c := range step.GetPhaseChanges() {
		if i == 0 {
			fmt.Fprintf(b, "\n   %s", enum(c.GetFrom().String(), "PHASE_"))
		}
		fmt.Fprintf(b, " –%s→ %s", strings.ToLower(enum(c.GetInput().String(), "PHASE_INPUT_")), enum(c.GetTo().String(), "PHASE_"))
	}
	for _, p := range step.GetSnapshot().GetPendingToolCalls() {
		fmt.Fprintf(b, "\n   pending %s %s %s", p.GetCallId(), p.GetTool(), strings.ToLower(enum(p.GetClass().String(), "PENDING_CLASS_")))
	}
}

func renderMessage(b *strings.Builder, m *harnessv1.Message) {
	fmt.Fprintf(b, "   + %d %s", m.GetId(), strings.ToLower(enum(m.GetRole().String(), "ROLE_")))
	if m.GetKind() != 0 {
		fmt.Fprintf(b, " (%s)", strings.ToLower(enum(m.GetKind().String(), "MESSAGE_KIND_")))
	}
	if m.GetToolCallId() != "" {
		fmt.Fprintf(b, " %s %s", m.GetToolCallId(), m.GetToolName())
	}
	if m.GetIsError() {
		b.WriteString(" error")
	}
	if text := content.Text(m.GetContent()); text != "" {
		fmt.Fprintf(b, " %s", quoted(text, 160))
	}
	b.WriteByte('\n')
	for _, c := range m.GetToolCalls() {
		fmt.Fprintf(b, "     call %s %s %s\n", c.GetId(), c.GetName(), content.Text(c.GetArguments()))
	}
}

// fields are the fields that are set, by number. What the messages of the same
// record show, and what only clocks know, is left out.
func fields(m protoreflect.Message) string {
	var b strings.Builder
	all := m.Descriptor().Fields()
	for i := range all.Len() {
		fd := all.Get(i)
		if !m.Has(fd) || skipped(fd) || told(fd) {
			continue
		}
		v := m.Get(fd)
		if fd.IsMap() {
			fmt.Fprintf(&b, " %s={%s}", fd.Name(), entries(fd, v.Map()))
			continue
		}
		if !fd.IsList() {
			fmt.Fprintf(&b, " %s=%s", fd.Name(), value(fd, v))
			continue
		}
		var items []string
		for j := range v.List().Len() {
			items = append(items, value(fd, v.List().Get(j)))
		}
		fmt.Fprintf(&b, " %s=[%s]", fd.Name(), strings.Join(items, ", "))
	}
	return b.String()
}

// entries returns the entries of a map, in the order of their keys.
func entries(fd protoreflect.FieldDescriptor, m protoreflect.Map) string {
	var all []string
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		all = append(all, k.String()+"="+value(fd.MapValue(), v))
		return true
	})
	slices.Sort(all)
	return strings.Join(all, " ")
}

func skipped(fd protoreflect.FieldDescriptor) bool {
	switch fd.Name() {
	case "spec", "usage", "workflow", "pending", "duration", "model", "plan", "ledger_id", "inbox_sequence":
		return true
	}
	return false
}

// told says that a field repeats what a message of the same record says.
func told(fd protoreflect.FieldDescriptor) bool {
	switch fd.FullName() {
	case "harness.v1.GuidanceInjected.text":
		return true
	}
	return false
}

func value(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch fd.Kind() {
	case protoreflect.EnumKind:
		all := fd.Enum().Values()
		name := string(all.ByNumber(v.Enum()).Name())
		return strings.TrimPrefix(name, strings.TrimSuffix(string(all.ByNumber(0).Name()), "UNSPECIFIED"))
	case protoreflect.StringKind:
		return quoted(v.String(), 160)
	case protoreflect.MessageKind:
		if c, ok := v.Message().Interface().(*harnessv1.Content); ok {
			return quoted(content.Text(c), 160)
		}
		if fd.Message().FullName() == "google.protobuf.Timestamp" {
			seconds := v.Message().Get(v.Message().Descriptor().Fields().ByName("seconds")).Int()
			return fmt.Sprintf("+%ds", seconds-start.Unix())
		}
		return "{" + strings.TrimPrefix(fields(v.Message()), " ") + "}"
	}
	return v.String()
}

func quoted(text string, limit int) string {
	if short := content.Cut(text, limit); len(short) < len(text) {
		text = short + "…"
	}
	if text != "" && !strings.ContainsAny(text, " \n\"\t=,[]{}") {
		return text
	}
	return strconv.Quote(text)
}

func enum(name, prefix string) string { return strings.TrimPrefix(name, prefix) }

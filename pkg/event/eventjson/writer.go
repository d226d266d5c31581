package eventjson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// shape selects the JSON of an unset message.
type shape bool

const (
	// full writes an unset message with all its fields at zero.
	full shape = true
	// sparse writes null.
	sparse shape = false
)

const (
	contentName   = protoreflect.FullName("harness.v1.Content")
	timestampName = protoreflect.FullName("google.protobuf.Timestamp")
	durationName  = protoreflect.FullName("google.protobuf.Duration")
	structName    = protoreflect.FullName("google.protobuf.Struct")
	// controlName is left out if unset: most work items have no audit, and all false
	// would read as a failed one.
	controlName = protoreflect.FullName("harness.v1.ControlVerdict")
	// verdictName is null if unset: the work was not judged.
	verdictName = protoreflect.FullName("harness.v1.QualityVerdict")
	// questionName is null if unset: no server asks.
	questionName = protoreflect.FullName("harness.v1.ServerQuestion")
	// opaqueName is never written: only its maker can read it.
	opaqueName = protoreflect.FullName("harness.v1.Opaque")
)

// writer writes one JSON value and keeps track of commas.
type writer struct {
	buf   bytes.Buffer
	shape shape
	// comma: the next key or element needs a comma before it.
	comma bool
}

func newWriter(s shape) *writer { return &writer{shape: s} }

func (w *writer) bytes() []byte { return w.buf.Bytes() }

func (w *writer) open(b byte) {
	w.buf.WriteByte(b)
	w.comma = false
}

func (w *writer) close(b byte) {
	w.buf.WriteByte(b)
	w.comma = true
}

// runBelow is the run of a call that waits below: only trees have it.
const runBelow = "harness.v1.PendingCall.run_id"

func (w *writer) separate() {
	if w.comma {
		w.buf.WriteByte(',')
	}
	w.comma = false
}

func (w *writer) key(k string) {
	w.separate()
	w.str(k)
	w.buf.WriteByte(':')
	w.comma = false
}

func (w *writer) raw(s string) {
	w.buf.WriteString(s)
	w.comma = true
}

func (w *writer) str(s string) {
	enc := json.NewEncoder(&w.buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string into a buffer cannot fail
	w.buf.Truncate(w.buf.Len() - 1)
	w.comma = true
}

// fields writes the named fields of m.
func (w *writer) fields(m protoreflect.Message, names ...protoreflect.Name) {
	for _, name := range names {
		w.field(m, m.Descriptor().Fields().ByName(name))
	}
}

// message writes m as an object of all its fields but opaque ones. Of a oneof it writes
// only the field that is set.
func (w *writer) message(m protoreflect.Message) {
	w.open('{')
	all := m.Descriptor().Fields()
	for i := range all.Len() {
		f := all.Get(i)
		if one := f.ContainingOneof(); one != nil && !one.IsSynthetic() && !m.Has(f) || isMessage(f, opaqueName) || f.FullName() == runBelow && !m.Has(f) {
			continue
		}
		w.field(m, f)
	}
	w.close('}')
}

func (w *writer) field(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	name := string(f.Name())
	if isMessage(f, durationName) {
		name += "_ms"
	}
	w.key(name)
	switch {
	case f.IsList():
		list := m.Get(f).List()
		w.open('[')
		for i := range list.Len() {
			w.separate()
			w.value(f, list.Get(i))
		}
		w.close(']')
	case f.IsMap():
		w.mapping(f.MapValue(), m.Get(f).Map())
	case !m.Has(f) && f.HasPresence():
		w.unset(m, f)
	default:
		w.value(f, m.Get(f))
	}
}

// mapping writes a map with string keys as an object, in the order of its keys.
func (w *writer) mapping(f protoreflect.FieldDescriptor, m protoreflect.Map) {
	var keys []string
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k.String())
		return true
	})
	slices.Sort(keys)
	w.open('{')
	for _, k := range keys {
		w.key(k)
		w.value(f, m.Get(protoreflect.ValueOfString(k).MapKey()))
	}
	w.close('}')
}

// object writes a JSON object, in the order of its keys.
func (w *writer) object(s *structpb.Struct) {
	data, err := json.Marshal(s.AsMap())
	if err != nil { // a number that JSON cannot say
		data = []byte("{}")
	}
	w.raw(string(data))
}

// unset writes the value of an absent field that has presence.
func (w *writer) unset(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case isOutput(f):
		w.raw("null")
	case isMessage(f, contentName):
		w.str("")
	case f.Message() == nil, isMessage(f, timestampName), isMessage(f, controlName), isMessage(f, verdictName), isMessage(f, questionName), w.shape == sparse:
		w.raw("null")
	case isMessage(f, durationName):
		w.raw("0")
	case isMessage(f, structName):
		w.raw("{}")
	default:
		w.message(m.Get(f).Message())
	}
}

func (w *writer) value(f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch f.Kind() {
	case protoreflect.BoolKind:
		w.raw(strconv.FormatBool(v.Bool()))
	case protoreflect.EnumKind:
		w.str(enumName(f.Enum(), v.Enum()))
	case protoreflect.StringKind:
		w.str(v.String())
	case protoreflect.BytesKind:
		w.str(base64.StdEncoding.EncodeToString(v.Bytes()))
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		w.float(v.Float())
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		w.raw(strconv.FormatUint(v.Uint(), 10))
	case protoreflect.MessageKind, protoreflect.GroupKind:
		w.nested(f, v.Message())
	default: // the signed integers
		w.raw(strconv.FormatInt(v.Int(), 10))
	}
}

func (w *writer) nested(f protoreflect.FieldDescriptor, m protoreflect.Message) {
	switch v := m.Interface().(type) {
	case *timestamppb.Timestamp:
		w.time(v)
	case *durationpb.Duration:
		w.raw(strconv.FormatInt(v.AsDuration().Round(time.Millisecond).Milliseconds(), 10))
	case *harnessv1.Content:
		w.content(v, f.Name() == "arguments" || isOutput(f))
	case *structpb.Struct:
		w.object(v)
	default:
		w.message(m)
	}
}

func (w *writer) time(t *timestamppb.Timestamp) {
	w.str(t.AsTime().UTC().Format(time.RFC3339Nano))
}

// isOutput reports whether a field is the output of work_complete, which is JSON.
func isOutput(f protoreflect.FieldDescriptor) bool {
	return f.Name() == "output" && isMessage(f, contentName)
}

// content writes a text as a string, a reference to a blob as an object, and the
// arguments of a call and the output of a run, if they are JSON, as JSON.
func (w *writer) content(c *harnessv1.Content, isJSON bool) {
	if blob := c.GetBlob(); blob != nil {
		w.open('{')
		w.key("blob")
		w.message(blob.ProtoReflect())
		w.close('}')
		return
	}
	text := c.GetInline()
	if isJSON && json.Valid([]byte(text)) {
		// Compact cannot fail on valid JSON and keeps every digit.
		_ = json.Compact(&w.buf, []byte(text))
		w.comma = true
		return
	}
	w.str(text)
}

func (w *writer) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.raw("null") // JSON has no word for it
		return
	}
	b, _ := json.Marshal(f)
	w.raw(string(b))
}

// enumName returns the name without the prefix that all values of the enum share, which
// is taken from the zero value; an unknown value is its number.
func enumName(e protoreflect.EnumDescriptor, n protoreflect.EnumNumber) string {
	v := e.Values().ByNumber(n)
	if v == nil {
		return strconv.Itoa(int(n))
	}
	zero := string(e.Values().ByNumber(0).Name())
	return strings.TrimPrefix(string(v.Name()), strings.TrimSuffix(zero, "UNSPECIFIED"))
}

func isMessage(f protoreflect.FieldDescriptor, name protoreflect.FullName) bool {
	return f.Message() != nil && f.Message().FullName() == name
}

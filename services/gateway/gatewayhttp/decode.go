package gatewayhttp

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

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// The JSON of requests has the proto fields as in agent and contract files and as
// package eventjson writes them, so that an answer can be sent again. null is the same
// as an absent field. A duration is a text such as "90s", or milliseconds under its name
// with the suffix _ms.

const (
	contentName  = protoreflect.FullName("harness.v1.Content")
	durationName = protoreflect.FullName("google.protobuf.Duration")
	// milliseconds is the suffix of a duration that is a number.
	milliseconds = "_ms"
)

// fill sets the fields of m, which is at path, from a JSON object.
func fill(m protoreflect.Message, value json.RawMessage, path string) error {
	return object(value, path, func(name string, value json.RawMessage) error {
		f := fieldOf(m.Descriptor(), name)
		if f == nil {
			return unknownField(join(path, name), name, jsonNames(m.Descriptor()))
		}
		return fillField(m, f, value, join(path, name), strings.HasSuffix(name, milliseconds) && name != string(f.Name()))
	})
}

// fieldOf returns the field with a JSON name; nil if there is none.
func fieldOf(m protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if f := m.Fields().ByName(protoreflect.Name(name)); f != nil {
		return f
	}
	base, found := strings.CutSuffix(name, milliseconds)
	if f := m.Fields().ByName(protoreflect.Name(base)); found && f != nil && isDuration(f) {
		return f
	}
	return nil
}

func isDuration(f protoreflect.FieldDescriptor) bool {
	return f.Message() != nil && f.Message().FullName() == durationName
}

func jsonNames(m protoreflect.MessageDescriptor) []string {
	names := make([]string, m.Fields().Len())
	for i := range names {
		names[i] = string(m.Fields().Get(i).Name())
	}
	return names
}

func fillField(m protoreflect.Message, f protoreflect.FieldDescriptor, value json.RawMessage, path string, inMilliseconds bool) error {
	if kindOf(value) == 'n' {
		return nil
	}
	if own := ownForms[f.FullName()]; own != nil {
		return own(m, f, value, path)
	}
	if f.IsList() {
		list := m.Mutable(f).List()
		return array(value, path, func(i int, item json.RawMessage) error {
			v, err := one(f, func() protoreflect.Message { return list.NewElement().Message() }, item, indexed(path, i), false)
			if err == nil {
				list.Append(v)
			}
			return err
		})
	}
	if f.IsMap() { // of texts
		return object(value, path, func(name string, item json.RawMessage) error {
			s, err := text(item, join(path, clip(name)))
			if err == nil {
				m.Mutable(f).Map().Set(protoreflect.ValueOfString(name).MapKey(), protoreflect.ValueOfString(s))
			}
			return err
		})
	}
	if m.Has(f) && isDuration(f) {
		return fault.Invalid(path, "duplicate %s, once with %s", f.Name(), milliseconds)
	}
	if one := f.ContainingOneof(); one != nil && !one.IsSynthetic() && m.WhichOneof(one) != nil {
		return fault.Invalid(path, "mutually exclusive with %s: set one of them", m.WhichOneof(one).Name())
	}
	v, err := one(f, func() protoreflect.Message { return m.NewField(f).Message() }, value, path, inMilliseconds)
	if err == nil && v.IsValid() {
		m.Set(f, v)
	}
	return err
}

// one reads one value. It is invalid if it equals an absent field.
func one(f protoreflect.FieldDescriptor, fresh func() protoreflect.Message, value json.RawMessage, path string, inMilliseconds bool) (protoreflect.Value, error) {
	if f.Message() != nil {
		return oneMessage(f, fresh, value, path, inMilliseconds)
	}
	var v protoreflect.Value
	want := ""
	switch f.Kind() {
	case protoreflect.BoolKind:
		switch string(bytes.TrimSpace(value)) {
		case "true", "false":
			v = protoreflect.ValueOfBool(kindOf(value) == 't')
		default:
			want = "true or false"
		}
	case protoreflect.EnumKind:
		return enum(f, value, path)
	case protoreflect.StringKind:
		s, err := text(value, path)
		return protoreflect.ValueOfString(s), err
	case protoreflect.BytesKind:
		s, err := text(value, path)
		data, berr := base64.StdEncoding.DecodeString(s)
		if v = protoreflect.ValueOfBytes(data); err != nil || berr != nil {
			want = "base64"
		}
	case protoreflect.Uint32Kind:
		n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 32)
		if v = protoreflect.ValueOfUint32(uint32(n)); err != nil {
			want = "a whole number from 0 to 4294967295"
		}
	case protoreflect.Uint64Kind:
		n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
		if v = protoreflect.ValueOfUint64(n); err != nil {
			want = "a whole number from 0"
		}
	case protoreflect.DoubleKind:
		n, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
		if v = protoreflect.ValueOfFloat64(n); err != nil || kindOf(value) == '"' || math.IsInf(n, 0) {
			want = "a number"
		}
	default:
		want = "no value: it cannot be set here"
	}
	if want != "" {
		return protoreflect.Value{}, fault.Invalid(path, "%s: expected %s", clip(string(bytes.TrimSpace(value))), want)
	}
	return v, nil
}

func oneMessage(f protoreflect.FieldDescriptor, fresh func() protoreflect.Message, value json.RawMessage, path string, inMilliseconds bool) (v protoreflect.Value, err error) {
	switch f.Message().FullName() {
	case contentName:
		s, err := text(value, path)
		if err != nil || s == "" {
			return v, err
		}
		return protoreflect.ValueOfMessage(inline(s).ProtoReflect()), nil
	case durationName:
		d, err := length(value, path, inMilliseconds)
		if err != nil {
			return v, err
		}
		return protoreflect.ValueOfMessage(durationpb.New(d).ProtoReflect()), nil
	}
	m := fresh()
	return protoreflect.ValueOfMessage(m), fill(m, value, path)
}

func inline(text string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: text}}
}

// text reads a JSON string.
func text(value json.RawMessage, path string) (s string, err error) {
	if kindOf(value) != '"' {
		return "", fault.Invalid(path, "expected a text in quotes")
	}
	return s, json.Unmarshal(value, &s)
}

// length reads a duration.
func length(value json.RawMessage, path string, inMilliseconds bool) (time.Duration, error) {
	if inMilliseconds {
		n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/int64(time.Millisecond) {
			return 0, fault.Invalid(path, "%s: expected whole milliseconds", clip(string(value)))
		}
		return time.Duration(n) * time.Millisecond, nil
	}
	s, err := text(value, path)
	d, perr := time.ParseDuration(s)
	if err != nil || perr != nil {
		return 0, fault.Invalid(path, "%s: expected a duration such as \"90s\" or \"1h30m\"", clip(string(value)))
	}
	return d, nil
}

// enum reads the name of a value without its prefix, in either case.
func enum(f protoreflect.FieldDescriptor, value json.RawMessage, path string) (v protoreflect.Value, err error) {
	values := f.Enum().Values()
	prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
	name, err := text(value, path)
	found := values.ByName(protoreflect.Name(prefix + strings.ToUpper(name)))
	switch {
	case err == nil && found != nil && found.Number() == 0:
		return v, nil // the name of an unset value
	case err == nil && found != nil:
		return protoreflect.ValueOfEnum(found.Number()), nil
	}
	var names []string
	for i := range values.Len() {
		if gateway.IsSettable(f, values.Get(i).Number()) {
			names = append(names, strings.TrimPrefix(string(values.Get(i).Name()), prefix))
		}
	}
	return v, fault.Invalid(path, "%s: expected one of %s", clip(string(value)), strings.Join(names, ", "))
}

// unknownField returns the error about an unknown field, with the nearest known one
// or all of them.
func unknownField(path, name string, names []string) error {
	if nearest := fault.Nearest(name, names); nearest != "" {
		return fault.Invalid(path, "unknown field; did you mean %s?", nearest)
	}
	names = slices.Sorted(slices.Values(names))
	return fault.Invalid(path, "unknown field; expected one of %s", strings.Join(names, ", "))
}

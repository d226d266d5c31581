package schemagen

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

var (
	defaultText = regexp.MustCompile(`Default (\S+(?: (?:ms|s|min|days))?)[.,;](?: |$)`)
	units       = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "min": time.Minute, "days": 24 * time.Hour}
)

// TestProtoCommentsNameTheDefaults compares "Default X." in the comment of each field
// of the loop's configuration, which the schemas and editors show, with the value
// that runstate.Resolve sets.
func TestProtoCommentsNameTheDefaults(t *testing.T) {
	found, err := readComments(os.DirFS("../../../../proto/harness/v1"))
	if err != nil {
		t.Fatal(err)
	}
	resolved := runstate.Resolve(nil, 0).ProtoReflect()
	compared := 0
	for i := range resolved.Descriptor().Fields().Len() {
		section := resolved.Descriptor().Fields().Get(i)
		for j := range section.Message().Fields().Len() {
			f := section.Message().Fields().Get(j)
			m := defaultText.FindStringSubmatch(found[string(f.FullName())])
			set := resolved.Get(section).Message()
			if m == nil {
				if set.Has(f) && f.Name() != "max_input_tokens" { // depends on the model
					t.Errorf("%s has a default that its comment does not name", f.FullName())
				}
				continue
			}
			compared++
			if !sameDefault(f, set.Get(f), m[1]) {
				t.Errorf("%s: the comment says %s, Resolve sets %v", f.FullName(), m[1], set.Get(f))
			}
		}
	}
	if compared < 25 {
		t.Errorf("only %d defaults found in the comments", compared)
	}
}

// sameDefault reports whether a comment's text names the value of a field.
func sameDefault(f protoreflect.FieldDescriptor, v protoreflect.Value, text string) bool {
	text = strings.ReplaceAll(text, ",", "")
	if f.Message() != nil {
		n, unit, _ := strings.Cut(text, " ")
		d, err := strconv.Atoi(n)
		got, ok := v.Message().Interface().(*durationpb.Duration)
		return ok && err == nil && got.AsDuration() == time.Duration(d)*units[unit]
	}
	switch f.Kind() {
	case protoreflect.EnumKind:
		return strings.HasSuffix(string(f.Enum().Values().ByNumber(v.Enum()).Name()), "_"+text)
	case protoreflect.DoubleKind:
		n, err := strconv.ParseFloat(text, 64)
		return err == nil && n == v.Float()
	case protoreflect.BoolKind:
		return text == strconv.FormatBool(v.Bool())
	default:
		return text == v.String()
	}
}

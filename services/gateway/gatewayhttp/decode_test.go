package gatewayhttp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Any spec that eventjson writes is decoded as the same spec.
func TestSpecDecodesFromItsOwnJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := &harnessv1.RunSpec{}
		drawMessage(t, spec.ProtoReflect())
		for _, tool := range spec.GetClientTools() {
			if tool.GetParametersSchema() == "" {
				tool.ParametersSchema = anyArguments
			}
		}
		body, err := eventjson.Message(spec)
		if err != nil {
			t.Fatal(err)
		}
		start, err := startOf(body, "")
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if got := start.request.GetSpec(); !proto.Equal(got, spec) {
			t.Fatalf("%s\n got %s\nwant %s", body, prototext.Format(got), prototext.Format(spec))
		}
	})
}

// drawMessage sets some of the fields of a message.
func drawMessage(t *rapid.T, m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		name := string(f.FullName())
		switch {
		case name == "harness.v1.TaskContract.stored", !rapid.Bool().Draw(t, name):
		case f.ContainingOneof() != nil && !f.ContainingOneof().IsSynthetic() && m.WhichOneof(f.ContainingOneof()) != nil:
		case f.IsMap():
			m.Mutable(f).Map().Set(protoreflect.ValueOfString(rapid.String().Draw(t, name)).MapKey(), protoreflect.ValueOfString(rapid.String().Draw(t, name)))
		case f.IsList():
			list := m.Mutable(f).List()
			for range rapid.IntRange(1, 2).Draw(t, name) {
				list.Append(drawValue(t, f, func() protoreflect.Message { return list.NewElement().Message() }))
			}
		default:
			m.Set(f, drawValue(t, f, func() protoreflect.Message { return m.NewField(f).Message() }))
		}
	}
}

func drawValue(t *rapid.T, f protoreflect.FieldDescriptor, fresh func() protoreflect.Message) protoreflect.Value {
	name := string(f.FullName())
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, name))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(rapid.String().Draw(t, name))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32().Draw(t, name))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64().Draw(t, name))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(rapid.Float64Range(0, 1e9).Draw(t, name))
	case protoreflect.EnumKind:
		n := rapid.IntRange(1, f.Enum().Values().Len()-1).Draw(t, name)
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(n).Number())
	case protoreflect.MessageKind:
		m := fresh()
		switch v := m.Interface().(type) {
		case *harnessv1.Content:
			return protoreflect.ValueOfMessage(inline(rapid.StringN(1, 9, -1).Draw(t, name)).ProtoReflect())
		case *durationpb.Duration:
			proto.Merge(v, durationpb.New(time.Duration(rapid.IntRange(0, 1<<40).Draw(t, name))*time.Millisecond))
		default:
			drawMessage(t, m)
		}
		return protoreflect.ValueOfMessage(m)
	}
	if f.Kind() == protoreflect.BytesKind {
		return protoreflect.ValueOfBytes(rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, name))
	}
	t.Fatalf("%s: clients cannot send a %s", name, f.Kind())
	return protoreflect.Value{}
}

// An agent in a request may have the sections of an agent file.
func TestAnAgentFileIsAnAgent(t *testing.T) {
	body := `{"goal":"x","agent":{
		"name":"coder","model":"openai:m","tools":[{"name":"run_command","policy":"ask"}],
		"work_items":{"enabled":true,"templates":[{"title":"Write it"}]},
		"budgets":{"turns":40,"cost_usd":2.5,"wall_clock":"1h30m"},
		"context":{"max_input_tokens":64000,"soft_threshold":0.8},
		"approval_timeout":"90s",
		"sandbox":{"level":"auto","network":["example.com"]},
		"answer_timeout_ms":1500,
		"client_tools":[{"name":"ask_boss"},{"name":"look","parameters_schema":{"type":"object", "required":["b","a"]}}],
		"contract":{"required_outputs":[{"id":"r","predicate":{"type":"TOOL_RESULT_SUCCESS","tool":"t","arguments":{"path":"^a"}}}]},
		"hooks":[{"topic":"before_tool_call","cel":"true","action":"deny","reason":"not here"}]}}`
	start, err := startOf(json.RawMessage(body), "")
	if err != nil {
		t.Fatal(err)
	}
	spec := start.request.GetSpec()
	for _, c := range []struct{ what, got, want string }{
		{"policy", spec.GetAgent().GetTools()[0].GetPolicy().String(), "TOOL_DECISION_ASK"},
		{"work items", fmt.Sprint(spec.GetConfig().GetWorkItems().GetEnabled()), "true"},
		{"template", spec.GetAgent().GetWorkItemTemplates()[0].GetTitle(), "Write it"},
		{"budget", spec.GetConfig().GetBudgets().GetWallClock().AsDuration().String(), "1h30m0s"},
		{"window", fmt.Sprint(spec.GetConfig().GetContext().GetMaxInputTokens()), "64000"},
		{"network", spec.GetConfig().GetSandbox().GetNetwork().GetMode().String() + " " + strings.Join(spec.GetConfig().GetSandbox().GetNetwork().GetHosts(), " "), "SANDBOX_NETWORK_MODE_HOSTS example.com"},
		{"approval timeout", spec.GetConfig().GetTools().GetApprovalTimeout().AsDuration().String(), "1m30s"},
		{"answer timeout", spec.GetConfig().GetTools().GetAnswerTimeout().AsDuration().String(), "1.5s"},
		{"schema", spec.GetClientTools()[0].GetParametersSchema(), `{"type":"object"}`},
		{"schema as an object", spec.GetClientTools()[1].GetParametersSchema(), `{"type":"object","required":["b","a"]}`},
		{"pattern", spec.GetContract().GetRequiredOutputs()[0].GetPredicate().GetArguments()[0].GetPattern(), "^a"},
		{"hook", spec.GetAgent().GetHooks()[0].GetTopic().String(), "HOOK_TOPIC_BEFORE_TOOL_CALL"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
}

// Every body is read, or refused with the path of a field, without a panic.
func FuzzStart(f *testing.F) {
	for _, body := range []string{`{}`, `{"goal":"x","agent":{"tools":[{}]}}`, `{"agent":{"work_items":{"templates":[null]}}}`, `{"config":{"tools":{"timeout":"1s","timeout_ms":1}}}`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if checkJSON([]byte(body)) != nil {
			return
		}
		_, err := startOf(json.RawMessage(body), "")
		if err == nil {
			return
		}
		if p, status := problemOf(err); status != 400 || p.Field == "" || !strings.HasPrefix(p.Message, p.Field) {
			t.Fatalf("%s: %d %+v", body, status, p)
		}
	})
}

func FuzzPlace(f *testing.F) {
	for _, text := range []string{"0", "14-0", "14-3.r0123456789abcdef", "14.r0123456789abcdef", "-", "99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := placeOf(text, "after")
		if err != nil {
			return
		}
		again, err := placeOf(p.String(), "after")
		if err != nil || again != p {
			t.Fatalf("%q is %+v, and %q is %+v, %v", text, p, p, again, err)
		}
	})
}

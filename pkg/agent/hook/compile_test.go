package hook_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestCompileRejectsInvalidFields(t *testing.T) {
	command := func(text string) *harnessv1.Hook { return &harnessv1.Hook{Topic: beforeTool, Command: text} }
	changed := func(h *harnessv1.Hook, change func(*harnessv1.Hook)) *harnessv1.Hook {
		change(h)
		return h
	}
	for _, c := range []struct {
		field, message string
		hook           *harnessv1.Hook
	}{
		{"hooks[1].topic", "is required", &harnessv1.Hook{Command: "true"}},
		{"hooks[1].topic", "unknown topic", &harnessv1.Hook{Topic: 99, Command: "true"}},
		{"hooks[1].id", "does not match", changed(command("true"), func(h *harnessv1.Hook) { h.Id = "a b" })},
		{"hooks[1].id", "duplicate hook id", changed(command("true"), func(h *harnessv1.Hook) { h.Id = "first" })},
		{"hooks[1]", "nothing to call", &harnessv1.Hook{Topic: beforeTool}},
		{"hooks[1].grpc", "conflicts with cel", changed(cel("", beforeTool, "true", deny, ""), func(h *harnessv1.Hook) { h.Grpc = "h:1" })},
		{"hooks[1].callback", "conflicts with command", changed(command("true"), func(h *harnessv1.Hook) { h.Callback = true })},
		{"hooks[1].grpc", "HOST:PORT", &harnessv1.Hook{Topic: beforeTool, Grpc: "localhost"}},
		{"hooks[1].grpc", "HOST:PORT", &harnessv1.Hook{Topic: beforeTool, Grpc: "http://h:1"}},
		{"hooks[1].command", "blank", command(" \n")},
		{"hooks[1].command", "limit of 16384", command(strings.Repeat("x", hook.MaxCommand+1))},
		{"hooks[1].command", "NUL", command("a\x00b")},
		{"hooks[1].action", "is required", cel("", beforeTool, "true", unset, "")},
		{"hooks[1].action", "replace is not valid with cel", cel("", beforeTool, "true", replace, "")},
		{"hooks[1].action", "deny is not valid at after_tool_call", cel("", afterTool, "true", deny, "")},
		{"hooks[1].action", "block is not valid at before_tool_call: expected one of continue, skip, abort, pause, replan, deny", cel("", beforeTool, "true", block, "")},
		{"hooks[1].action", "pause is not valid at on_pause: expected one of continue", cel("", onPause, "true", pause, "")},
		{"hooks[1].action", "HOOK_ACTION", nil},
		{"hooks[1].reason", "limit of 4096", cel("", beforeTool, "true", deny, strings.Repeat("x", 5000))},
		{"hooks[1].context", "not valid at session_end", changed(cel("", sessionEnd, "true", carryOn, ""), func(h *harnessv1.Hook) { h.Context = "x" })},
		{"hooks[1].context", "limit of 8192", changed(cel("", afterTool, "true", carryOn, ""), func(h *harnessv1.Hook) { h.Context = strings.Repeat("x", 9000) })},
		{"hooks[1].action", "only valid with cel", changed(command("true"), func(h *harnessv1.Hook) { h.Action = deny })},
		{"hooks[1].reason", "only valid with cel", changed(command("true"), func(h *harnessv1.Hook) { h.Reason = "x" })},
		{"hooks[1].context", "only valid with cel", changed(command("true"), func(h *harnessv1.Hook) { h.Context = "x" })},
		{"hooks[1].on_failure", "unknown value", changed(command("true"), func(h *harnessv1.Hook) { h.OnFailure = 9 })},
		{"hooks[1].on_failure", "not valid at on_complete", changed(remoteHook("", onComplete), func(h *harnessv1.Hook) { h.OnFailure = closed })},
		{"hooks[1].timeout", "from 1ms to 5m", changed(command("true"), func(h *harnessv1.Hook) { h.Timeout = durationpb.New(0) })},
		{"hooks[1].timeout", "from 1ms to 5m", changed(command("true"), func(h *harnessv1.Hook) { h.Timeout = durationpb.New(5*time.Minute + 1) })},
		{"hooks[1].timeout", "from 1ms to 5m", changed(command("true"), func(h *harnessv1.Hook) { h.Timeout = &durationpb.Duration{Seconds: 1, Nanos: -1} })},
		{"hooks[1].tools", "not valid at before_step", changed(remoteHook("", beforeStep), func(h *harnessv1.Hook) { h.Tools = []string{"x"} })},
		{"hooks[1].tools[1]", "invalid tool name", changed(command("true"), func(h *harnessv1.Hook) { h.Tools = []string{"x", "a b"} })},
		{"hooks[1].tools", "limit of 64", changed(command("true"), func(h *harnessv1.Hook) { h.Tools = make([]string, 65) })},
	} {
		if c.hook == nil {
			c.message, c.hook = "99 is not valid at", cel("", beforeTool, "true", 99, "")
		}
		_, err := hook.Compile([]*harnessv1.Hook{remoteHook("first", beforeTool), c.hook})
		var invalid *fault.FieldError
		if !errors.As(err, &invalid) || invalid.Field != c.field || !strings.Contains(invalid.Message, c.message) || invalid.Line != 0 {
			t.Errorf("%s, %s: got %v", c.field, c.message, err)
		}
	}
}

func TestCompileReportsThePlaceInAnExpression(t *testing.T) {
	for source, at := range map[string][2]int{
		`tool == 5`:               {1, 6},
		"true &&\n  nonsense > 1": {2, 3},
		`"text"`:                  {1, 1},
		`tool == "x`:              {1, 9},
		`args.all(a, args.all(b, args.all(c, args.all(d, a == b && c == d))))`: {0, 0},
	} {
		_, err := hook.Compile([]*harnessv1.Hook{cel("", beforeTool, source, deny, "")})
		var invalid *fault.FieldError
		if !errors.As(err, &invalid) || invalid.Field != "hooks[0].cel" || invalid.Line != at[0] || invalid.Column != at[1] {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func TestCompileLimitsTheNumberOfHooks(t *testing.T) {
	hooks := make([]*harnessv1.Hook, 65)
	for i := range hooks {
		hooks[i] = remoteHook("", beforeTool)
	}
	if _, err := hook.Compile(hooks[:64]); err != nil {
		t.Fatal(err)
	}
	var invalid *fault.FieldError
	if _, err := hook.Compile(hooks); !errors.As(err, &invalid) || invalid.Field != "hooks" {
		t.Fatalf("got %v", err)
	}
}

func TestMissingIDsAreTheTopicAndANumber(t *testing.T) {
	hooks := []*harnessv1.Hook{
		remoteHook("", beforeTool), remoteHook("", afterTool), remoteHook("before_tool_call-2", beforeTool), remoteHook("", beforeTool),
		remoteHook("before_tool_call-1", onError), remoteHook("", afterTool),
	}
	for i, h := range hooks {
		h.Grpc = fmt.Sprint("127.0.0.1:", 7000+i)
	}
	s := compile(t, hooks...)
	// Numbers that are in use are skipped.
	for id, index := range map[string]int{"before_tool_call-3": 0, "before_tool_call-4": 3, "after_tool_call-1": 1, "after_tool_call-2": 5, "before_tool_call-2": 2, "before_tool_call-1": 4} {
		got := s.Hook(id)
		want := proto.CloneOf(hooks[index])
		want.Id = id
		if !proto.Equal(got, want) {
			t.Errorf("%s is %v", id, got)
		}
	}
	if hooks[0].GetId() != "" {
		t.Error("Compile changed its input")
	}
}

func TestParseActionAcceptsLowerCase(t *testing.T) {
	for a := range harnessv1.HookAction_name {
		action := harnessv1.HookAction(a)
		if action == unset {
			continue
		}
		if got, ok := hook.ParseAction(hook.ActionName(action)); !ok || got != action {
			t.Errorf("%v: %v", action, got)
		}
	}
	for _, name := range []string{"", "Deny", "DENY", "unspecified", "hook_action_deny", "allow", " deny"} {
		if got, ok := hook.ParseAction(name); ok {
			t.Errorf("%q: got %v, want none", name, got)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for i, h := range []*harnessv1.Hook{
		cel("a", beforeTool, `args.command.contains("x")`, deny, "no"), remoteHook("", afterTool),
		{Topic: agentStop, Command: "make test", Timeout: durationpb.New(time.Minute)}, {Topic: onPause, Callback: true},
	} {
		data, err := proto.Marshal(&harnessv1.Definition{Hooks: []*harnessv1.Hook{h, h}[:1+i%2]})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, `{"arguments":{}}`)
	}
	f.Fuzz(func(t *testing.T, data []byte, payload string) {
		d := &harnessv1.Definition{}
		if proto.Unmarshal(data, d) != nil {
			return
		}
		s, err := hook.Compile(d.GetHooks())
		var invalid *fault.FieldError
		if err != nil && (!errors.As(err, &invalid) || !strings.HasPrefix(invalid.Field, "hooks")) {
			t.Fatalf("%v", err)
		}
		if err != nil {
			return
		}
		for topic := range allowed {
			calls := 0
			observed := map[string]*harnessv1.HookOutcome{}
			for {
				r, need := s.Fire(point(topic), func(key string) *harnessv1.HookOutcome { return observed[key] })
				if need == nil {
					if r.Action == unset {
						t.Fatal("no action")
					}
					break
				}
				if calls++; calls > len(d.GetHooks()) || s.Hook(need.GetHookId()) == nil {
					t.Fatalf("call %d of %s", calls, need.GetHookId())
				}
				observed[need.GetIdempotencyKey()] = verdict(harnessv1.HookAction(calls%9), fmt.Sprint(calls), payload, "")
			}
		}
	})
}

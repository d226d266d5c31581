package hook

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/expr"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
)

// Set is a compiled list of hooks. It never changes and is safe for concurrent use. A
// nil Set has no hooks.
type Set struct {
	byTopic map[harnessv1.HookTopic][]*subscriber
	byID    map[string]*subscriber
}

// subscriber is a hook whose id is set.
type subscriber struct {
	*harnessv1.Hook
	topic *Topic
	when  *expr.Program // nil unless the hook is an expression
}

var (
	idFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`) })
)

// Compile checks hooks and compiles their expressions. No hooks make a nil Set. The
// error is a *fault.FieldError.
func Compile(hooks []*harnessv1.Hook) (*Set, error) {
	if len(hooks) == 0 {
		return nil, nil
	}
	if len(hooks) > maxHooks {
		return nil, fault.Invalid("hooks", "%d hooks exceed the limit of %d", len(hooks), maxHooks)
	}
	s := &Set{byTopic: map[harnessv1.HookTopic][]*subscriber{}, byID: map[string]*subscriber{}}
	all := make([]*subscriber, len(hooks))
	for i, h := range hooks {
		c := compiler{hook: h, at: "hooks[" + strconv.Itoa(i) + "]"}
		one, err := c.compile()
		if err != nil {
			return nil, err
		}
		if id := one.GetId(); id != "" {
			if s.byID[id] != nil {
				return nil, c.invalid("id", "duplicate hook id %s", strconv.Quote(id))
			}
			s.byID[id] = one
		}
		s.byTopic[one.GetTopic()] = append(s.byTopic[one.GetTopic()], one)
		all[i] = one
	}
	for _, one := range all {
		if one.Id == "" {
			one.Id = s.freeID(one)
			s.byID[one.Id] = one
		}
	}
	return s, nil
}

// freeID returns an id for a hook without one: its topic and its number there, or the
// next number that is free.
func (s *Set) freeID(one *subscriber) string {
	for n := slices.Index(s.byTopic[one.GetTopic()], one) + 1; ; n++ {
		if id := TopicName(one.GetTopic()) + "-" + strconv.Itoa(n); s.byID[id] == nil {
			return id
		}
	}
}

// Any reports whether one of the topics has a hook. A nil Set has none.
func (s *Set) Any(topics ...harnessv1.HookTopic) bool {
	if s == nil {
		return false
	}
	return slices.ContainsFunc(topics, func(t harnessv1.HookTopic) bool { return len(s.byTopic[t]) > 0 })
}

// Hook returns the hook with an id, nil if there is none. It must not be changed.
func (s *Set) Hook(id string) *harnessv1.Hook {
	if s == nil || s.byID[id] == nil {
		return nil
	}
	return s.byID[id].Hook
}

// includes reports whether the hook is called for a tool.
func (one *subscriber) includes(name string) bool {
	return len(one.GetTools()) == 0 || slices.ContainsFunc(one.GetTools(), func(p string) bool { return tool.Matches(p, name) })
}

// compiler checks and compiles one hook.
type compiler struct {
	hook *harnessv1.Hook
	at   string
}

func (c compiler) invalid(field, format string, args ...any) error {
	return fault.In(c.at, fault.Invalid(field, format, args...))
}

func (c compiler) compile() (*subscriber, error) {
	h := c.hook
	topic, known := findTopic(h.GetTopic())
	switch {
	case h.GetTopic() == harnessv1.HookTopic_HOOK_TOPIC_UNSPECIFIED:
		return nil, c.invalid("topic", "is required: the place where the hook is called, such as before_tool_call")
	case !known:
		return nil, c.invalid("topic", "unknown topic %d", int32(h.GetTopic()))
	case h.GetId() != "" && !idFormat().MatchString(h.GetId()):
		return nil, c.invalid("id", "%s does not match %s", strconv.Quote(h.GetId()), idFormat())
	}
	for _, check := range []func(*Topic) error{c.checkKind, c.checkVerdict, c.checkFailure, c.checkTimeout, c.checkTools} {
		if err := check(topic); err != nil {
			return nil, err
		}
	}
	one := &subscriber{Hook: proto.CloneOf(h), topic: topic}
	if h.GetCel() == "" {
		return one, nil
	}
	var err error
	if one.when, err = expr.Hook.Compile(h.GetCel()); err != nil {
		return nil, fault.In(c.at+".cel", err)
	}
	return one, nil
}

// checkKind checks that exactly one kind of hook is set, and that it can be called.
func (c compiler) checkKind(*Topic) error {
	h := c.hook
	var set []string
	for _, kind := range []struct {
		name string
		is   bool
	}{{"cel", h.GetCel() != ""}, {"grpc", h.GetGrpc() != ""}, {"command", h.GetCommand() != ""}, {"callback", h.GetCallback()}} {
		if kind.is {
			set = append(set, kind.name)
		}
	}
	switch {
	case h.GetUnconfined() && h.GetCommand() == "":
		return c.invalid("unconfined", "is only valid with command: other hooks are not in the sandbox")
	case len(set) == 0:
		return c.invalid("", "has nothing to call: set one of cel, grpc, command and callback")
	case len(set) > 1:
		return c.invalid(set[1], "conflicts with %s: set only one of cel, grpc, command and callback", set[0])
	case h.GetGrpc() != "":
		if err := remote.Check(h.GetGrpc()); err != nil {
			return c.invalid("grpc", "%s", err)
		}
	case h.GetCommand() != "":
		switch text := h.GetCommand(); {
		case strings.TrimSpace(text) == "":
			return c.invalid("command", "is blank: expected a command for sh -c")
		case len(text) > MaxCommand:
			return c.invalid("command", "%d bytes exceed the limit of %d: put the command into a script", len(text), MaxCommand)
		case strings.ContainsRune(text, 0):
			return c.invalid("command", "contains a NUL byte")
		}
	}
	return nil
}

// checkVerdict checks the verdict of an expression. Other kinds of hooks return theirs.
func (c compiler) checkVerdict(topic *Topic) error {
	h := c.hook
	if h.GetCel() == "" {
		switch {
		case h.GetAction() != harnessv1.HookAction_HOOK_ACTION_UNSPECIFIED:
			return c.invalid("action", "is only valid with cel: other hooks return their action")
		case h.GetReason() != "":
			return c.invalid("reason", "is only valid with cel: other hooks return their reason")
		case h.GetContext() != "":
			return c.invalid("context", "is only valid with cel: other hooks return their context")
		}
		return nil
	}
	switch a := h.GetAction(); {
	case a == harnessv1.HookAction_HOOK_ACTION_UNSPECIFIED:
		return c.invalid("action", "is required: what the hook does if the expression is true")
	case a == replace:
		return c.invalid("action", "replace is not valid with cel, which has no replacement")
	case !topic.allows(a):
		return c.invalid("action", "%s is not valid at %s: expected one of %s", ActionName(a), topic.Name(), topic.actionNames(replace))
	case len(h.GetReason()) > MaxReason:
		return c.invalid("reason", "%d bytes exceed the limit of %d", len(h.GetReason()), MaxReason)
	case h.GetContext() != "" && topic.ObservesOnly:
		return c.invalid("context", "is not valid at %s, where hooks only observe", topic.Name())
	case len(h.GetContext()) > MaxContext:
		return c.invalid("context", "%d bytes exceed the limit of %d", len(h.GetContext()), MaxContext)
	}
	return nil
}

func (c compiler) checkFailure(topic *Topic) error {
	switch f := c.hook.GetOnFailure(); {
	case harnessv1.HookFailure_name[int32(f)] == "":
		return c.invalid("on_failure", "unknown value %d: expected open or closed", int32(f))
	case f == harnessv1.HookFailure_HOOK_FAILURE_CLOSED && topic.Refusal == carryOn:
		return c.invalid("on_failure", "closed is not valid at %s, where a hook can stop nothing", topic.Name())
	}
	return nil
}

func (c compiler) checkTimeout(*Topic) error {
	t := c.hook.GetTimeout()
	if t == nil {
		return nil
	}
	if err := t.CheckValid(); err != nil || t.AsDuration() < MinTimeout || t.AsDuration() > MaxTimeout {
		return c.invalid("timeout", "must be from %v to %v", MinTimeout, MaxTimeout)
	}
	return nil
}

func (c compiler) checkTools(topic *Topic) error {
	tools := c.hook.GetTools()
	switch {
	case len(tools) > 0 && !topic.PerTool:
		return c.invalid("tools", "is not valid at %s: expected one of %s", topic.Name(), perToolNames())
	case len(tools) > maxTools:
		return c.invalid("tools", "%d tools exceed the limit of %d", len(tools), maxTools)
	}
	for i, name := range tools {
		if !tool.ValidName(name) {
			return c.invalid("tools["+strconv.Itoa(i)+"]", "invalid tool name %s: it must match ^[A-Za-z0-9_-]{1,64}$", strconv.Quote(name))
		}
	}
	return nil
}

package hook

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/expr"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
)

// Set is a list of hooks, ready to be called. It is never changed and may be used by
// many goroutines. A nil Set has no hooks.
type Set struct {
	byTopic map[harnessv1.HookTopic][]*subscriber
	byID    map[string]*subscriber
}

// subscriber is a hook with its id filled in.
type subscriber struct {
	*harnessv1.Hook
	rule rule
	when *expr.Program // nil unless it is an expression
}

var (
	idShape   = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	toolShape = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// Compile checks hooks and makes them ready. No hooks make a nil Set. The error is a
// *fault.FieldError.
func Compile(hooks []*harnessv1.Hook) (*Set, error) {
	if len(hooks) == 0 {
		return nil, nil
	}
	if len(hooks) > MaxHooks {
		return nil, fault.Invalid("hooks", "%d hooks; at most %d are allowed", len(hooks), MaxHooks)
	}
	s := &Set{byTopic: map[harnessv1.HookTopic][]*subscriber{}, byID: map[string]*subscriber{}}
	all := make([]*subscriber, len(hooks))
	for i, h := range hooks {
		c := checking{hook: h, at: "hooks[" + strconv.Itoa(i) + "]"}
		one, err := c.compile()
		if err != nil {
			return nil, err
		}
		if id := one.GetId(); id != "" {
			if s.byID[id] != nil {
				return nil, c.invalid("id", "%s is the id of another hook too; each has one of its own", strconv.Quote(id))
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

// freeID is the topic and its number there, or the next that nobody has.
func (s *Set) freeID(one *subscriber) string {
	for n := slices.Index(s.byTopic[one.GetTopic()], one) + 1; ; n++ {
		if id := TopicName(one.GetTopic()) + "-" + strconv.Itoa(n); s.byID[id] == nil {
			return id
		}
	}
}

// Any says whether one of the topics has a subscriber.
func (s *Set) Any(topics ...harnessv1.HookTopic) bool {
	if s == nil {
		return false
	}
	return slices.ContainsFunc(topics, func(t harnessv1.HookTopic) bool { return len(s.byTopic[t]) > 0 })
}

// ForTool says whether one of the topics has a subscriber for a tool.
func (s *Set) ForTool(tool string, topics ...harnessv1.HookTopic) bool {
	if s == nil {
		return false
	}
	return slices.ContainsFunc(topics, func(t harnessv1.HookTopic) bool {
		return slices.ContainsFunc(s.byTopic[t], func(one *subscriber) bool { return one.fits(tool) })
	})
}

// Hook is the hook with an id, its id filled in; nil when there is none. It must not
// be changed.
func (s *Set) Hook(id string) *harnessv1.Hook {
	if s == nil || s.byID[id] == nil {
		return nil
	}
	return s.byID[id].Hook
}

func (one *subscriber) fits(tool string) bool {
	return len(one.GetTools()) == 0 || slices.Contains(one.GetTools(), tool)
}

// checking is the check of one hook.
type checking struct {
	hook *harnessv1.Hook
	at   string
}

func (c checking) invalid(field, format string, args ...any) error {
	return fault.In(c.at, fault.Invalid(field, format, args...))
}

func (c checking) compile() (*subscriber, error) {
	h := c.hook
	r, known := rules[h.GetTopic()]
	switch {
	case h.GetTopic() == harnessv1.HookTopic_HOOK_TOPIC_UNSPECIFIED:
		return nil, c.invalid("topic", "is not set; say where the hook is called, such as before_tool_call")
	case !known:
		return nil, c.invalid("topic", "%d is no topic", int32(h.GetTopic()))
	case h.GetId() != "" && !idShape.MatchString(h.GetId()):
		return nil, c.invalid("id", "%s does not match %s", strconv.Quote(h.GetId()), idShape)
	}
	for _, check := range []func(rule) error{c.kind, c.expressionsOnly, c.failure, c.time, c.tools} {
		if err := check(r); err != nil {
			return nil, err
		}
	}
	one := &subscriber{Hook: proto.CloneOf(h), rule: r}
	if h.GetCel() == "" {
		return one, nil
	}
	var err error
	if one.when, err = expr.Hook.Compile(h.GetCel()); err != nil {
		return nil, fault.In(c.at+".cel", err)
	}
	return one, nil
}

// kind checks that there is one subscriber, and that it could be called.
func (c checking) kind(rule) error {
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
	case len(set) == 0:
		return c.invalid("", "says nobody to call; set one of cel, grpc, command and callback")
	case len(set) > 1:
		return c.invalid(set[1], "is set beside %s; a hook has one of cel, grpc, command and callback", set[0])
	case h.GetGrpc() != "":
		if err := remote.Check(h.GetGrpc()); err != nil {
			return c.invalid("grpc", "%s", err)
		}
	case h.GetCommand() != "":
		switch text := h.GetCommand(); {
		case strings.TrimSpace(text) == "":
			return c.invalid("command", "is blank; write a command for sh -c")
		case len(text) > MaxCommand:
			return c.invalid("command", "has %d bytes; at most %d are allowed: put it into a script", len(text), MaxCommand)
		case strings.ContainsRune(text, 0):
			return c.invalid("command", "holds a NUL")
		}
	}
	return nil
}

// expressionsOnly checks what an expression wants, and that nobody else says it here.
func (c checking) expressionsOnly(r rule) error {
	h := c.hook
	topic := TopicName(h.GetTopic())
	if h.GetCel() == "" {
		switch {
		case h.GetAction() != harnessv1.HookAction_HOOK_ACTION_UNSPECIFIED:
			return c.invalid("action", "is for cel only; this hook says itself what it wants")
		case h.GetReason() != "":
			return c.invalid("reason", "is for cel only; this hook says itself why")
		case h.GetContext() != "":
			return c.invalid("context", "is for cel only; this hook says itself what the model is told")
		}
		return nil
	}
	switch a := h.GetAction(); {
	case a == harnessv1.HookAction_HOOK_ACTION_UNSPECIFIED:
		return c.invalid("action", "is not set; say what the hook wants when the expression holds")
	case a == replace:
		return c.invalid("action", "replace is not for cel, which has nothing to put in the place")
	case !r.allows(a):
		return c.invalid("action", "%s is not for %s, which allows %s", ActionName(a), topic, r.list(replace))
	case len(h.GetReason()) > MaxReason:
		return c.invalid("reason", "has %d bytes; at most %d are allowed", len(h.GetReason()), MaxReason)
	case h.GetContext() != "" && r.looksOn:
		return c.invalid("context", "is not for %s, behind which the model is told nothing", topic)
	case len(h.GetContext()) > MaxContext:
		return c.invalid("context", "has %d bytes; at most %d are allowed", len(h.GetContext()), MaxContext)
	}
	return nil
}

// list names the actions of a topic but one.
func (r rule) list(but harnessv1.HookAction) string {
	names := []string{ActionName(carryOn)}
	for _, a := range r.actions {
		if a != but {
			names = append(names, ActionName(a))
		}
	}
	return strings.Join(names, ", ")
}

func (c checking) failure(r rule) error {
	switch f := c.hook.GetOnFailure(); {
	case harnessv1.HookFailure_name[int32(f)] == "":
		return c.invalid("on_failure", "%d is neither open nor closed", int32(f))
	case f == harnessv1.HookFailure_HOOK_FAILURE_CLOSED && r.closed == carryOn:
		return c.invalid("on_failure", "closed is not for %s, where a hook cannot stand in the way; leave it out", TopicName(c.hook.GetTopic()))
	}
	return nil
}

func (c checking) time(rule) error {
	t := c.hook.GetTimeout()
	if t == nil {
		return nil
	}
	if err := t.CheckValid(); err != nil || t.AsDuration() < MinTimeout || t.AsDuration() > MaxTimeout {
		return c.invalid("timeout", "has to be from %v to %v", MinTimeout, MaxTimeout)
	}
	return nil
}

func (c checking) tools(r rule) error {
	tools := c.hook.GetTools()
	switch {
	case len(tools) > 0 && !r.perTool:
		return c.invalid("tools", "is not for %s; it is for before_tool_call, after_tool_call and on_error", TopicName(c.hook.GetTopic()))
	case len(tools) > MaxTools:
		return c.invalid("tools", "%d tools; at most %d are allowed", len(tools), MaxTools)
	}
	for i, name := range tools {
		if !toolShape.MatchString(name) {
			return c.invalid("tools["+strconv.Itoa(i)+"]", "%s is no name of a tool; it matches %s", strconv.Quote(name), toolShape)
		}
	}
	return nil
}

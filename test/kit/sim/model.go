package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/summary"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// Model returns the simulated model of a process. Its responses depend on the
// conversation alone: the same request gives the same operations, under fresh ids, as
// with real models. So an operation that runs twice is detected.
func (p *Process) Model() func(ref string) (model.Provider, string, error) {
	return func(ref string) (model.Provider, string, error) { return &provider{p: p}, ref, nil }
}

type provider struct{ p *Process }

// modelCall is a call of the model in progress.
type modelCall struct {
	o     *op
	run   string
	p     *Process
	ready bool
	fails bool
	hangs bool
}

// Goal returns the goal of a run that the model knows as name: turns turns with tool
// calls, then completion.
func Goal(name string, turns int) string { return fmt.Sprintf("%s %d", name, turns) }

// LongGoal is a Goal whose responses have a number of words each, and report the size of
// their requests as usage.
func LongGoal(name string, turns, words int) string {
	return fmt.Sprintf("%s %d %d words", name, turns, words)
}

// Complete calls the model once.
func (m *provider) Complete(ctx context.Context, r *model.Request, delta func(model.Delta)) (*model.Response, error) {
	w := m.p.world
	plan := planOf(w.cfg.Seed, r)
	switch {
	case r.Job == nil:
	case r.Job.Purpose == summary.Purpose:
		plan = summaryPlan(r)
	default:
		plan = qualityPlan(r)
	}
	far := time.Now().Add(24 * time.Hour)
	var begun string
	o := &op{key: key{kind: onModel, run: plan.name, a: uint64(plan.at)}, deadline: far}
	o.do = func(fate) error { begun = plan.streamed(); return nil }
	if err := m.p.interact(ctx, o); err != nil {
		return nil, failed(ctx, err)
	}
	if invalid := w.checkRequest(plan.name, r); invalid != "" && r.Job == nil {
		w.mu.Lock()
		w.broken("valid conversation", invalid)
		w.mu.Unlock()
	}
	if r.Streaming && begun != "" {
		delta(model.Delta{Text: begun[:len(begun)/2]})
		delta(model.Delta{Text: begun[len(begun)/2:]})
	}
	var response *model.Response
	c := &modelCall{run: plan.name, p: m.p}
	o = &op{key: key{kind: onAnswer, run: plan.name, a: uint64(plan.at)}, deadline: far}
	c.o = o
	o.do = func(fate) error {
		w.consider(c)
		return errWaiting
	}
	o.check = func() error {
		if c.fails {
			return &model.Error{Retryable: true, RetryAfter: -1, Message: "overloaded"}
		}
		response = plan.response(w)
		return nil
	}
	if err := m.p.interact(ctx, o); err != nil {
		return nil, failed(ctx, err)
	}
	return response, nil
}

func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &model.Error{Retryable: true, RetryAfter: -1, Message: "cancelled", Err: context.Cause(ctx)}
	}
	return err
}

// consider draws the result of a call of the model.
func (w *World) consider(c *modelCall) {
	w.calls = append(w.calls, c)
	r := w.cfg.Rates
	wait := time.Duration(0)
	switch {
	case w.chance(r.ModelFails):
		c.fails = true
	case w.chance(r.ModelSlow):
		spans := [...]time.Duration{time.Second, w.ackWait, w.ackWait, 2 * w.ackWait, 5 * w.ackWait}
		wait = spans[w.random.IntN(len(spans))]
	case w.chance(r.ModelHangs):
		c.hangs = true
		return
	}
	w.after(wait, func() { c.ready = true })
}

// listModel lists the calls that can return; mu is held.
func (w *World) listModel() {
	left := w.calls[:0]
	for _, c := range w.calls {
		if c.o.left || c.p.dead {
			continue // no goroutine waits for it
		}
		left = append(left, c)
		if !c.ready {
			continue
		}
		k := c.o.key
		k.proc, k.text = busIndex+100, c.p.Instance
		w.choices = append(w.choices, choice{key: k, do: func() { w.answer(c) }})
	}
	clear(w.calls[len(left):])
	w.calls = left
}

func (w *World) answer(c *modelCall) {
	w.calls = without(w.calls, c)
	e := event{who: c.p.Instance, kind: onAnswer, run: c.run, a: c.o.key.a}
	if c.fails {
		e.fate = failing
	}
	w.record(e)
	c.o.finish(c.o.check())
}

// healModel makes the model answer all workers that still have their run's step. A
// worker that has lost it waits until it detects that.
func (w *World) healModel() {
	for _, c := range w.calls {
		if !c.hangs {
			continue
		}
		for _, l := range w.store.order {
			if l.name() == c.run && l.Newest().Record.GetWriter().GetInstance() == c.p.Instance {
				c.ready, c.hangs = true, false
			}
		}
	}
}

// bytesPerToken is the usual ratio of texts.
const bytesPerToken = 4

// plan is the model's response at one place of a conversation.
type plan struct {
	name string
	at   int // number of responses before
	text string
	kind string
	ops  int
	// words is the length of the text; last is the last message of a summary's span.
	words, last int
	// bytes is the size of the request.
	bytes int
	// tree: the run is part of a tree. ended is the newest sub-agent that has ended.
	tree  bool
	ended endedAgent
	// purpose is that of a job that judges; its text is then the prompt.
	purpose string
}

// streamed returns the text that the response streams.
func (p plan) streamed() string {
	if p.kind == "judge" {
		return ""
	}
	return p.text
}

// planOf returns the next response in a conversation.
func planOf(seed uint64, r *model.Request) plan {
	p := plan{}
	inputs, turns := 0, 3
	for _, m := range r.Messages {
		switch {
		case m.GetRole() == harnessv1.Role_ROLE_ASSISTANT:
			p.at++ // of all that the view shows
			if n := 0; len(m.GetContent().GetInline()) > 0 {
				if _, err := fmt.Sscanf(m.GetContent().GetInline(), "response %d", &n); err == nil {
					p.at = n
				}
			}
		case m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT:
			if inputs++; inputs == 1 {
				_, _ = fmt.Sscanf(m.GetContent().GetInline(), "%s %d %d", &p.name, &turns, &p.words)
			}
		}
		p.bytes += len(content.Text(m.GetContent()))
	}
	random := rand.New(rand.NewPCG(seed^hashOf(p.name), uint64(p.at)))
	for _, t := range r.Tools {
		p.bytes += len(t.GetDescription()) + len(t.GetParametersSchema())
	}
	p.text = fmt.Sprintf("response %d", p.at+1) + strings.Repeat(" and so on", p.words/3)
	if savesArtifacts(r.Tools) {
		p.text += strings.Repeat(" and so on", random.IntN(10)) // of which some are too short
	}
	p.tree = strings.Contains(p.name, ".") || has(r.Tools, tree.Delegate)
	if p.at >= turns+2*(inputs-1) {
		p.kind = "complete"
		if random.IntN(6) == 0 && p.at < turns+2*inputs+6 {
			p.kind = "silent"
		}
		return p
	}
	kinds := []string{"look", "set", "act", "act", "act", "beside", "run", "run", "mixed", "asked", "phone", "fax", "question", "silent", "garbage", "length"}
	if p.tree {
		kinds = treeKinds(r.Tools)
		p.ended = lastEnded(r.Messages)
	}
	if savesArtifacts(r.Tools) {
		kinds = append(kinds, "artifact", "artifact")
	}
	p.kind = kinds[random.IntN(len(kinds))]
	if p.kind == "continue" && p.ended.run == "" {
		p.kind = "look"
	}
	p.ops = 1 + random.IntN(3)
	return p
}

// response returns the plan with fresh call ids.
func (p plan) response(w *World) *model.Response {
	switch p.kind {
	case "summary":
		return p.summarize(w)
	case "judge":
		return p.rate(w)
	}
	r := &model.Response{
		Text: p.text, FinishReason: "tool_calls", Model: "sim",
		Usage: &harnessv1.Usage{InputTokens: uint64(100 + 20*p.at), OutputTokens: 20},
	}
	if p.words > 0 {
		r.Usage.InputTokens = uint64(p.bytes / bytesPerToken)
	}
	if p.tree {
		r.Usage = treeUsage()
	}
	add := func(tool, arguments string) {
		w.nextCall++
		r.ToolCalls = append(r.ToolCalls, &harnessv1.ToolCall{
			Id: fmt.Sprintf("c%d", w.nextCall), Name: tool, Arguments: content.Inline(arguments),
		})
	}
	op := func(tool string) {
		arguments, _ := json.Marshal(map[string]string{"op": fmt.Sprintf("%s:%d:%d", p.name, p.at, len(r.ToolCalls))})
		add(tool, string(arguments))
	}
	switch p.kind {
	case "complete":
		add("work_complete", `{"summary":"done"}`)
	case "artifact":
		add("save_artifact", fmt.Sprintf(`{"kind":"document","title":"Draft","content":"draft %d"}`, p.at))
	case "silent":
		r.FinishReason = "stop"
	case "length":
		op("act")
		r.FinishReason = "length"
	case "garbage":
		add("no_such_tool", "{")
		add("act", `{"op":7}`)
		add("", "null")
	case "mixed":
		op("act")
		op("run")
		op("beside")
		op("beside")
		op("look")
	case "question":
		add("ask_user", `{"question":"Which one?"}`)
		if p.ops > 1 {
			op("phone")
		}
	case "asked":
		op("run")
		op("run")
	default:
		if p.tree && p.delegate(add) {
			return r
		}
		for range p.ops {
			op(p.kind)
		}
	}
	return r
}

package compactionserver

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/compaction"
)

// observer fetches the observations that the decision about one step needs.
type observer struct {
	s    *Server
	task *executor.Task
	snap *harnessv1.Snapshot

	conversation *conversation.Conversation // once it is read
	view         *view.View
	weighed      bool // messages were counted
}

// bind returns the decision about one step, and its observer.
func (s *Server) bind(_ context.Context, task *executor.Task) (executor.Decide, executor.ObserveNeeds, error) {
	o := &observer{s: s, task: task, snap: task.Step().GetSnapshot()}
	decide := func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		if o.view == nil {
			return compaction.Decide(in, nil)
		}
		out, err := compaction.Decide(in, &o.view.Index)
		if err != nil || out.GetNeeds() == nil {
			if !o.weighed { // else the index has weights that are not stored if the commit fails
				s.views.Put(task.Run, o.snap.GetFirstSequence(), o.view)
			}
			o.view = nil
		}
		return out, err
	}
	return decide, o.observe, nil
}

// observe fetches what a decision needs.
func (o *observer) observe(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error) {
	var seen []*harnessv1.Observation
	for _, key := range needs.GetKeys() {
		observation, err := o.fetch(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("observe %s: %w", key, err)
		}
		observation.Key = key
		seen = append(seen, observation)
	}
	return seen, nil
}

func (o *observer) fetch(ctx context.Context, key string) (*harnessv1.Observation, error) {
	switch {
	case key == compaction.KeyConversation:
		return o.read(ctx)
	case key == compaction.KeyWeights:
		return o.weigh(ctx)
	case key == compaction.KeyTokens:
		return o.count(ctx)
	case key == compaction.KeyInference:
		return &harnessv1.Observation{Value: &harnessv1.Observation_InferenceAvailable{InferenceAvailable: o.s.cfg.Inference(ctx)}}, nil
	case key == compaction.KeyArrived:
		last, err := o.s.cfg.Log.LastInbox(ctx, o.task.Run)
		return &harnessv1.Observation{Value: &harnessv1.Observation_InboxWaiting{InboxWaiting: last > o.snap.GetInboxCursor()}}, err
	case strings.HasPrefix(key, compaction.KeySummary):
		state, err := o.summary(ctx, strings.TrimPrefix(key, compaction.KeySummary))
		return &harnessv1.Observation{Value: &harnessv1.Observation_Summary{Summary: state}}, err
	case strings.HasPrefix(key, compaction.KeyRequest):
		requested, err := o.request(ctx, key)
		return &harnessv1.Observation{Value: &harnessv1.Observation_SummaryRequested{SummaryRequested: requested}}, err
	}
	return nil, fmt.Errorf("compaction has no observation %q", key)
}

// load reads the conversation, once.
func (o *observer) load(ctx context.Context) (*conversation.Conversation, error) {
	if o.conversation == nil {
		c, err := o.s.cfg.Conversations.Load(ctx, o.snap.GetFirstSequence(), o.task.Tail())
		if err != nil {
			return nil, err
		}
		o.conversation = c
	}
	return o.conversation, nil
}

// read reads the conversation and makes its index.
func (o *observer) read(ctx context.Context) (*harnessv1.Observation, error) {
	began := o.s.cfg.Now()
	c, err := o.load(ctx)
	if err != nil {
		return nil, err
	}
	o.view = o.s.views.Take(o.task.Run, o.snap.GetFirstSequence(), c)
	o.view.Index.Add(c)
	return &harnessv1.Observation{Value: &harnessv1.Observation_Conversation{Conversation: &harnessv1.ConversationRead{
		Messages: uint64(len(c.Messages)), Duration: durationpb.New(o.s.cfg.Now().Sub(began)),
	}}}, nil
}

// maxWeights bounds the weights of a record. Messages beyond it wait for the next decision.
const maxWeights = 16 << 10

// weigh counts the messages that have no weight, as the model is sent them.
func (o *observer) weigh(ctx context.Context) (*harnessv1.Observation, error) {
	c, err := o.load(ctx)
	if err != nil {
		return nil, err
	}
	first := uint64(len(c.Weights)) + 1
	w := &harnessv1.Weights{FirstMessage: first}
	for _, m := range c.Messages[min(len(c.Weights), len(c.Messages)):min(len(c.Weights)+maxWeights, len(c.Messages))] {
		n, err := o.tokens(ctx, m)
		if err != nil {
			return nil, err
		}
		w.Tokens = append(w.Tokens, n)
	}
	o.weighed = true
	return &harnessv1.Observation{Value: &harnessv1.Observation_Weights{Weights: w}}, nil
}

// count counts the messages that the provider has not reported. It reads the log backwards,
// up to the first of them.
func (o *observer) count(ctx context.Context) (*harnessv1.Observation, error) {
	reported := o.snap.GetTokenBudget().GetReportedMessages()
	left := o.snap.GetMessageCount() - min(reported, o.snap.GetMessageCount())
	var count uint32
	for e := o.task.Entry; left > 0; {
		for _, m := range e.Record.GetAppended() {
			if m.GetId() <= reported {
				continue
			}
			left--
			n, err := o.tokens(ctx, m)
			if err != nil {
				return nil, err
			}
			count += n
		}
		before := runlog.TowardsAppended(e.Record)
		if before == 0 {
			break
		}
		var err error
		if e, err = o.s.cfg.Log.Read(ctx, o.task.Run, before); err != nil {
			return nil, err
		}
		if e.Record == nil {
			return nil, e.Err
		}
	}
	return &harnessv1.Observation{Value: &harnessv1.Observation_Tokens{Tokens: count}}, nil
}

// tokens returns the tokens of a message as the model is sent it.
func (o *observer) tokens(ctx context.Context, m *harnessv1.Message) (uint32, error) {
	cfg, model := o.snap.GetConfig(), o.snap.GetModel()
	sent, err := o.s.texts.Messages(ctx, o.task.Run, model, runstate.ShownTokens(cfg), true, []*harnessv1.Message{m})
	if err != nil {
		return 0, err
	}
	return shown.ModelOf(o.s.cfg.Catalogue, model).Weight(sent[0]), nil
}

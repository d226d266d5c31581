package context

import (
	stdcontext "context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/summary"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/compaction"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// gpt is a model with a public vocabulary, so that counts are exact.
const gpt = "openai:gpt-4o"

// toolTokens are the tokens of the tools of a request.
const toolTokens = 1200

// run is a run whose log and model are simulated.
type run struct {
	t     testing.TB
	c     conversation.Conversation
	s     *harnessv1.Snapshot
	v     view.View
	texts *shown.Texts
	blobs map[string][]byte
	now   time.Time
	facts map[string]uint64 // message that holds a planted text

	weights map[*harnessv1.Message]uint32
	jobs    map[string]uint32 // turn in which a job was created
	latency uint32            // turns that a summary takes
	// summarize is the summarizer: it writes the summary of messages.
	summarize func([]*harnessv1.Message) string
	sent      []*harnessv1.Message
	// sentPasses is the number of passes before the last request.
	sentPasses uint32
	figures    figures
	lastPass   uint64           // messages at the last pass
	thinker    *thinker         // that answers; nil: a script alone
	wires      []model.Provider // that check each request
	took       time.Duration    // by decisions and views
}

// figures are what the requests of a run amount to.
type figures struct {
	requests, passes, summaries int
	bytes, cachedBytes          float64
	tokens, cachedTokens        float64
}

// cost returns the input as billed: cached tokens at a tenth, others as written to the cache.
func (f figures) cost() float64 { return 0.1*f.cachedTokens + 1.25*(f.tokens-f.cachedTokens) }

func newRun(t testing.TB, window uint32, change func(*harnessv1.ContextConfig)) *run {
	cfg := &harnessv1.ContextConfig{MaxInputTokens: proto.Uint32(window)}
	if change != nil {
		change(cfg)
	}
	r := &run{
		t: t, blobs: map[string][]byte{}, now: time.Unix(1_000_000, 0), facts: map[string]uint64{}, weights: map[*harnessv1.Message]uint32{},
		jobs: map[string]uint32{}, latency: 1, summarize: plantedFacts,
		s: &harnessv1.Snapshot{
			Phase: harnessv1.Phase_PHASE_EXECUTING, Workflow: workflow.Default(), FirstSequence: 1, Model: gpt, GoalPreview: "Do the work.",
			TokenBudget: &harnessv1.TokenBudget{ToolTokens: toolTokens}, Config: runstate.Resolve(&harnessv1.LoopConfig{Context: cfg}, 0),
		},
	}
	r.texts = shown.New(func(_ stdcontext.Context, _ runlog.Run, digest string) ([]byte, error) { return r.blobs[digest], nil }, 64<<20)
	r.add(&harnessv1.Message{Role: harnessv1.Role_ROLE_SYSTEM, Kept: true, Content: content.Inline(strings.Repeat("You write programs and check them. ", 60))})
	r.add(&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: content.Inline("Do the work.")})
	return r
}

// checkWires sends each request of the run to strict servers of both wires.
func (r *run) checkWires() {
	s := modeltest.NewServerFunc(r.t, func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "Go on."} })
	chat, err := openai.New(openai.Config{Endpoint: adapter.Endpoint{BaseURL: s.BaseURL(), HTTPClient: s.Client()}})
	if err != nil {
		r.t.Fatal(err)
	}
	messages, err := anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{BaseURL: s.MessagesURL(), HTTPClient: s.Client()}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.wires = []model.Provider{chat, messages}
}

// maxInline is the size in bytes up to which a record holds a text itself.
const maxInline = 8 << 10

// add appends a message.
func (r *run) add(m *harnessv1.Message) uint64 {
	m.Id, m.TurnNumber = uint64(len(r.c.Messages))+1, r.s.GetTurnCount()
	r.spill(m.GetContent())
	for _, c := range m.GetToolCalls() {
		r.spill(c.GetArguments())
	}
	r.c.Fold(&harnessv1.Record{Version: r.c.Version + 1, Appended: []*harnessv1.Message{m}})
	r.s.MessageCount = m.GetId()
	r.s.TokenBudget.UnreportedBytes += runstate.MessageBytes(m)
	return m.GetId()
}

// spill moves a long text to a blob.
func (r *run) spill(c *harnessv1.Content) {
	if text := c.GetInline(); len(text) > maxInline {
		c.Value = &harnessv1.Content_Blob{Blob: r.put([]byte(text))}
	}
}

func (r *run) put(data []byte) *harnessv1.BlobRef {
	ref := content.Ref(data)
	r.blobs[ref.GetDigest()] = data
	return ref
}

// compact makes the decision before a turn.
func (r *run) compact() {
	r.t.Helper()
	var observed []*harnessv1.Observation
	var x *view.Index
	for range 50 {
		in := &harnessv1.StepInput{Now: timestamppb.New(r.now), Version: r.c.Version, Observed: observed, Step: &harnessv1.Step{
			Snapshot: r.s, Message: &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{}},
		}}
		out, err := compaction.Decide(in, x)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, key := range out.GetNeeds().GetKeys() {
			observed = append(observed, r.observe(key, &x))
		}
		if out.GetWait() != nil {
			r.now = r.now.Add(time.Second)
			for key := range r.jobs {
				r.jobs[key] = 0 // the summary is there
			}
			observed, x = nil, nil
		}
		step := out.GetOutcome().GetStep()
		if step == nil {
			continue
		}
		r.s = step.GetSnapshot()
		r.c.Fold(&harnessv1.Record{Version: r.c.Version + 1, Body: &harnessv1.Record_Step{Step: step}})
		for _, e := range out.GetOutcome().GetEvents() {
			r.completed(e.GetCompactionCompleted())
		}
		switch step.GetTo() {
		case workflow.Turn:
			return
		case workflow.StopDecision:
			r.t.Fatalf("turn %d: %v", r.s.GetTurnCount(), step.GetTurnComplete())
		}
		observed, x = nil, nil
	}
	r.t.Fatal("compaction came to no end")
}

// completed checks that a pass is not the consequence of the one before it.
func (r *run) completed(c *harnessv1.CompactionCompleted) {
	if c == nil {
		return
	}
	r.figures.passes++
	if r.lastPass == uint64(len(r.c.Messages)) {
		r.t.Errorf("turn %d: two passes without a message between them", r.s.GetTurnCount())
	}
	r.lastPass = uint64(len(r.c.Messages))
}

func (r *run) observe(key string, x **view.Index) *harnessv1.Observation {
	o := &harnessv1.Observation{Key: key}
	switch {
	case key == compaction.KeyConversation:
		r.v.Index.Add(&r.c)
		*x = &r.v.Index
		o.Value = &harnessv1.Observation_Conversation{Conversation: &harnessv1.ConversationRead{}}
	case key == compaction.KeyWeights:
		o.Value = &harnessv1.Observation_Weights{Weights: r.weigh(len(r.c.Messages))}
	case key == compaction.KeyInference:
		o.Value = &harnessv1.Observation_InferenceAvailable{InferenceAvailable: true}
	case key == compaction.KeyArrived:
		o.Value = &harnessv1.Observation_InboxWaiting{}
	case strings.HasPrefix(key, compaction.KeyRequest):
		job, err := compaction.ParseRequest(key)
		if err != nil {
			r.t.Fatal(err)
		}
		r.jobs[job.GetKey()] = r.s.GetTurnCount() + r.latency
		r.figures.summaries++
		o.Value = &harnessv1.Observation_SummaryRequested{SummaryRequested: &harnessv1.SummaryRequested{Job: job}}
	default:
		o.Value = &harnessv1.Observation_Summary{Summary: r.summary(strings.TrimPrefix(key, compaction.KeySummary))}
	}
	return o
}

// weigh counts messages that have no weight, up to a message.
func (r *run) weigh(through int) *harnessv1.Weights {
	w := &harnessv1.Weights{FirstMessage: uint64(len(r.c.Weights)) + 1}
	for _, m := range r.c.Messages[len(r.c.Weights):through] {
		w.Tokens = append(w.Tokens, r.weight(r.inline([]view.Item{{Message: m}})[0]))
	}
	return w
}

// inline returns messages as they are sent.
func (r *run) inline(items []view.Item) []*harnessv1.Message {
	sent, err := r.texts.View(stdcontext.Background(), runlog.Run{}, gpt, runstate.ShownTokens(r.s.GetConfig()), true, items)
	if err != nil {
		r.t.Fatal(err)
	}
	return sent
}

func (r *run) weight(m *harnessv1.Message) uint32 {
	n, ok := r.weights[m]
	if !ok {
		n = shown.ModelOf(nil, gpt).Weight(m)
		r.weights[m] = n
	}
	return n
}

var planted = regexp.MustCompile(`FACT-\d+-\d+`)

// plantedFacts returns a summary of the planted facts in messages.
func plantedFacts(messages []*harnessv1.Message) string {
	var facts []string
	for _, m := range messages {
		for _, fact := range planted.FindAllString(content.Text(m.GetContent()), -1) {
			facts = append(facts, fmt.Sprintf(`{"text":%q,"messages":[%d]}`, fact, m.GetId()))
		}
	}
	return fmt.Sprintf(`{"facts":[%s],"decisions":["go on"],"current_task":"the work"}`, strings.Join(facts, ","))
}

// summary returns the summary of a job.
func (r *run) summary(key string) *harnessv1.SummaryState {
	if r.s.GetTurnCount() < r.jobs[key] {
		return &harnessv1.SummaryState{}
	}
	plan := r.s.GetCompactionPlan()
	var job *harnessv1.SummaryJob
	for _, j := range plan.GetJobs() {
		if j.GetKey() == key {
			job = j
		}
	}
	text := r.summarize(r.c.Messages[job.GetFirstMessage()-1 : job.GetThroughMessage()])
	next, err := summary.Parse(text, job.GetFirstMessage(), job.GetThroughMessage())
	if err != nil {
		r.t.Fatal(err)
	}
	merged := summary.Fit(summary.Merge(r.former(), next), int(0.12*3*float64(r.s.GetConfig().GetContext().GetMaxInputTokens())), func(s *harnessv1.StructuredSummary) int { return len(view.SummaryText(s)) })
	data, err := summary.Encode(merged)
	if err != nil {
		r.t.Fatal(err)
	}
	ref := r.put(data)
	ref.Preview = "" // binary
	return &harnessv1.SummaryState{Ended: true, Summary: &harnessv1.SummaryRef{
		Key: key, ThroughMessage: job.GetThroughMessage(), Summary: ref, Former: plan.GetSummary().GetKey(), Merged: plan.GetSummary().GetMerged() + 1,
		Tokens: r.weight(view.SummaryMessage(merged)),
	}}
}

// former returns the summary that the plan shows; nil if there is none.
func (r *run) former() *harnessv1.StructuredSummary {
	ref := r.s.GetCompactionPlan().GetSummary()
	if ref == nil {
		return nil
	}
	s, err := summary.Decode(r.blobs[ref.GetSummary().GetDigest()])
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// play performs a turn: the message of the user, the request, the response and its calls.
func (r *run) play(t turn) {
	if t.steering != "" {
		r.facts[t.steering] = r.add(&harnessv1.Message{
			Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: content.Inline(t.steering),
		})
	}
	began := time.Now()
	r.compact()
	items := r.v.Update(&r.c, r.s.GetCompactionPlan(), r.former())
	sent := r.inline(items)
	r.took += time.Since(began)
	if r.thinker != nil {
		sent = r.thinker.asSent(sent)
	}
	tokens := r.request(sent)
	r.check(items, sent, tokens)
	r.s.TurnCount++
	weights := r.weigh(len(r.c.Messages))
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(t.text)}
	for i, c := range t.calls {
		m.ToolCalls = append(m.ToolCalls, &harnessv1.ToolCall{Id: fmt.Sprintf("c%d-%d", r.s.GetTurnCount(), i), Name: c.tool, Arguments: content.Inline(c.arguments)})
	}
	if r.thinker != nil {
		r.thinker.answer(sent, m)
	}
	id := r.add(m)
	if planted.MatchString(t.text) {
		r.facts[t.fact] = id
	}
	if len(weights.GetTokens()) > 0 && tokens >= r.s.GetConfig().GetContext().GetMaxInputTokens()/4 {
		r.c.Fold(&harnessv1.Record{Version: r.c.Version + 1, Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{
			Entry: &harnessv1.Journal_ModelResponded{ModelResponded: &harnessv1.ModelResponded{Weights: weights}},
		}}})
	}
	b := r.s.TokenBudget
	b.ReportedTokens, b.ReportedMessages, b.UnreportedBytes, b.FreedTokens = tokens+r.weight(r.inline([]view.Item{{Message: m}})[0]), id, 0, 0
	for i, c := range t.calls {
		result := r.add(&harnessv1.Message{
			Role: harnessv1.Role_ROLE_TOOL, ToolCallId: m.GetToolCalls()[i].GetId(), ToolName: c.tool, Durability: c.durability, Content: content.Inline(c.result),
		})
		if planted.MatchString(c.result) {
			r.facts[t.fact] = result
		}
	}
}

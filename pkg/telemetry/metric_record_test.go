package telemetry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// measured returns metrics and the registry that exposes them.
func measured(t *testing.T) (*Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	provider := meters(t, registry)
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	m, err := NewMetrics(provider.Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	return m, registry
}

// shown returns the values of the harness's own metrics, without those that are 0:
// NAME{label="value"} VALUE, of histograms the count and the sum.
func shown(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	return slices.DeleteFunc(shownAll(t, registry), func(line string) bool { return strings.HasSuffix(line, "} 0") })
}

// shownAll includes those that are 0.
func shownAll(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		name := f.GetName()
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") || name == "target_info" {
			continue
		}
		for _, one := range f.GetMetric() {
			var labels []string
			for _, l := range one.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%s", strings.TrimPrefix(l.GetName(), "gen_ai_"), l.GetValue()))
			}
			value := fmt.Sprint(one.GetCounter().GetValue() + one.GetGauge().GetValue())
			if h := one.GetHistogram(); h != nil {
				value = fmt.Sprintf("%d %g", h.GetSampleCount(), h.GetSampleSum())
			}
			all = append(all, fmt.Sprintf("%s{%s} %s", name, strings.Join(labels, ","), value))
		}
	}
	slices.Sort(all)
	return all
}

func handed(from, to string, s *harnessv1.Snapshot, set func(*harnessv1.Step)) *harnessv1.Record {
	step := &harnessv1.Step{From: from, To: to, Snapshot: s}
	set(step)
	return &harnessv1.Record{Version: 7, Writer: &harnessv1.Writer{Executor: from}, Body: &harnessv1.Record_Step{Step: step}}
}

func TestRecordsAreCounted(t *testing.T) {
	result := func(s *harnessv1.Step) {
		s.Message = &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{
			Status: harnessv1.RunStatus_RUN_STATUS_DONE, Reason: &harnessv1.StopReason{Kind: "agent_done"},
		}}
	}
	parked := func(s *harnessv1.Step) {
		s.Message = &harnessv1.Step_Parked{Parked: &harnessv1.Parked{Reason: &harnessv1.StopReason{Kind: "approval"}}}
	}
	answer := responded(time.Second, 0)
	answer.GetModelResponded().Usage = &harnessv1.Usage{InputTokens: 900, OutputTokens: 20, CachedInputTokens: 300, CostMicroUsd: 2_500_000, ReasoningTokens: 12, CacheWriteTokens: 40}
	answer.GetModelResponded().Calls = []*harnessv1.PreparedCall{
		{Tool: "read_file", Offered: true, Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_RUN},
		{Tool: "made_up", Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_INVALID},
	}
	adjusted := givenUp()
	adjusted.GetModelRetried().Adjustment = &harnessv1.ModelAdjustment{Adjustment: harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT}
	refused := givenUp()
	refused.GetModelRetried().Last, refused.GetModelRetried().Usage = false, &harnessv1.Usage{InputTokens: 900, OutputTokens: 20}
	unjudged := responded(time.Second, 0)
	unjudged.GetModelResponded().Unjudged = true
	unjudged.GetModelResponded().Calls = answer.GetModelResponded().GetCalls()
	withMessage := func(entry *harnessv1.Journal, failed bool) *harnessv1.Record {
		r := at(0, entry)
		r.Appended = []*harnessv1.Message{{ToolCallId: "c", ToolName: "read_file", IsError: failed}}
		return r
	}
	unknown := finished(2 * time.Second)
	unknown.GetToolFinished().Outcome = harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN
	tokens := []string{
		"gen_ai_client_token_usage{operation_name=chat,provider_name=openai,request_model=m,token_type=input} 1 900",
		"gen_ai_client_token_usage{operation_name=chat,provider_name=openai,request_model=m,token_type=output} 1 20",
	}
	for name, c := range map[string]struct {
		rec  *harnessv1.Record
		want []string
	}{
		"a start": {
			handed("gateway", "repair", nil, func(s *harnessv1.Step) {
				s.Message = &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_START}}
			}), []string{"harness_run_started_total{} 1"},
		},
		"a wake is no start": {
			handed("repair", "repair", nil, func(s *harnessv1.Step) {
				s.Message = &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE}}
			}), nil,
		},
		"a park":                    {handed("stopdecision", "park", &harnessv1.Snapshot{ParkVersion: 7}, parked), []string{"harness_run_parked_total{reason=approval} 1"}},
		"the same park once more":   {handed("repair", "park", &harnessv1.Snapshot{ParkVersion: 3}, parked), nil},
		"an end":                    {handed(workflow.StopDecision, "end", &harnessv1.Snapshot{}, result), []string{"harness_run_ended_total{reason=agent_done,status=done} 1"}},
		"the same end once more":    {handed("repair", "end", &harnessv1.Snapshot{}, result), nil},
		"a model's answer":          {at(0, answer), append([]string{"harness_model_cache_write_tokens_total{provider_name=openai,request_model=m} 40", "harness_model_cached_tokens_total{provider_name=openai,request_model=m} 300", "harness_model_reasoning_tokens_total{provider_name=openai,request_model=m} 12", "harness_model_cost_usd_total{provider_name=openai,request_model=m} 2.5", "harness_tool_calls_total{disposition=invalid,tool_name=other} 1", "harness_tool_calls_total{disposition=run,tool_name=read_file} 1"}, tokens...)},
		"an answer to be judged":    {at(0, unjudged), []string{"gen_ai_client_token_usage{operation_name=chat,provider_name=openai,request_model=m,token_type=input} 1 0", "gen_ai_client_token_usage{operation_name=chat,provider_name=openai,request_model=m,token_type=output} 1 0"}},
		"a model that was given up": {at(0, givenUp()), []string{"harness_model_retries_total{error_type=failed,provider_name=openai,request_model=m,outcome=given_up} 1"}},
		"a request in another form": {at(0, adjusted), []string{"harness_model_retries_total{error_type=failed,provider_name=openai,request_model=m,outcome=adjusted} 1"}},
		"a refusal that is charged": {at(0, refused), append([]string{"harness_model_retries_total{error_type=failed,provider_name=openai,request_model=m,outcome=retried} 1"}, tokens...)},
		"a tool's end":              {withMessage(finished(2*time.Second), false), []string{"gen_ai_execute_tool_duration_seconds{tool_name=read_file} 1 2"}},
		"a tool's error":            {withMessage(finished(2*time.Second), true), []string{"gen_ai_execute_tool_duration_seconds{error_type=error,tool_name=read_file} 1 2"}},
		"an end that nobody knows":  {at(0, unknown), []string{"gen_ai_execute_tool_duration_seconds{error_type=unknown,tool_name=other} 1 2", "harness_tool_unknown_ends_total{} 1"}},
		"a failure": {
			at(0, &harnessv1.Journal{Entry: &harnessv1.Journal_ExecutorFailed{ExecutorFailed: &harnessv1.ExecutorFailed{Executor: "turn"}}}),
			[]string{"harness_step_failures_total{executor=turn} 1"},
		},
		"a takeover": {
			&harnessv1.Record{Writer: &harnessv1.Writer{Executor: "turn"}, Events: []*harnessv1.Event{{Event: &harnessv1.Event_WorkerTakeover{WorkerTakeover: &harnessv1.WorkerTakeover{}}}}},
			[]string{"harness_step_takeovers_total{executor=turn} 1"},
		},
		"a turn": {
			handed("turn", "stopdecision", nil, func(s *harnessv1.Step) {
				s.Message = &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{}}
			}),
			[]string{"harness_turns_total{outcome=completed} 1"},
		},
		"a turn that another executor hands on": {
			handed("reviewer", "stopdecision", nil, func(s *harnessv1.Step) {
				s.Message = &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{}}
			}), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, registry := measured(t)
			m.stored(t.Context(), c.rec)
			slices.Sort(c.want)
			if got := shown(t, registry); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestInventedNamesAreOther(t *testing.T) {
	m, registry := measured(t)
	for i := range 2 * maxSets {
		m.DeadLetter(t.Context(), fmt.Sprintf("made-up-%d", i))
	}
	got := shown(t, registry)
	want := fmt.Sprintf("harness_step_dead_letters_total{executor=other} %d", maxSets)
	if len(got) != maxSets+1 || !slices.Contains(got, want) {
		t.Errorf("%d series, without %s", len(got), want)
	}
}

func TestNilMetricsCountNothing(t *testing.T) {
	var m *Metrics
	m.Serves(t.Context(), "turn")
	m.Writes(t.Context(), "gateway")
	m.StepReceived(t.Context(), "turn", true, noon, noon)
	m.StepEnded(t.Context(), "turn", Committed, time.Second)
	m.DeadLetter(t.Context(), "turn")
	if m.ServerOptions() != nil || m.HTTP(nil) != nil || m.Provider("x:y", nil) != nil {
		t.Error("nothing is to be put around what there is")
	}
	for _, err := range []error{m.ObserveProcess("v", nil), m.ObserveConnection(nil), m.ObserveRuns(nil), m.ObserveBus(nil)} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestExecutorExposesItsCountersAs0(t *testing.T) {
	of := func(executor string) []string {
		return []string{
			"harness_bus_unsettled_total{executor=" + executor + "} 0",
			"harness_step_dead_letters_total{executor=" + executor + "} 0",
			"harness_step_failures_total{executor=" + executor + "} 0",
			"harness_step_redeliveries_total{executor=" + executor + "} 0",
			"harness_step_takeovers_total{executor=" + executor + "} 0",
		}
	}
	for executor, also := range map[string][]string{
		"reviewer":            nil,
		"turn":                {"harness_tool_unknown_ends_total{} 0"},
		"compaction":          {"harness_compaction_summaries_total{outcome=failed} 0", "harness_compaction_summaries_total{outcome=ready} 0", "harness_compaction_waits_total{} 0"},
		workflow.StopDecision: documentedEnds(t),
	} {
		m, registry := measured(t)
		m.Serves(t.Context(), executor)
		want := append(of(executor), also...)
		slices.Sort(want)
		if got := shownAll(t, registry); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", executor, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	m, registry := measured(t)
	m.Writes(t.Context(), "gateway")
	if got, want := shownAll(t, registry), of("gateway")[:1]; !slices.Equal(got, want) {
		t.Errorf("a gateway: got %v", got)
	}
}

// compacting returns a step of compaction with events.
func compacting(executor string, used uint32, events ...*harnessv1.Event) *harnessv1.Record {
	rec := handed(executor, "turn", &harnessv1.Snapshot{TokenBudget: &harnessv1.TokenBudget{UsedTokens: used, MaxInputTokens: 1000}}, func(s *harnessv1.Step) {
		s.Message = &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}
	})
	rec.Events = events
	return rec
}

func TestCompactionIsCounted(t *testing.T) {
	started := func(level, job string, background bool) *harnessv1.Event {
		return &harnessv1.Event{Event: &harnessv1.Event_CompactionStarted{CompactionStarted: &harnessv1.CompactionStarted{Level: level, Job: job, Background: background}}}
	}
	completed := &harnessv1.Event{Event: &harnessv1.Event_CompactionCompleted{CompactionCompleted: &harnessv1.CompactionCompleted{
		Duration: durationpb.New(2 * time.Second), Strategies: []string{"clear", "direct_clear"}, Changes: []*harnessv1.CompactionChange{
			{Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, FreedTokens: 300}, {Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, FreedTokens: 50},
			{Action: harnessv1.CompactionAction_COMPACTION_ACTION_DROP, FreedTokens: 20},
		},
	}}}
	waits := compacting(workflow.Compaction, 980, started("blocking", "k", false))
	waits.GetStep().To, waits.GetStep().Message = workflow.Compaction, &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{}}
	ended := compacting(workflow.Compaction, 500)
	for _, s := range []*harnessv1.SummaryState{{}, {Ended: true}, {Ended: true, Summary: &harnessv1.SummaryRef{}}, {Ended: true, Error: "x"}} {
		ended.GetStep().Observed = append(ended.GetStep().Observed, &harnessv1.Observation{Value: &harnessv1.Observation_Summary{Summary: s}})
	}
	ended.GetStep().Observed = append(ended.GetStep().Observed, &harnessv1.Observation{Value: &harnessv1.Observation_Tokens{Tokens: 3}})
	for name, c := range map[string]struct {
		rec  *harnessv1.Record
		want []string
	}{
		"no pass": {compacting(workflow.Compaction, 250), []string{"harness_context_share{} 1 0.25"}},
		"a pass": {compacting(workflow.Compaction, 500, started("blocking", "", false), completed), []string{
			"harness_compaction_duration_seconds{level=blocking} 1 2", "harness_compaction_freed_tokens_total{action=clear} 350",
			"harness_compaction_freed_tokens_total{action=drop} 20", "harness_compaction_passes_total{level=blocking,strategy=clear} 1",
			"harness_compaction_passes_total{level=blocking,strategy=direct_clear} 1", "harness_context_share{} 1 0.5",
		}},
		"a summary in the background":           {compacting(workflow.Compaction, 500, started("soft", "k", true)), []string{"harness_context_share{} 1 0.5"}},
		"a wait":                                {waits, []string{"harness_compaction_waits_total{} 1"}},
		"ends of summaries":                     {ended, []string{"harness_compaction_summaries_total{outcome=failed} 2", "harness_compaction_summaries_total{outcome=ready} 1", "harness_context_share{} 1 0.5"}},
		"a window without a size":               {handed(workflow.Compaction, "turn", nil, func(s *harnessv1.Step) { s.Message = &harnessv1.Step_CompactionComplete{} }), nil},
		"a step that another executor hands on": {compacting("reviewer", 500, completed), nil},
	} {
		m, registry := measured(t)
		m.stored(t.Context(), c.rec)
		if got := shown(t, registry); !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// endRow matches a row of the table of ends: | `kind` | STATUS | …
var endRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (DONE|STALLED|CANCELLED|FAILED) \\|")

// documentedEnds returns the ends of runs that docs/events.md lists, each as 0.
func documentedEnds(t *testing.T) (all []string) {
	t.Helper()
	data, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range endRow.FindAllSubmatch(data, -1) {
		all = append(all, fmt.Sprintf("harness_run_ended_total{reason=%s,status=%s} 0", row[1], strings.ToLower(string(row[2]))))
	}
	if len(all) == 0 {
		t.Fatal("docs/events.md has no table of ends")
	}
	return all
}

// unansweredLog is a log whose bus does not return the result of a write.
type unansweredLog struct{ runlog.Log }

func (unansweredLog) Append(context.Context, *harnessv1.Record) (uint64, error) {
	return 0, fmt.Errorf("no answer: %w", runlog.ErrUnavailable)
}

func TestUndecidedWriteIsCounted(t *testing.T) {
	m, registry := measured(t)
	log := NewLog(unansweredLog{}, m)
	defer log.Close()
	if _, err := log.Append(t.Context(), &harnessv1.Record{Writer: &harnessv1.Writer{Executor: "turn"}}); err == nil {
		t.Fatal("the write is stored")
	}
	if got, want := shown(t, registry), "harness_bus_unsettled_total{executor=turn} 1"; !slices.Contains(got, want) {
		t.Errorf("got %v, without %s", got, want)
	}
}

func TestDeliveryIsHopOrRedelivery(t *testing.T) {
	m, registry := measured(t)
	m.StepReceived(t.Context(), "turn", false, noon, noon.Add(2*time.Second))
	m.StepReceived(t.Context(), "turn", false, noon, noon.Add(-time.Second)) // a clock that lags
	m.StepReceived(t.Context(), "turn", true, noon, noon.Add(time.Hour))
	m.StepReceived(t.Context(), "turn", false, time.Time{}, noon)
	want := []string{"harness_hop_latency_seconds{executor=turn} 2 2", "harness_step_redeliveries_total{executor=turn} 1"}
	if got := shown(t, registry); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// fails is a provider whose tries fail with err.
type fails struct{ err error }

func (f fails) Complete(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
	return nil, f.err
}

func TestFailedTryIsCountedByCause(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for want, c := range map[string]struct {
		ctx context.Context
		err error
	}{
		"429":              {t.Context(), &model.Error{Status: 429, Retryable: true}},
		"unreachable":      {t.Context(), errors.New("connection refused")},
		"context_exceeded": {t.Context(), &model.Error{Status: 400, ContextExceeded: true}},
		"refused":          {t.Context(), &model.Error{Status: 42}},
		"cancelled":        {over, context.Canceled},
	} {
		m, registry := measured(t)
		_, _ = m.Provider("openai:m", fails{c.err}).Complete(c.ctx, &model.Request{}, nil)
		if got := shown(t, registry); len(got) != 1 || !strings.Contains(got[0], "error_type="+want+",") {
			t.Errorf("%s: got %v", want, got)
		}
	}
}

// answersWith is a provider that reports rate limits.
type answersWith []model.RateLimit

func (a answersWith) Complete(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
	return &model.Response{Limits: a}, nil
}

func TestRateLimitsAreThoseOfTheLastAnswer(t *testing.T) {
	m, registry := measured(t)
	ask := func(p model.Provider) {
		_, _ = m.Provider("openai:m", p).Complete(t.Context(), &model.Request{}, nil)
	}
	limits := func() (got []string) {
		for _, line := range shownAll(t, registry) {
			if strings.HasPrefix(line, "harness_model_rate_limit") {
				got = append(got, line)
			}
		}
		return got
	}
	ask(answersWith(nil))
	if got := limits(); got != nil {
		t.Errorf("without limits: %v", got)
	}
	ask(answersWith{{Kind: "requests", Limit: 500, Remaining: 499}, {Kind: "tokens", Limit: 90000, Remaining: 80000}})
	ask(fails{&model.Error{Status: 429, Limits: []model.RateLimit{{Kind: "tokens", Limit: 90000, Remaining: 0}}}})
	want := []string{
		"harness_model_rate_limit_remaining{provider_name=openai,request_model=m,kind=requests} 499",
		"harness_model_rate_limit_remaining{provider_name=openai,request_model=m,kind=tokens} 0",
		"harness_model_rate_limit{provider_name=openai,request_model=m,kind=requests} 500",
		"harness_model_rate_limit{provider_name=openai,request_model=m,kind=tokens} 90000",
	}
	if got := limits(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

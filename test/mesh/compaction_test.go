package mesh

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// summaries is how many summaries the scenario compacted needs.
const summaries = 3

// compacted fills its window several times. Each command prints so much that the window
// goes from below the soft threshold to the blocking one in one turn, so that the run
// waits for each summary and its log does not depend on the time that a summary takes.
var compacted = scenario{
	name:   "compacted",
	script: printing(20),
	lines:  20,
	edit: func(s *harnessv1.RunSpec) {
		s.Config.Context = &harnessv1.ContextConfig{
			MaxInputTokens: proto.Uint32(16_600), SoftThreshold: proto.Float64(0.79), BlockingThreshold: proto.Float64(0.80), Target: proto.Float64(0.5),
			RecentMessages: proto.Uint32(4), Strategies: []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE},
			Summarizer: &harnessv1.SummarizerConfig{Model: "openai:m"},
		}
	},
}

// printing returns a script of commands that print about 1,200 tokens each.
func printing(turns int) string {
	var b strings.Builder
	b.WriteString("turns:\n")
	for i := 1; i <= turns; i++ {
		fmt.Fprintf(&b, "  - {text: 'Turn %d.', calls: [{name: run_command, arguments: {command: 'echo id-%d >> out; seq -f \"%d: line %%03.0f of the log of the server\" 1 100'}}]}\n", i, i, i)
	}
	b.WriteString("  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	return b.String()
}

// summaryModel is a model that makes summaries. It counts its requests by their content,
// of which each key has another.
type summaryModel struct {
	mu       sync.Mutex
	requests map[string]int
	numbers  map[string]int // of the requests, in the order of their first arrival
	// before, if set, is called before the first answer to the nth request, from 1.
	before func(n int)
}

func (s *summaryModel) reply(r *modeltest.Request) modeltest.Reply {
	s.mu.Lock()
	text := r.Messages[len(r.Messages)-1].Content
	s.requests[text]++
	again := s.requests[text] > 1
	if !again {
		s.numbers[text] = len(s.requests)
	}
	number, before := s.numbers[text], s.before
	s.mu.Unlock()
	if before != nil && !again {
		before(number)
	}
	return modeltest.Reply{
		Text: fmt.Sprintf(`{"facts": [{"text": "Part %d of the log has 100 lines.", "messages": []}]}`, number), Usage: &modeltest.Usage{Input: usedBySummary, Output: 10},
	}
}

// called fails unless each summary was requested once for each of a number of runs, but for
// repeats requests that came again.
func (s *summaryModel) called(t testing.TB, what string, runs, repeats int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	all, most := 0, 0
	for _, n := range s.requests {
		all += n
		most = max(most, n)
	}
	if len(s.requests) != summaries || all != summaries*runs+repeats || most != runs+min(repeats, 1) {
		t.Errorf("%s: %d requests for %d summaries of %d runs, %d for one; want %d repeated ones", what, all, len(s.requests), runs, most, repeats)
	}
}

// reset forgets the requests.
func (s *summaryModel) reset(before func(n int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.numbers, s.before = map[string]int{}, map[string]int{}, before
}

// startSummarizing starts a mesh with a model that makes summaries.
func startSummarizing(t *testing.T, cfg meshtest.Config) (*meshtest.Mesh, *summaryModel) {
	t.Helper()
	s := &summaryModel{}
	s.reset(nil)
	cfg.Env = append(cfg.Env, "OPENAI_BASE_URL="+modeltest.NewServerFunc(t, s.reply).BaseURL())
	return meshtest.Start(t, bin, cfg), s
}

// compactedLog returns the canonical log of a run with summaries. The keys of jobs contain
// the position of the run's first record. Input tokens, among which are those of
// calls whose worker died, are left out: wellSummarized checks them.
func (d *driver) compactedLog(entries []runlog.Entry) string {
	replace := []string{d.workspace, "WORKSPACE"}
	for i, key := range jobKeys(entries) {
		replace = append(replace, key, fmt.Sprintf("KEY-%d", i))
	}
	return withoutInput(meshtest.Canonical(entries, replace...))
}

var inputTokens = regexp.MustCompile(`\binput_tokens: \d+ `)

// withoutInput returns a canonical log without counts of input tokens.
func withoutInput(log string) string { return inputTokens.ReplaceAllString(log, "") }

// jobKeys returns the keys of the jobs of a run, in the order of their creation.
func jobKeys(entries []runlog.Entry) []string {
	var keys []string
	known := map[string]bool{}
	for _, e := range entries {
		for _, job := range e.Record.GetStep().GetSnapshot().GetCompactionPlan().GetJobs() {
			if !known[job.GetKey()] {
				known[job.GetKey()] = true
				keys = append(keys, job.GetKey())
			}
		}
	}
	return keys
}

// wellSummarized checks what must hold for every run of the scenario compacted, whatever
// died.
func (d *driver) wellSummarized(entries []runlog.Entry) {
	d.t.Helper()
	sound(d.t, d, entries)
	keys := jobKeys(entries)
	if len(keys) != summaries {
		d.t.Errorf("%s: %d jobs, want %d", d.run, len(keys), summaries)
	}
	last := entries[len(entries)-1].Record.GetStep().GetSnapshot()
	if plan := last.GetCompactionPlan(); plan.GetSummary().GetMerged() != summaries || len(plan.GetJobs()) != 0 {
		d.t.Errorf("%s: the plan is %v", d.run, plan)
	}
	var counted uint64
	for _, key := range keys {
		result := d.summaryOf(key)
		input := result.GetUsage().GetInputTokens()
		if counted += input; !strings.HasPrefix(result.GetText(), `{"facts"`) || input < usedBySummary || (input > usedBySummary) != (result.GetLostCalls() > 0) {
			d.t.Errorf("%s: the result of job %s is %v", d.run, key, result)
		}
	}
	if got := last.GetSpent().GetUsage(); got.GetInputTokens() != counted || got.GetOutputTokens() != 10*summaries {
		d.t.Errorf("%s: counted %v; the turns used nothing, and the %d summaries %d and 10 tokens each", d.run, got, summaries, counted)
	}
	d.nothingLost(entries)
}

// usedBySummary are the input tokens that the model reports for a summary.
const usedBySummary = 1000

// summaryOf returns the stored result of a job.
func (d *driver) summaryOf(key string) *harnessv1.JobResult {
	d.t.Helper()
	data, err := d.m.Log().BlobAs(context.WithoutCancel(d.ctx), d.run, key)
	result := &harnessv1.JobResult{}
	if err != nil || proto.Unmarshal(data, result) != nil {
		d.t.Errorf("%s: the result of job %s cannot be read: %v", d.run, key, err)
	}
	return result
}

// nothingLost checks that each turn of the script is in the conversation, with its result.
func (d *driver) nothingLost(entries []runlog.Entry) {
	d.t.Helper()
	var all strings.Builder
	for _, e := range entries {
		for _, m := range e.Record.GetAppended() {
			all.WriteString(content.Text(m.GetContent()) + "\n")
		}
	}
	for i := 1; i <= d.scenario.lines; i++ {
		if !strings.Contains(all.String(), fmt.Sprintf("Turn %d.", i)) || !strings.Contains(all.String(), fmt.Sprintf("%d: line 001 of the log", i)) {
			d.t.Errorf("%s: turn %d or its result is not in the conversation", d.run, i)
		}
	}
}

// compactedAlone returns the canonical log of the scenario without faults.
func compactedAlone(t *testing.T, m *meshtest.Mesh, s *summaryModel) string {
	t.Helper()
	s.reset(nil)
	d, entries := compacted.through(t.Context(), t, m, "alone")
	d.wellSummarized(entries)
	s.called(t, "alone", 1, 0)
	if t.Failed() {
		t.FailNow()
	}
	return d.compactedLog(entries)
}

// again takes a run through the scenario and compares it with one without faults.
func again(t *testing.T, m *meshtest.Mesh, want, id string) {
	t.Helper()
	d, entries := compacted.through(t.Context(), t, m, id)
	d.ctx = t.Context()
	waittest.Eventually(t, "no job is left", func() bool { return d.jobs() == 0 })
	d.wellSummarized(entries)
	same(t, want, d.compactedLog(entries))
}

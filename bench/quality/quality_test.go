package quality

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// outcome is what came of a script with a judge, or without judging.
type outcome struct {
	attempts, turns, jobs  int
	records                int // of the log
	tokens, judging        int
	delivered              int // attempt, from 1
	worth                  float64
	accepted, degraded     bool
	combined               []float64 // by attempt, as judged
	retries                []string  // reasons
	fallback, contractPass bool
}

// row is what came of a script in each way.
type row struct {
	*script
	without outcome
	judged  map[string]outcome
}

// TestQuality: each script with each judge, and without.
func TestQuality(t *testing.T) {
	all := scripts()
	rows := make([]*row, len(all))
	t.Run("scripts", func(t *testing.T) {
		for i := range all {
			s := &all[i]
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				r := &row{script: s, judged: map[string]outcome{}}
				t.Run("without", func(t *testing.T) { r.without = play(t, s, nil) })
				for _, j := range allJudges() {
					t.Run(j.name, func(t *testing.T) {
						got := play(t, s, &j)
						r.judged[j.name] = got
						check(t, s, j.name, got)
					})
				}
				if more := r.judged[right].records - r.without.records; s.healthy && more > maxMoreRecords {
					t.Errorf("a judged run has %d records more, expected at most %d", more, maxMoreRecords)
				}
				rows[i] = r
			})
		}
	})
	if *tableFile != "" {
		writeTables(t, *tableFile, rows)
		return
	}
	compareTables(t, all, rows)
}

// maxMoreRecords is how many records the log of a run with one attempt has more if it is judged.
const maxMoreRecords = 6

// check fails the test if an outcome breaks what the layer promises.
func check(t *testing.T, s *script, j string, got outcome) {
	t.Helper()
	if s.healable && j == right && (got.worth < goodWorth || !got.accepted || got.attempts < 2) {
		t.Errorf("%s can be healed and is not: %+v", s.what, got)
	}
	if s.healthy && (j == right || j == down) && (got.attempts != 1 || len(got.retries) > 0 || !got.accepted || got.degraded) {
		t.Errorf("%s is healthy and is retried by a judge that is %s: %+v", s.what, j, got)
	}
	for i, c := range got.combined {
		if got.delivered < 1 || c > got.combined[got.delivered-1] {
			t.Errorf("%s: attempt %d is judged better than attempt %d, which is delivered: %v", s.what, i+1, got.delivered, got.combined)
		}
		if j == right && s.of(i+1).worth > got.worth {
			t.Errorf("%s: attempt %d is worth more than what is delivered: %+v", s.what, i+1, got)
		}
	}
	if j == down && (!got.fallback || got.attempts > 1 && got.retries[0] != contractFailed) {
		t.Errorf("%s: a judge that is down: %+v", s.what, got)
	}
}

const contractFailed = "Contract failed — retrying with healing prompt"

// of returns attempt n, from 1.
func (s *script) of(n int) attempt { return s.attempts[min(max(n, 1), len(s.attempts))-1] }

var attemptLine = regexp.MustCompile(`(?m)^Attempt (\d+) of \d+\.`)

// recorder is the model of one run: it works by its script, and is its judge too.
type recorder struct {
	s *script
	j *judge

	mu           sync.Mutex
	jobs, tokens int
}

func (r *recorder) reply(_ int, req *modeltest.Request) modeltest.Reply {
	job := len(req.Tools) == 0
	var reply modeltest.Reply
	if job {
		reply = r.j.answer(r.s, req)
	} else {
		reply = r.work(req)
	}
	in, out := size(req), (len(reply.Text)+3)/4
	for _, c := range reply.Calls {
		out += (len(c.Name) + len(c.Arguments) + 3) / 4
	}
	reply.Usage = &modeltest.Usage{Input: uint64(in), Output: uint64(out)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if job {
		r.jobs++
	}
	if reply.Status == 0 {
		r.tokens += in + out
	}
	return reply
}

// work is the attempt that the newest message asks for, in one reply.
func (r *recorder) work(req *modeltest.Request) modeltest.Reply {
	number := 1
	for _, m := range req.Messages {
		if found := attemptLine.FindStringSubmatch(m.Content); found != nil && m.Role == "user" {
			number, _ = strconv.Atoi(found[1])
		}
	}
	a := r.s.of(number)
	reply := modeltest.Reply{Text: a.text}
	if slices.ContainsFunc(req.Tools, func(t modeltest.RequestTool) bool { return t.Name == "save_artifact" }) {
		reply.Calls = slices.Clone(a.saved)
	}
	reply.Calls = append(reply.Calls, live.Call("work_complete", live.Args{"summary": "The work is done."}))
	return reply
}

// size is about how many tokens a request has: a quarter of its bytes.
func size(req *modeltest.Request) int {
	n := 0
	for _, m := range req.Messages {
		n += len(m.Content)
		for _, c := range m.ToolCalls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	for _, tool := range req.Tools {
		n += len(tool.Name) + len(tool.Description) + len(tool.Parameters)
	}
	return (n + 3) / 4
}

// play runs a script with a judge; nil: without judging.
func play(t *testing.T, s *script, j *judge) outcome {
	t.Helper()
	rec := &recorder{s: s, j: j}
	r := live.Prepare(t, rec.reply)
	task := &harnessv1.Task{Kind: s.kind}
	for _, id := range []string{"s1", "s2"} {
		r.Write(id+".txt", sources[id])
		task.Sources = append(task.Sources, &harnessv1.Source{Id: id, Path: id + ".txt"})
	}
	ctx, cancel := context.WithTimeout(t.Context(), live.Limit)
	defer cancel()
	spec := r.Spec(func(spec *harnessv1.RunSpec) {
		spec.Goal = content.Inline(goal)
		if j != nil {
			spec.Task = task
			spec.Config.Quality = &harnessv1.QualityConfig{Enabled: proto.Bool(true), Model: spec.GetAgent().GetModel()}
		}
	})
	if _, err := live.Gateway(t).StartRun(ctx, &harnessv1.StartRunRequest{RunId: r.ID, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	return rec.outcome(r.Wait())
}

// outcome reads what came of a run.
func (r *recorder) outcome(s *live.Transcript) outcome {
	s.T.Helper()
	v := s.Result.GetQuality()
	o := outcome{
		attempts: int(v.GetAttempts()), turns: int(s.Result.GetTurnCount()), jobs: r.jobs, tokens: r.tokens,
		judging: int(v.GetUsage().GetInputTokens() + v.GetUsage().GetOutputTokens()), delivered: int(v.GetDelivered()),
		accepted: s.Result.GetAccepted(), degraded: v.GetDegraded(), contractPass: v.GetContractPassed(),
	}
	if r.j == nil {
		o.attempts, o.delivered = 1, 1
	}
	o.records = int(s.Events[len(s.Events)-1].GetVersion())
	contracts := map[uint32]bool{}
	for _, e := range s.Events {
		switch {
		case e.GetQualityContract() != nil:
			contracts[e.GetQualityContract().GetAttempt()] = e.GetQualityContract().GetPassed()
		case e.GetQualityVerified() != nil:
			score := e.GetQualityVerified().GetScore() / 2
			if contracts[e.GetQualityVerified().GetAttempt()] {
				score += 0.5
			}
			o.combined = append(o.combined, score)
		case e.GetQualityRetry() != nil:
			o.retries = append(o.retries, e.GetQualityRetry().GetReason())
		}
	}
	o.fallback = v.GetFallbackFeedback() != ""
	o.worth = r.s.of(o.delivered).worth
	if got := content.Text(s.Result.GetAnswer()); got != r.s.of(o.delivered).text {
		s.T.Errorf("attempt %d is to be delivered, got %q", o.delivered, got)
	}
	if u := s.Result.GetUsage(); int(u.GetInputTokens()+u.GetOutputTokens()) != o.tokens {
		s.T.Errorf("the result counts %d tokens, the model %d", u.GetInputTokens()+u.GetOutputTokens(), o.tokens)
	}
	return o
}

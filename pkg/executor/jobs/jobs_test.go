package jobs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/jobs"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

var morning = time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)

// bed is a run log with one run, and an observer with a clock.
type bed struct {
	*steptest.Bed
	first     uint64
	now       time.Time
	available bool
	observer  *jobs.Observer
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{Bed: steptest.New(t), now: morning, available: true}
	b.first = b.Put(&harnessv1.Step{
		From: workflow.Repair, To: runlog.Park, Snapshot: &harnessv1.Snapshot{}, Message: &harnessv1.Step_Parked{Parked: &harnessv1.Parked{}},
	}).Sequence
	b.observer = b.another()
	return b
}

// another returns the observer of another worker.
func (b *bed) another() *jobs.Observer {
	return jobs.New(jobs.Config{Log: b.Log, Available: func(context.Context) bool { return b.available }, Now: func() time.Time { return b.now }})
}

func (b *bed) observe(o *jobs.Observer, r *harnessv1.JobRequest) *harnessv1.JobState {
	b.Helper()
	seen, err := o.Observe(b.Context(), b.Run, b.first, r)
	if err != nil {
		b.Fatal(err)
	}
	return seen.GetJob()
}

// end stores the result of a job, as inference does.
func (b *bed) end(key string, data []byte) {
	b.Helper()
	if stored, err := b.Log.PutBlobAs(b.Context(), b.Run, b.first, key, data); err != nil || !stored {
		b.Fatalf("stored %t, %v", stored, err)
	}
}

func (b *bed) result(r *harnessv1.JobResult) []byte {
	b.Helper()
	data, err := proto.Marshal(r)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// stored returns the jobs that the log delivers until it has delivered one with the key last.
func (b *bed) stored(last string) []*harnessv1.Job {
	b.Helper()
	found := make(chan *harnessv1.Job, 16)
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- b.Log.ConsumeJobs(ctx, 1, func(_ context.Context, d runlog.JobDelivery) {
			if err := d.Ack(); err != nil {
				b.Error(err)
			}
			found <- d.Job()
		})
	}()
	var all []*harnessv1.Job
	for len(all) == 0 || all[len(all)-1].GetKey() != last {
		select {
		case j := <-found:
			all = append(all, j)
		case <-b.Context().Done():
			b.Fatalf("only %v were delivered", all)
		}
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		b.Fatal(err)
	}
	return all
}

func request(key string) *harnessv1.JobRequest {
	return &harnessv1.JobRequest{
		Key: key, Purpose: "verify", Model: "openai:small", System: "Judge.", Prompt: "The work.", Timeout: durationpb.New(20 * time.Second), MaxTries: 2, MaxOutputTokens: 900,
		Schema: `{"type":"object"}`,
	}
}

// TestJobIsCreatedOnce under its key, with the whole request, however often and by however many
// workers it is observed. The time of a worker starts when it asks first.
func TestJobIsCreatedOnce(t *testing.T) {
	b := newBed(t)
	for range 3 {
		if s := b.observe(b.observer, request("k1")); s.GetEnded() || !s.GetAsked().AsTime().Equal(morning) {
			t.Errorf("observed %v", s)
		}
		b.now = b.now.Add(time.Second)
	}
	if s := b.observe(b.another(), request("k1")); s.GetEnded() || !s.GetAsked().AsTime().Equal(b.now) {
		t.Errorf("another worker observed %v", s)
	}
	b.observe(b.observer, request("k2"))
	all := b.stored("k2")
	if len(all) != 2 || all[0].GetKey() != "k1" {
		t.Fatalf("jobs %v", all)
	}
	j := all[0]
	if j.GetNamespace() != b.Run.Namespace || j.GetRunId() != b.Run.ID || j.GetFirstSequence() != b.first || j.GetPurpose() != "verify" || j.GetModel() != "openai:small" ||
		j.GetTimeout().AsDuration() != 20*time.Second || j.GetMaxTries() != 2 || j.GetMaxOutputTokens() != 900 || !j.GetCreateTime().AsTime().Equal(morning) {
		t.Errorf("the job is %v", j)
	}
	data, err := b.Log.Blob(b.Context(), b.Run, j.GetRequest().GetDigest())
	got := &harnessv1.ModelRequest{}
	if err != nil || proto.Unmarshal(data, got) != nil || j.GetRequest().GetPreview() != "" {
		t.Fatalf("the request is %v, %v", j.GetRequest(), err)
	}
	if m := got.GetMessages(); got.GetModel() != "openai:small" || got.GetAnswerSchema() != `{"type":"object"}` || len(m) != 2 || m[0].GetRole() != harnessv1.Role_ROLE_SYSTEM || content.Text(m[0].GetContent()) != "Judge." ||
		m[1].GetRole() != harnessv1.Role_ROLE_USER || content.Text(m[1].GetContent()) != "The work." {
		t.Errorf("the model is called %v", got)
	}
}

// TestResultIsObserved, also one that is an error or that cannot be used, and also if the role is away meanwhile.
func TestResultIsObserved(t *testing.T) {
	b := newBed(t)
	usage := &harnessv1.Usage{InputTokens: 7, OutputTokens: 3}
	limit := strings.Repeat("x", 64<<10)
	for key, c := range map[string]struct {
		stored []byte
		want   *harnessv1.JobState
	}{
		"answer":  {b.result(&harnessv1.JobResult{Text: "{}", Usage: usage, Model: "m"}), &harnessv1.JobState{Ended: true, Text: "{}", Usage: usage, Model: "m"}},
		"error":   {b.result(&harnessv1.JobResult{Error: "overloaded", Usage: usage}), &harnessv1.JobState{Ended: true, Error: "overloaded", Usage: usage}},
		"tool":    {b.result(&harnessv1.JobResult{ToolCalls: 1}), &harnessv1.JobState{Ended: true, Error: "the model called a tool"}},
		"both":    {b.result(&harnessv1.JobResult{ToolCalls: 1, Text: "{}"}), &harnessv1.JobState{Ended: true, Text: "{}"}},
		"limit":   {b.result(&harnessv1.JobResult{Text: limit}), &harnessv1.JobState{Ended: true, Text: limit}},
		"long":    {b.result(&harnessv1.JobResult{Text: limit + "x", Usage: usage}), &harnessv1.JobState{Ended: true, Error: "the answer is too long", Usage: usage}},
		"damaged": {[]byte{0xff, 0xff, 0xff}, &harnessv1.JobState{Ended: true, Error: "the stored result is damaged"}},
	} {
		b.available = true
		b.observe(b.observer, request(key))
		b.end(key, c.stored)
		b.available = false
		for range 2 { // its time is forgotten, the result is not
			if got := b.observe(b.observer, request(key)); !proto.Equal(got, c.want) {
				t.Errorf("%s: observed %.200s", key, got)
			}
		}
	}
}

// TestWithoutAWorker a job has its whole time, because one may be back before it is over, and the state names the reason
// until then. Where none can ever be, a job has ended immediately and none is created.
func TestWithoutAWorker(t *testing.T) {
	b := newBed(t)
	b.available = false
	for range 2 {
		if s := b.observe(b.another(), request("k1")); s.GetEnded() || !s.GetAsked().AsTime().Equal(b.now) {
			t.Errorf("observed %v", s)
		}
	}
	b.observe(b.observer, request("k1"))
	if s := b.observe(b.observer, request("k1")); s.GetEnded() || !strings.Contains(s.GetError(), "--roles inference") || s.GetUsage().GetInputTokens() != 0 {
		t.Errorf("observed %v", s)
	}
	b.available = true
	if s := b.observe(b.observer, request("k1")); s.GetEnded() || s.GetError() != "" || s.GetUsage().GetInputTokens() == 0 {
		t.Errorf("observed %v", s)
	}
	for name, o := range map[string]*jobs.Observer{
		"no log":  jobs.New(jobs.Config{Available: func(context.Context) bool { return true }}),
		"no look": jobs.New(jobs.Config{Log: b.Log}),
	} {
		if s := b.observe(o, request("k1")); !s.GetEnded() || s.GetError() == "" {
			t.Errorf("%s: observed %v", name, s)
		}
		stop, err := o.Listen()
		if err != nil {
			t.Fatal(err)
		}
		stop()
	}
	b.observe(b.observer, request("k2"))
	if all := b.stored("k2"); len(all) != 2 {
		t.Errorf("jobs %v", all)
	}
}

// TestCallsOfAJobThatDoesNotEnd are in its usage: the request of the first, and the record of each repeated one.
func TestCallsOfAJobThatDoesNotEnd(t *testing.T) {
	b := newBed(t)
	b.observe(b.observer, request("k1"))
	first := b.observe(b.observer, request("k1")).GetUsage().GetInputTokens()
	for n := uint64(2); n <= 4; n++ {
		data, err := proto.Marshal(&harnessv1.Usage{InputTokens: 100, CostMicroUsd: 7})
		if err != nil {
			t.Fatal(err)
		}
		b.end(runlog.CallKey("k1", n), data)
		if u := b.observe(b.observer, request("k1")).GetUsage(); first < 8 || u.GetInputTokens() != first+100*(n-1) || u.GetCostMicroUsd() != 7*(n-1) {
			t.Errorf("after %d calls: %v, the first has %d", n, u, first)
		}
	}
}

// TestEndsWakeTheWaiting: the end of a job in another process wakes those that wait for it, and no others.
func TestEndsWakeTheWaiting(t *testing.T) {
	b := newBed(t)
	deaf, err := b.observer.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer deaf()
	wait := func(run runlog.Run, keys ...string) (<-chan struct{}, func()) {
		return b.observer.Ends.Changes(agent.KeyJob)(b.Context(), &executor.Task{Run: run}, keys)
	}
	first, stopFirst := wait(b.Run, "job:other", "job:k1")
	second, stopSecond := wait(b.Run, "job:k1")
	left, stopLeft := wait(b.Run, "job:k1")
	otherKey, stopKey := wait(b.Run, "job:k2", "k1")
	otherRun, stopRun := wait(runlog.Run{Namespace: b.Run.Namespace, ID: "other"}, "job:k1")
	stopLeft()
	b.end("k1", b.result(&harnessv1.JobResult{Text: "{}"}))
	for _, c := range []<-chan struct{}{first, second} {
		select {
		case <-c:
		case <-b.Context().Done():
			t.Fatal("no worker was woken")
		}
	}
	b.observer.Ends.Ended(b.Run, "k1") // twice: it does not wait for a reader
	b.observer.Ends.Ended(b.Run, "k1")
	for name, c := range map[string]<-chan struct{}{"who has left": left, "who waits for another job": otherKey, "another run": otherRun} {
		select {
		case <-c:
			t.Errorf("%s was woken", name)
		default:
		}
	}
	for _, stop := range []func(){stopFirst, stopSecond, stopKey, stopRun} {
		stop()
	}
}

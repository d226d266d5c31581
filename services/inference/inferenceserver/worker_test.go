package inferenceserver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/services/inference"
	"github.com/harnessmesh/harnessmesh/services/inference/inferenceserver"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
)

func said(text string) modeltest.Reply {
	return modeltest.Reply{Text: text, Usage: &modeltest.Usage{Input: 30, Output: 4, Cached: 10}}
}

// TestJobsAreCarriedOut: on each wire the model gets all texts, and the result has its
// text, usage and price.
func TestJobsAreCarriedOut(t *testing.T) {
	for _, c := range []struct{ ref, wire, limit string }{
		{"openai:test-model", "chat", ""}, {"openai:gpt-6.1-sol", "responses", `"max_output_tokens":900`}, {"anthropic:test-model", "messages", `"max_tokens":900`},
	} {
		t.Run(c.wire, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, said("The port is 8080."))
			b.work(nil)
			b.create(b.job("k1", func(j *harnessv1.Job) { j.Model, j.MaxOutputTokens = c.ref, 900 }))
			got := b.result("k1")
			if got.GetText() != "The port is 8080." || got.GetError() != "" || got.GetKey() != "k1" || got.GetModel() != c.ref || got.GetTries() != 1 || got.GetFinishReason() != "stop" {
				t.Errorf("got %v", got)
			}
			if u := got.GetUsage(); u.GetInputTokens() != 30 || u.GetOutputTokens() != 4 || u.GetCachedInputTokens() != 10 || u.GetCostMicroUsd() != 7 {
				t.Errorf("usage %v", u)
			}
			if got.GetLatency().AsDuration() <= 0 {
				t.Errorf("latency %v", got.GetLatency())
			}
			if requests := b.model.Requests(); len(requests) != 1 || !strings.Contains(string(requests[0].Body), "The long story of the port 8080.") ||
				!strings.Contains(string(requests[0].Body), "You summarise.") || !strings.Contains(string(requests[0].Body), c.limit) {
				t.Errorf("requests %v", requests)
			}
			b.idle()
		})
	}
}

// TestCallsAreCounted: a result counts the calls of the response, which nothing carries out.
func TestCallsAreCounted(t *testing.T) {
	b := newBed(t, modeltest.Reply{Text: "Both.", Calls: []modeltest.Call{{Name: "read_file", Arguments: "{}"}, {Name: "read_file", Arguments: "{}"}}})
	request := b.request()
	request.Tools = []*harnessv1.ToolSpec{{Name: "read_file", Description: "Reads."}}
	b.work(nil)
	b.create(b.jobOf("k1", request, nil))
	if got := b.result("k1"); got.GetText() != "Both." || got.GetToolCalls() != 2 || b.calls() != 1 {
		t.Errorf("got %v after %d calls", got, b.calls())
	}
}

// TestStoredResultsCount: a job that has a result is acknowledged without a call.
func TestStoredResultsCount(t *testing.T) {
	b := newBed(t)
	for _, key := range []string{"k1", "k2"} {
		data, err := proto.Marshal(&harnessv1.JobResult{Key: key, Text: "The first."})
		if err != nil {
			t.Fatal(err)
		}
		if stored, err := b.Log.PutBlobAs(b.Context(), b.Run, b.first, key, data); err != nil || !stored {
			t.Fatal(stored, err)
		}
		b.create(b.job(key, nil))
	}
	b.work(nil)
	b.work(nil)
	for _, key := range []string{"k1", "k2"} {
		if got := b.result(key); got.GetText() != "The first." {
			t.Errorf("got %v", got)
		}
	}
	b.idle()
	if b.calls() != 0 {
		t.Errorf("%d calls", b.calls())
	}
}

// TestHeartbeatsKeepAJob: while a model takes many times as long as a delivery, no other
// worker gets the job.
func TestHeartbeatsKeepAJob(t *testing.T) {
	b := newBedOn(t, steptest.NewLayout(t, jetstream.Layout{Takeover: runlog.MinTakeover}), modeltest.NewServer(t, hang("Late.")))
	b.work(nil)
	b.work(nil)
	b.create(b.job("k1", nil))
	b.await("12 heartbeats", func() bool { return b.log.heartbeats.Load() >= 12 }) // 4 times AckWait
	b.model.Release()
	if got := b.result("k1"); got.GetText() != "Late." || b.calls() != 1 || b.acks("k1") != 1 {
		t.Errorf("got %v after %d calls and %d acknowledgements", got, b.calls(), b.acks("k1"))
	}
	b.idle()
}

func hang(text string) modeltest.Reply {
	return modeltest.Reply{Text: text, Fault: modeltest.FaultHang}
}

// TestFailuresAreResults: a failed call is stored once, and not made again.
func TestFailuresAreResults(t *testing.T) {
	now := map[string]string{"Retry-After": "0"}
	busy := modeltest.Reply{Status: 529, ErrorMessage: "overloaded", Header: now}
	for name, c := range map[string]struct {
		replies []modeltest.Reply
		change  func(*harnessv1.Job)
		calls   int // -1: any number
		tries   uint32
		text    string
		fails   string
	}{
		"refused":           {[]modeltest.Reply{{Status: 400, ErrorMessage: "no"}}, nil, 1, 1, "", "no"},
		"busy":              {[]modeltest.Reply{busy, busy, busy}, nil, 3, 3, "", "after 3 tries"},
		"busy with a limit": {[]modeltest.Reply{busy}, func(j *harnessv1.Job) { j.MaxTries = 1 }, 1, 1, "", "overloaded"},
		"busy once":         {[]modeltest.Reply{busy, said("At last.")}, nil, 2, 2, "At last.", ""},
		"cut":               {[]modeltest.Reply{{Text: "Half of it.", Fault: modeltest.FaultCut}, said("All.")}, nil, 2, 2, "All.", ""},
		"garbage":           {[]modeltest.Reply{{Fault: modeltest.FaultGarbage}, said("All.")}, nil, 2, 2, "All.", ""},
		"nothing":           {[]modeltest.Reply{{}}, nil, 1, 1, "", "no text"},
		"long wait": {[]modeltest.Reply{{Status: 429, Header: map[string]string{"Retry-After": "60"}}}, func(j *harnessv1.Job) { j.Timeout = durationpb.New(50 * time.Second) },
			1, 1, "", "429"},
		"hanging":  {[]modeltest.Reply{hang("")}, func(j *harnessv1.Job) { j.Timeout = durationpb.New(300 * time.Millisecond) }, -1, 1, "", "no response within 300ms"},
		"too long": {[]modeltest.Reply{said(strings.Repeat("x", inference.MaxResult))}, nil, 1, 1, "", "too many for a result"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, c.replies...)
			b.work(nil)
			b.create(b.job("k1", c.change))
			got := b.result("k1")
			if got.GetText() != c.text || !strings.Contains(got.GetError(), c.fails) || (got.GetError() != "") != (c.fails != "") || got.GetTries() != c.tries || c.calls >= 0 && b.calls() != c.calls {
				t.Errorf("got %v after %d calls", got, b.calls())
			}
			b.idle()
		})
	}
}

// TestJobsThatCannotBeCalled: a job without what its call needs has a result that names
// it.
func TestJobsThatCannotBeCalled(t *testing.T) {
	b := newBed(t)
	for key, c := range map[string]struct {
		change func(*harnessv1.Job)
		fails  string
	}{
		"no-key":     {func(j *harnessv1.Job) { j.Model = "deepseek:chat" }, "model deepseek:chat: DEEPSEEK_API_KEY is not set: "},
		"no-model":   {func(j *harnessv1.Job) { j.Model = "" }, "names no model"},
		"unknown":    {func(j *harnessv1.Job) { j.Model = "nonesuch:m" }, `unknown provider "nonesuch"`},
		"no-request": {func(j *harnessv1.Job) { j.Request = content.Ref([]byte("never stored")) }, "read the request: "},
		"garbage":    {func(j *harnessv1.Job) { j.Request = b.Blob("no proto").GetBlob() }, "no ModelRequest"},
	} {
		b.create(b.job(key, c.change))
		b.work(nil)
		b.wrong(b.result(key), c.fails)
	}
	if got := b.stored("no-key"); !strings.HasSuffix(got.GetError(), "(on the inference worker)") {
		t.Errorf("got %v", got)
	}
	b.idle()
	if b.calls() != 0 {
		t.Errorf("%d calls", b.calls())
	}
}

// TestStoppingReturnsJobs: a worker that stops in a call stores nothing, and another one
// gets the job immediately.
func TestStoppingReturnsJobs(t *testing.T) {
	b := patiently(t, modeltest.NewServer(t, hang(""), said("From another worker.")))
	stop := b.work(nil)
	b.create(b.job("k1", nil))
	b.await("the call", func() bool { return b.calls() == 1 })
	stop()
	if got := b.naks(); !slices.Equal(got, []time.Duration{0}) || b.stored("k1") != nil || b.acks("k1") != 0 {
		t.Fatalf("naks %v, result %v, %d acknowledgements", got, b.stored("k1"), b.acks("k1"))
	}
	b.work(nil)
	if got := b.result("k1"); got.GetText() != "From another worker." || b.calls() != 2 {
		t.Errorf("got %v after %d calls", got, b.calls())
	}
}

// TestLostCallsAreCounted: calls whose workers stopped are in the usage of the result, as the harness counts their requests. A
// job that is called once has no such record, and neither has a delivery that was put back before its call.
func TestLostCallsAreCounted(t *testing.T) {
	b := patiently(t, modeltest.NewServer(t, hang(""), hang(""), said("The third."), said("The only one.")))
	b.create(b.job("k1", nil))
	for n := range 2 {
		stop := b.work(nil)
		b.await("the call", func() bool { return b.calls() == n+1 })
		if n == 1 {
			b.log.unread.Store(1) // the next delivery is put back before its call
		}
		stop()
	}
	b.work(nil)
	one := uint64(2*tokens.MessageOverhead + tokens.Count("openai:test-model", "You summarise.") + tokens.Count("openai:test-model", "The long story of the port 8080."))
	got := b.result("k1")
	if u := got.GetUsage(); got.GetLostCalls() != 2 || u.GetInputTokens() != 30+2*one || u.GetOutputTokens() != 4 || u.GetCostMicroUsd() != 3*7 {
		t.Errorf("got %v, a request has %d tokens", got, one)
	}
	b.create(b.job("k2", nil))
	if got := b.result("k2"); got.GetLostCalls() != 0 {
		t.Errorf("got %v", got)
	}
	for key, calls := range map[string]uint64{"k1": 3, "k2": 1} {
		for n := uint64(1); n <= calls+1; n++ {
			data, err := b.Log.BlobAs(b.Context(), b.Run, runlog.CallKey(key, n))
			if (data != nil) != (n > 1 && n <= calls) || err != nil {
				t.Errorf("%s: the record of call %d is %q, %v", key, n, data, err)
			}
		}
	}
}

// TestAResultIsKeptWhileTheLogIsAway: the call is not made again.
func TestAResultIsKeptWhileTheLogIsAway(t *testing.T) {
	b := patiently(t, modeltest.NewServer(t, said("Kept.")))
	b.log.away.Store(3)
	b.work(nil)
	b.create(b.job("k1", nil))
	if got := b.result("k1"); got.GetText() != "Kept." || b.calls() != 1 || len(b.naks()) != 0 {
		t.Errorf("got %v after %d calls, naks %v", got, b.calls(), b.naks())
	}
}

// TestAnAnswerIsStoredByAStoppingWorker: an answer that has arrived is paid for.
func TestAnAnswerIsStoredByAStoppingWorker(t *testing.T) {
	b := patiently(t, modeltest.NewServer(t))
	asked := make(chan struct{})
	stop := b.work(func(cfg *inferenceserver.Config) {
		cfg.Open = func(string) (model.Provider, string, error) {
			return complete(func(ctx context.Context, _ *model.Request) (*model.Response, error) {
				close(asked)
				<-ctx.Done()
				return &model.Response{Text: "Just in time.", FinishReason: "stop"}, nil
			}), "m", nil
		}
	})
	b.create(b.job("k1", nil))
	<-asked
	stop()
	if got := b.stored("k1"); got.GetText() != "Just in time." || b.acks("k1") != 1 || len(b.naks()) != 0 {
		t.Errorf("got %v, %d acknowledgements, naks %v", got, b.acks("k1"), b.naks())
	}
}

// TestALogThatCannotBeReadPutsTheJobBack: whichever read fails, nothing is stored, and
// the job is delivered again.
func TestALogThatCannotBeReadPutsTheJobBack(t *testing.T) {
	b := patiently(t, modeltest.NewServer(t, said("At last.")))
	b.log.unread.Store(1) // whether it has a result
	b.work(nil)
	b.create(b.job("k1", nil))
	b.await("the first Nak", func() bool { return len(b.naks()) == 1 })
	b.result("k1")
	request := b.request()
	data, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	b.log.unreadable.Store(content.Digest(data))
	b.create(b.jobOf("k2", request, nil))
	b.await("the second Nak", func() bool { return len(b.naks()) == 2 })
	if b.stored("k2") != nil || b.calls() != 1 {
		t.Errorf("result %v after %d calls", b.stored("k2"), b.calls())
	}
}

// TestADeliveryIsHandledOnce: a worker whose heartbeats are lost gets its job again, and
// makes no second call.
func TestADeliveryIsHandledOnce(t *testing.T) {
	b := newBedOn(t, steptest.NewLayout(t, jetstream.Layout{Takeover: runlog.MinTakeover}), modeltest.NewServer(t, hang("Once."), said("Twice.")))
	b.log.muted.Store(true)
	b.work(nil)
	b.create(b.job("k1", nil))
	b.await("another delivery", func() bool { return b.log.deliveries.Load() >= 2 })
	b.model.Release()
	if got := b.result("k1"); got.GetText() != "Once." || b.calls() != 1 {
		t.Errorf("got %v after %d calls", got, b.calls())
	}
	b.idle()
}

// TestTheFirstResultCounts: of two calls for a job the first stored result remains, and
// both deliveries end.
func TestTheFirstResultCounts(t *testing.T) {
	b := newBed(t, hang("Second."))
	b.work(nil)
	b.create(b.job("k1", nil))
	b.await("the call", func() bool { return b.calls() == 1 })
	data, err := proto.Marshal(&harnessv1.JobResult{Key: "k1", Text: "First."})
	if err != nil {
		t.Fatal(err)
	}
	if stored, err := b.Log.PutBlobAs(b.Context(), b.Run, b.first, "k1", data); err != nil || !stored {
		t.Fatal(stored, err)
	}
	b.model.Release()
	if got := b.result("k1"); got.GetText() != "First." {
		t.Errorf("got %v", got)
	}
	b.idle()
}

// TestJobsOfADeletedRun: a result that arrives after the deletion does not stay, and the
// job is not delivered again.
func TestJobsOfADeletedRun(t *testing.T) {
	b := newBed(t, hang("Too late."))
	b.work(nil)
	b.create(b.job("k1", nil))
	b.await("the call", func() bool { return b.calls() == 1 })
	newest, err := b.Log.Newest(b.Context(), b.Run)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Log.Erase(b.Context(), b.Run, 0, newest); err != nil {
		t.Fatal(err)
	}
	b.model.Release()
	b.await("the acknowledgement", func() bool { return b.acks("k1") == 1 })
	if got := b.stored("k1"); got != nil || b.calls() != 1 {
		t.Errorf("result %v after %d calls", got, b.calls())
	}
	b.idle()
}

// TestPanicsBecomeAResult: a job whose call panics is delivered again, and not for ever.
func TestPanicsBecomeAResult(t *testing.T) {
	b := newBed(t)
	var calls atomic.Int64
	b.work(func(cfg *inferenceserver.Config) {
		cfg.Open = func(string) (model.Provider, string, error) { return buggyModel{&calls}, "m", nil }
	})
	b.create(b.job("k1", nil))
	got := b.result("k1")
	b.wrong(got, fmt.Sprintf("panicked %d times in this job: a bug", inference.MaxPanics))
	if calls.Load() != inference.MaxPanics || len(b.naks()) != inference.MaxPanics-1 {
		t.Errorf("%d calls, naks %v", calls.Load(), b.naks())
	}
	b.idle()
}

type buggyModel struct{ calls *atomic.Int64 }

func (p buggyModel) Complete(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
	p.calls.Add(1)
	panic("a bug")
}

// TestConcurrencyIsBounded: no more calls than configured are made at the same time, and
// all jobs get a result.
func TestConcurrencyIsBounded(t *testing.T) {
	const jobs, limit = 12, 3
	server := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply { return hang("Done.") })
	b := newBedOn(t, steptest.NewLayout(t, jetstream.Layout{Takeover: runlog.MinTakeover}), server)
	for i := range jobs {
		b.create(b.job(fmt.Sprintf("k%d", i), nil))
	}
	b.work(func(cfg *inferenceserver.Config) { cfg.Concurrency = limit })
	b.await("heartbeats of calls that hang", func() bool { return b.log.heartbeats.Load() >= 4*limit })
	if calls := b.calls(); calls != limit {
		t.Errorf("%d calls at the same time", calls)
	}
	b.model.Release()
	for i := range jobs {
		b.result(fmt.Sprintf("k%d", i))
	}
	if b.calls() != jobs {
		t.Errorf("%d calls in all", b.calls())
	}
}

// TestNumbersOfScriptedJobs: workers agree on the number of each job, at each delivery.
func TestNumbersOfScriptedJobs(t *testing.T) {
	b := newBed(t)
	seen := make(chan string, 64)
	record := func(cfg *inferenceserver.Config) {
		cfg.Open = func(string) (model.Provider, string, error) {
			return complete(func(ctx context.Context, req *model.Request) (*model.Response, error) {
				n, err := req.Job.Number(ctx)
				again, errAgain := req.Job.Number(ctx)
				if err != nil || errAgain != nil || n != again {
					t.Errorf("number %d, %v and %d, %v", n, err, again, errAgain)
				}
				seen <- fmt.Sprintf("%s %d", req.Job.Purpose, n)
				return &model.Response{Text: fmt.Sprint(n), FinishReason: "stop"}, nil
			}), "m", nil
		}
	}
	b.work(record)
	b.work(record)
	var want []string
	for i := range 5 {
		for _, purpose := range []string{"summarize", "verify"} {
			b.create(b.job(fmt.Sprintf("%s-%d", purpose, i), func(j *harnessv1.Job) { j.Purpose = purpose }))
			want = append(want, fmt.Sprintf("%s %d", purpose, i+1))
		}
	}
	b.idle()
	var got []string
	for range want {
		got = append(got, <-seen)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestANumberHasOneJob: two workers that find a number free at the same time do not both
// get it.
func TestANumberHasOneJob(t *testing.T) {
	b := newBed(t)
	numbers := make(chan uint32, 1)
	b.work(func(cfg *inferenceserver.Config) {
		cfg.Open = func(string) (model.Provider, string, error) {
			return complete(func(ctx context.Context, req *model.Request) (*model.Response, error) {
				n, err := req.Job.Number(ctx)
				numbers <- n
				return &model.Response{Text: "Counted.", FinishReason: "stop"}, err
			}), "m", nil
		}
	})
	b.create(b.job("k1", nil))
	if n := <-numbers; n != 1 {
		t.Errorf("the first job has the number %d", n)
	}
	b.log.blind.Store(1)
	b.create(b.job("k2", nil))
	if n := <-numbers; n != 2 {
		t.Errorf("the second job has the number %d", n)
	}
}

type complete func(context.Context, *model.Request) (*model.Response, error)

func (f complete) Complete(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	return f(ctx, req)
}

// TestAdjustmentsAreNoTries: a provider that asks for another form of the request gets
// it, which is no further try.
func TestAdjustmentsAreNoTries(t *testing.T) {
	b := newBed(t)
	var adjusted []*harnessv1.ModelAdjustment
	b.work(func(cfg *inferenceserver.Config) {
		cfg.Open = func(string) (model.Provider, string, error) {
			return complete(func(_ context.Context, req *model.Request) (*model.Response, error) {
				if adjusted = req.Adjustments; len(adjusted) == 0 {
					return nil, &model.Error{Adjustment: harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE, RetryAfter: -1, Message: "invalid signature"}
				}
				return &model.Response{Text: "Without.", FinishReason: "stop"}, nil
			}), "m", nil
		}
	})
	b.create(b.job("k1", func(j *harnessv1.Job) { j.MaxTries = 1 }))
	if got := b.result("k1"); got.GetText() != "Without." || got.GetTries() != 1 || adjusted[0].GetThroughMessage() != 2 {
		t.Errorf("got %v with %v", got, adjusted)
	}
}

// TestMediaAreSent: the provider reads the files of a request from their blobs.
func TestMediaAreSent(t *testing.T) {
	b := newBed(t, said("A picture."))
	b.work(nil)
	request := b.request()
	request.Messages[1].Parts = []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "image/png", Blob: b.Blob("picture").GetBlob(), Width: 4, Height: 4}}}}
	b.create(b.jobOf("k1", request, nil))
	b.result("k1")
	if body := string(b.model.Requests()[0].Body); !strings.Contains(body, "data:image/png;base64,cGljdHVyZQ==") {
		t.Errorf("the request is %s", body)
	}
}

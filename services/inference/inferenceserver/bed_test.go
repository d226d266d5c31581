package inferenceserver_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/inference/inferenceserver"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

// bed is a run log with one run, and a model server.
type bed struct {
	*steptest.Bed
	first uint64
	model *modeltest.Server
	log   *watchedLog
}

func newBed(t *testing.T, replies ...modeltest.Reply) *bed {
	t.Helper()
	return newBedOn(t, steptest.New(t), modeltest.NewServer(t, replies...))
}

// patiently returns a bed on which no delivery expires during the test.
func patiently(t *testing.T, model *modeltest.Server) *bed {
	t.Helper()
	return newBedOn(t, steptest.NewLayout(t, jetstream.Layout{Takeover: steptest.WithoutHeartbeats}), model)
}

func newBedOn(t *testing.T, on *steptest.Bed, model *modeltest.Server) *bed {
	t.Helper()
	b := &bed{Bed: on, model: model, log: &watchedLog{Log: on.Log}}
	b.first = b.Put(&harnessv1.Step{
		From: workflow.Repair, To: runlog.Park, Snapshot: &harnessv1.Snapshot{}, Message: &harnessv1.Step_Parked{Parked: &harnessv1.Parked{}},
	}).Sequence
	return b
}

// watchedLog is a run log whose deliveries and writes of results a test can watch and
// disturb.
type watchedLog struct {
	inferenceserver.Log
	deliveries, heartbeats atomic.Int64
	muted                  atomic.Bool // heartbeats do not reach the server
	// away makes writes of results fail while it is above 0, and counts down; unread does
	// the same for reads of results.
	away, unread atomic.Int64
	unreadable   atomic.Value // digest of a blob that cannot be read
	// blind makes reads of numbers find nothing while it is above 0, and counts down.
	blind atomic.Int64

	mu    sync.Mutex
	acked []string // keys
	naks  []time.Duration
}

func (l *watchedLog) ConsumeJobs(ctx context.Context, concurrency int, handle func(context.Context, runlog.JobDelivery)) error {
	return l.Log.ConsumeJobs(ctx, concurrency, func(ctx context.Context, d runlog.JobDelivery) {
		l.deliveries.Add(1)
		handle(ctx, &watchedDelivery{d, l})
	})
}

func (l *watchedLog) Blob(ctx context.Context, run runlog.Run, digest string) ([]byte, error) {
	if l.unreadable.Load() == digest {
		return nil, runlog.ErrUnavailable
	}
	return l.Log.Blob(ctx, run, digest)
}

func (l *watchedLog) BlobAs(ctx context.Context, run runlog.Run, key string) ([]byte, error) {
	if l.unread.Add(-1) >= 0 {
		return nil, runlog.ErrUnavailable
	}
	if strings.HasPrefix(key, "script-") && l.blind.Add(-1) >= 0 {
		return nil, nil
	}
	return l.Log.BlobAs(ctx, run, key)
}

func (l *watchedLog) PutBlobAs(ctx context.Context, run runlog.Run, first uint64, key string, data []byte) (bool, error) {
	if l.away.Add(-1) >= 0 {
		return false, runlog.ErrUnavailable
	}
	return l.Log.PutBlobAs(ctx, run, first, key, data)
}

type watchedDelivery struct {
	runlog.JobDelivery
	log *watchedLog
}

func (d *watchedDelivery) InProgress() error {
	if d.log.heartbeats.Add(1); d.log.muted.Load() {
		return nil
	}
	return d.JobDelivery.InProgress()
}

func (d *watchedDelivery) Ack() error {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	d.log.acked = append(d.log.acked, d.Job().GetKey())
	return d.JobDelivery.Ack()
}

func (d *watchedDelivery) Nak(delay time.Duration) error {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	d.log.naks = append(d.log.naks, delay)
	return d.JobDelivery.Nak(delay)
}

// server returns a worker whose models are those of the model server: test on the chat
// wire, anthropic and openai on theirs.
func (b *bed) server(change func(*inferenceserver.Config)) *inferenceserver.Server {
	b.Helper()
	env := map[string]string{
		"OPENAI_BASE_URL": b.model.BaseURL(), "OPENAI_API_KEY": "key", "ANTHROPIC_BASE_URL": b.model.MessagesURL(), "ANTHROPIC_API_KEY": "key",
	}
	pool := &remote.Pool{}
	b.Cleanup(pool.Close)
	cfg := inferenceserver.Config{
		Log: b.log, Logger: b.Logger(), Remote: pool, Random: func() float64 { return 0 },
		Open: func(ref string) (model.Provider, string, error) {
			p, name, err := provider.OpenWith(catalogue.Default(), ref, func(name string) string { return env[name] })
			if closer, ok := p.(interface{ Close() error }); ok {
				b.Cleanup(func() { _ = closer.Close() })
			}
			return p, name, err
		},
		Price: func(string, *model.Response) uint64 { return 7 },
	}
	if change != nil {
		change(&cfg)
	}
	return inferenceserver.New(cfg)
}

// work starts a worker. stop returns when it has ended.
func (b *bed) work(change func(*inferenceserver.Config)) (stop func()) {
	b.Helper()
	return b.Start(b.server(change).Run)
}

// request is a conversation with a text that is stored as a blob.
func (b *bed) request() *harnessv1.ModelRequest {
	b.Helper()
	return &harnessv1.ModelRequest{Model: "openai:test-model", Messages: []*harnessv1.Message{
		{Id: 1, Role: harnessv1.Role_ROLE_SYSTEM, Content: content.Inline("You summarise.")},
		{Id: 2, Role: harnessv1.Role_ROLE_USER, Content: b.Blob("The long story of the port 8080.")},
	}}
}

// job returns a job of the run.
func (b *bed) job(key string, change func(*harnessv1.Job)) *harnessv1.Job {
	b.Helper()
	return b.jobOf(key, b.request(), change)
}

func (b *bed) jobOf(key string, request *harnessv1.ModelRequest, change func(*harnessv1.Job)) *harnessv1.Job {
	b.Helper()
	data, err := proto.Marshal(request)
	if err != nil {
		b.Fatal(err)
	}
	ref, err := b.Log.PutBlob(b.Context(), b.Run, data)
	if err != nil {
		b.Fatal(err)
	}
	job := &harnessv1.Job{
		Namespace: b.Run.Namespace, RunId: b.Run.ID, FirstSequence: b.first, Key: key, Purpose: "summarize", Model: "openai:test-model", Request: ref,
	}
	if change != nil {
		change(job)
	}
	return job
}

func (b *bed) create(job *harnessv1.Job) {
	b.Helper()
	if created, err := b.Log.CreateJob(b.Context(), job); err != nil || !created {
		b.Fatalf("create job %s: %t, %v", job.GetKey(), created, err)
	}
}

// await waits until a condition holds.
func (b *bed) await(what string, holds func() bool) {
	b.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-b.Context().Done():
			b.Fatalf("waited in vain: %s", what)
		}
	}
}

// result waits until a job is acknowledged and returns its result.
func (b *bed) result(key string) *harnessv1.JobResult {
	b.Helper()
	b.await("the acknowledgement of job "+key, func() bool { return b.acks(key) > 0 })
	result := b.stored(key)
	if result == nil {
		b.Fatalf("job %s is acknowledged without a result", key)
	}
	return result
}

func (b *bed) acks(key string) (n int) {
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	for _, acked := range b.log.acked {
		if acked == key {
			n++
		}
	}
	return n
}

func (b *bed) naks() []time.Duration {
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	return append([]time.Duration(nil), b.log.naks...)
}

// stored returns the result of a job, nil if there is none.
func (b *bed) stored(key string) *harnessv1.JobResult {
	b.Helper()
	data, err := b.Log.BlobAs(b.Context(), b.Run, key)
	if err != nil {
		b.Fatal(err)
	}
	if data == nil {
		return nil
	}
	result := &harnessv1.JobResult{}
	if err := proto.Unmarshal(data, result); err != nil {
		b.Fatal(err)
	}
	return result
}

// idle waits until every job of the bus is acknowledged.
func (b *bed) idle() {
	b.Helper()
	b.await("that no job is left", func() bool {
		_, consumers, err := b.Log.Status(b.Context())
		if err != nil && !errors.Is(err, context.Canceled) {
			b.Fatal(err)
		}
		for _, c := range consumers {
			if c.Name == workflow.Inference {
				return c.Pending == 0 && c.AckPending == 0
			}
		}
		b.Fatal("the bus has no consumer for jobs")
		return false
	})
}

// calls returns how many requests the models have received.
func (b *bed) calls() int { return len(b.model.Requests()) }

// wrong fails unless a result has an error with a text.
func (b *bed) wrong(result *harnessv1.JobResult, text string) {
	b.Helper()
	if result.GetText() != "" || !strings.Contains(result.GetError(), text) {
		b.Errorf("the result is %v, want an error with %q", result, text)
	}
}

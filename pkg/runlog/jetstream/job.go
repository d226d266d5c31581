package jetstream

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// CreateJob stores a job under its key.
func (l *Log) CreateJob(ctx context.Context, job *harnessv1.Job) (bool, error) {
	run := jobRun(job)
	if err := checkKey(run, job.GetKey()); err != nil {
		return false, fmt.Errorf("create job: %w", err)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(job)
	if err != nil {
		return false, fmt.Errorf("encode job %s of %s: %w", job.GetKey(), run, err)
	}
	if len(data) > runlog.MaxRecord {
		return false, fmt.Errorf("job %s of %s: %d bytes exceed the limit of %d: %w", job.GetKey(), run, len(data), runlog.MaxRecord, runlog.ErrTooLarge)
	}
	p := l.partition(run)
	return l.putKeyed(ctx, newKeyedWrite(run, job.GetFirstSequence(), runsStream(p), runlog.JobSubject(p, run, job.GetKey()), data))
}

func jobRun(job *harnessv1.Job) runlog.Run {
	return runlog.Run{Namespace: job.GetNamespace(), ID: job.GetRunId()}
}

type jobDelivery struct {
	*lease
	job *harnessv1.Job
}

func (d *jobDelivery) Job() *harnessv1.Job { return d.job }

// ConsumeJobs delivers jobs.
func (l *Log) ConsumeJobs(ctx context.Context, concurrency int, handle func(context.Context, runlog.JobDelivery)) error {
	return l.pullAll(ctx, runsStream, jobConsumer, concurrency, func(ctx context.Context, m *nats.Msg, _ *slot) {
		d, err := l.deliveredJob(ctx, m)
		switch {
		case err != nil:
			l.drop(m, err)
		case d != nil:
			handle(ctx, d)
		}
	})
}

// deliveredJob returns the delivery of a job, nil if the job is not stored any more.
func (l *Log) deliveredJob(ctx context.Context, m *nats.Msg) (*jobDelivery, error) {
	address, err := runlog.ParseSubject(m.Subject)
	if err != nil {
		return nil, err
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	job := &harnessv1.Job{}
	if err := proto.Unmarshal(m.Data, job); err != nil {
		return nil, fmt.Errorf("decode job: %w", err)
	}
	if address.Run != jobRun(job) || address.Key != job.GetKey() {
		return nil, fmt.Errorf("it contains job %q of %s", job.GetKey(), jobRun(job))
	}
	arrived := time.Now()
	if !l.admits(ctx, address.Partition, m, meta.Sequence.Stream) {
		return nil, nil
	}
	return &jobDelivery{lease: l.lease(address.Partition, m, meta, arrived), job: job}, nil
}

// OnJobEnd subscribes to the ends of all jobs.
func (l *Log) OnJobEnd(handle func(run runlog.Run, key string)) (func(), error) {
	sub, err := l.nc.Subscribe("hm.jobend.*.*.*", func(m *nats.Msg) {
		if run, key, err := runlog.ParseJobEnd(m.Subject); err == nil {
			handle(run, key)
		}
	})
	if err != nil {
		return nil, unavailable("listen to the ends of jobs", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

package runlogtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

var jobCases = map[string]func(*bed){
	"job/created once":   jobOnce,
	"job/redelivery":     jobRedelivery,
	"job/in progress":    jobInProgress,
	"job/nak":            jobNak,
	"job/two workers":    jobTwo,
	"job/concurrency":    jobConcurrency,
	"job/invalid":        jobInvalid,
	"job/gone":           jobGone,
	"job/lost answer":    jobLost,
	"job/not in the log": jobNotInLog,
	"job/ends":           jobEnds,
	"job/consumer":       jobConsumer,
}

// job returns a job of c's run.
func (c *chain) job(key string) *harnessv1.Job {
	return &harnessv1.Job{
		Namespace: c.run.Namespace, RunId: c.run.ID, FirstSequence: c.first(), Key: key, Purpose: "summarize", Model: "openai:m",
		Request: &harnessv1.BlobRef{Digest: "d", Size: 7}, MaxTries: 3,
	}
}

// create creates a job that does not exist.
func (c *chain) create(key string) *harnessv1.Job {
	c.Helper()
	job := c.job(key)
	created, err := c.log.CreateJob(c.ctx, job)
	c.must(err)
	if !created {
		c.Fatalf("job %s of %v exists", key, c.run)
	}
	return job
}

// jobs sends deliveries of jobs to a channel.
func (b *bed) jobs() (<-chan runlog.JobDelivery, func() error) {
	deliveries := make(chan runlog.JobDelivery, 10_000)
	return deliveries, b.background(func(ctx context.Context) error {
		return b.log.ConsumeJobs(ctx, 16, func(_ context.Context, d runlog.JobDelivery) { deliveries <- d })
	})
}

// recvJob waits for a delivery of a job.
func (b *bed) recvJob(from <-chan runlog.JobDelivery, want *harnessv1.Job, redelivered bool) runlog.JobDelivery {
	b.Helper()
	d := recv(b, from, "job "+want.GetKey())
	if !proto.Equal(d.Job(), want) || d.Redelivered() != redelivered {
		b.Fatalf("got, redelivered %v,\n%v\nwant\n%v", d.Redelivered(), d.Job(), want)
	}
	return d
}

func jobOnce(b *bed) {
	c := b.started("r")
	first := c.create("k")
	first.Purpose, first = "the caller's", c.job("k") // the stored job is a copy
	changed := c.job("k")
	changed.Purpose = "classify"
	again := func() {
		b.Helper()
		for _, job := range []*harnessv1.Job{first, changed} {
			if created, err := b.log.CreateJob(b.ctx, job); err != nil || created {
				b.Fatalf("a second job: created is %v, %v", created, err)
			}
		}
	}
	again()
	deliveries, _ := b.jobs()
	b.must(b.recvJob(deliveries, first, false).Ack())
	again() // a job that is done stays
	other := b.started("R")
	b.must(b.recvJob(deliveries, other.create("k"), false).Ack())
	b.must(b.recvJob(deliveries, c.create("k-1"), false).Ack())

	var won atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			created, err := b.log.CreateJob(b.ctx, c.job("many"))
			if err != nil {
				b.Error(err)
			}
			if created {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		b.Fatalf("%d callers created the job", won.Load())
	}
	b.must(b.recvJob(deliveries, c.job("many"), false).Ack())
	b.must(b.recvJob(deliveries, c.create("sentinel"), false).Ack())
}

// jobRedelivery checks that a job is redelivered unless it was acknowledged. The
// sentinel is delivered later, so its redelivery shows that the job's would be due.
func jobRedelivery(b *bed) {
	deliveries, _ := b.jobs()
	c := b.started("r")
	job := c.create("k")
	b.recvJob(deliveries, job, false)
	delivered := time.Now()
	d := b.recvJob(deliveries, job, true)
	if since := time.Since(delivered); since < b.log.AckWait()/2 || since > 3*b.log.AckWait() {
		b.Fatalf("delivered again after %v", since)
	}
	b.must(d.Ack())
	if d.Ack() == nil || d.Nak(0) == nil || d.InProgress() == nil {
		b.Error("an acknowledged job can be put back")
	}
	sentinel := c.create("sentinel")
	b.recvJob(deliveries, sentinel, false)
	b.must(b.recvJob(deliveries, sentinel, true).Ack())
}

// jobInProgress checks that heartbeats postpone the redelivery, and that a delivery that
// has expired can be neither kept nor put back.
func jobInProgress(b *bed) {
	deliveries, _ := b.jobs()
	c := b.started("r")
	job, sentinel := c.create("k"), c.create("sentinel")
	held := map[string]runlog.JobDelivery{}
	for range 2 {
		d := recv(b, deliveries, "a job")
		held[d.Job().GetKey()] = d
	}
	beat := time.NewTicker(b.log.AckWait() / 4)
	defer beat.Stop()
	for again := false; !again; {
		select {
		case <-beat.C:
			b.must(held[job.GetKey()].InProgress())
		case d := <-deliveries:
			if !proto.Equal(d.Job(), sentinel) || !d.Redelivered() {
				b.Fatalf("%v was delivered, redelivered is %v", d.Job(), d.Redelivered())
			}
			if held[sentinel.GetKey()].InProgress() == nil || held[sentinel.GetKey()].Nak(0) == nil {
				b.Error("a delivery that has expired can be kept or put back")
			}
			b.must(d.Ack())
			again = true
		case <-b.ctx.Done():
			b.Fatal("the sentinel did not come again")
		}
	}
	b.must(held[job.GetKey()].Ack())
}

func jobNak(b *bed) {
	deliveries, _ := b.jobs()
	job := b.started("r").create("k")
	const delay = 300 * time.Millisecond
	d := b.recvJob(deliveries, job, false)
	for range 3 {
		begun := time.Now()
		b.must(d.Nak(delay))
		d = b.recvJob(deliveries, job, true)
		if since := time.Since(begun); since < delay-50*time.Millisecond || since > b.log.AckWait() {
			b.Fatalf("delivered again after %v, want %v", since, delay)
		}
	}
	b.must(d.Ack())
}

// jobTwo checks that jobs wait for a worker, and that each goes to one of two.
func jobTwo(b *bed) {
	const each = 20
	for _, id := range []string{"a", "b", "c"} { // in several partitions, if there are
		c := b.started(id)
		for i := range each {
			c.create(fmt.Sprint("k", i))
			c.append("")
		}
	}
	first, _ := b.jobs()
	second, _ := b.jobs()
	seen := map[string]bool{}
	for len(seen) < 3*each {
		var d runlog.JobDelivery
		select {
		case d = <-first:
		case d = <-second:
		case <-b.ctx.Done():
			b.Fatalf("%d jobs were delivered, want %d", len(seen), 3*each)
		}
		name := d.Job().GetRunId() + " " + d.Job().GetKey()
		if seen[name] {
			b.Fatalf("job %s was delivered twice", name)
		}
		seen[name] = true
		b.must(d.Ack())
	}
}

// jobConcurrency checks that ConsumeJobs handles no more jobs than allowed at the same
// time, and that it waits for its handlers.
func jobConcurrency(b *bed) {
	const limit, jobs = 3, 30
	c := b.started("r")
	for i := range jobs {
		c.create(fmt.Sprint("k", i))
	}
	var active, most, handled atomic.Int64
	full, all := make(chan struct{}), make(chan struct{})
	var once sync.Once
	stop := b.background(func(ctx context.Context) error {
		return b.log.ConsumeJobs(ctx, limit, func(ctx context.Context, d runlog.JobDelivery) {
			now := active.Add(1)
			defer active.Add(-1)
			if now > most.Load() {
				most.Store(now)
			}
			if now == limit {
				once.Do(func() { close(full) })
			}
			select {
			case <-full: // the first ones wait until all slots are taken
			case <-ctx.Done():
			}
			if d.Ack() == nil && handled.Add(1) == jobs {
				close(all)
			}
		})
	})
	recv(b, full, "as many handlers as allowed")
	recv(b, all, "the last job")
	b.wantErr(stop(), context.Canceled)
	if most.Load() > limit || active.Load() != 0 {
		b.Fatalf("%d at the same time, want at most %d; %d are left", most.Load(), limit, active.Load())
	}
}

func jobInvalid(b *bed) {
	c := b.started("r")
	for _, key := range invalidKeys {
		if _, err := b.log.CreateJob(b.ctx, c.job(key)); err == nil {
			b.Errorf("key %q was accepted", key)
		}
	}
	for _, id := range []string{"", "*", "a.b"} {
		job := c.job("k")
		job.RunId = id
		if _, err := b.log.CreateJob(b.ctx, job); err == nil {
			b.Errorf("run %q was accepted", id)
		}
	}
	job := c.job("k")
	job.Purpose = strings.Repeat("p", runlog.MaxRecord)
	_, err := b.log.CreateJob(b.ctx, job)
	b.wantErr(err, runlog.ErrTooLarge)
	deliveries, _ := b.jobs()
	b.recvJob(deliveries, c.create("k"), false)
}

// jobGone checks that a job of a run with another first record is not delivered.
func jobGone(b *bed) {
	deliveries, _ := b.jobs()
	c := b.started("r")
	other := c.near()
	other.append("repair")
	second := c.append("").Sequence
	item := c.give("i")
	for range 20 {
		for _, first := range []uint64{0, other.first(), second, item, item + 1000} {
			job := c.job("k")
			job.FirstSequence = first
			_, err := b.log.CreateJob(b.ctx, job)
			b.wantErr(err, runlog.ErrNotFound)
		}
	}
	unknown := c.job("k")
	unknown.RunId = "unknown"
	_, err := b.log.CreateJob(b.ctx, unknown)
	b.wantErr(err, runlog.ErrNotFound)
	b.recvJob(deliveries, c.create("k"), false)
	stray := c.job("k")
	stray.FirstSequence = second
	_, err = b.log.CreateJob(b.ctx, stray)
	b.wantErr(err, runlog.ErrNotFound)
	if created, err := b.log.CreateJob(b.ctx, c.job("k")); created || err != nil {
		b.Fatalf("a caller with another first record deleted the job: %v", err)
	}
}

func jobLost(b *bed) {
	faults := NewFaults(b.log)
	c := b.started("r")
	for i, lose := range []func(int){faults.loseWrites, faults.loseAcks} {
		lose(1)
		created, err := faults.CreateJob(b.ctx, c.job("k"))
		b.wantErr(err, runlog.ErrUnavailable)
		if created {
			b.Fatalf("fault %d: created", i)
		}
	}
	created, err := faults.CreateJob(b.ctx, c.job("k"))
	if err != nil || created {
		b.Fatalf("the job whose answer was lost is created again: %v, %v", created, err)
	}
	deliveries, _ := b.jobs()
	b.must(b.recvJob(deliveries, c.job("k"), false).Ack())
}

// jobEnds checks that stored results are reported, and refused ones are not.
func jobEnds(b *bed) {
	type end struct {
		run runlog.Run
		key string
	}
	ends := make(chan end, 100)
	poked := make(chan runlog.Run, 100)
	stop, err := b.log.OnJobEnd(func(run runlog.Run, key string) { ends <- end{run, key} })
	b.must(err)
	unpoke, err := b.log.OnPoke(func(run runlog.Run) { poked <- run })
	b.must(err)
	defer unpoke()
	for _, id := range []string{"r", "R"} {
		c := b.started(id)
		_, err := b.log.PutBlobAs(b.ctx, c.run, c.first()+100, "gone", nil)
		b.wantErr(err, runlog.ErrNotFound)
		for _, key := range []string{"k", "k-1", "k"} { // the result of the third was stored before
			c.put(key, []byte("x"))
			if got := recv(b, ends, "the end of a job"); got.run != c.run || got.key != key {
				b.Fatalf("got %v, want %s of %v", got, key, c.run)
			}
		}
	}
	stop()
	b.must(b.log.Poke(b.chain("sentinel").run))
	if got := recv(b, poked, "the poke"); got.ID != "sentinel" {
		b.Fatalf("the end of a job poked %v", got)
	}
}

// jobConsumer checks that the consumer of jobs is listed, once, and that it is no
// executor.
func jobConsumer(b *bed) {
	names, err := b.log.Executors(b.ctx)
	b.must(err)
	slices.Sort(names)
	if !slices.Contains(names, workflow.Inference) || len(slices.Compact(slices.Clone(names))) != len(names) {
		b.Errorf("the consumers are %v", names)
	}
	_, err = b.log.AckFloor(b.ctx, b.chain("r").run, workflow.Inference)
	b.wantErr(err, runlog.ErrNotFound)
}

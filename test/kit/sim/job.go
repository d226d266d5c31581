package sim

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// once is a write of a job or of a keyed blob.
type once struct {
	run   runlog.Run
	first uint64
	kind  kind
	key   string
	// store stores it, at the sequence at which it lands, unless there is one, and
	// reports whether it did.
	store func() bool
	// remove deletes the message stored under the key for the run.
	remove func()
}

// putOnce stores what a key has at most once, and reports whether this call did. It
// reads the first record of the run before and after the write, as the log does on
// JetStream.
func (h *handle) putOnce(ctx context.Context, c once) (stored bool, err error) {
	if err := h.checkStarted(ctx, c); err != nil {
		return false, err
	}
	o := &op{key: key{kind: c.kind, run: c.run.ID, a: c.first, text: c.key}, write: true}
	o.do = func(fate) error {
		stored = c.store()
		return nil
	}
	err = h.p.interact(ctx, o)
	if err != nil && ctx.Err() == nil {
		return false, err
	}
	if err := h.checkStarted(context.WithoutCancel(ctx), c); err != nil {
		return false, err
	}
	return err == nil && stored, err
}

// checkStarted returns nil if the run has its first record. Otherwise it deletes the
// stored message and returns ErrNotFound.
func (h *handle) checkStarted(ctx context.Context, c once) error {
	w := h.p.world
	started := false
	o := &op{key: key{kind: onStarted, run: c.run.ID, a: c.first, text: c.key}}
	o.do = func(fate) error {
		if l := w.store.runs[c.run]; l != nil && len(l.records) > 0 {
			e := l.records[0].entry
			started = e.Sequence == c.first && e.Header.Version == 1
		}
		return nil
	}
	if err := h.p.interact(ctx, o); err != nil || started {
		return err
	}
	o = &op{key: key{kind: onRemove, run: c.run.ID, a: c.first, text: c.key}, write: true}
	o.do = func(fate) error {
		c.remove()
		return nil
	}
	if err := h.p.interact(ctx, o); err != nil {
		return err
	}
	return fmt.Errorf("run %s with the first record %d: %w", c.run, c.first, runlog.ErrNotFound)
}

// PutBlobAs stores bytes under a key.
func (h *handle) PutBlobAs(ctx context.Context, run runlog.Run, first uint64, name string, data []byte) (bool, error) {
	if err := checkKey(run, name); err != nil {
		return false, err
	}
	if len(data) > runlog.MaxKeyedBlob {
		return false, fmt.Errorf("blob %s of %d bytes: %w", name, len(data), runlog.ErrTooLarge)
	}
	s := h.p.world.store
	data = bytes.Clone(data)
	put := s.putBlobAs
	if h.overwrites {
		put = s.overwriteBlobAs
	}
	stored, err := h.putOnce(ctx, once{
		run: run, first: first, key: name, kind: onBlobAs,
		store:  func() bool { return put(run, name, keyedBlob{first, data}) },
		remove: func() { s.removeBlobAs(run, name, first, first) },
	})
	if err != nil {
		return false, err
	}
	h.jobEnded(run, name)
	return stored, nil
}

// BlobAs reads the bytes with a key from the leader.
func (h *handle) BlobAs(ctx context.Context, run runlog.Run, name string) (data []byte, err error) {
	if err := checkKey(run, name); err != nil {
		return nil, err
	}
	o := &op{key: key{kind: onGetBlobAs, run: run.ID, text: name}}
	o.do = func(fate) error {
		if l := h.p.world.store.runs[run]; l != nil {
			if have, ok := l.keyed[name]; ok {
				data = append([]byte{}, have.data...)
			}
		}
		return nil
	}
	if err := h.p.interact(ctx, o); err != nil {
		return nil, err
	}
	return data, nil
}

// CreateJob stores a job.
func (h *handle) CreateJob(ctx context.Context, job *harnessv1.Job) (bool, error) {
	run := runlog.Run{Namespace: job.GetNamespace(), ID: job.GetRunId()}
	if err := checkKey(run, job.GetKey()); err != nil {
		return false, err
	}
	if size := proto.Size(job); size > runlog.MaxRecord {
		return false, fmt.Errorf("job %s of %d bytes: %w", job.GetKey(), size, runlog.ErrTooLarge)
	}
	w := h.p.world
	job = proto.CloneOf(job)
	return h.putOnce(ctx, once{
		run: run, first: job.GetFirstSequence(), key: job.GetKey(), kind: onJob,
		store: func() bool {
			m := w.store.createJob(run, job)
			if m != nil {
				w.stored(m)
			}
			return m != nil
		},
		remove: func() { w.store.removeJob(run, job.GetKey(), job.GetFirstSequence(), job.GetFirstSequence()) },
	})
}

func checkKey(run runlog.Run, name string) error {
	if !run.Valid() || !runlog.ValidKey(name) {
		return fmt.Errorf("invalid key %q of run %q", name, run)
	}
	return nil
}

type jobDelivery struct{ *delivery }

// Job returns the job.
func (d jobDelivery) Job() *harnessv1.Job { return d.h.message.job }

// ConsumeJobs delivers jobs.
func (h *handle) ConsumeJobs(ctx context.Context, concurrency int, handle func(context.Context, runlog.JobDelivery)) error {
	return h.p.consume(ctx, jobs, concurrency, func(ctx context.Context, d *delivery) { handle(ctx, jobDelivery{d}) })
}

// jobEnd is a subscription to the ends of jobs.
type jobEnd struct {
	handle func(runlog.Run, string)
	queue  []endedJob
	nth    uint64
}

type endedJob struct {
	run runlog.Run
	key string
}

// jobEnded notifies all subscribers.
func (h *handle) jobEnded(run runlog.Run, name string) {
	w := h.p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.p.dead || w.ended {
		return
	}
	for _, p := range w.procs {
		for _, e := range p.jobEnds {
			e.queue = append(e.queue, endedJob{run, name})
		}
	}
	w.signal()
}

// OnJobEnd subscribes to the ends of all jobs.
func (h *handle) OnJobEnd(handle func(run runlog.Run, name string)) (stop func(), err error) {
	p, w := h.p, h.p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	p.subscribed++
	e := &jobEnd{handle: handle, nth: p.subscribed}
	p.jobEnds = append(p.jobEnds, e)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.jobEnds = without(p.jobEnds, e)
	}, nil
}

// reportEnd delivers the next end of a job, or loses it.
func (w *World) reportEnd(p *Process, e *jobEnd) {
	w.mu.Lock()
	ended := e.queue[0]
	e.queue = e.queue[1:]
	w.mu.Unlock()
	fate := through
	if w.chance(w.cfg.Rates.LostPoke) {
		fate = wentLost
	}
	w.record(event{who: p.Instance, kind: onJobEnd, run: ended.run.ID, text: ended.key, fate: fate})
	if fate == through {
		go e.handle(ended.run, ended.key)
	}
}

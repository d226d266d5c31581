package jetstream

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// keyedInFlight checks that a job whose key is in use by a job in flight is not stored,
// and that its caller learns that once the other one is stored.
func keyedInFlight(r *replicas) {
	leader, _ := r.places()
	var refused atomic.Int64
	n := &network{server: leader.running()}
	count := func(p []byte) bool {
		refused.Add(int64(bytes.Count(p, []byte(`"err_code":10164`))))
		return false
	}
	n.loseReplies.Store(&count)
	l := r.open(r.T, r.account, n, 0)
	rec, sequence := r.grown(l, "r")
	run := runOf(rec)
	release := r.hold(leader) // it learns of no replica that has stored anything
	defer release()
	one := newKeyedWrite(run, sequence, "RUNS_0", runlog.JobSubject(0, run, "k"), nil)
	f, err := l.js.PublishMsgAsync(one.msg)
	r.must(err)
	type answer struct {
		created bool
		err     error
	}
	answers := make(chan answer)
	go func() {
		created, err := l.CreateJob(context.Background(), job(run, sequence, "k"))
		answers <- answer{created, err}
	}()
	r.await(r.T, "a writer that was refused twice", func() bool { return refused.Load() >= 2 })
	release()
	r.must(outcome(f))
	if got := <-answers; got.err != nil || got.created {
		r.Fatalf("created is %v, %v", got.created, got.err)
	}
	if n := stored(r.T, l.js, run)[one.msg.Subject]; n != 1 {
		r.Fatalf("%d jobs are stored", n)
	}
}

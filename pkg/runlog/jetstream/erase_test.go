package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// full stores everything that a run can have: 2 timers, 2 blobs, one of which has 3
// further chunks, 3 items, 5 records, a job and its result. It returns the sequences of
// the records.
func full(t *testing.T, l *Log, id string) (runlog.Run, []uint64) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, run := t.Context(), runlog.Run{Namespace: "default", ID: id}
	for version := range uint64(2) {
		must(l.SetTimer(ctx, run, version+1, time.Now().Add(time.Hour)))
	}
	for _, size := range []int{100, 2*chunkSize + 1} {
		_, err := l.PutBlob(ctx, run, bytes.Repeat([]byte("x"), size))
		must(err)
	}
	var sequences []uint64
	rec := first(id)
	for v := range uint64(5) {
		sequence, err := l.Append(ctx, rec)
		must(err)
		sequences = append(sequences, sequence)
		rec = after(rec, sequence, v+2)
		if v < 3 {
			_, existed, err := l.AppendInbox(ctx, run, &harnessv1.InboxItem{Id: fmt.Sprint(v)}, 0)
			must(err)
			if existed {
				t.Fatal("an item of another run")
			}
		}
	}
	created, err := l.CreateJob(ctx, job(run, sequences[0], "k"))
	must(err)
	put, err := l.PutBlobAs(ctx, run, sequences[0], "k", []byte(id))
	must(err)
	if !created || !put {
		t.Fatal("a job of another run")
	}
	return run, sequences
}

// eraseMessages is the number of messages that full stores.
const eraseMessages = 2 + 5 + 1 + 3 + 5 + 1

// stored returns the messages of a run in the streams, by subject.
func stored(t *testing.T, js jetstream.JetStream, run runlog.Run) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for stream, tree := range map[string]string{"RUNS_0": "run", "BLOBS_0": "blob", "TIMERS_0": "timer"} {
		s, err := js.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(fmt.Sprintf("hm.%s.0.%s.%s.>", tree, run.Namespace, run.ID)))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, info.State.Subjects)
	}
	return all
}

// deletions calls act with the number of each request to delete a message, before it is
// sent. The request is lost if act returns true.
func deletions(act func(n int64) bool) *func([]byte) bool {
	var n atomic.Int64
	f := func(p []byte) bool { return bytes.Contains(p, []byte(deleteMessage)) && act(n.Add(1)) }
	return &f
}

// TestErasureInterrupted interrupts an erasure at each of its deletions, before or
// after its arrival. The run then still ends at its newest record, and can be erased.
func TestErasureInterrupted(t *testing.T) {
	l, n, sound := overNetwork(t, 0)
	js := sound.js
	for _, arrives := range []bool{true, false} {
		for at := int64(1); at <= eraseMessages; at++ {
			run, sequences := full(t, l, fmt.Sprintf("r-%v-%d", arrives, at))
			newest := sequences[len(sequences)-1]
			ctx, cancel := context.WithCancel(t.Context())
			n.loseRequests.Store(deletions(func(n int64) bool {
				if n == at {
					cancel()
				}
				return n >= at && !arrives
			}))
			if err := l.Erase(ctx, run, 0, runlog.Everything); !errors.Is(err, runlog.ErrUnavailable) {
				t.Fatalf("broken off at deletion %d: %v", at, err)
			}
			n.loseRequests.Store(nil)
			if err := sound.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			view, err := sound.View(t.Context(), run, 0)
			left := stored(t, js, run)
			switch {
			case errors.Is(err, runlog.ErrNotFound) && at == eraseMessages && arrives:
			case err != nil:
				t.Fatalf("broken off at deletion %d: %v; %v", at, err, left)
			case view.Newest.Sequence != newest:
				t.Fatalf("broken off at deletion %d the run ends at %d, not at %d", at, view.Newest.Sequence, newest)
			}
			if at > eraseMessages-5 { // in the second record or later
				for subject := range left {
					if a, err := runlog.ParseSubject(subject); err != nil || !a.Kind.IsRecord() && a.Kind != runlog.KindJob {
						t.Fatalf("records were erased before %v", left)
					}
				}
			}
			if err := l.Erase(t.Context(), run, 0, runlog.Everything); err != nil {
				t.Fatal(err)
			}
			if left := stored(t, js, run); len(left) > 0 {
				t.Fatalf("erased again, and there are %v", left)
			}
			for _, sequence := range sequences { // nor in the cache
				if _, err := l.Read(t.Context(), run, sequence); !errors.Is(err, runlog.ErrNotFound) {
					t.Fatalf("broken off at deletion %d, sequence %d: %v", at, sequence, err)
				}
			}
		}
	}
}

// TestErasureOverNetwork checks that deletions whose answers are lost are repeated.
func TestErasureOverNetwork(t *testing.T) {
	l, n, sound := overNetwork(t, 3*time.Second)
	run, sequences := full(t, sound, "r")
	n.loseRequests.Store(deletions(func(n int64) bool { return n%6 == 0 }))
	var lost atomic.Int64
	n.loseReplies.Store(holding(`stream_msg_delete_response`, 1, &lost))
	keep := sequences[len(sequences)-1]
	if err := l.Erase(t.Context(), run, keep, runlog.Everything); err != nil {
		t.Fatal(err)
	}
	if left := stored(t, sound.js, run); len(left) != 1 || lost.Load() < 1 {
		t.Fatalf("there are %v; %d answers were lost", left, lost.Load())
	}
	e, err := sound.Read(t.Context(), run, keep)
	if err != nil || e.Sequence != keep {
		t.Fatalf("what was to be kept: %v, %v", e, err)
	}
}

// TestErasureSparesNewRun checks that a run of the same name that starts while an
// erasure still runs loses nothing.
func TestErasureSparesNewRun(t *testing.T) {
	for at := int64(1); at <= eraseMessages; at++ {
		t.Run(fmt.Sprint("at deletion ", at), func(t *testing.T) {
			l, n, sound := overNetwork(t, 0)
			run, _ := full(t, sound, "r")
			var made []uint64
			n.loseRequests.Store(deletions(func(n int64) bool {
				if n == at {
					if err := sound.Erase(t.Context(), run, 0, runlog.Everything); err != nil {
						t.Error(err)
					}
					_, made = full(t, sound, "r")
				}
				return false
			}))
			if err := l.Erase(t.Context(), run, 0, runlog.Everything); err != nil {
				t.Fatal(err)
			}
			total := uint64(0)
			for _, n := range stored(t, sound.js, run) {
				total += n
			}
			if total != eraseMessages {
				t.Errorf("there are %d messages of the new run, want %d", total, eraseMessages)
			}
			view, err := l.View(t.Context(), run, 0)
			if err != nil || len(made) == 0 || view.Newest.Sequence != made[len(made)-1] {
				t.Errorf("the new run ends at %d (%v), want the last of %v", view.Newest.Sequence, err, made)
			}
		})
	}
}

// TestErasureOfDamagedRun checks that a log with missing records, and one with messages
// that the log would not write, are erased, the newest record last.
func TestErasureOfDamagedRun(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l, js := open(t, e, Config{}, Layout{}), admin(t, e)
	runs, err := js.Stream(t.Context(), "RUNS_0")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		for _, keep := range []int{-1, 0, 2, 4} {
			run, sequences := full(t, l, fmt.Sprintf("r-%d-%d", i, keep+1))
			put(t, js, runlog.InboxSubject(0, run), []byte("\xff"))
			full(t, l, "other")
			if err := l.Erase(t.Context(), runlog.Run{Namespace: "default", ID: "other"}, 0, runlog.Everything); err != nil {
				t.Fatal(err)
			}
			if err := runs.DeleteMsg(t.Context(), sequences[i]); err != nil {
				t.Fatal(err)
			}
			want, kept := 0, uint64(0)
			if keep >= 0 {
				if kept = sequences[keep]; keep != i {
					want = 1
				}
			}
			if err := l.Erase(t.Context(), run, kept, runlog.Everything); err != nil {
				t.Fatal(err)
			}
			if left := stored(t, js, run); len(left) != want {
				t.Errorf("without record %d, %d kept: there are %v", i, keep, left)
			}
		}
	}
}

// TestErasedStaysErased checks that an erased run does not return when the server
// restarts.
func TestErasedStaysErased(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var run, other runlog.Run
	for _, session := range []func(l *Log){
		func(l *Log) {
			run, _ = full(t, l, "r")
			other, _ = full(t, l, "other")
			if err := l.Erase(t.Context(), run, 0, runlog.Everything); err != nil {
				t.Fatal(err)
			}
		},
		func(l *Log) {
			if left := stored(t, l.js, run); len(left) > 0 {
				t.Errorf("there are %v", left)
			}
			if left := stored(t, l.js, other); len(left) == 0 {
				t.Error("the other run is gone")
			}
		},
	} {
		e, err := StartEmbedded(EmbeddedConfig{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		l, err := e.Open(t.Context(), Config{}, Layout{})
		if err == nil {
			session(l)
			l.Close()
		}
		e.Stop()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestErasureRefused checks that the error names a stream that permits no deletion.
func TestErasureRefused(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l, js := open(t, e, Config{}, Layout{}), admin(t, e)
	run, _ := full(t, l, "r")
	s, err := js.Stream(t.Context(), "BLOBS_0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.DenyDelete = true
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	err = l.Erase(t.Context(), run, 0, runlog.Everything)
	if !errors.Is(err, runlog.ErrUnavailable) || !strings.Contains(err.Error(), "BLOBS_0") {
		t.Errorf("got %v", err)
	}
}

// TestErasedRunsAreNotCached checks that records of an erased run do not return to the
// cache: a replica that lags, or a slow reader, still has them.
func TestErasedRunsAreNotCached(t *testing.T) {
	c := newCache(1 << 20)
	entry := func(id string, sequence uint64) runlog.Entry {
		return runlog.Entry{Run: runlog.Run{Namespace: "default", ID: id}, Sequence: sequence, Record: first(id)}
	}
	there := func(sequence uint64) bool {
		_, ok := c.get(0, sequence)
		return ok
	}
	c.put(entry("r", 1), 0, 100)
	c.put(entry("other", 2), 0, 100)
	c.erase(entry("r", 0).Run, 5)
	c.drop(0, 1)
	c.drop(0, 1)
	for _, e := range []runlog.Entry{entry("r", 1), entry("r", 5), entry("r", 6), entry("other", 3)} {
		c.put(e, 0, 100)
	}
	for sequence, want := range map[uint64]bool{1: false, 2: true, 3: true, 5: false, 6: true} {
		if there(sequence) != want {
			t.Errorf("sequence %d in memory is %v", sequence, !want)
		}
	}
	for i := range 2 * erasedRuns {
		c.erase(entry(fmt.Sprint(i), 0).Run, 10)
	}
	if len(c.erased) != erasedRuns || len(c.names) != erasedRuns || c.records.Used() != 3*(100+512) {
		t.Errorf("%d and %d runs, %d bytes", len(c.erased), len(c.names), c.records.Used())
	}
}

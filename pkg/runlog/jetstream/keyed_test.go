package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// keyedWrites are the writes of what a key has once, by name.
var keyedWrites = map[string]func(ctx context.Context, l *Log, run runlog.Run, first uint64, key string) (bool, error){
	"blob": func(ctx context.Context, l *Log, run runlog.Run, first uint64, key string) (bool, error) {
		return l.PutBlobAs(ctx, run, first, key, []byte("late"))
	},
	"job": func(ctx context.Context, l *Log, run runlog.Run, first uint64, key string) (bool, error) {
		return l.CreateJob(ctx, job(run, first, key))
	},
}

// TestErasureDuringKeyedWrite erases a run before each request of a writer reaches the
// server: the read before the write, the write, and the read after it. Another run of
// the name, if one is started then, keeps what it has. If the caller leaves then, nothing
// is left either.
func TestErasureDuringKeyedWrite(t *testing.T) {
	requests := []string{`MSG.GET.RUNS_0`, "Hm-Nonce", `MSG.GET.RUNS_0`}
	for name, write := range keyedWrites {
		for i, text := range requests {
			for _, then := range []string{"nothing", "a kept record", "another run", "the caller leaves"} {
				t.Run(fmt.Sprintf("%s, request %d, then %s", name, i, then), func(t *testing.T) {
					l, n, sound := overNetwork(t, 0)
					run, sequences := full(t, sound, "r")
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					var seen, sent atomic.Int64
					erase := func(p []byte) bool {
						if bytes.Contains(p, []byte("Hm-Nonce")) {
							sent.Add(1)
						}
						// The reads are counted, the write is a single request.
						if !bytes.Contains(p, []byte(text)) || seen.Add(1) != int64(1+i/2) {
							return false
						}
						keep := uint64(0)
						if then == "a kept record" {
							keep = sequences[4]
						}
						if err := sound.Erase(t.Context(), run, keep, runlog.Everything); err != nil {
							t.Error(err)
						}
						switch then {
						case "another run":
							full(t, sound, "r")
						case "the caller leaves":
							leave()
						}
						return false
					}
					n.loseRequests.Store(&erase)
					_, err := write(ctx, l, run, sequences[0], "late")
					n.loseRequests.Store(nil)
					if !errors.Is(err, runlog.ErrNotFound) && (i > 0 || ctx.Err() == nil) {
						t.Errorf("got %v", err)
					}
					if i == 0 && sent.Load() > 0 {
						t.Error("a run that is gone was written to")
					}
					left := uint64(0)
					for _, n := range stored(t, sound.js, run) {
						left += n
					}
					want := map[string]uint64{"nothing": 0, "a kept record": 1, "another run": eraseMessages, "the caller leaves": 0}[then]
					if left != want {
						t.Errorf("%d messages are left, want %d", left, want)
					}
				})
			}
		}
	}
}

// TestKeyedWriteDuringErasure writes before each deletion of an erasure reaches the
// server, with and without a kept record, and for a run of one record.
func TestKeyedWriteDuringErasure(t *testing.T) {
	for name, write := range keyedWrites {
		for what, records := range map[string]int{"nothing is kept": 5, "the newest record is kept": 5, "one record": 1} {
			t.Run(name+", "+what, func(t *testing.T) {
				l, n, sound := overNetwork(t, 0)
				stays := 0
				for at := int64(1); at <= eraseMessages; at++ {
					run, sequences := runlog.Run{}, []uint64{}
					if records > 1 {
						run, sequences = full(t, sound, fmt.Sprint("r", at))
					} else {
						r, sequence := started(t, sound, fmt.Sprint("r", at))
						run, sequences = r, []uint64{sequence}
					}
					keep := uint64(0)
					if what == "the newest record is kept" {
						keep = sequences[len(sequences)-1]
					}
					n.loseRequests.Store(deletions(func(n int64) bool {
						if n != at {
							return false
						}
						switch _, err := write(t.Context(), sound, run, sequences[0], "late"); {
						case err == nil:
							stays++
						case !errors.Is(err, runlog.ErrNotFound):
							t.Error(err)
						}
						return false
					}))
					if err := l.Erase(t.Context(), run, keep, runlog.Everything); err != nil {
						t.Fatal(err)
					}
					n.loseRequests.Store(nil)
					left := stored(t, sound.js, run)
					if len(left) > 1 || len(left) == 1 && keep == 0 {
						t.Fatalf("after a write at deletion %d there are %v", at, left)
					}
				}
				if stays == 0 {
					t.Error("no write came before the end of the run")
				}
			})
		}
	}
}

// TestKeyedWriteOverNetwork checks that a write whose answer or whose message is lost
// returns whether it stored the message.
func TestKeyedWriteOverNetwork(t *testing.T) {
	for name, write := range keyedWrites {
		t.Run(name, func(t *testing.T) {
			l, n, sound := overNetwork(t, 1500*time.Millisecond)
			run, sequence := started(t, sound, "r")
			check := func(key string, want bool) {
				t.Helper()
				stored, err := write(t.Context(), l, run, sequence, key)
				n.loseRequests.Store(nil)
				n.loseReplies.Store(nil)
				if err != nil || stored != want {
					t.Errorf("%s: stored is %v, %v", key, stored, err)
				}
				if again, err := write(t.Context(), sound, run, sequence, key); err != nil || again {
					t.Errorf("%s: stored again is %v, %v", key, again, err)
				}
			}
			var lost atomic.Int64
			ack := map[string]string{"blob": aBlobsAck, "job": anAck}[name]
			n.loseReplies.Store(holding(ack, 1, &lost))
			check("answer", true)
			n.loseRequests.Store(holding("Hm-Nonce", 1, &lost))
			check("message", true)
			rival := func(p []byte) bool { // another writer is first while the message is lost
				if !bytes.Contains(p, []byte("Hm-Nonce")) || lost.Add(1) != 3 {
					return false
				}
				if stored, err := write(t.Context(), sound, run, sequence, "rival"); err != nil || !stored {
					t.Errorf("stored is %v, %v", stored, err)
				}
				return true
			}
			n.loseRequests.Store(&rival)
			check("rival", false)
			if lost.Load() < 3 {
				t.Errorf("%d messages were lost", lost.Load())
			}
		})
	}
}

// TestKeyedWriteAfterLeftover checks that what a writer of an erased run has left does
// not take the key from another run of its name.
func TestKeyedWriteAfterLeftover(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l, js := open(t, e, Config{}, Layout{}), admin(t, e)
	for name, write := range keyedWrites {
		started(t, l, "before-"+name) // sequences above 0
		run, sequence := started(t, l, name)
		for key, header := range map[string][]string{"a": {headerFirst, "0"}, "b": {headerFirst, fmt.Sprint(sequence - 1)}, "c": nil, "d": {headerFirst, "x"}} {
			subject := runlog.KeyedBlobSubject(0, run, key)
			if name == "job" {
				subject = runlog.JobSubject(0, run, key)
			}
			put(t, js, subject, []byte("left"), header...)
			for _, want := range []bool{true, false} {
				if stored, err := write(t.Context(), l, run, sequence, key); err != nil || stored != want {
					t.Errorf("%s %s: stored is %v, %v", name, key, stored, err)
				}
			}
			if n := stored(t, js, run)[subject]; n != 1 {
				t.Errorf("%s %s: %d messages", name, key, n)
			}
			if data, err := l.BlobAs(t.Context(), run, key); name == "blob" && string(data) != "late" {
				t.Errorf("the blob is %q, %v", data, err)
			}
		}
	}
}

// TestBlobAsAsksTheLeader checks that a read of a blob by its key is not sent to
// replicas, which may lag.
func TestBlobAsAsksTheLeader(t *testing.T) {
	l, n, sound := overNetwork(t, 0)
	run, sequence := started(t, sound, "r")
	if _, err := sound.PutBlobAs(t.Context(), run, sequence, "k", []byte("x")); err != nil {
		t.Fatal(err)
	}
	var direct atomic.Int64
	n.loseRequests.Store(holding("DIRECT.GET", 0, &direct))
	if data, err := l.BlobAs(t.Context(), run, "k"); err != nil || string(data) != "x" || direct.Load() > 0 {
		t.Errorf("%q, %v, %d requests to replicas", data, err, direct.Load())
	}
}

package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/disktest"
)

// fullTimeout is the bound of a write in these tests.
const fullTimeout = 2 * time.Second

// large is about the size of the records.
const large = 200 << 10

// writer writes large records to one run.
type writer struct {
	*testing.T
	log      *Log
	rec      *recordOf
	accepted []uint64 // sequences of acknowledged records
}

// recordOf is the last acknowledged record.
type recordOf struct {
	id       string
	version  uint64
	sequence uint64
}

// record appends a record and returns the error.
func (w *writer) record() error {
	rec := first(w.rec.id)
	rec.Version, rec.PrevSequence, rec.Writer.Nonce = w.rec.version+1, w.rec.sequence, w.rec.version+1
	rec.Writer.Executor = strings.Repeat("x", large) // few records use up a block
	sequence, err := w.log.Append(w.Context(), rec)
	if err == nil {
		w.rec = &recordOf{w.rec.id, rec.GetVersion(), sequence}
		w.accepted = append(w.accepted, sequence)
	}
	return err
}

// untilFull writes until a record is not acknowledged.
func (w *writer) untilFull() {
	w.Helper()
	for range disktest.Size / large {
		if err := w.record(); err != nil {
			if !errors.Is(err, runlog.ErrUnavailable) {
				w.Fatal(err)
			}
			return
		}
	}
	w.Fatal("every record was acknowledged")
}

// named checks that the log reports within the bound that nothing is stored, and how to
// continue.
func (w *writer) named(remedy string) {
	w.Helper()
	begun := time.Now()
	eventually(w, "the log reports that nothing is stored", func() bool {
		return w.log.Writable() != nil || w.record() != nil && w.log.Writable() != nil // there may be room for one more
	})
	if took := time.Since(begun); took > 2*fullTimeout {
		w.Errorf("reported after %v", took)
	}
	text := fmt.Sprint(w.log.Trouble())
	oneLine(w.T, w.log.Trouble())
	for _, want := range []string{"NATS stores nothing since ", "RUNS_0", "free space", remedy} {
		if !strings.Contains(text, want) {
			w.Errorf("%q lacks %q", text, want)
		}
	}
}

// whole checks that every acknowledged record is stored, and that the run continues.
func (w *writer) whole() {
	w.Helper()
	eventually(w, "the log stores again", func() bool { return w.log.Writable() == nil })
	eventually(w, "a record is stored", func() bool { return w.record() == nil })
	view, err := w.log.View(w.Context(), runlog.Run{Namespace: "default", ID: w.rec.id}, w.rec.sequence)
	if err != nil {
		w.Fatal(err)
	}
	entries, err := runlog.Back(w.Context(), w.log, view.Newest, 0)
	if err != nil {
		w.Fatal(err)
	}
	stored := map[uint64]bool{}
	for _, e := range entries {
		stored[e.Sequence] = true
	}
	for _, sequence := range w.accepted {
		if !stored[sequence] {
			w.Errorf("the acknowledged record at %d is gone", sequence)
		}
	}
	if err := w.log.Trouble(); err != nil {
		w.Error(err)
	}
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("after a minute there is still not: %s", what)
		}
	}
}

// TestFullDiskEmbedded checks that a full disk of an embedded server is reported and that
// the server stores again, without a restart of the process, once there is room.
func TestFullDiskEmbedded(t *testing.T) {
	for _, always := range []bool{true, false} {
		t.Run(fmt.Sprintf("sync always %v", always), func(t *testing.T) {
			t.Parallel()
			disk := disktest.New(t)
			e := start(t, EmbeddedConfig{Dir: disk.Dir, SyncAlways: always})
			w := &writer{T: t, log: open(t, e, Config{Timeout: fullTimeout}, Layout{MaxBytes: 1 << 40}), rec: &recordOf{id: "r"}}
			consuming := consumeAll(t, w.log)
			if err := w.record(); err != nil {
				t.Fatal(err)
			}
			disk.Fill()
			w.untilFull()
			w.named("by itself")
			if _, err := w.log.View(t.Context(), runlog.Run{Namespace: "default", ID: "r"}, w.rec.sequence); err != nil {
				t.Errorf("the log cannot be read: %v", err)
			}
			disk.Free()
			w.whole()
			consuming()
		})
	}
}

// consumeAll consumes steps until stop, which fails the test if the consumer has ended.
func consumeAll(t *testing.T, l *Log) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- l.Consume(ctx, "turn", 4, func(_ context.Context, d runlog.Delivery) { _ = d.Ack() })
	}()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the consumer ended: %v", err)
		}
	}
}

// TestFullDiskOneServer checks the same with a server outside of the process. It stores
// again after the restart that the report demands.
func TestFullDiskOneServer(t *testing.T) {
	t.Parallel()
	disk := disktest.New(t)
	config := EmbeddedConfig{Dir: disk.Dir, Listen: "127.0.0.1:0"}
	e := start(t, config)
	open(t, e, Config{}, Layout{MaxBytes: 1 << 40})
	l, err := Open(t.Context(), Config{URL: e.URL(), Timeout: fullTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	w := &writer{T: t, log: l, rec: &recordOf{id: "r"}}
	if problems := l.Examine(t.Context()); len(problems) > 0 {
		t.Errorf("before: %q", problems)
	}
	disk.Fill()
	w.untilFull()
	w.named("restart NATS")
	if problems := l.Examine(t.Context()); len(problems) != 3 || !strings.HasPrefix(problems[1], "stream RUNS_0 stores nothing (no answer): check the free space") {
		t.Errorf("with a full disk: %q", problems)
	}
	disk.Free()
	config.Listen = strings.TrimPrefix(e.URL(), "nats://")
	e.Stop()
	start(t, config)
	w.whole()
}

// TestSystemFullDiskReplicated fills the disks of all three servers.
func TestSystemFullDiskReplicated(t *testing.T) {
	t.Parallel()
	var disks []*disktest.Disk
	c := startClusterOn(t, func() string {
		disks = append(disks, disktest.New(t))
		return disks[len(disks)-1].Dir
	}, ", sync_interval: always", "a")
	if err := c.provision("a", Layout{}); err != nil {
		t.Fatal(err)
	}
	w := &writer{T: t, log: c.open(t, "a", c, fullTimeout), rec: &recordOf{id: "r"}}
	if err := w.record(); err != nil {
		t.Fatal(err)
	}
	for _, d := range disks {
		d.Fill()
	}
	w.untilFull()
	w.named("restart NATS")
	for _, d := range disks {
		d.Free()
	}
	for _, n := range c.nodes {
		n.stop()
	}
	for _, n := range c.nodes {
		n.start(t)
	}
	w.whole()
}

// TestExamineReplicas checks that a server that is away is named.
func TestExamineReplicas(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "a")
	if err := c.provision("a", Layout{}); err != nil {
		t.Fatal(err)
	}
	l := c.open(t, "a", c, 0)
	lost := c.nodes[0]
	lost.stop()
	eventually(t, "all streams lack the server", func() bool {
		problems := l.Examine(t.Context())
		return len(problems) == 3 && strings.Contains(problems[1], "stream RUNS_0 has no replica on "+lost.name()+" now")
	})
}

// TestUnansweredWrites checks that single writes without an answer are no trouble if the
// stream stores, and that a stream without answers is named although nothing is written
// to it any more. Probes leave nothing in the stream.
func TestUnansweredWrites(t *testing.T) {
	l, n, sound := overNetwork(t, 600*time.Millisecond)
	aPublish := func(p []byte) bool {
		return bytes.Contains(p, []byte(anAppend)) || bytes.Contains(p, []byte("hm.run.0.probe"))
	}
	n.loseRequests.Store(&aPublish)
	if _, err := l.Append(t.Context(), first("r")); !errors.Is(err, runlog.ErrUnavailable) {
		t.Fatal(err)
	}
	eventually(t, "the stream is named", func() bool { return l.Writable() != nil })
	n.loseRequests.Store(nil)
	eventually(t, "the stream stores", func() bool { return l.Writable() == nil })
	if _, err := l.Append(t.Context(), first("r")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "only the record remains", func() bool {
		s, err := sound.js.Stream(t.Context(), "RUNS_0")
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().State.Msgs == 1
	})
}

// TestWritesWithoutAnswerOfAReplicatedStream are no proof of a full disk: a cluster may be electing a leader.
func TestWritesWithoutAnswerOfAReplicatedStream(t *testing.T) {
	t.Parallel()
	for replicas, want := range map[int]bool{1: false, 3: true} {
		l := &Log{timeout: time.Second, replicas: replicas}
		l.stalls.record("RUNS_0", time.Now().Add(-time.Minute), errUnanswered, func() {})
		if err := l.Writable(); err == nil || strings.Contains(err.Error(), "its servers elect a leader") != want {
			t.Errorf("%d replicas: %v", replicas, err)
		}
	}
}

package jetstream

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// network is the connection between a client and a server in this process. It can lose
// what either of them sends, in the middle of a live connection, and close it.
type network struct {
	// loseReplies and loseRequests drop matching writes. They see whole writes: both
	// sides flush at protocol boundaries when they are idle.
	loseReplies, loseRequests atomic.Pointer[func([]byte) bool]

	mu     sync.Mutex
	server nats.InProcessConnProvider
	conns  []net.Conn
}

func (n *network) InProcessConn() (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	conn, err := n.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	n.conns = append(n.conns, conn)
	return &wire{Conn: conn, network: n}, nil
}

// moveTo directs new connections to another server.
func (n *network) moveTo(e *EmbeddedServer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server = e.server
}

// cut closes all connections.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		_ = c.Close()
	}
	n.conns = nil
}

type wire struct {
	net.Conn
	network *network
}

func (w *wire) Write(p []byte) (int, error) {
	if lose := w.network.loseRequests.Load(); lose != nil && (*lose)(p) {
		return len(p), nil
	}
	return w.Conn.Write(p)
}

func (w *wire) Read(p []byte) (int, error) {
	for {
		n, err := w.Conn.Read(p)
		if lose := w.network.loseReplies.Load(); err == nil && lose != nil && (*lose)(p[:n]) {
			continue
		}
		return n, err
	}
}

// holding matches the first times writes that contain a text and counts them in lost.
func holding(text string, times int64, lost *atomic.Int64) *func([]byte) bool {
	f := func(p []byte) bool {
		return bytes.Contains(p, []byte(text)) && lost.Add(1) <= times
	}
	return &f
}

// Texts in the bytes of an answer to a publish, and of a publish.
const (
	anAck     = `{"stream":"RUNS_0"` // a refusal begins with its error
	anAppend  = "Hm-Version"
	aBlobsAck = `{"stream":"BLOBS_0"`
)

func overNetwork(t *testing.T, timeout time.Duration) (*Log, *network, *Log) {
	t.Helper()
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	sound := open(t, e, Config{}, Layout{})
	n := &network{server: e.server}
	l, err := Open(context.Background(), Config{InProcess: n, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, n, sound
}

func first(id string) *harnessv1.Record {
	return &harnessv1.Record{
		Namespace: "default", RunId: id, Version: 1, Schema: runlog.Schema, Writer: &harnessv1.Writer{Instance: "w", Nonce: 1},
		Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: "turn", Snapshot: &harnessv1.Snapshot{}}},
	}
}

func runOf(rec *harnessv1.Record) runlog.Run {
	return runlog.Run{Namespace: rec.GetNamespace(), ID: rec.GetRunId()}
}

// after returns a record that may follow.
func after(prev *harnessv1.Record, sequence uint64, nonce uint64) *harnessv1.Record {
	rec := first(prev.GetRunId())
	rec.Version, rec.PrevSequence, rec.Writer.Nonce = prev.GetVersion()+1, sequence, nonce
	return rec
}

// TestAppendOverNetwork checks that Append returns the correct result within its
// timeout when answers or records are lost.
func TestAppendOverNetwork(t *testing.T) {
	for name, lose := range map[string]func(*network, *atomic.Int64){
		"landed, answer lost": func(n *network, lost *atomic.Int64) { n.loseReplies.Store(holding(anAck, 1, lost)) },
		"never arrived":       func(n *network, lost *atomic.Int64) { n.loseRequests.Store(holding(anAppend, 1, lost)) },
	} {
		t.Run(name, func(t *testing.T) {
			l, n, sound := overNetwork(t, 1500*time.Millisecond)
			rec := first("r")
			for range 3 {
				var lost atomic.Int64
				lose(n, &lost)
				got, err := l.Append(t.Context(), rec)
				if err != nil {
					t.Fatal(err)
				}
				if lost.Load() == 0 {
					t.Fatal("nothing was lost")
				}
				view, err := sound.View(t.Context(), runOf(rec), got)
				if err != nil || view.Newest.Sequence != got || view.Newest.Header.Version != rec.GetVersion() {
					t.Fatalf("the answer is %d, the log ends with version %d at %d (%v)", got, view.Newest.Header.Version, view.Newest.Sequence, err)
				}
				rec = after(rec, got, rec.GetWriter().GetNonce()+1)
			}
		})
	}
}

// TestFencedOverNetwork checks that Append returns ErrFenced if another writer is first
// while its record is lost.
func TestFencedOverNetwork(t *testing.T) {
	l, n, sound := overNetwork(t, 1500*time.Millisecond)
	rec := first("r")
	sequence, err := l.Append(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := after(rec, sequence, 2), after(rec, sequence, 3)
	lost := make(chan struct{})
	var once sync.Once
	lose := func(p []byte) bool {
		if !bytes.Contains(p, []byte(anAppend)) {
			return false
		}
		swallowed := false
		once.Do(func() {
			swallowed = true
			close(lost)
		})
		return swallowed
	}
	n.loseRequests.Store(&lose)
	answer := make(chan error, 1)
	go func() {
		_, err := l.Append(t.Context(), mine)
		answer <- err
	}()
	<-lost
	if _, err := sound.Append(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !errors.Is(err, runlog.ErrFenced) {
		t.Fatalf("got %v", err)
	}
}

// TestUnavailable checks that Append without any answer ends in time with
// ErrUnavailable.
func TestUnavailable(t *testing.T) {
	l, n, sound := overNetwork(t, 600*time.Millisecond)
	all := func([]byte) bool { return true }
	n.loseRequests.Store(&all)
	ctx, run := t.Context(), runlog.Run{Namespace: "default", ID: "r"}
	for name, call := range map[string]func() error{
		"Append":      func() error { _, err := l.Append(ctx, first("r")); return err },
		"Read":        func() error { _, err := l.Read(ctx, run, 1); return err },
		"View":        func() error { _, err := l.View(ctx, run, 0); return err },
		"AppendInbox": func() error { _, _, err := l.AppendInbox(ctx, run, &harnessv1.InboxItem{Id: "i"}, 0); return err },
		"LastInbox":   func() error { _, err := l.LastInbox(ctx, run); return err },
		"Inbox":       func() error { _, err := l.Inbox(ctx, run, 0, 1); return err },
		"PutBlob":     func() error { _, err := l.PutBlob(ctx, run, nil); return err },
		"Blob":        func() error { _, err := l.Blob(ctx, run, content.Digest(nil)); return err },
		"SetTimer":    func() error { return l.SetTimer(ctx, run, 1, time.Now()) },
		"Executors":   func() error { _, err := l.Executors(ctx); return err },
		"Locate":      func() error { _, err := l.Locate(ctx, "gateway"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			err := call()
			if !errors.Is(err, runlog.ErrUnavailable) {
				t.Fatalf("got %v", err)
			}
			oneLine(t, err)
			if took := time.Since(begun); took > 5*time.Second {
				t.Fatalf("took %v", took)
			}
		})
	}
	t.Cleanup(func() {
		if _, err := sound.View(context.Background(), run, 0); !errors.Is(err, runlog.ErrNotFound) {
			t.Errorf("something arrived: %v", err)
		}
	})
}

// TestInputsOverNetwork checks that an input whose answer is lost is stored once, and
// so is a blob.
func TestInputsOverNetwork(t *testing.T) {
	l, n, sound := overNetwork(t, 1500*time.Millisecond)
	run := runlog.Run{Namespace: "default", ID: "r"}
	var lost atomic.Int64
	n.loseReplies.Store(holding(anAck, 1, &lost))
	sequence, _, err := l.AppendInbox(t.Context(), run, &harnessv1.InboxItem{Id: "i"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	items, err := sound.Inbox(t.Context(), run, 0, sequence)
	if err != nil || len(items) != 1 || lost.Load() == 0 {
		t.Fatalf("%d items, %d lost (%v)", len(items), lost.Load(), err)
	}
	data := bytes.Repeat([]byte("x"), chunkSize+1)
	lost.Store(0)
	n.loseReplies.Store(holding(aBlobsAck, 1, &lost))
	if _, err := l.PutBlob(t.Context(), run, data); err != nil || lost.Load() == 0 {
		t.Fatalf("%d lost, %v", lost.Load(), err)
	}
	if got, err := sound.Blob(t.Context(), run, content.Digest(data)); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

// TestWatchOverNetwork checks that a watch whose connection is lost misses nothing.
func TestWatchOverNetwork(t *testing.T) {
	l, n, sound := overNetwork(t, 0)
	rec := first("r")
	sequence, err := sound.Append(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	const until = 50
	enough := errors.New("enough")
	caughtUp, ended := make(chan struct{}), make(chan error, 1)
	var versions []uint64
	go func() {
		ended <- runlog.Watcher{
			Handle: func(e runlog.Entry) error {
				if versions = append(versions, e.Header.Version); len(versions) == until {
					return enough
				}
				return nil
			},
			CaughtUp: func() error {
				close(caughtUp)
				return nil
			},
		}.Watch(t.Context(), l, runOf(rec))
	}()
	<-caughtUp
	var lost atomic.Int64
	n.loseReplies.Store(holding("hm.live.", 1<<30, &lost)) // until the connection ends
	for v := 2; v <= until; v++ {
		rec = after(rec, sequence, uint64(v))
		if sequence, err = sound.Append(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	n.cut()
	if err := <-ended; !errors.Is(err, enough) {
		t.Fatal(err)
	}
	for i, v := range versions {
		if v != uint64(i)+1 {
			t.Fatalf("versions %v", versions)
		}
	}
}

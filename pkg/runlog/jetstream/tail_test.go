package jetstream

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// forgetful is a bus that can come back without its newest messages.
type forgetful interface {
	// open opens a log.
	open(t testing.TB) *Log
	// save keeps a copy of the stored messages. It restarts the bus.
	save(t testing.TB)
	// lose restarts the bus with what save remembered.
	lose(t testing.TB)
}

// lone is one server, in this process or at an address.
type lone struct {
	dir, saved string
	listen     string
	network    network
	server     *EmbeddedServer
	url        string
}

func (s *lone) start(t testing.TB) {
	t.Helper()
	e, err := StartEmbedded(EmbeddedConfig{Dir: s.dir, Listen: s.listen})
	if err != nil {
		t.Fatal(err)
	}
	s.server = e
	if s.listen != "" {
		s.url = e.URL()
		s.listen = e.URL()[len("nats://"):] // the same address after a restart
	}
	s.network.moveTo(e)
}

func (s *lone) open(t testing.TB) *Log {
	t.Helper()
	cfg := Config{InProcess: &s.network, Options: []nats.Option{nats.ReconnectWait(5 * time.Millisecond)}}
	if s.listen != "" {
		cfg.InProcess, cfg.URL = nil, s.url
	}
	l, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func (s *lone) save(t testing.TB) {
	t.Helper()
	s.server.Stop()
	if err := storetest.Replace(s.saved, s.dir); err != nil {
		t.Fatal(err)
	}
	s.start(t)
}

func (s *lone) lose(t testing.TB) {
	t.Helper()
	s.server.Stop()
	if err := storetest.Replace(s.dir, s.saved); err != nil {
		t.Fatal(err)
	}
	s.start(t)
}

// three are three servers with replicated streams.
type three struct {
	*cluster
	account string
	saved   [3]string
}

func (s *three) open(t testing.TB) *Log {
	t.Helper()
	return s.cluster.open(t, s.account, s.cluster, 0)
}

func (s *three) each(t testing.TB, do func(dir, saved string) error) {
	t.Helper()
	for _, n := range s.nodes {
		n.stop()
	}
	for i, n := range s.nodes {
		if err := do(filepath.Join(filepath.Dir(n.conf), "jetstream"), s.saved[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range s.nodes {
		n.start(t)
	}
	s.awaitLeader(t, s.account, runsStream(0), nil)
}

func (s *three) save(t testing.TB) {
	t.Helper()
	s.each(t, func(dir, saved string) error { return storetest.Replace(saved, dir) })
}

func (s *three) lose(t testing.TB) {
	t.Helper()
	s.each(t, storetest.Replace)
}

// onEachBus runs a test on a server in this process, on one at an address, and on three.
func onEachBus(t *testing.T, test func(t *testing.T, bus forgetful)) {
	t.Helper()
	t.Parallel()
	for name, listen := range map[string]string{"embedded": "", "one_server": "127.0.0.1:0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := &lone{dir: filepath.Join(dir, "now"), saved: filepath.Join(dir, "then"), listen: listen}
			s.start(t)
			t.Cleanup(func() { s.server.Stop() })
			if err := Provision(t.Context(), Config{InProcess: &s.network}, Layout{}); err != nil {
				t.Fatal(err)
			}
			test(t, s)
		})
	}
	t.Run("three_servers", func(t *testing.T) {
		t.Parallel()
		s := &three{cluster: startCluster(t, "a"), account: "a"}
		if err := s.provision(s.account, Layout{}); err != nil {
			t.Fatal(err)
		}
		for i := range s.saved {
			s.saved[i] = filepath.Join(t.TempDir(), "then")
		}
		test(t, s)
	})
}

// linked returns a record that follows prev.
func linked(prev runlog.Entry, nonce uint64) *harnessv1.Record {
	rec := first(prev.Run.ID)
	rec.Writer.Nonce = nonce
	runlog.Link(rec, prev)
	return rec
}

// kept appends a record, also while the bus starts.
func kept(t testing.TB, l *Log, rec *harnessv1.Record) runlog.Entry {
	t.Helper()
	sequence, err := l.Append(t.Context(), rec)
	for errors.Is(err, runlog.ErrUnavailable) {
		sequence, err = l.Append(t.Context(), rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return runlog.Entry{Run: runOf(rec), Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
}

// TestLostTail checks that a writer whose newest record the bus has lost cannot append to
// the record that another one has stored under its sequence, that its reads return the
// stored records, and that runs that have lost nothing continue.
func TestLostTail(t *testing.T) {
	onEachBus(t, func(t *testing.T, bus forgetful) {
		stale := bus.open(t)
		const runs = 8
		tails := make([]runlog.Entry, runs)
		for i := range tails {
			tails[i] = kept(t, stale, first(fmt.Sprint("r", i)))
		}
		untouched := kept(t, stale, first("untouched"))
		bus.save(t)
		for v := range uint64(4) {
			for i := range tails {
				tails[i] = kept(t, stale, linked(tails[i], 100*v+uint64(i)+2))
			}
		}
		if _, err := stale.AckFloor(t.Context(), untouched.Run, "turn"); err != nil {
			t.Fatal(err)
		}
		bus.lose(t)
		// The sequences are used again by records of the same runs: of an older version, or
		// of the same one.
		other := bus.open(t)
		now := make([]runlog.Entry, runs)
		for i := range now {
			view, err := other.View(t.Context(), tails[i].Run, 0)
			if err != nil {
				t.Fatal(err)
			}
			now[i] = view.Newest
			for v := range uint64(3 * (i % 2)) {
				now[i] = kept(t, other, linked(now[i], 1000*(v+1)+uint64(i)))
			}
		}
		for n := 0; kept(t, other, first(fmt.Sprint("more", n))).Sequence < tails[0].Sequence-1; {
			n++
		}
		for i := range now {
			now[i] = kept(t, other, linked(now[i], 9000+uint64(i)))
		}
		used := 0
		for i, tail := range tails {
			before := now[i]
			if _, err := stale.Append(t.Context(), linked(tail, uint64(10_000+i))); !errors.Is(err, runlog.ErrFenced) {
				t.Errorf("%s: a record after the lost version %d at %d: %v", tail.Run, tail.Header.Version, tail.Sequence, err)
			}
			if e, err := stale.Read(t.Context(), tail.Run, tail.Sequence); err == nil {
				used++
				if e.Record.GetWriter().GetNonce() == tail.Record.GetWriter().GetNonce() {
					t.Errorf("%s: a lost record is read at %d", tail.Run, tail.Sequence)
				}
			}
			view, err := stale.View(t.Context(), before.Run, before.Sequence)
			if err != nil || view.Newest.Record.GetWriter().GetNonce() != before.Record.GetWriter().GetNonce() {
				t.Fatalf("%s: newest is %+v, %v", before.Run, view.Newest.Header, err)
			}
			entries, err := runlog.Back(t.Context(), stale, view.Newest, 0)
			if err != nil || len(entries) != int(before.Header.Version) {
				t.Errorf("%s: %d entries, %v", before.Run, len(entries), err)
			}
			now[i] = kept(t, stale, linked(view.Newest, uint64(20_000+i)))
		}
		if used != runs {
			t.Errorf("%d sequences of lost records were used again by their runs", used)
		}
		kept(t, stale, linked(untouched, 30_000))
		if stale.histories[0].epoch.Load() != 1 {
			t.Errorf("%d losses", stale.histories[0].epoch.Load())
		}
		if h := other.histories[0]; h.epoch.Load() != 0 {
			t.Errorf("a log that was opened after the loss has found %d", h.epoch.Load())
		}
	})
}

// TestLostView checks that a read of a record that the bus has lost ends with ErrLost and not
// with the timeout.
func TestLostView(t *testing.T) {
	onEachBus(t, func(t *testing.T, bus forgetful) {
		l := bus.open(t)
		a := kept(t, l, first("a"))
		bus.save(t)
		a2 := kept(t, l, linked(a, 2))
		b := kept(t, l, first("b"))
		bus.lose(t)
		for _, e := range []runlog.Entry{a2, b} {
			view, err := l.View(t.Context(), e.Run, e.Sequence)
			for errors.Is(err, runlog.ErrUnavailable) { // the bus starts
				view, err = l.View(t.Context(), e.Run, e.Sequence)
			}
			if !errors.Is(err, runlog.ErrLost) {
				t.Errorf("%s at %d: %+v, %v", e.Run, e.Sequence, view.Newest.Header, err)
			}
		}
		view, err := l.View(t.Context(), a.Run, 0)
		if err != nil || view.Newest.Header.Version != 1 {
			t.Errorf("%+v, %v", view.Newest.Header, err)
		}
		if _, err := l.View(t.Context(), b.Run, 0); !errors.Is(err, runlog.ErrNotFound) {
			t.Errorf("a run that is lost: %v", err)
		}
	})
}

// TestLostLease checks that the lease of a step that the bus has lost does not acknowledge
// the step that has its sequence.
func TestLostLease(t *testing.T) {
	onEachBus(t, func(t *testing.T, bus forgetful) {
		l := bus.open(t)
		kept(t, l, first("a"))
		bus.save(t)
		lost := kept(t, l, first("b"))
		held := make(chan runlog.Delivery)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		consumed := make(chan error, 1)
		go func() {
			consumed <- l.Consume(ctx, "turn", 4, func(_ context.Context, d runlog.Delivery) {
				if d.Entry().Run == lost.Run {
					held <- d
				} else {
					_ = d.Ack()
				}
			})
		}()
		stale := <-held
		bus.lose(t)
		rec := first("b")
		rec.Writer.Nonce = 77
		again := kept(t, bus.open(t), rec)
		if again.Sequence != lost.Sequence {
			t.Fatalf("%d is stored at %d", lost.Sequence, again.Sequence)
		}
		fresh := <-held
		for fresh.Entry().Record.GetWriter().GetNonce() != 77 {
			fresh = <-held // on a busy machine the lost step was delivered twice before the loss
		}
		if stale.Ack() == nil || stale.Nak(0) == nil || stale.InProgress() == nil {
			t.Error("the lease of a lost step is used")
		}
		if err := fresh.Ack(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-consumed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestLostWatch checks that the watch of a client that had a version that the bus has lost
// ends with ErrLost, also if the run has that version again.
func TestLostWatch(t *testing.T) {
	onEachBus(t, func(t *testing.T, bus forgetful) {
		l := bus.open(t)
		tails := map[string]runlog.Entry{}
		for _, id := range []string{"shorter", "again", "untouched"} {
			tails[id] = kept(t, l, first(id))
		}
		tails["untouched"] = kept(t, l, linked(tails["untouched"], 2))
		bus.save(t)
		before := tails["again"]
		for _, id := range []string{"again", "shorter"} {
			tails[id] = kept(t, l, linked(tails[id], 3))
		}
		ended := map[string]chan error{}
		has := map[string]chan uint64{}
		ctx, cancel := context.WithCancel(t.Context())
		for id, tail := range tails {
			ended[id], has[id] = make(chan error, 1), make(chan uint64, 100)
			go func() {
				ended[id] <- runlog.Watcher{
					Contains: tail.Sequence, Patience: time.Minute,
					Handle: func(e runlog.Entry) error {
						has[id] <- e.Header.Version
						return nil
					},
				}.Watch(ctx, l, tail.Run)
			}()
		}
		for id := range tails {
			for v := uint64(1); v <= 2; v++ {
				if got := <-has[id]; got != v {
					t.Fatalf("version %d of %s", got, id)
				}
			}
		}
		bus.lose(t)
		other := bus.open(t)
		kept(t, other, linked(kept(t, other, linked(before, 1000)), 1001))
		kept(t, other, linked(tails["untouched"], 1002))
		for _, id := range []string{"shorter", "again"} {
			if err := <-ended[id]; !errors.Is(err, runlog.ErrLost) {
				t.Errorf("%s: the watch ended with %v", id, err)
			}
			if len(has[id]) > 0 {
				t.Errorf("%s: the watcher had version %d", id, <-has[id])
			}
		}
		if v := <-has["untouched"]; v != 3 {
			t.Errorf("version %d of a run that has lost nothing", v)
		}
		cancel()
		if err := <-ended["untouched"]; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestLostList checks that followers of all runs start again after a loss, and then
// receive the stored steps.
func TestLostList(t *testing.T) {
	onEachBus(t, func(t *testing.T, bus forgetful) {
		l := bus.open(t)
		step := func(id string) *harnessv1.Record {
			rec := first(id)
			rec.GetStep().To = runlog.Park
			return rec
		}
		kept(t, l, step("a"))
		bus.save(t)
		lost := kept(t, l, step("b"))
		follow := func(until runlog.Run) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			return l.Runs(ctx, func() {}, func(e runlog.Entry) {
				if e.Run == until {
					bus.lose(t)
				}
			})
		}
		if err := follow(lost.Run); !errors.Is(err, runlog.ErrLost) {
			t.Fatalf("the list ended with %v", err)
		}
		var runs []string
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := l.Runs(ctx, cancel, func(e runlog.Entry) { runs = append(runs, e.Run.ID) })
		if !errors.Is(err, context.Canceled) || len(runs) != 1 || runs[0] != "a" {
			t.Errorf("%v, %v", runs, err)
		}
	})
}

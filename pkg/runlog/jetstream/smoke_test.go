package jetstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func openTest(t testing.TB, sync bool) *Log {
	t.Helper()
	e, err := StartEmbedded(EmbeddedConfig{Dir: t.TempDir(), SyncAlways: sync})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	l, err := e.Open(context.Background(), Config{}, Layout{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestSmoke(t *testing.T) {
	l := openTest(t, false)
	ctx := context.Background()
	run := runlog.Run{Namespace: "default", ID: "r1"}
	got := make(chan *runlog.Entry, 100)
	stop, err := l.Subscribe(ctx, run, func(e *runlog.Entry) { got <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	prev := uint64(0)
	for v := uint64(1); v <= 20; v++ {
		rec := &harnessv1.Record{Namespace: "default", RunId: "r1", Version: v, PrevSequence: prev, Schema: 1, Writer: &harnessv1.Writer{Nonce: v},
			Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: "turn", Snapshot: &harnessv1.Snapshot{GoalPreview: string(make([]byte, 3000))}}}}
		start := time.Now()
		seq, err := l.Append(ctx, rec)
		if err != nil {
			t.Fatal(err)
		}
		a := time.Since(start)
		rec2 := &harnessv1.Record{Namespace: "default", RunId: "r1", Version: v, PrevSequence: prev, Schema: 1, Writer: &harnessv1.Writer{Nonce: v + 1000},
			Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{}}}
		if _, err := l.Append(ctx, rec2); !errors.Is(err, runlog.ErrFenced) {
			t.Fatal(err)
		}
		if again, err := l.Append(ctx, rec); err != nil || again != seq {
			t.Fatal(again, err)
		}
		start = time.Now()
		view, err := l.View(ctx, run, seq)
		if err != nil || view.Newest.Sequence != seq {
			t.Fatal(view, err)
		}
		b := time.Since(start)
		start = time.Now()
		if _, err := l.LastInbox(ctx, run); err != nil {
			t.Fatal(err)
		}
		c := time.Since(start)
		fmt.Println(a, b, c)
		prev = seq
		<-got
	}
	for i := range 3 {
		s, existed, err := l.AppendInbox(ctx, run, &harnessv1.InboxItem{Id: fmt.Sprint(i)}, 0)
		fmt.Println(s, existed, err)
		s, existed, err = l.AppendInbox(ctx, run, &harnessv1.InboxItem{Id: fmt.Sprint(i)}, 0)
		fmt.Println(s, existed, err)
	}
	ref, err := l.PutBlob(ctx, run, make([]byte, 2<<20))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.PutBlob(ctx, run, make([]byte, 2<<20)); err != nil {
		t.Fatal(err)
	}
	if b, err := l.Blob(ctx, run, ref.GetDigest()); err != nil || len(b) != 2<<20 {
		t.Fatal(err)
	}
	fmt.Println(l.Executors(ctx))
}

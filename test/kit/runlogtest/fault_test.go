package runlogtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/test/kit/runlogtest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

func open(t *testing.T) runlog.Log {
	t.Helper()
	e, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	l, err := e.Open(t.Context(), jetstream.Config{}, jetstream.Layout{Takeover: 2 * time.Second}) // the suite waits for redeliveries
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// TestFaultlessLog runs the suite on Faults without a demand.
func TestFaultlessLog(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for deliveries that are repeated")
	}
	runlogtest.Suite(t, func(t *testing.T, test func(*testing.T, runlog.Log)) {
		test(t, runlogtest.NewFaults(open(t)))
	})
}

func TestHeldReads(t *testing.T) {
	f := runlogtest.NewFaults(open(t))
	ctx, run := t.Context(), runlog.Run{Namespace: "default", ID: "r"}
	if _, err := f.Append(ctx, &harnessv1.Record{
		Namespace: run.Namespace, RunId: run.ID, Version: 1, Schema: runlog.Schema,
		Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: "repair"}},
	}); err != nil {
		t.Fatal(err)
	}
	release := f.HoldReads()
	read := func(ctx context.Context) chan error {
		ended := make(chan error, 2)
		go func() {
			_, err := f.View(ctx, run, 0)
			ended <- err
		}()
		return ended
	}
	impatient, leave := context.WithCancel(ctx)
	left, waits := read(impatient), read(ctx)
	go func() {
		_, err := f.BlobAs(impatient, run, "k")
		left <- err
	}()
	if err := f.AwaitReads(ctx, 3); err != nil {
		t.Fatal(err)
	}
	leave()
	for range 2 {
		if err := <-left; !errors.Is(err, runlog.ErrUnavailable) {
			t.Errorf("the read that was left returned %v", err)
		}
	}
	select {
	case err := <-waits:
		t.Errorf("a held read ended with %v", err)
	default:
	}
	release()
	release()
	if err := <-waits; err != nil {
		t.Error(err)
	}
	if _, err := f.Read(ctx, run, 1); err != nil {
		t.Error(err)
	}
}

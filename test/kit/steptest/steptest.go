// Package steptest runs one executor of the mesh in a test: on a real run log, with
// a real tool host, over real gRPC on the loopback interface.
//
// A test puts a step into the log, as the executor before it does, and reads the
// record that follows it. Every Bed has a bus server with its own storage, so the
// tests of a package may run in parallel.
package steptest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
)

// patience bounds a test; one that hangs fails with what it waited for.
const patience = time.Minute

// init sets the environment of commands: under the race detector a process sleeps for a
// second when it exits, and each command has a process that waits for it.
func init() {
	_ = os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
}

// Bed is a run log with one run in it.
type Bed struct {
	testing.TB
	Log *jetstream.Log
	Run runlog.Run

	ctx    context.Context //nolint:containedctx // the context of the test
	newest runlog.Entry
	stored chan struct{} // has a token when records were stored since the last read
}

// New starts a bus and opens its run log. custom are the names of executors that get
// a consumer in addition to the stock ones.
func New(t testing.TB, custom ...string) *Bed {
	t.Helper()
	return NewLayout(t, jetstream.Layout{Executors: custom})
}

// WithoutHeartbeats is a takeover time in which no worker has a heartbeat during a test.
const WithoutHeartbeats = 10 * patience

// NewLayout is New for a bus of another layout.
func NewLayout(t testing.TB, layout jetstream.Layout) *Bed {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	server, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	log, err := server.Open(ctx, jetstream.Config{}, layout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	b := &Bed{TB: t, Log: log, Run: runlog.Run{Namespace: "test", ID: "run"}, ctx: ctx, stored: make(chan struct{}, 1)}
	stop, err := log.Subscribe(ctx, b.Run, func(*runlog.Entry) {
		select {
		case b.stored <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return b
}

// Context ends when the test has used up its time, and at the latest with the test.
func (b *Bed) Context() context.Context { return b.ctx }

// Logger writes to the output of the test.
func (b *Bed) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(b.Output(), nil)) }

// Start runs an executor until the test ends or stop is called, which returns when the
// executor has ended.
func (b *Bed) Start(run func(context.Context, executor.Config) error) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, executor.Config{Log: b.Log, Instance: executor.NewInstance(), Logger: b.Logger()})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(stop)
	return stop
}

// Put stores a step, with the messages that it appends, as the run's next record.
func (b *Bed) Put(step *harnessv1.Step, appended ...*harnessv1.Message) runlog.Entry {
	b.Helper()
	return b.put(&harnessv1.Record{Appended: appended, Body: &harnessv1.Record_Step{Step: step}})
}

// PutJournal stores a journal entry, with the messages that it appends, as the run's
// next record.
func (b *Bed) PutJournal(entry *harnessv1.Journal, appended ...*harnessv1.Message) runlog.Entry {
	b.Helper()
	return b.put(&harnessv1.Record{Appended: appended, Body: &harnessv1.Record_Journal{Journal: entry}})
}

func (b *Bed) put(rec *harnessv1.Record) runlog.Entry {
	b.Helper()
	rec.Namespace, rec.RunId = b.Run.Namespace, b.Run.ID
	rec.Version, rec.PrevSequence = b.newest.Header.Version+1, b.newest.Sequence
	if b.newest.Record != nil {
		rec.AppendedBefore = runlog.AppendedBefore(b.newest)
	}
	rec.Schema, rec.CommitTime = runlog.Schema, timestamppb.Now()
	rec.Writer = &harnessv1.Writer{Executor: "test", Instance: "test", Nonce: rec.GetVersion()}
	sequence, err := b.Log.Append(b.ctx, rec)
	if err != nil {
		b.Fatal(err)
	}
	b.newest = runlog.Entry{Run: b.Run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
	return b.newest
}

// Next waits for the record that follows the newest one that the test knows.
func (b *Bed) Next() *harnessv1.Record {
	b.Helper()
	for {
		view, err := b.Log.View(b.ctx, b.Run, 0)
		if err != nil {
			b.Fatalf("no record follows version %d: %v", b.newest.Header.Version, err)
		}
		if view.Newest.Header.Version > b.newest.Header.Version {
			entries, err := runlog.Back(b.ctx, b.Log, view.Newest, b.newest.Header.Version)
			if err != nil {
				b.Fatal(err)
			}
			b.newest = entries[0]
			return b.newest.Record
		}
		select {
		case <-b.stored:
		case <-b.ctx.Done():
			b.Fatalf("no record follows version %d", b.newest.Header.Version)
		}
	}
}

// NextStep waits for the next record and returns its step.
func (b *Bed) NextStep() *harnessv1.Step {
	b.Helper()
	rec := b.Next()
	if rec.GetStep() == nil {
		b.Fatalf("version %d is no step: %v", rec.GetVersion(), rec)
	}
	return rec.GetStep()
}

// IsNewest fails the test when the log has more than the test knows.
func (b *Bed) IsNewest() {
	b.Helper()
	sequence, err := b.Log.Newest(b.ctx, b.Run)
	if err != nil && !errors.Is(err, runlog.ErrNotFound) {
		b.Fatal(err)
	}
	if sequence != b.newest.Sequence {
		b.Errorf("the newest record has sequence %d, want %d", sequence, b.newest.Sequence)
	}
}

// Send stores an inbox item and tells the worker of the run, as the gateway does.
func (b *Bed) Send(item *harnessv1.InboxItem) {
	b.Helper()
	if _, _, err := b.Log.AppendInbox(b.ctx, b.Run, item, 0); err != nil {
		b.Fatal(err)
	}
	if err := b.Log.Poke(b.Run); err != nil {
		b.Fatal(err)
	}
}

// Interrupt sends an interrupt.
func (b *Bed) Interrupt() {
	b.Helper()
	b.Send(&harnessv1.InboxItem{Id: "interrupt", Input: &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{}}})
}

// Blob stores text as a blob of the run and returns it as content.
func (b *Bed) Blob(text string) *harnessv1.Content {
	b.Helper()
	ref, err := b.Log.PutBlob(b.ctx, b.Run, []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	return &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: ref}}
}

// Serve serves gRPC on a loopback port until the test ends and returns HOST:PORT.
// Errors become statuses as in the mesh.
func Serve(t testing.TB, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, listener, register, options...)
	return listener.Addr().String()
}

// serveOn serves gRPC on a listener until the test ends.
func serveOn(t testing.TB, listener net.Listener, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) {
	t.Helper()
	server := grpc.NewServer(append(fault.ServerOptions(slog.New(slog.NewTextHandler(t.Output(), nil))), options...)...)
	register(server)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		served.Wait()
	})
}

// Dial connects to a server until the test ends.
func Dial(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ToolHost starts a tool host and returns a client of it. intercept, which may be
// nil, sees every call of the client.
func ToolHost(t testing.TB, intercept grpc.UnaryServerInterceptor) harnessv1.ToolHostServiceClient {
	t.Helper()
	host, err := toolhostserver.New(toolhostserver.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var options []grpc.ServerOption
	if intercept != nil {
		options = append(options, grpc.ChainUnaryInterceptor(intercept))
	}
	address := Serve(t, func(r grpc.ServiceRegistrar) { harnessv1.RegisterToolHostServiceServer(r, host) }, options...)
	return harnessv1.NewToolHostServiceClient(Dial(t, address))
}

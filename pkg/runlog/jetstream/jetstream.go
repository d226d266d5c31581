// Package jetstream keeps the run log in NATS JetStream.
//
// Layout: for each partition p a stream RUNS_p (records and inboxes), BLOBS_p
// and TIMERS_p; on RUNS_p a durable consumer exec-NAME for each executor and
// one called wake. Only Provision makes them.
//
// Every append to a run's log carries the same filter, made by runlog.LogFilter,
// with the sequence of the record before it. There is no message id on it: a
// replicated server checks ids before the fence and a single one after it.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Config says how to reach the bus.
type Config struct {
	// URL of the NATS servers, comma-separated; not used with InProcess.
	URL string
	// InProcess connects to an embedded server without a network.
	InProcess nats.InProcessConnProvider
	// Name of the connection, for the server's monitoring.
	Name string
	// Wait bounds the first connection. Default 3 s.
	Wait time.Duration
	// Timeout bounds one request whose context has no earlier end. Default 5 s.
	Timeout time.Duration
	// CacheBytes bounds the records kept in memory, encoded size. Default 64 MiB.
	CacheBytes int
	// Credentials is a file with a NATS user's JWT and key; empty means what the
	// URL says (nats://USER:PASSWORD@HOST).
	Credentials string
	// TLS files for a server that speaks TLS.
	TLS TLSFiles
	// Options are further options of the connection.
	Options []nats.Option
	// Logger; nil discards.
	Logger *slog.Logger
}

// Log is a runlog.Log on JetStream.
type Log struct {
	nc         *nats.Conn
	url        string // without a password
	js         jetstream.JetStream
	partitions int
	replicas   int
	timeout    time.Duration
	cache      *cache
	replies    *replies
	logger     *slog.Logger
	ackWait    atomic.Int64 // nanoseconds
	floors     floors
	pulls      pulls
	full       atomic.Int64  // when a stream was last found full, nanoseconds since 1970
	denied     denial        // what the server does not let this user do
	closed     chan struct{} // when the connection is closed for good
	counts     counters

	mu          sync.Mutex
	onReconnect map[int]func()
	nextHook    int
}

// counters count what a replicated bus does that a single server never would,
// and what undecided appends came to.
type counters struct {
	fenced           atomic.Int64 // refused with 10071
	fencedReplicated atomic.Int64 // refused with 10164
	unanswered       atomic.Int64 // appends whose answer did not come
	resent           atomic.Int64 // the same bytes sent again
	landed           atomic.Int64 // found stored after an undecided answer
	stale            atomic.Int64 // answers of replicas that were behind
}

var _ runlog.Log = (*Log)(nil)

// Open connects to the bus and checks that it is provisioned. The error is one
// line that says what to do.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	l, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	if err := l.await(ctx, max(cfg.Wait, defaultWait)); err != nil {
		l.nc.Close()
		return nil, err
	}
	return l, nil
}

const defaultWait = 3 * time.Second

func connect(cfg Config) (*Log, error) {
	if err := checkURL(cfg.URL); err != nil {
		return nil, err
	}
	if cfg.Wait <= 0 {
		cfg.Wait = defaultWait
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.CacheBytes <= 0 {
		cfg.CacheBytes = 64 << 20
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{
		timeout:     cfg.Timeout,
		cache:       newCache(cfg.CacheBytes),
		logger:      cfg.Logger,
		url:         Redacted(cfg.URL),
		denied:      denial{noted: make(chan struct{})},
		closed:      make(chan struct{}),
		onReconnect: map[int]func(){},
	}
	l.ackWait.Store(int64(runlog.AckWaitOf(runlog.DefaultTakeover)))
	options := append([]nats.Option{
		nats.Name(cfg.Name),
		nats.Timeout(cfg.Wait),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		// A connection that died without a word is found out in half a minute;
		// the client's own default takes minutes.
		nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.ReconnectHandler(func(*nats.Conn) { l.reconnected() }),
		nats.ClosedHandler(func(*nats.Conn) { close(l.closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			cfg.Logger.Warn("bus", "error", err)
			if errors.Is(err, nats.ErrPermissionViolation) {
				l.denied.note(err)
			}
		}),
	}, cfg.Options...)
	if cfg.InProcess != nil {
		options = append(options, nats.InProcessServer(cfg.InProcess))
	}
	if cfg.Credentials != "" {
		if _, err := os.Stat(cfg.Credentials); err != nil {
			return nil, fmt.Errorf("--nats-creds: %w", err)
		}
		options = append(options, nats.UserCredentials(cfg.Credentials))
	}
	secure, err := cfg.TLS.options()
	if err != nil {
		return nil, err
	}
	nc, err := dial(cfg, append(options, secure...))
	if err != nil {
		return nil, err
	}
	l.nc = nc
	if l.js, err = jetstream.New(nc); err != nil {
		nc.Close()
		return nil, fmt.Errorf("JetStream on %s: %w", Redacted(cfg.URL), err)
	}
	if l.replies, err = newReplies(nc); err != nil {
		nc.Close()
		return nil, err
	}
	return l, nil
}

// dialPause is the wait between two tries to reach a server that is not there.
const dialPause = 100 * time.Millisecond

// dial connects, and waits up to cfg.Wait for a server that is only starting.
// What a server refuses is not tried again.
func dial(cfg Config, options []nats.Option) (*nats.Conn, error) {
	for end := time.Now().Add(cfg.Wait); ; time.Sleep(dialPause) {
		nc, err := nats.Connect(cfg.URL, options...)
		if err == nil {
			return nc, nil
		}
		if refused := refusedConnection(cfg.URL, err); refused != nil {
			return nil, refused
		}
		if !errors.Is(err, nats.ErrNoServers) || time.Now().After(end) {
			return nil, fmt.Errorf("cannot reach NATS at %s within %s: %w; is the server running and the URL right?", Redacted(cfg.URL), cfg.Wait, err)
		}
	}
}

// checkURL refuses what is no list of URLs, without showing it: it may hold a
// password.
func checkURL(urls string) error {
	if urls == "" {
		return nil // in this process
	}
	for _, text := range strings.Split(urls, ",") {
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil {
			var parse *url.Error
			if errors.As(err, &parse) {
				err = parse.Err
			}
			if strings.ContainsRune(urls, '@') {
				err = errors.New("what stands in it is percent-encoded, a password too")
			}
			return fmt.Errorf("the NATS URL is not valid: %w; want nats://HOST:4222, or several with commas between", err)
		}
		if u.Host == "" || u.Hostname() == "" {
			return errors.New("the NATS URL is not valid: it names no host; want nats://HOST:4222, or several with commas between")
		}
	}
	return nil
}

// Redacted is a list of URLs without passwords and tokens.
func Redacted(urls string) string {
	list := strings.Split(urls, ",")
	for i, text := range list {
		at := strings.LastIndexByte(text, '@')
		if at < 0 { // no user in it
			continue
		}
		scheme, _, found := strings.Cut(text, "://")
		if found {
			scheme += "://"
		} else {
			scheme = ""
		}
		list[i] = scheme + "…" + text[at:]
	}
	return strings.Join(list, ",")
}

// Close leaves the bus. Consumers must have ended before.
func (l *Log) Close() {
	l.nc.Close()
}

// Flush waits until everything that was published has reached the server.
func (l *Log) Flush(ctx context.Context) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	if err := l.nc.FlushWithContext(ctx); err != nil {
		return unavailable("flush", err)
	}
	return nil
}

// AckWait is the time after which an unacknowledged delivery is repeated. A change
// of it is seen within some seconds by a process that consumes.
func (l *Log) AckWait() time.Duration { return time.Duration(l.ackWait.Load()) }

// Partitions is the number of partitions that the bus was provisioned with.
func (l *Log) Partitions() int { return l.partitions }

// Replicas is the number of servers that keep each record.
func (l *Log) Replicas() int { return l.replicas }

func (l *Log) partition(r runlog.Run) int { return runlog.Partition(r, l.partitions) }

func (l *Log) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.timeout)
}

// reconnected tells everyone who listens that messages may have been missed.
func (l *Log) reconnected() {
	l.denied.clear()
	l.mu.Lock()
	hooks := make([]func(), 0, len(l.onReconnect))
	for _, h := range l.onReconnect {
		hooks = append(hooks, h)
	}
	l.mu.Unlock()
	for _, h := range hooks {
		h()
	}
}

func (l *Log) hookReconnect(f func()) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := l.nextHook
	l.nextHook++
	l.onReconnect[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.onReconnect, id)
	}
}

// unavailable wraps a failure of the bus.
func unavailable(op string, err error) error {
	return fmt.Errorf("%s: %w: %w", op, runlog.ErrUnavailable, err)
}

// apiCode is the JetStream error code in err, 0 when there is none.
func apiCode(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	return 0
}

// Package jetstream stores the run log in NATS JetStream.
//
// Each partition p has the streams RUNS_p (records, inboxes, jobs), BLOBS_p and TIMERS_p. The
// stream VALUES has what outlives runs.
// RUNS_p has a durable consumer exec-NAME for each executor, one for jobs, and one named
// wake. Only Provision creates them.
//
// Every append to a run's log carries the filter that runlog.LogFilter returns and the
// sequence of the record before it. It has no message id: a replicated server checks
// ids before the fence and a single server after it.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Config configures the connection to the bus.
type Config struct {
	// URL of the NATS servers, comma-separated; not used with InProcess.
	URL string
	// InProcess connects to an embedded server without a network.
	InProcess nats.InProcessConnProvider
	// Name of the connection, for the server's monitoring.
	Name string
	// Wait bounds the first connection, with all its dials, and the wait until the bus
	// is provisioned. A single dial has a separate bound. Default 3 s.
	Wait time.Duration
	// Timeout bounds one request whose context has no earlier deadline. Default 5 s.
	Timeout time.Duration
	// CacheBytes bounds the records kept in memory, encoded size. Default 64 MiB.
	CacheBytes int
	// Credentials is a file with a NATS user's JWT and key, or with one line USER:PASSWORD.
	// If empty, the URL names the user (nats://USER:PASSWORD@HOST).
	Credentials string
	// TLS files for a server that speaks TLS.
	TLS TLSFiles
	// Seal seals the inputs that are stored, and checks those that are read. Nil: neither.
	Seal Sealer
	// Options are additional options of the connection.
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
	cache      *recordCache
	histories  []*history // of the partitions
	replies    *replies
	logger     *slog.Logger
	ackWait    atomic.Int64 // nanoseconds
	floors     floors
	pulls      pulls
	full       atomic.Int64 // when a stream was last found full, nanoseconds since 1970
	denied     denial       // operations that the server does not permit this user
	attempts   attempts
	outages    outages
	closed     chan struct{} // closed when the connection is closed permanently
	running    sync.WaitGroup
	pulse      pulse
	service    service
	stalls     stalls
	renew      func() // restarts an embedded server that cannot write; nil without one
	counts     counters
	seal       Sealer // nil without one

	mu          sync.Mutex
	clocks      clocks
	loss        chan struct{} // closed with the next loss; nil before the first call of Lost
	onReconnect map[int]func()
	nextHook    int
}

// counters count what only a replicated bus does, and the results of undecided appends.
type counters struct {
	fenced           atomic.Int64 // refused with 10071
	fencedReplicated atomic.Int64 // refused with 10164
	unanswered       atomic.Int64 // appends without an answer
	resent           atomic.Int64 // the same bytes sent again
	landed           atomic.Int64 // found stored after an undecided answer
	stale            atomic.Int64 // answers of replicas that lag
}

var _ runlog.Log = (*Log)(nil)

// Open connects to the bus and checks that it is provisioned. The error is one line
// that contains the remedy.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	end := time.Now().Add(max(cfg.Wait, defaultWait))
	l, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := l.await(ctx, end); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

const defaultWait = 3 * time.Second

func connect(ctx context.Context, cfg Config) (*Log, error) {
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
		seal:        cfg.Seal,
		denied:      denial{noted: make(chan struct{})},
		closed:      make(chan struct{}),
		onReconnect: map[int]func(){},
	}
	l.ackWait.Store(int64(runlog.AckWaitOf(runlog.DefaultTakeover)))
	options := append([]nats.Option{
		nats.Name(cfg.Name),
		nats.Timeout(dialTimeout),
		nats.SkipHostLookup(),
		nats.SetCustomDialer(dialer{}),
		// The client holds its lock while it writes, so this also bounds how long a
		// server that reads nothing delays other calls.
		nats.FlusherTimeout(writeTimeout),
		nats.MaxReconnects(-1),
		// Nothing is sent blindly after a reconnect: the bus may have lost records.
		nats.ReconnectBufSize(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { l.pulse.lose(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { l.pulse.fail(err) }),
		nats.ReconnectHandler(func(*nats.Conn) { l.reconnected() }),
		nats.ClosedHandler(func(*nats.Conn) { close(l.closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if l.attempts.refuse(err) {
				return
			}
			cfg.Logger.Warn("bus", "error", err)
			if errors.Is(err, nats.ErrPermissionViolation) {
				l.denied.record(err)
			}
		}),
	}, cfg.Options...)
	if cfg.InProcess != nil {
		options = append(options, nats.InProcessServer(cfg.InProcess))
	}
	user, err := credentialOption(cfg.Credentials)
	if err != nil {
		return nil, err
	}
	secure, err := cfg.TLS.options()
	if err != nil {
		return nil, err
	}
	if prefix := inboxPrefix(cfg); prefix != "" {
		options = append(options, nats.CustomInboxPrefix(prefix))
	}
	nc, err := dial(ctx, cfg, time.Now().Add(cfg.Wait), append(append(options, user), secure...))
	if err != nil {
		return nil, err
	}
	l.nc = nc
	l.pulse.hear()
	l.running.Go(l.listen)
	l.running.Go(l.attend)
	if l.js, err = jetstream.New(nc); err != nil {
		l.Close()
		return nil, fmt.Errorf("JetStream on %s: %w", Redacted(cfg.URL), err)
	}
	if l.replies, err = newReplies(nc); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// checkURL refuses an invalid list of URLs without showing it: it may contain a
// password.
func checkURL(urls string) error {
	if urls == "" {
		return nil // embedded
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
				err = errors.New("special characters must be percent-encoded, also in a password")
			}
			return fmt.Errorf("the NATS URL is not valid: %w; expected nats://HOST:4222, or several separated by commas", err)
		}
		if u.Host == "" || u.Hostname() == "" {
			return errors.New("the NATS URL is not valid: it names no host; expected nats://HOST:4222, or several separated by commas")
		}
	}
	return nil
}

// Redacted returns a list of URLs without passwords and tokens.
func Redacted(urls string) string {
	list := strings.Split(urls, ",")
	for i, text := range list {
		at := strings.LastIndexByte(text, '@')
		if at < 0 { // no user
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

// Close closes the connection and waits for the log's goroutines. Consumers must have
// ended.
func (l *Log) Close() {
	l.stalls.close()
	l.nc.Close()
	l.running.Wait()
}

// Flush waits until the server has received everything that was published.
func (l *Log) Flush(ctx context.Context) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	if err := l.nc.FlushWithContext(ctx); err != nil {
		return unavailable("flush", err)
	}
	return nil
}

// AckWait returns the time after which an unacknowledged delivery is repeated. A
// process that consumes sees a change of it within some seconds.
func (l *Log) AckWait() time.Duration { return time.Duration(l.ackWait.Load()) }

// Partitions returns the number of partitions of the bus.
func (l *Log) Partitions() int { return l.partitions }

// Replicas returns the number of servers that store each record.
func (l *Log) Replicas() int { return l.replicas }

func (l *Log) partition(r runlog.Run) int { return runlog.Partition(r, l.partitions) }

func (l *Log) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.timeout)
}

// reconnected interrupts all feeds, because messages may have been missed, and verifies
// that the bus has lost nothing.
func (l *Log) reconnected() {
	l.pulse.hear()
	l.denied.clear()
	l.interrupt()
	for _, h := range l.known() {
		l.verifyHistory(h)
	}
}

// known returns the histories of the partitions, none before the bus was inspected.
func (l *Log) known() []*history {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.histories
}

// Lost implements runlog.RunFollower.
func (l *Log) Lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loss == nil {
		l.loss = make(chan struct{})
	}
	return l.loss
}

// announceLoss closes the channel that Lost has returned.
func (l *Log) announceLoss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loss != nil {
		close(l.loss)
		l.loss = nil
	}
}

// interrupt interrupts all feeds.
func (l *Log) interrupt() {
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

// apiCode returns the JetStream error code in err, 0 if there is none.
func apiCode(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	return 0
}

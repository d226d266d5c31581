package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// EmbeddedServer is a NATS server inside this process, without a network listener. The caller
// must have locked the data directory: two servers on one directory start and destroy
// it.
//
// A server whose disk was full is replaced by a new one on the same directory once there
// is room. Connections move to it by themselves.
type EmbeddedServer struct {
	cfg EmbeddedConfig

	renewing sync.Mutex
	stopped  bool // guarded by renewing

	mu     sync.Mutex
	server *server.Server // nil while there is none
}

// EmbeddedConfig configures an embedded server.
type EmbeddedConfig struct {
	// Dir is the directory of the streams.
	Dir string
	// SyncAlways makes every acknowledged write survive a power failure. By default the
	// server flushes every two minutes.
	SyncAlways bool
	// Listen is a TCP address for other processes on this machine; empty means none.
	Listen string
	// Logger; nil discards.
	Logger *slog.Logger
}

// StartEmbedded starts a server and waits until it is ready.
func StartEmbedded(cfg EmbeddedConfig) (*EmbeddedServer, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := startServer(cfg)
	if err != nil {
		return nil, err
	}
	e := &EmbeddedServer{cfg: cfg, server: s}
	if cfg.Listen != "" { // a later server listens where clients look for it
		if address, ok := s.Addr().(*net.TCPAddr); ok {
			e.cfg.Listen = address.String()
		}
	}
	return e, nil
}

func startServer(cfg EmbeddedConfig) (*server.Server, error) {
	options := &server.Options{
		ServerName:             "harness",
		DontListen:             cfg.Listen == "",
		JetStream:              true,
		StoreDir:               cfg.Dir,
		SyncAlways:             cfg.SyncAlways,
		JetStreamMaxStore:      1 << 50, // the streams have their own bounds
		DisableJetStreamBanner: true,
		NoSigs:                 true,
		MaxPending:             256 << 20,
	}
	if cfg.Listen != "" {
		host, port, err := splitListen(cfg.Listen)
		if err != nil {
			return nil, err
		}
		options.Host, options.Port = host, port
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS: %w", err)
	}
	log := &serverLog{to: cfg.Logger}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	if fatal := log.fatal.Load(); fatal != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, fmt.Errorf("embedded NATS in %s: %s; is there room on its disk?", cfg.Dir, *fatal)
	}
	if !s.ReadyForConnections(30 * time.Second) {
		s.Shutdown()
		return nil, errors.New("embedded NATS did not become ready in 30 s; see the log at level debug")
	}
	return s, nil
}

// InProcessConn connects to the server. It fails while the server is being replaced.
func (e *EmbeddedServer) InProcessConn() (net.Conn, error) {
	s := e.current()
	if s == nil {
		return nil, errors.New("the embedded NATS is being restarted")
	}
	return s.InProcessConn()
}

func (e *EmbeddedServer) current() *server.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.server
}

func (e *EmbeddedServer) set(s *server.Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.server = s
}

// renew replaces the server if it cannot write and there is room on its disk now.
func (e *EmbeddedServer) renew() {
	e.renewing.Lock()
	defer e.renewing.Unlock()
	old := e.current()
	if e.stopped || old != nil && old.Healthz(nil).Status == "ok" {
		return
	}
	if err := hasRoom(e.cfg.Dir); err != nil {
		e.cfg.Logger.Debug("the embedded NATS cannot be restarted yet", "error", err)
		return
	}
	if old != nil {
		e.cfg.Logger.Warn("restarting the embedded NATS: its disk was full, and there is room again", "dir", e.cfg.Dir)
		e.set(nil)
		old.Shutdown()
		old.WaitForShutdown()
	}
	s, err := startServer(e.cfg)
	if err != nil {
		e.cfg.Logger.Warn("restarting the embedded NATS failed; it is tried again", "error", err)
		return
	}
	e.set(s)
}

// enoughRoom is the free space with which a server whose disk was full is restarted: less
// would soon be used up, and each restart interrupts the work.
const enoughRoom = 2 << 20

// hasRoom returns an error unless a file of enoughRoom bytes can be written to a
// directory.
func hasRoom(dir string) (err error) {
	path := filepath.Join(dir, "room.tmp")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close(), os.Remove(path))
	}()
	if _, err := f.Write(make([]byte, enoughRoom)); err != nil {
		return err
	}
	return f.Sync()
}

// Open connects to the server, provisions it and opens the log.
func (e *EmbeddedServer) Open(ctx context.Context, cfg Config, layout Layout) (*Log, error) {
	cfg.InProcess = e
	l, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	l.renew = e.renew
	if err := provision(ctx, l.js, layout); err != nil {
		l.Close()
		return nil, err
	}
	if err := l.inspect(ctx); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// URL returns the address for other processes; empty if there is no listener.
func (e *EmbeddedServer) URL() string {
	if e.cfg.Listen == "" {
		return ""
	}
	return "nats://" + e.cfg.Listen
}

// Stop shuts the server down and waits for it.
func (e *EmbeddedServer) Stop() {
	e.renewing.Lock()
	defer e.renewing.Unlock()
	e.stopped = true
	if s := e.current(); s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// serverLog forwards the server's log lines: warnings and errors at their level, the
// rest at debug level, with the warnings that follow every kill.
type serverLog struct {
	to    *slog.Logger
	fatal atomic.Pointer[string] // why the server did not start; the line is part of the error
}

func (l *serverLog) Noticef(format string, v ...any) { l.debug(format, v) }
func (l *serverLog) Warnf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	level := slog.LevelWarn
	if afterKill(text) {
		level = slog.LevelDebug
	}
	l.to.Log(context.Background(), level, fromServer, "text", text)
}
func (l *serverLog) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.fatal.Store(&text)
}
func (l *serverLog) Errorf(format string, v ...any) { l.fail(format, v) }
func (l *serverLog) Debugf(format string, v ...any) { l.debug(format, v) }
func (l *serverLog) Tracef(format string, v ...any) { l.debug(format, v) }

const fromServer = "embedded nats"

// afterKill reports whether a warning is about an index that is older than its stream: that of a
// server that was killed. It is rebuilt from the messages, of which none is missing. A damaged
// index or message has other warnings.
func afterKill(text string) bool {
	for _, part := range []string{
		"Stream state outdated, ", "Stream state detected prior state, ", "index errored: prior state file",
		"TTL state is outdated; ", "Message scheduling state is outdated; ", "Sourcing state is outdated; ",
	} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func (l *serverLog) debug(format string, v []any) {
	l.to.Debug(fromServer, "text", fmt.Sprintf(format, v...))
}
func (l *serverLog) fail(format string, v []any) {
	l.to.Error(fromServer, "text", fmt.Sprintf(format, v...))
}

func splitListen(address string) (string, int, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("listen address %q: %w", address, err)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return "", 0, fmt.Errorf("listen address %q: expected a port from 0 to 65535", address)
	}
	if n == 0 {
		n = server.RANDOM_PORT
	}
	return host, n, nil
}

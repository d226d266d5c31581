package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// EmbeddedServer is a NATS server inside this process, without a network listener. The caller
// must have locked the data directory: two servers on one directory start and destroy
// it.
type EmbeddedServer struct {
	server  *server.Server
	listens bool
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
	if cfg.Logger != nil {
		s.SetLoggerV2(serverLog{cfg.Logger}, false, false, false)
	}
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		s.Shutdown()
		return nil, errors.New("embedded NATS did not become ready in 30 s; see the log at level debug")
	}
	return &EmbeddedServer{server: s, listens: cfg.Listen != ""}, nil
}

// Open connects to the server, provisions it and opens the log.
func (e *EmbeddedServer) Open(ctx context.Context, cfg Config, layout Layout) (*Log, error) {
	cfg.InProcess = e.server
	l, err := connect(cfg)
	if err != nil {
		return nil, err
	}
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
	if !e.listens {
		return ""
	}
	return e.server.ClientURL()
}

// Stop shuts the server down and waits for it.
func (e *EmbeddedServer) Stop() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// serverLog forwards the server's log lines: warnings and errors at their level, the
// rest at debug level.
type serverLog struct{ to *slog.Logger }

func (l serverLog) Noticef(format string, v ...any) { l.debug(format, v) }
func (l serverLog) Warnf(format string, v ...any) {
	l.to.Warn(fromServer, "text", fmt.Sprintf(format, v...))
}
func (l serverLog) Fatalf(format string, v ...any) { l.fail(format, v) }
func (l serverLog) Errorf(format string, v ...any) { l.fail(format, v) }
func (l serverLog) Debugf(format string, v ...any) { l.debug(format, v) }
func (l serverLog) Tracef(format string, v ...any) { l.debug(format, v) }

const fromServer = "embedded nats"

func (l serverLog) debug(format string, v []any) {
	l.to.Debug(fromServer, "text", fmt.Sprintf(format, v...))
}
func (l serverLog) fail(format string, v []any) {
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

package executor

import (
	"context"
	"log/slog"
)

// withLazily is slog.Logger.With without formatting the attributes before the first
// record: nearly no step logs anything.
func withLazily(l *slog.Logger, attrs ...slog.Attr) *slog.Logger {
	return slog.New(lazyHandler{l.Handler(), attrs})
}

type lazyHandler struct {
	slog.Handler
	attrs []slog.Attr
}

// formatted returns the handler with the attributes.
func (h lazyHandler) formatted() slog.Handler { return h.Handler.WithAttrs(h.attrs) }

func (h lazyHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.formatted().Handle(ctx, r)
}

func (h lazyHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.formatted().WithAttrs(attrs)
}

func (h lazyHandler) WithGroup(name string) slog.Handler { return h.formatted().WithGroup(name) }

package executor

import (
	"bytes"
	"log/slog"
	"testing"
)

func TestLazyAttributesAreLoggedLikeOthers(t *testing.T) {
	var want, got bytes.Buffer
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	run := []slog.Attr{slog.String("run", "a b"), slog.Uint64("version", 7)}
	for _, c := range []struct {
		into *bytes.Buffer
		with func(l *slog.Logger) *slog.Logger
	}{
		{&want, func(l *slog.Logger) *slog.Logger { return l.With("run", "a b", "version", uint64(7)) }},
		{&got, func(l *slog.Logger) *slog.Logger { return withLazily(l, run...) }},
	} {
		l := c.with(slog.New(slog.NewTextHandler(c.into, options)).With("executor", "turn"))
		l.Debug("not logged")
		l.Info("plain", "error", "x")
		l.With("more", 1).Warn("with more")
		l.WithGroup("group").Error("in a group", "key", "value")
	}
	if got.String() != want.String() || got.Len() == 0 {
		t.Errorf("got\n%swant\n%s", got.String(), want.String())
	}
}

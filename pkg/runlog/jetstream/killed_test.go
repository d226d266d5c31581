package jetstream

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
)

// lockedBuffer is a buffer that the server may still write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestAKilledServerIsNoWarning starts on the files of a server that was killed: its index is that of
// the stop before. A damaged message is still reported.
func TestAKilledServerIsNoWarning(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	session := func(dir string, to *lockedBuffer, level slog.Level, do func(l *Log)) {
		t.Helper()
		e, err := StartEmbedded(EmbeddedConfig{Dir: dir, SyncAlways: true, Logger: slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Stop()
		l, err := e.Open(ctx, Config{}, Layout{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		do(l)
	}
	rec, newest := first("r"), uint64(0)
	write := func(l *Log, from, to uint64) {
		for v := from; v <= to; v++ {
			sequence, err := l.Append(ctx, rec)
			if err != nil {
				t.Fatal(err)
			}
			rec, newest = after(rec, sequence, v+1), sequence
		}
	}
	killed := t.TempDir()
	session(dir, &lockedBuffer{}, slog.LevelWarn, func(l *Log) { write(l, 1, 3) }) // stopped: the index is written
	session(dir, &lockedBuffer{}, slog.LevelWarn, func(l *Log) {
		write(l, 4, 9)
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil { // its files at a kill
			t.Fatal(err)
		}
	})
	var seen lockedBuffer
	session(killed, &seen, slog.LevelDebug, func(l *Log) {
		if sequence, err := l.Append(ctx, rec); err != nil || sequence <= newest {
			t.Errorf("the records before the kill: %d, %v, newest was %d", sequence, err, newest)
		}
	})
	if !strings.Contains(seen.String(), "Stream state outdated") {
		t.Errorf("the index was not out of date, so this test shows nothing:\n%s", seen.String())
	}
	for line := range strings.Lines(seen.String()) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			t.Errorf("a kill is a warning: %s", line)
		}
	}
	var log lockedBuffer
	l := &serverLog{to: slog.New(slog.NewTextHandler(&log, nil))}
	l.Warnf("Filestore [%s] Stream state checksum did not match", "RUNS_0")
	l.Warnf("Filestore [%s] Recovering stream state from index errored: %v", "RUNS_0", "corrupt state file")
	if strings.Count(log.String(), "level=WARN") != 2 {
		t.Errorf("damage is no warning: %s", log.String())
	}
}

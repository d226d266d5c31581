package ledger

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

func TestChangesAreBoundedAndForgottenWithResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var l *Ledger
	start := func() {
		t.Helper()
		var err error
		if l, err = Open(dir, false, 30*24*time.Hour, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	start()
	defer func() { _ = l.Close() }()
	run, err := RunKey("n", "r", 7)
	if err != nil {
		t.Fatal(err)
	}
	check := func(want int) {
		t.Helper()
		if paths, err := l.Changes(run); err != nil || len(paths) != want {
			t.Fatalf("%d changes, %v; expected %d", len(paths), err, want)
		}
	}
	var paths []string
	for i := range maxChanges + 10 {
		paths = append(paths, fmt.Sprint("p", i))
	}
	for _, part := range [][]string{paths[:9], paths[:maxChanges-1], paths, paths[maxChanges:]} {
		if err := l.StoreChanges(run, part); err != nil {
			t.Fatal(err)
		}
	}
	check(maxChanges)
	setLastChange := func(age time.Duration) {
		t.Helper()
		if err := l.db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(changesBucket).Bucket([]byte(run)).Put(stampKey, header(0, time.Now().Add(-age))[1:])
		}); err != nil {
			t.Fatal(err)
		}
	}
	restart := func() {
		t.Helper()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		start()
	}
	setLastChange(31 * 24 * time.Hour)
	if err := l.StoreChanges(run, paths[:1]); err != nil { // the run is still active
		t.Fatal(err)
	}
	restart()
	check(maxChanges)
	setLastChange(31 * 24 * time.Hour)
	restart()
	check(0)
}

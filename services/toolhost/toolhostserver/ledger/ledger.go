// Package ledger stores what happened to calls, durably: their marks, results and tombstones,
// the paths that the calls of a run have changed, and the background commands of a run.
//
// A ledger is one file under an exclusive lock in a folder that is locked too: at most one
// host uses it. It has an id with the place at which it was made. A write returns when it is
// committed, and many writes share a commit; with sync they are on disk then. A mark without
// an end, stored by an earlier process, is read as Orphaned: whether the call had its effect
// is not known.
//
// Writes fail if the file cannot be written, and after Close. A damaged file is renamed and
// replaced by a new ledger with a new id.
package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

const (
	// File is the name of a ledger's file in its folder.
	File = "ledger.db"
	// lockTimeout is how long to wait for another host that is about to end.
	lockTimeout = 300 * time.Millisecond
	// maxGroup is the maximum number of entries in a commit.
	maxGroup = 256
	// valueHeader is the size of a value's header: the state, and the time of writing
	// in seconds since 1970, big endian. After it comes a result as protobuf, or the
	// fate in a tombstone as one byte.
	valueHeader = 9
)

var (
	metaBucket  = []byte("meta")
	callsBucket = []byte("calls")
	idKey       = []byte("ledger_id")
)

// Ledger is the durable record of calls: one bbolt file under an exclusive lock. One
// goroutine commits. Entries that arrive while it is busy are in its next commit, so that
// many calls share a sync.
type Ledger struct {
	db *bbolt.DB
	// ID is the id of the ledger. It does not change.
	ID string
	// Place is where the ledger is now. It is the place in its id, unless it was moved
	// or is from an earlier version.
	Place string
	// folder is locked too, so that no other host starts if the file is deleted.
	folder *os.File
	writes chan entry
	// quit is closed to end the committing goroutine, stopped when it has ended.
	quit, stopped chan struct{}
}

// Response is the response to a call, a check or a background command.
type Response interface {
	proto.Message
	GetOutcome() harnessv1.ToolOutcome
}

// Entry is the ledger's entry of a call.
type Entry struct {
	State toolhost.State
	// Fate is in the tombstone of a Cancelled call.
	Fate toolhost.Fate
	// Response is the response of a Done call.
	Response Response
	// Call describes a call whose result is in memory only; nil for others.
	Call *harnessv1.LedgerCall
}

// entry is a value to store and the paths that its run has changed. One of the two may be
// missing.
type entry struct {
	key, value []byte
	run        string
	changed    []string
	// background is the id of a background command of the run, described its description.
	background string
	described  []byte
	// call is the description of a call that is to be numbered, after known; nil for others.
	call   *harnessv1.LedgerCall
	known  uint64
	stored chan<- error
}

// Open opens or creates the ledger in dir. A damaged file is renamed and replaced by
// a new ledger, whose new id shows that the old one is lost. Results older than keep are
// forgotten.
func Open(dir string, sync bool, keep time.Duration, log *slog.Logger) (*Ledger, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	place, err := placeOf(dir)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	folder, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &Ledger{Place: place, folder: folder}
	if err := l.open(filepath.Join(dir, File), sync, keep, log); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return l, nil
}

// open opens or creates the file and starts the committing goroutine.
func (l *Ledger) open(path string, sync bool, keep time.Duration, log *slog.Logger) error {
	db, err := openFile(path, sync)
	if errors.Is(err, bbolterrors.ErrInvalid) || errors.Is(err, bbolterrors.ErrChecksum) {
		broken := path + ".broken-" + disk.RandomName(4)
		if renamed := os.Rename(path, broken); renamed != nil {
			return fmt.Errorf("ledger: %w", errors.Join(err, renamed))
		}
		log.Error("damaged ledger renamed and replaced by a new one; its calls are unknown",
			"error", err, "renamed", broken)
		db, err = openFile(path, sync)
	}
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return inUse(path)
	}
	if err != nil {
		return fmt.Errorf("ledger %s: %w", path, err)
	}
	l.db = db
	l.writes, l.quit, l.stopped = make(chan entry, maxGroup), make(chan struct{}), make(chan struct{})
	if err := l.prepare(time.Now().Add(-keep)); err != nil {
		return fmt.Errorf("ledger %s: %w", path, errors.Join(err, db.Close()))
	}
	go l.commitLoop()
	return nil
}

func inUse(path string) error {
	return fmt.Errorf("ledger %s is in use by another tool host; stop it or use another folder", path)
}

func openFile(path string, sync bool) (*bbolt.DB, error) {
	return bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: lockTimeout, NoSync: !sync, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	})
}

// prepare gives a new ledger its id and forgets results from before the limit.
func (l *Ledger) prepare(limit time.Time) error {
	if err := l.db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucketIfNotExists(metaBucket)
		if err != nil {
			return err
		}
		if l.ID = string(meta.Get(idKey)); l.ID == "" {
			l.ID = toolhost.LedgerID(l.Place, disk.RandomName(toolhost.RandomDigits/2))
			if err := meta.Put(idKey, []byte(l.ID)); err != nil {
				return err
			}
		}
		calls, err := tx.CreateBucketIfNotExists(callsBucket)
		if err != nil {
			return err
		}
		changes, err := tx.CreateBucketIfNotExists(changesBucket)
		if err != nil {
			return err
		}
		started, err := tx.CreateBucketIfNotExists(backgroundBucket)
		if err != nil {
			return err
		}
		numbered, err := tx.CreateBucketIfNotExists(numberedBucket)
		if err != nil {
			return err
		}
		return errors.Join(forgetResults(calls, limit), forgetChanges(changes, limit), forgetBackground(started, limit),
			forgetChanges(numbered, limit))
	}); err != nil {
		return err
	}
	// The id is synced even if nothing else is: after a restart with another id, all
	// calls would be unknown.
	return l.db.Sync()
}

// forgetResults replaces results from before the limit by the state Forgotten.
func forgetResults(calls *bbolt.Bucket, limit time.Time) error {
	var old [][]byte
	if err := calls.ForEach(func(key, value []byte) error {
		if len(value) > valueHeader && toolhost.State(value[0]) == toolhost.Done &&
			int64(binary.BigEndian.Uint64(value[1:])) < limit.Unix() { //nolint:gosec // written from an int64
			old = append(old, append([]byte(nil), key...))
		}
		return nil
	}); err != nil {
		return err
	}
	for _, key := range old {
		if err := calls.Put(key, header(toolhost.Forgotten, limit)); err != nil {
			return err
		}
	}
	return nil
}

func header(s toolhost.State, at time.Time) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(s)}, uint64(at.Unix())) //nolint:gosec // after 1970
}

// Read returns the entry of a call. A stored Running call becomes Orphaned,
// because an earlier process started it: the caller knows those of this process.
func (l *Ledger) Read(key string) (found Entry, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(callsBucket).Get([]byte(key))
		if value == nil {
			return nil
		}
		if len(value) < valueHeader {
			return fmt.Errorf("entry of call %q has %d bytes, expected at least %d", key, len(value), valueHeader)
		}
		switch found.State = toolhost.State(value[0]); found.State {
		case toolhost.Running:
			found.State = toolhost.Orphaned
		case toolhost.Done:
			found.Response = newResponse(key)
			return proto.Unmarshal(value[valueHeader:], found.Response)
		case toolhost.Cancelled:
			if len(value) > valueHeader {
				found.Fate = toolhost.Fate(value[valueHeader])
			}
		case toolhost.Absent, toolhost.Forgotten, toolhost.Orphaned:
		}
		return nil
	})
	return found, err
}

// newResponse returns an empty response for a key: that of a call, a check or a background
// command.
func newResponse(key string) Response {
	switch {
	case isBackground(key):
		return &harnessv1.BackgroundState{}
	case IsCheck(key):
		return &harnessv1.CheckCommandResponse{}
	}
	return &harnessv1.ExecuteToolResponse{}
}

// StoreRunning stores the mark of a call that begins.
func (l *Ledger) StoreRunning(key string) error {
	return l.write(entry{key: []byte(key), value: markRunning()})
}

func markRunning() []byte { return header(toolhost.Running, time.Now()) }

// StoreResult stores the result of a call and the paths that it changed.
func (l *Ledger) StoreResult(key string, resp Response, run string, changed []string) error {
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(header(toolhost.Done, time.Now()), resp)
	if err != nil {
		return err
	}
	return l.write(entry{key: []byte(key), value: value, run: run, changed: changed})
}

// storeTombstone stores the tombstone of a call.
func (l *Ledger) storeTombstone(key string, f toolhost.Fate) error {
	return l.write(entry{key: []byte(key), value: append(header(toolhost.Cancelled, time.Now()), byte(f))})
}

// Close ends the committing goroutine and releases the file. Pending writes fail.
func (l *Ledger) Close() error {
	close(l.quit)
	<-l.stopped
	return errors.Join(l.db.Sync(), l.db.Close(), l.folder.Close())
}

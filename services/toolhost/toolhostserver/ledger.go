package toolhostserver

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
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
)

const (
	ledgerFile = "ledger.db"
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

// ledger is the durable record of calls: one bbolt file under an exclusive lock. One
// goroutine commits. Entries that arrive while it is busy are in its next commit, so that
// many calls share a sync.
type ledger struct {
	db *bbolt.DB
	id string
	// place is where the ledger is now. It is the place in its id, unless it was moved
	// or is from an earlier version.
	place string
	// folder is locked too, so that no other host starts if the file is deleted.
	folder *os.File
	writes chan entry
	// quit is closed to end the committing goroutine, stopped when it has ended.
	quit, stopped chan struct{}
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
	stored     chan<- error
}

// openLedger opens or creates the ledger in dir. A damaged file is renamed and replaced by
// a new ledger, whose new id shows that the old one is lost. Results older than keep are
// forgotten.
func openLedger(dir string, sync bool, keep time.Duration, log *slog.Logger) (*ledger, error) {
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
	l := &ledger{place: place, folder: folder}
	if err := l.open(filepath.Join(dir, ledgerFile), sync, keep, log); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return l, nil
}

// open opens or creates the file and starts the committing goroutine.
func (l *ledger) open(path string, sync bool, keep time.Duration, log *slog.Logger) error {
	db, err := openFile(path, sync)
	if errors.Is(err, bbolterrors.ErrInvalid) || errors.Is(err, bbolterrors.ErrChecksum) {
		broken := path + ".broken-" + randomHex(4)
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
func (l *ledger) prepare(limit time.Time) error {
	if err := l.db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucketIfNotExists(metaBucket)
		if err != nil {
			return err
		}
		if l.id = string(meta.Get(idKey)); l.id == "" {
			l.id = toolhost.LedgerID(l.place, randomHex(toolhost.RandomDigits/2))
			if err := meta.Put(idKey, []byte(l.id)); err != nil {
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
		return errors.Join(forgetResults(calls, limit), forgetChanges(changes, limit), forgetBackground(started, limit))
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

// read returns the stored status of a call. A stored Running call becomes Orphaned,
// because an earlier process started it: the caller knows those of this process.
func (l *ledger) read(key string) (found status, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(callsBucket).Get([]byte(key))
		if value == nil {
			return nil
		}
		if len(value) < valueHeader {
			return fmt.Errorf("entry of call %q has %d bytes, expected at least %d", key, len(value), valueHeader)
		}
		switch found.state = toolhost.State(value[0]); found.state {
		case toolhost.Running:
			found.state = toolhost.Orphaned
		case toolhost.Done:
			found.resp = newResponse(key)
			return proto.Unmarshal(value[valueHeader:], found.resp)
		case toolhost.Cancelled:
			if len(value) > valueHeader {
				found.fate = toolhost.Fate(value[valueHeader])
			}
		case toolhost.Absent, toolhost.Forgotten, toolhost.Orphaned:
		}
		return nil
	})
	return found, err
}

// newResponse returns an empty response of what has a key: a call, a check or a background
// command.
func newResponse(key string) response {
	switch {
	case isBackground(key):
		return &harnessv1.BackgroundState{}
	case isCheck(key):
		return &harnessv1.CheckCommandResponse{}
	}
	return &harnessv1.ExecuteToolResponse{}
}

// storeRunning stores the mark of a call that begins.
func (l *ledger) storeRunning(key string) error {
	return l.write(entry{key: []byte(key), value: header(toolhost.Running, time.Now())})
}

// storeResult stores the result of a call and the paths that it changed.
func (l *ledger) storeResult(key string, resp response, run string, changed []string) error {
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(header(toolhost.Done, time.Now()), resp)
	if err != nil {
		return err
	}
	return l.write(entry{key: []byte(key), value: value, run: run, changed: changed})
}

// storeTombstone stores the tombstone of a call.
func (l *ledger) storeTombstone(key string, f toolhost.Fate) error {
	return l.write(entry{key: []byte(key), value: append(header(toolhost.Cancelled, time.Now()), byte(f))})
}

// close ends the committing goroutine and releases the file. Pending writes fail.
func (l *ledger) close() error {
	close(l.quit)
	<-l.stopped
	return errors.Join(l.db.Sync(), l.db.Close(), l.folder.Close())
}

// randomHex returns n random bytes in hexadecimal.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

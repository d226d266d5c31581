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
	// How long to wait for another host that is about to end.
	lockTimeout = 300 * time.Millisecond
	// Entries that one commit takes at most.
	maxGroup = 256
	// Bytes before the response in a value: the state and when it was written,
	// in seconds since 1970, big endian. A result follows as protobuf, a
	// tombstone's fate as one byte.
	valueHeader = 9
)

var (
	metaBucket  = []byte("meta")
	callsBucket = []byte("calls")
	idKey       = []byte("ledger_id")
)

// ledger is the durable part of what is known of calls: one bbolt file under an
// exclusive lock. One goroutine commits; what is asked for while it is busy
// goes into its next commit, so that many calls share a sync.
type ledger struct {
	db *bbolt.DB
	id string
	// place is where it lies now: that of its id, unless it was moved or is
	// from an earlier version.
	place string
	// folder is locked too, so that nobody takes the place of a host whose file
	// was deleted while it runs.
	folder *os.File
	writes chan entry
	// quit is closed to end the committing goroutine, stopped when it has ended.
	quit, stopped chan struct{}
}

// entry is a value on its way to the ledger, and what its run has changed; one of
// the two may be missing.
type entry struct {
	key, value []byte
	run        string
	changed    []string
	stored     chan<- error
}

// openLedger opens or makes the ledger in dir. A file that is no ledger any
// more is put aside and a new one begun: its new id says that what the old one
// knew is lost. results older than keep are forgotten.
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

// open opens or makes the file and begins to commit.
func (l *ledger) open(path string, sync bool, keep time.Duration, log *slog.Logger) error {
	db, err := openFile(path, sync)
	if errors.Is(err, bbolterrors.ErrInvalid) || errors.Is(err, bbolterrors.ErrChecksum) {
		aside := path + ".broken-" + randomHex(4)
		if renamed := os.Rename(path, aside); renamed != nil {
			return fmt.Errorf("ledger: %w", errors.Join(err, renamed))
		}
		log.Error("the ledger is damaged; a new one was begun and calls of the old one are unknown",
			"error", err, "aside", aside)
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
	go l.commit()
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

// prepare gives a new ledger its id and drops results from before the limit.
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
		return errors.Join(forget(calls, limit), forgetChanges(changes, limit))
	}); err != nil {
		return err
	}
	// The id holds also when the rest is not synced: a host that comes back
	// under another id would call everything unknown.
	return l.db.Sync()
}

// forget replaces results from before the limit by the fact that there was one.
func forget(calls *bbolt.Bucket, limit time.Time) error {
	var old [][]byte
	if err := calls.ForEach(func(key, value []byte) error {
		if len(value) > valueHeader && toolhost.State(value[0]) == toolhost.Done &&
			int64(binary.BigEndian.Uint64(value[1:])) < limit.Unix() {
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
	return binary.BigEndian.AppendUint64([]byte{byte(s)}, uint64(at.Unix()))
}

// known is what is known of a call.
type known struct {
	state toolhost.State
	// fate is what the tombstone of a Cancelled one says.
	fate toolhost.Fate
	// call is the one that runs, resp the result of one that is Done.
	call *call
	resp result
}

// read returns what is stored of a call. A Running that is stored was started by
// an earlier process: whoever asks knows those of this one.
func (l *ledger) read(key string) (k known, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(callsBucket).Get([]byte(key))
		if value == nil {
			return nil
		}
		if len(value) < valueHeader {
			return fmt.Errorf("the entry of %q has %d bytes", key, len(value))
		}
		switch k.state = toolhost.State(value[0]); k.state {
		case toolhost.Running:
			k.state = toolhost.Orphaned
		case toolhost.Done:
			k.resp = &harnessv1.ExecuteToolResponse{}
			if isCheck(key) {
				k.resp = &harnessv1.CheckCommandResponse{}
			}
			return proto.Unmarshal(value[valueHeader:], k.resp)
		case toolhost.Cancelled:
			if len(value) > valueHeader {
				k.fate = toolhost.Fate(value[valueHeader])
			}
		}
		return nil
	})
	return k, err
}

// mark stores that a call begins.
func (l *ledger) mark(key string) error {
	return l.write(entry{key: []byte(key), value: header(toolhost.Running, time.Now())})
}

// finish stores the result of a call and what its run has changed by it.
func (l *ledger) finish(key string, resp result, run string, changed []string) error {
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(header(toolhost.Done, time.Now()), resp)
	if err != nil {
		return err
	}
	return l.write(entry{key: []byte(key), value: value, run: run, changed: changed})
}

// bury stores the tombstone of a call.
func (l *ledger) bury(key string, f toolhost.Fate) error {
	return l.write(entry{key: []byte(key), value: append(header(toolhost.Cancelled, time.Now()), byte(f))})
}

// close ends the committing goroutine and lets go of the file. Writes that wait
// then fail.
func (l *ledger) close() error {
	close(l.quit)
	<-l.stopped
	return errors.Join(l.db.Sync(), l.db.Close(), l.folder.Close())
}

// randomHex is n random bytes in hexadecimal.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

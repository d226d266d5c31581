package toolhostserver

import (
	"encoding/binary"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

const (
	// maxChanges is how many changed paths are kept of a run; those that come
	// later are not counted.
	maxChanges = 10_000
	// restamp is the age at which the time of a run's last change is stored anew
	// although its path was there already.
	restamp = 24 * time.Hour
)

var (
	// changesBucket holds a bucket for each run: its changed paths, and under
	// stampKey, which is no path, when it last changed one.
	changesBucket = []byte("changes")
	stampKey      = []byte{0}
	present       = []byte{1}
)

// note stores what calls of a run have changed. It costs no commit when nothing
// of it is new.
func (l *ledger) note(run string, changed []string) error {
	if len(changed) == 0 {
		return nil
	}
	noted := false
	if err := l.db.View(func(tx *bbolt.Tx) error {
		of := tx.Bucket(changesBucket).Bucket([]byte(run))
		noted = of != nil && stampedAfter(of, time.Now().Add(-restamp)) &&
			!slices.ContainsFunc(changed, func(path string) bool { return of.Get([]byte(path)) == nil })
		return nil
	}); err != nil || noted {
		return err
	}
	return l.write(entry{run: run, changed: changed})
}

// changes are the paths that calls of a run have changed, sorted.
func (l *ledger) changes(run string) (paths []string, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		of := tx.Bucket(changesBucket).Bucket([]byte(run))
		if of == nil {
			return nil
		}
		return of.ForEach(func(path, _ []byte) error {
			if !slices.Equal(path, stampKey) {
				paths = append(paths, string(path))
			}
			return nil
		})
	})
	return paths, err
}

// addChanges adds paths to those of a run. The bucket's sequence counts them.
func addChanges(changes *bbolt.Bucket, run string, paths []string, now time.Time) error {
	if len(paths) == 0 {
		return nil
	}
	of, err := changes.CreateBucketIfNotExists([]byte(run))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if of.Get([]byte(path)) != nil || of.Sequence() >= maxChanges {
			continue
		}
		if _, err := of.NextSequence(); err != nil {
			return err
		}
		if err := of.Put([]byte(path), present); err != nil {
			return err
		}
	}
	return of.Put(stampKey, binary.BigEndian.AppendUint64(nil, uint64(now.Unix())))
}

// forgetChanges drops the runs that last changed something before the limit.
func forgetChanges(changes *bbolt.Bucket, limit time.Time) error {
	var old [][]byte
	if err := changes.ForEachBucket(func(run []byte) error {
		if !stampedAfter(changes.Bucket(run), limit) {
			old = append(old, slices.Clone(run))
		}
		return nil
	}); err != nil {
		return err
	}
	for _, run := range old {
		if err := changes.DeleteBucket(run); err != nil {
			return err
		}
	}
	return nil
}

func stampedAfter(run *bbolt.Bucket, limit time.Time) bool {
	stamp := run.Get(stampKey)
	return len(stamp) == 8 && int64(binary.BigEndian.Uint64(stamp)) > limit.Unix()
}

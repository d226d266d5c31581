package ledger

import (
	"encoding/binary"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

const (
	// maxChanges is the maximum number of changed paths of a run. Later ones are not
	// counted.
	maxChanges = 10_000
	// stampAge is the age at which the time of a run's last change is stored again even
	// if its path is already stored.
	stampAge = 24 * time.Hour
)

var (
	// changesBucket has a bucket for each run, with its changed paths. stampKey, which
	// is no path, has the time of its last change.
	changesBucket = []byte("changes")
	stampKey      = []byte{0}
	present       = []byte{1}
)

// StoreChanges stores the paths that a call changed. It needs no commit if all of them are
// already stored.
func (l *Ledger) StoreChanges(run string, changed []string) error {
	if len(changed) == 0 {
		return nil
	}
	known := false
	if err := l.db.View(func(tx *bbolt.Tx) error {
		of := tx.Bucket(changesBucket).Bucket([]byte(run))
		known = of != nil && changedAfter(of, time.Now().Add(-stampAge)) &&
			!slices.ContainsFunc(changed, func(path string) bool { return of.Get([]byte(path)) == nil })
		return nil
	}); err != nil || known {
		return err
	}
	return l.write(entry{run: run, changed: changed})
}

// Changes returns the paths that calls of a run have changed, sorted.
func (l *Ledger) Changes(run string) (paths []string, err error) {
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

// addChanges adds paths to those of a run. The sequence of the bucket counts them.
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
	return of.Put(stampKey, binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))) //nolint:gosec // after 1970
}

// forgetChanges removes the runs whose stamp is before the limit.
func forgetChanges(changes *bbolt.Bucket, limit time.Time) error {
	var old [][]byte
	if err := changes.ForEachBucket(func(run []byte) error {
		if !changedAfter(changes.Bucket(run), limit) {
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

func changedAfter(run *bbolt.Bucket, limit time.Time) bool {
	stamp := run.Get(stampKey)
	return len(stamp) == 8 && int64(binary.BigEndian.Uint64(stamp)) > limit.Unix() //nolint:gosec // written from an int64
}

package ledger

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// numberedBucket has a bucket for each run, with its numbered calls by id, and under stampKey the
// time of the newest one. The sequence of the bucket is the number of the newest call.
var numberedBucket = []byte("numbered")

// StoreNumbered stores the mark of a call that begins, with its description, and sets its
// number: the next one of its run.
func (l *Ledger) StoreNumbered(key, run string, c *harnessv1.LedgerCall) error {
	return l.write(entry{key: []byte(key), value: markRunning(), run: run, call: c})
}

// addNumbered numbers a call and stores its description.
func addNumbered(all *bbolt.Bucket, e entry, now time.Time) error {
	if e.call == nil {
		return nil
	}
	of, err := all.CreateBucketIfNotExists([]byte(e.run))
	if err != nil {
		return err
	}
	if e.call.Sequence, err = of.NextSequence(); err != nil {
		return err
	}
	described, err := proto.Marshal(e.call)
	if err != nil {
		return err
	}
	if err := of.Put([]byte(e.call.GetCallId()), described); err != nil {
		return err
	}
	return of.Put(stampKey, binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))) //nolint:gosec // after 1970
}

// Numbered returns the description of a call of a run, nil if it has none.
func (l *Ledger) Numbered(run, id string) (c *harnessv1.LedgerCall, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		of := tx.Bucket(numberedBucket).Bucket([]byte(run))
		if of == nil {
			return nil
		}
		value := of.Get([]byte(id))
		if value == nil {
			return nil
		}
		c = &harnessv1.LedgerCall{}
		return proto.Unmarshal(value, c)
	})
	return c, err
}

// After returns the calls of a run with later numbers, in the order of these. It reads the calls only
// if there are later ones.
func (l *Ledger) After(run string, sequence uint64) (later []*harnessv1.LedgerCall, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		of := tx.Bucket(numberedBucket).Bucket([]byte(run))
		if of == nil || of.Sequence() <= sequence {
			return nil
		}
		return of.ForEach(func(id, value []byte) error {
			if slices.Equal(id, stampKey) {
				return nil
			}
			c := &harnessv1.LedgerCall{}
			if err := proto.Unmarshal(value, c); err != nil {
				return err
			}
			if c.GetSequence() > sequence {
				later = append(later, c)
			}
			return nil
		})
	})
	slices.SortFunc(later, func(a, b *harnessv1.LedgerCall) int { return cmp.Compare(a.GetSequence(), b.GetSequence()) })
	return later, err
}

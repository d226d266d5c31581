package ledger

import (
	"encoding/binary"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

var (
	// numberedBucket has a bucket for each run, with its numbered calls by id, and under stampKey the
	// time of the newest one. The sequence of the bucket is the number of the newest call.
	numberedBucket = []byte("numbered")
	// orderKey is a bucket in that of a run, with the ids of the calls by number.
	orderKey = []byte{1}
)

// StoreNumbered stores the mark of a call that begins, with its description, and sets its
// number: the next one of its run, and greater than known. So numbers grow also when the ledger has
// forgotten those of the run, or is an older copy of itself.
func (l *Ledger) StoreNumbered(key, run string, c *harnessv1.LedgerCall, known uint64) error {
	return l.write(entry{key: []byte(key), value: markRunning(), run: run, call: c, known: known})
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
	e.call.Sequence = max(of.Sequence(), e.known) + 1
	if err := of.SetSequence(e.call.GetSequence()); err != nil {
		return err
	}
	described, err := proto.Marshal(e.call)
	if err != nil {
		return err
	}
	if err := of.Put([]byte(e.call.GetCallId()), described); err != nil {
		return err
	}
	order, err := of.CreateBucketIfNotExists(orderKey)
	if err != nil {
		return err
	}
	if err := order.Put(binary.BigEndian.AppendUint64(nil, e.call.GetSequence()), []byte(e.call.GetCallId())); err != nil {
		return err
	}
	return of.Put(stampKey, binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))) //nolint:gosec // after 1970
}

// Numbered returns the description of a call of a run, nil if it has none, and those of the calls of the run
// with a number later than known, in the order of these. It reads no other calls.
func (l *Ledger) Numbered(run, id string, known uint64) (own *harnessv1.LedgerCall, later []*harnessv1.LedgerCall, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		of := tx.Bucket(numberedBucket).Bucket([]byte(run))
		if of == nil {
			return nil
		}
		if value := of.Get([]byte(id)); value != nil {
			own = &harnessv1.LedgerCall{}
			if err := proto.Unmarshal(value, own); err != nil {
				return err
			}
		}
		if of.Sequence() <= known {
			return nil
		}
		order := of.Bucket(orderKey).Cursor()
		for number, id := order.Seek(binary.BigEndian.AppendUint64(nil, known+1)); number != nil; number, id = order.Next() {
			c := &harnessv1.LedgerCall{}
			if err := proto.Unmarshal(of.Get(id), c); err != nil {
				return err
			}
			if c.GetSequence() == binary.BigEndian.Uint64(number) { // not one that was started again later
				later = append(later, c)
			}
		}
		return nil
	})
	return own, later, err
}

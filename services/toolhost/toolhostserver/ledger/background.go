package ledger

import (
	"cmp"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// backgroundBucket has a bucket for each run, with the descriptions of its background
// commands by id. Their states are entries as those of calls are.
var backgroundBucket = []byte("background")

// StoreBackground stores the description of a background command of a run, and its mark.
func (l *Ledger) StoreBackground(key, run string, c *harnessv1.BackgroundCommand) error {
	described, err := proto.Marshal(c)
	if err != nil {
		return err
	}
	return l.write(entry{key: []byte(key), value: header(toolhost.Running, time.Now()), run: run, background: c.GetId(), described: described})
}

// addBackground stores the description of a background command.
func addBackground(all *bbolt.Bucket, e entry) error {
	if e.background == "" {
		return nil
	}
	of, err := all.CreateBucketIfNotExists([]byte(e.run))
	if err != nil {
		return err
	}
	return of.Put([]byte(e.background), e.described)
}

// Backgrounds returns the background commands of a run, in the order in which they started.
func (l *Ledger) Backgrounds(run string) (all []*harnessv1.BackgroundCommand, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		of := tx.Bucket(backgroundBucket).Bucket([]byte(run))
		if of == nil {
			return nil
		}
		return of.ForEach(func(_, value []byte) error {
			c := &harnessv1.BackgroundCommand{}
			all = append(all, c)
			return proto.Unmarshal(value, c)
		})
	})
	slices.SortFunc(all, func(a, b *harnessv1.BackgroundCommand) int {
		return cmp.Or(cmp.Compare(len(a.GetId()), len(b.GetId())), cmp.Compare(a.GetId(), b.GetId()))
	})
	return all, err
}

// forgetBackground removes the background commands of runs whose last one was started before
// the limit.
func forgetBackground(all *bbolt.Bucket, limit time.Time) error {
	var runs [][]byte
	if err := all.ForEachBucket(func(run []byte) error {
		old := true
		err := all.Bucket(run).ForEach(func(_, value []byte) error {
			c := &harnessv1.BackgroundCommand{}
			err := proto.Unmarshal(value, c)
			old = old && c.GetStartTime().AsTime().Before(limit)
			return err
		})
		if old {
			runs = append(runs, slices.Clone(run))
		}
		return err
	}); err != nil {
		return err
	}
	for _, run := range runs {
		if err := all.DeleteBucket(run); err != nil {
			return err
		}
	}
	return nil
}

// BackgroundRuns returns the keys of the runs with background commands.
func (l *Ledger) BackgroundRuns() (runs []string, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(backgroundBucket).ForEachBucket(func(run []byte) error {
			runs = append(runs, string(run))
			return nil
		})
	})
	return runs, err
}

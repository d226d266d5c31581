package toolhostserver

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
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

// storeBackground stores the description and the mark of a background command.
func (l *ledger) storeBackground(b *background) error {
	described, err := proto.Marshal(b.BackgroundCommand)
	if err != nil {
		return err
	}
	return l.write(entry{key: []byte(b.key), value: header(toolhost.Running, time.Now()), run: b.run, background: b.GetId(), described: described})
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

// backgrounds returns the background commands of a run, in the order in which they started.
func (l *ledger) backgrounds(run string) (all []*harnessv1.BackgroundCommand, err error) {
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

// removeOutputs removes the outputs of runs that have no background commands in the ledger.
func (s *Server) removeOutputs() error {
	kept := make(map[string]bool)
	if err := s.ledger.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(backgroundBucket).ForEachBucket(func(run []byte) error {
			kept[filepath.Base(s.outputFolder(string(run)))] = true
			return nil
		})
	}); err != nil {
		return err
	}
	dir := filepath.Join(s.config.Dir, outputsFolder)
	folders, _ := os.ReadDir(dir) // missing without a background command
	var failure error
	for _, folder := range folders {
		if !kept[folder.Name()] {
			failure = errors.Join(failure, os.RemoveAll(filepath.Join(dir, folder.Name())))
		}
	}
	return failure
}

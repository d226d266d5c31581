package ledger

import (
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// write stores an entry and returns when it is durable. It returns an error after close.
func (l *Ledger) write(e entry) error {
	stored := make(chan error, 1)
	e.stored = stored
	select {
	case l.writes <- e:
	case <-l.stopped:
		return bbolterrors.ErrDatabaseNotOpen
	}
	select {
	case err := <-stored:
		return err
	case <-l.stopped:
	}
	select {
	case err := <-stored: // in the last commit
		return err
	default:
		return bbolterrors.ErrDatabaseNotOpen
	}
}

// commitLoop commits entries until quit is closed.
func (l *Ledger) commitLoop() {
	defer close(l.stopped)
	for {
		select {
		case first := <-l.writes:
			l.commit(first)
		case <-l.quit:
			return
		}
	}
}

// commit stores an entry, and those that are waiting, in one transaction.
func (l *Ledger) commit(first entry) {
	group := []entry{first}
	for waiting := true; waiting && len(group) < maxGroup; {
		select {
		case next := <-l.writes:
			group = append(group, next)
		default:
			waiting = false
		}
	}
	err := l.db.Update(func(tx *bbolt.Tx) error {
		calls, changes := tx.Bucket(callsBucket), tx.Bucket(changesBucket)
		for _, e := range group {
			if e.key != nil {
				if err := calls.Put(e.key, e.value); err != nil {
					return err
				}
			}
			if err := addBackground(tx.Bucket(backgroundBucket), e); err != nil {
				return err
			}
			if err := addNumbered(tx.Bucket(numberedBucket), e, time.Now()); err != nil {
				return err
			}
			if err := addChanges(changes, e.run, e.changed, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	for _, e := range group {
		e.stored <- err
	}
}

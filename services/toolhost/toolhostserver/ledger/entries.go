package ledger

import (
	"log/slog"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// Entries are the entries of a ledger, with facts that only this process knows: tombstones
// that could not be stored yet, and results that are not in the ledger. An entry has one
// meaning for this process even while the ledger cannot be written. Many goroutines may use
// it.
type Entries struct {
	*Ledger
	log *slog.Logger

	// mu guards the fields below. It is not locked during reads and writes of the ledger.
	mu sync.Mutex
	// tombstones that are not in the ledger yet.
	tombstones map[string]toolhost.Fate
	// results that are not in the ledger, the newest up to a total size.
	results resultCache
}

// NewEntries returns the entries of a ledger, and keeps results of up to a total size in bytes.
func NewEntries(l *Ledger, resultBytes int, log *slog.Logger) *Entries {
	return &Entries{Ledger: l, log: log, tombstones: make(map[string]toolhost.Fate), results: newResultCache(resultBytes)}
}

// Pending returns the fate in a tombstone that is not in the ledger yet.
func (e *Entries) Pending(key string) (f toolhost.Fate, pending bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, pending = e.tombstones[key]
	return f, pending
}

// SetPending gives an entry a tombstone, which StoreTombstone stores later.
func (e *Entries) SetPending(key string, f toolhost.Fate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tombstones[key] = f
}

// KeepResult keeps a result in memory, for this process alone. c describes the call; nil for others, such as
// checks.
func (e *Entries) KeepResult(key string, resp Response, c *harnessv1.LedgerCall) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.results.add(key, keptResult{resp, c})
}

// ReadEnd returns the entry of a call that does not run in this process and has no pending
// tombstone. The error is UNAVAILABLE.
func (e *Entries) ReadEnd(key string) (Entry, error) {
	e.mu.Lock()
	kept := e.results.get(key)
	e.mu.Unlock()
	if kept.response != nil {
		return Entry{State: toolhost.Done, Response: kept.response, Call: kept.call}, nil
	}
	stored, err := e.Read(key)
	if err != nil {
		return Entry{}, Unreadable(err)
	}
	return stored, nil
}

// StoreTombstone stores a tombstone in the ledger. If that fails, the tombstone is still
// in effect in this process, and the error is UNAVAILABLE.
func (e *Entries) StoreTombstone(key string, f toolhost.Fate) error {
	if err := e.Ledger.storeTombstone(key, f); err != nil {
		e.log.Error("tombstone of a call could not be stored", "error", err)
		return toolhost.Unavailable("the ledger cannot be written; the calls are cancelled only until this host ends", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.tombstones, key)
	return nil
}

// Unreadable returns the error for a request that needs an entry which could not be read.
func Unreadable(cause error) error { return toolhost.Unavailable("the ledger cannot be read", cause) }

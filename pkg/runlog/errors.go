package runlog

import "errors"

// Errors that callers distinguish with errors.Is.
var (
	// ErrFenced means that another writer's record has the version to be written.
	ErrFenced = errors.New("another record has this version")
	// ErrNotFound means that there is no such record, run or blob.
	ErrNotFound = errors.New("not found")
	// ErrTooLarge means that a record or item exceeds its bound.
	ErrTooLarge = errors.New("too large")
	// ErrUnavailable means that the bus did not answer in time.
	ErrUnavailable = errors.New("log unavailable")
	// ErrLost means that the bus has lost the newest records, which it had acknowledged:
	// after a loss of power, or because it was restored from an older backup. The records that the
	// caller has seen last are not stored any more.
	ErrLost = errors.New("the bus has lost its newest records")
	// ErrNoClient means that no client answers hooks of a run.
	ErrNoClient = errors.New("no client answers the hooks of this run")
	// ErrClientLeft means that the client that answers a hook has disconnected.
	ErrClientLeft = errors.New("the client that answers the hook has disconnected")
	// ErrTooManyHookCalls means that a client already answers MaxHookCalls calls.
	ErrTooManyHookCalls = errors.New("too many concurrent hook calls")
	// ErrSchemaTooNew means that a newer program wrote a record.
	ErrSchemaTooNew = errors.New("record schema is newer than this program reads")
)

// Stall is the error of a log that stores nothing at the moment although it can be
// reached, as with a full disk. It is wrapped with ErrUnavailable.
type Stall struct {
	// Text is why, and what to do, for people. It names no secret.
	Text string
}

func (s *Stall) Error() string { return s.Text }

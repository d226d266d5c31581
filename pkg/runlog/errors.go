package runlog

import "errors"

// Errors that callers tell apart with errors.Is.
var (
	// ErrFenced says that another writer's record has the version that was to
	// be written.
	ErrFenced = errors.New("another record was first")
	// ErrNotFound says that there is no such record, run or blob.
	ErrNotFound = errors.New("not found")
	// ErrTooLarge says that a record or item is over its bound.
	ErrTooLarge = errors.New("too large")
	// ErrUnavailable says that the bus gave no answer in time.
	ErrUnavailable = errors.New("log unavailable")
	// ErrNobody says that no client answers hooks of a run.
	ErrNobody = errors.New("no client answers the hooks of this run")
	// ErrClientLeft says that a client that was asked is not there any more.
	ErrClientLeft = errors.New("the client that was asked has left")
	// ErrTooManyHookCalls says that who answers hooks has as many calls as it may have.
	ErrTooManyHookCalls = errors.New("too many hooks are being called at once")
	// ErrSchemaTooNew says that a record was written by a newer program.
	ErrSchemaTooNew = errors.New("record schema is newer than this program reads")
)

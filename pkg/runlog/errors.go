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
	// ErrSchemaTooNew says that a record was written by a newer program.
	ErrSchemaTooNew = errors.New("record schema is newer than this program reads")
)

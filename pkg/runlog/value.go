package runlog

import (
	"context"
	"fmt"
)

// ValueKey names a value. All three parts match Name.
type ValueKey struct {
	// Namespace of the runs that the value is about.
	Namespace string
	// Kind of the value, such as profile.
	Kind string
	// Name in the kind. It holds nothing about a run: hash what may.
	Name string
}

// Valid reports whether all parts of k are valid.
func (k ValueKey) Valid() bool {
	return Name.MatchString(k.Namespace) && Name.MatchString(k.Kind) && Name.MatchString(k.Name)
}

// String returns KIND/NAMESPACE/NAME.
func (k ValueKey) String() string { return k.Kind + "/" + k.Namespace + "/" + k.Name }

// ValueSubject returns the subject of a value.
func ValueSubject(k ValueKey) string {
	return fmt.Sprintf("hm.value.%s.%s.%s", k.Kind, k.Namespace, k.Name)
}

// Values stores what outlives runs: one small value a key, which is changed by compare and set.
type Values interface {
	// Value returns the value of a key and its revision, nil and 0 if there is none. It reads
	// from the leader, so the answer is up to date.
	//
	// Errors: ErrNotFound if the bus has no place for values, ErrUnavailable.
	Value(ctx context.Context, key ValueKey) (data []byte, revision uint64, err error)

	// PutValue replaces the value with a revision, 0 for none, and returns the new revision,
	// which is larger. If ErrUnavailable is returned, data may be stored.
	//
	// Errors: ErrFenced if the value has another revision, ErrTooLarge above MaxRecord,
	// ErrUnavailable.
	PutValue(ctx context.Context, key ValueKey, data []byte, revision uint64) (uint64, error)
}

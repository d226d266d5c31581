// Package toolhost makes the decisions of the tool host: whether a call may run, given its
// ledger entry; the limits of calls; and the texts that models read.
//
// It is pure: no clock, disk, process or log. Package toolhostserver carries out the decisions,
// and its package tools has the tools. Two rules hold throughout:
//
//   - A call has its effect at most once unless its tool is idempotent. If the effect
//     is not known, the outcome is UNKNOWN and the call does not run.
//   - Texts for the model depend on the effect alone. They have no times, process ids or
//     random names, so that equal effects have equal texts and a loop is found by
//     comparing them.
package toolhost

import (
	"fmt"
	"time"
)

// Limits are the limits of a call. The zero value of a field means its default.
type Limits struct {
	// ResultBytes is the maximum size of a result. Default 256 KiB; at least 4 KiB.
	ResultBytes int
	// ReadBytes is the maximum size of the lines that a read of a file returns; the rest
	// is read with an offset. Default 128 KiB; at most ResultBytes.
	ReadBytes int
	// FileBytes is the maximum size of a file to edit or to search. Default 16 MiB.
	FileBytes int
	// CommandHeadBytes is kept of the beginning of a command's output. Default 32 KiB.
	CommandHeadBytes int
	// CommandTailBytes is kept of the end of a command's output, where the errors are.
	// Default 96 KiB; with the head at most ResultBytes.
	CommandTailBytes int
	// Paths is the maximum number of paths in a result. Default 1,000.
	Paths int
	// Matches is the maximum number of matching lines in a result. Default 500.
	Matches int
	// LineBytes is the part of a matching line in a result. Default 400.
	LineBytes int
	// WalkDepth is how many folders within each other a search of files visits, and WalkTime how long
	// it takes at most. Defaults 100 and 10 s.
	WalkDepth int
	WalkTime  time.Duration
	// ListingEntries is the maximum number of entries in the description of a
	// workspace. Default 200.
	ListingEntries int
	// Timeout is the time limit of a call if neither the request nor the model sets
	// one. Default 120 s.
	Timeout time.Duration
	// MaxTimeout is the maximum time limit that a model can set. Default 1 h.
	MaxTimeout time.Duration
	// CachedResultBytes is the total size of cached results of idempotent calls.
	// Default 32 MiB.
	CachedResultBytes int
}

// WithDefaults returns the limits with the defaults for zero fields.
func (l Limits) WithDefaults() Limits {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&l.ResultBytes, 256<<10)
	set(&l.ReadBytes, min(128<<10, l.ResultBytes))
	set(&l.FileBytes, 16<<20)
	set(&l.CommandHeadBytes, min(32<<10, l.ResultBytes/4))
	set(&l.CommandTailBytes, min(96<<10, l.ResultBytes/2))
	set(&l.Paths, 1000)
	set(&l.Matches, 500)
	set(&l.WalkDepth, 100)
	set(&l.LineBytes, 400)
	set(&l.ListingEntries, 200)
	set(&l.CachedResultBytes, 32<<20)
	if l.Timeout == 0 {
		l.Timeout = 120 * time.Second
	}
	if l.WalkTime == 0 {
		l.WalkTime = 10 * time.Second
	}
	if l.MaxTimeout == 0 {
		l.MaxTimeout = max(time.Hour, l.Timeout)
	}
	return l
}

// Validate returns an error that names an invalid limit. Call it after WithDefaults.
func (l Limits) Validate() error {
	for name, value := range map[string]int{
		"read_bytes": l.ReadBytes, "file_bytes": l.FileBytes,
		"command_head_bytes": l.CommandHeadBytes, "command_tail_bytes": l.CommandTailBytes,
		"paths": l.Paths, "matches": l.Matches, "walk_depth": l.WalkDepth, "line_bytes": l.LineBytes,
		"listing_entries": l.ListingEntries, "cached_result_bytes": l.CachedResultBytes,
	} {
		if value <= 0 {
			return fmt.Errorf("%s: %d must be positive", name, value)
		}
	}
	switch {
	case l.ResultBytes < 4<<10:
		return fmt.Errorf("result_bytes: %d must be at least 4096", l.ResultBytes)
	case l.ReadBytes > l.ResultBytes:
		return fmt.Errorf("read_bytes: %d exceeds result_bytes %d", l.ReadBytes, l.ResultBytes)
	case l.CommandHeadBytes+l.CommandTailBytes > l.ResultBytes:
		return fmt.Errorf("command_head_bytes + command_tail_bytes: %d exceeds result_bytes %d", l.CommandHeadBytes+l.CommandTailBytes, l.ResultBytes)
	case l.Timeout <= 0:
		return fmt.Errorf("timeout: %v must be positive", l.Timeout)
	case l.WalkTime <= 0:
		return fmt.Errorf("walk_time: %v must be positive", l.WalkTime)
	case l.MaxTimeout < l.Timeout:
		return fmt.Errorf("max_timeout: %v must be at least timeout %v", l.MaxTimeout, l.Timeout)
	}
	return nil
}

// CallTimeout returns the time limit of a call: the model's, up to MaxTimeout, or else the
// request's, or else the default. Zero means not set.
func (l Limits) CallTimeout(request, model time.Duration) time.Duration {
	switch {
	case model > 0:
		return min(model, l.MaxTimeout)
	case request > 0:
		return request
	}
	return l.Timeout
}

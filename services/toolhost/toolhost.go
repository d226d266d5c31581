// Package toolhost is the deciding part of the tool host: which tools there
// are, what a call's ledger entry allows, how long and how large things may
// get, and what the model reads of them.
//
// It is pure: no clock, disk, process or log. The shell in toolhostserver reads
// and writes what is decided here. Two rules hold throughout:
//
//   - A call has its effect at most once unless its tool is idempotent. What
//     cannot be known is answered with the outcome UNKNOWN, never by running it.
//   - Texts for the model are a function of the effect alone. They hold no
//     times, process ids or random names, so equal effects have equal texts and
//     a loop can be seen by comparing them.
package toolhost

import (
	"fmt"
	"time"
)

// Limits bounds what a call may take. The zero value of a field means its
// default.
type Limits struct {
	// Bytes of any result. Default 256 KiB; at least 4 KiB.
	ResultBytes int
	// Bytes that one read_file returns; the rest is read with an offset.
	// Default 128 KiB; at most ResultBytes.
	ReadBytes int
	// Bytes of a file that edit_file changes or search_files looks into.
	// Default 16 MiB.
	FileBytes int
	// Bytes that are kept of the beginning of a command's output. Default 32 KiB.
	CommandHeadBytes int
	// Bytes that are kept of the end of a command's output, where the errors
	// are. Default 96 KiB; with the head at most ResultBytes.
	CommandTailBytes int
	// Paths that list_directory and find_files return. Default 1,000.
	Paths int
	// Matches that search_files returns. Default 500.
	Matches int
	// Bytes of a matching line that search_files shows. Default 400.
	LineBytes int
	// Entries in the description of a workspace. Default 200.
	ListingEntries int
	// Time that a call may take when neither the request nor the model says so.
	// Default 120 s.
	Timeout time.Duration
	// Most that a model may ask for in timeout_seconds. Default 1 h.
	MaxTimeout time.Duration
	// Bytes of results of idempotent calls that are remembered. Default 32 MiB.
	RememberedBytes int
}

// WithDefaults fills in the defaults.
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
	set(&l.LineBytes, 400)
	set(&l.ListingEntries, 200)
	set(&l.RememberedBytes, 32<<20)
	if l.Timeout == 0 {
		l.Timeout = 120 * time.Second
	}
	if l.MaxTimeout == 0 {
		l.MaxTimeout = max(time.Hour, l.Timeout)
	}
	return l
}

// Validate names the first limit that cannot be kept; call it after WithDefaults.
func (l Limits) Validate() error {
	for name, value := range map[string]int{
		"read_bytes": l.ReadBytes, "file_bytes": l.FileBytes,
		"command_head_bytes": l.CommandHeadBytes, "command_tail_bytes": l.CommandTailBytes,
		"paths": l.Paths, "matches": l.Matches, "line_bytes": l.LineBytes,
		"listing_entries": l.ListingEntries, "remembered_bytes": l.RememberedBytes,
	} {
		if value <= 0 {
			return fmt.Errorf("%s: %d is not positive", name, value)
		}
	}
	switch {
	case l.ResultBytes < 4<<10:
		return fmt.Errorf("result_bytes: %d is less than 4096", l.ResultBytes)
	case l.ReadBytes > l.ResultBytes:
		return fmt.Errorf("read_bytes: %d is more than result_bytes %d", l.ReadBytes, l.ResultBytes)
	case l.CommandHeadBytes+l.CommandTailBytes > l.ResultBytes:
		return fmt.Errorf("command_head_bytes + command_tail_bytes: more than result_bytes %d", l.ResultBytes)
	case l.Timeout <= 0:
		return fmt.Errorf("timeout: %v is not positive", l.Timeout)
	case l.MaxTimeout < l.Timeout:
		return fmt.Errorf("max_timeout: %v is less than timeout %v", l.MaxTimeout, l.Timeout)
	}
	return nil
}

// CallTimeout is the time that a call gets: what the model asked for, up to
// MaxTimeout; else what the request says; else the default. Zero means not said.
func (l Limits) CallTimeout(requested, asked time.Duration) time.Duration {
	switch {
	case asked > 0:
		return min(asked, l.MaxTimeout)
	case requested > 0:
		return requested
	}
	return l.Timeout
}

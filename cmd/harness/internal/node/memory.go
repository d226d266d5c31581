package node

import "math"

// memory is how a process divides the memory limit of the Go runtime, in bytes.
type memory struct {
	// room is for the steps in work at the same time.
	room uint64
	// conversations and records bound the caches of these.
	conversations, records uint64
}

// The memory of a process without a limit, and the most that caches get.
const (
	unlimitedRoom    = 4 << 30
	maxConversations = 256 << 20
	maxRecords       = 64 << 20
)

// memoryOf divides a limit: half of it is for work, and about a fifth for caches. The
// rest is for everything else, and for garbage.
func memoryOf(limit int64) memory {
	if limit == math.MaxInt64 {
		return memory{room: unlimitedRoom, conversations: maxConversations, records: maxRecords}
	}
	whole := uint64(max(limit, 0))
	return memory{room: whole / 2, conversations: min(whole/8, maxConversations), records: min(whole/16, maxRecords)}
}

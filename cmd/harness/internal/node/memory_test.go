package node

import (
	"math"
	"testing"
)

// TestMemoryIsDivided: at each shipped limit work and caches leave room for the rest.
func TestMemoryIsDivided(t *testing.T) {
	for _, limit := range []int64{64 << 20, 512 << 20 * 9 / 10, 1 << 30 * 9 / 10, 4 << 30, 64 << 30} {
		m := memoryOf(limit)
		if sum := m.room + m.conversations + m.records; sum > uint64(limit)*3/4 || m.room < uint64(limit)/3 {
			t.Errorf("of %d bytes: %+v", limit, m)
		}
	}
	if m := memoryOf(math.MaxInt64); m != (memory{unlimitedRoom, maxConversations, maxRecords}) {
		t.Errorf("without a limit: %+v", m)
	}
}

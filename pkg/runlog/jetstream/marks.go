package jetstream

import (
	"hash/maphash"
	"slices"
)

// mark identifies a message that this process has seen in a stream.
type mark struct{ sequence, digest uint64 }

var digestSeed = maphash.MakeSeed()

// markOf returns the mark of a message. Its digest is valid in this process only.
func markOf(sequence uint64, subject string, data []byte) mark {
	var h maphash.Hash
	h.SetSeed(digestSeed)
	_, _ = h.WriteString(subject)
	_, _ = h.Write(data)
	return mark{sequence, h.Sum64()}
}

// marks remember a few messages of a stream: the newest one, and older ones at distances
// that grow by a factor of four. A stream loses its newest messages only, so if one of
// the marks is still stored, everything before it is.
type marks struct {
	newest mark
	levels [markLevels]struct{ newer, older mark }
}

// markLevels covers the last 16 million messages.
const markLevels = 12

// add adds a message that is newer than all others; others are ignored.
func (m *marks) add(k mark) {
	if k.sequence <= m.newest.sequence {
		return
	}
	m.newest = k
	for i := range m.levels {
		level := &m.levels[i]
		if level.newer.sequence != 0 && k.sequence-level.newer.sequence < 4<<(2*i) {
			return // the distances of the further levels are larger
		}
		level.newer, level.older = k, level.newer
	}
}

// oldestFirst returns all marks, each once.
func (m *marks) oldestFirst() []mark {
	all := []mark{m.newest}
	for _, level := range m.levels {
		all = append(all, level.newer, level.older)
	}
	slices.SortFunc(all, func(a, b mark) int {
		if a.sequence < b.sequence {
			return -1
		}
		return min(int(a.sequence-b.sequence), 1) //nolint:gosec // not negative
	})
	all = slices.Compact(all)
	if all[0].sequence == 0 {
		all = all[1:]
	}
	return all
}

// cut forgets the marks above sequence.
func (m *marks) cut(sequence uint64) {
	all := m.oldestFirst()
	*m = marks{}
	for _, k := range all {
		if k.sequence <= sequence {
			m.add(k)
		}
	}
}

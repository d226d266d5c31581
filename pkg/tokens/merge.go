package tokens

import (
	"math"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/tokens/internal/vocabulary"
)

// merger merges the bytes of a piece to tokens as byte-pair encoding does: of all pairs of
// neighbours, it merges the one whose bytes are the token with the lowest rank, of equal
// ones the leftmost, until no pair is a token. It has the space for one piece at a time.
//
// A part is a byte, or several merged ones. Its name is the position of its first byte.
type merger struct {
	ranks *vocabulary.Vocabulary
	// next has where each part ends, and previous where the part before it begins.
	next, previous []uint32
	// pairs has for each part the rank of the pair with its right neighbour, and in the
	// lower 32 bits its name; from unranked on if there is no rank or no such part.
	pairs []uint64
	// above[0] has the least of each fan elements of pairs, above[1] those of above[0],
	// and so on. The last of them is top, with fan elements.
	above [][]uint64
	top   *[fan]uint64
	space [][]uint64 // of pairs and above
	sizes []uint8    // see long
}

const (
	fan      = 8
	unranked = vocabulary.None << 32
	gone     = math.MaxUint64
	none     = math.MaxUint32 // before the first part
)

var mergers = sync.Pool{New: func() any { return new(merger) }}

// count returns the number of tokens of the piece text[from:to].
func (m *merger) count(text string, from, to int) int {
	switch n := to - from; {
	case n == 1, m.ranks.Rank(text, from, to) != vocabulary.None:
		return 1
	case n > longPiece:
		return m.long(text, from, to)
	default:
		return m.merge(text, from, to)
	}
}

// merge merges text[from:to], of two bytes or more, and returns the number of tokens;
// next has where they end, from 0 on.
func (m *merger) merge(text string, from, to int) int {
	n := to - from
	text = text[from:] // with what follows, so that Rank can read whole words
	m.reset(text, n)
	next, previous, pairs := m.next[:n+1], m.previous[:n+1], m.pairs
	for count := n; ; count-- {
		first := least(m.top[:], 0)
		if first >= unranked {
			return count
		}
		left := uint(uint32(first)) //nolint:gosec // the lower half
		right := uint(next[left])
		end := uint(next[right])
		next[left] = uint32(end) //nolint:gosec // at most n
		pairs[left], pairs[right] = gone, gone
		if end < uint(n) {
			previous[end] = uint32(left) //nolint:gosec // below n
			pairs[left] = m.pair(text, left, uint(next[end]))
		}
		if before := uint(previous[left]); before != none {
			pairs[before] = m.pair(text, before, end)
			if before/fan != left/fan {
				m.update(before)
			}
		}
		m.update(left)
		if right/fan != left/fan {
			m.update(right)
		}
	}
}

// pair is the element of pairs for a part whose right neighbour ends at end.
func (m *merger) pair(text string, part, end uint) uint64 {
	return uint64(m.ranks.Rank(text, int(part), int(end)))<<32 | uint64(part)
}

// update updates above after the element of pairs at i has changed.
func (m *merger) update(i uint) {
	below := m.pairs
	for _, level := range m.above {
		l := least(below, i)
		i /= fan
		if level[i] == l {
			return
		}
		level[i], below = l, level
	}
}

// least returns the least of the fan elements that include the one at i.
func least(of []uint64, i uint) uint64 {
	o := (*[fan]uint64)(of[i&^(fan-1):])
	return min(min(min(o[0], o[1]), min(o[2], o[3])), min(min(o[4], o[5]), min(o[6], o[7])))
}

// reset makes a part of each of the first n bytes of a text.
func (m *merger) reset(text string, n int) {
	m.resize(n)
	for i := range uint32(n) { //nolint:gosec // the length of a piece in memory
		m.next[i], m.previous[i] = i+1, i-1
	}
	for i := range n - 1 {
		m.pairs[i] = uint64(m.ranks.Pair(text[i], text[i+1]))<<32 | uint64(i)
	}
	for i := n - 1; i < len(m.pairs); i++ {
		m.pairs[i] = gone
	}
	below := m.pairs
	for _, level := range m.above {
		for i := range level {
			level[i] = gone
			if i*fan < len(below) {
				level[i] = least(below, uint(i*fan))
			}
		}
		below = level
	}
}

// resize makes space for n parts.
func (m *merger) resize(n int) {
	if len(m.next) <= n {
		m.next, m.previous = make([]uint32, 2*n+1), make([]uint32, 2*n+1)
	}
	m.above = m.above[:0]
	for k := 0; ; k++ {
		n = (n + fan - 1) / fan
		if k == len(m.space) {
			m.space = append(m.space, nil)
		}
		if len(m.space[k]) < n*fan {
			m.space[k] = make([]uint64, 2*n*fan)
		}
		level := m.space[k][:n*fan]
		if k == 0 {
			m.pairs = level
		} else {
			m.above = append(m.above, level)
		}
		if n == 1 {
			m.top = (*[fan]uint64)(level)
			return
		}
	}
}

package tokens

import "math"

// smallPiece is the length in bytes up to which a plain scan for the lowest
// rank is faster than a heap.
const smallPiece = 96

// countPiece returns the number of tokens of one piece: byte-pair encoding merges
// the leftmost pair of neighbours whose joined bytes have the lowest rank, until no
// pair has one. Each single byte is a token.
func countPiece(ranks map[string]int, piece string) int {
	if len(piece) <= 1 {
		return len(piece)
	}
	if _, ok := ranks[piece]; ok {
		return 1
	}
	if len(piece) <= smallPiece {
		return countSmall(ranks, piece)
	}
	return countLong(ranks, piece)
}

// none is the rank of a pair that is no token.
const none = math.MaxInt32

func rank(ranks map[string]int, s string) int32 {
	if r, ok := ranks[s]; ok {
		return int32(r) //nolint:gosec // a rank of the vocabulary
	}
	return none
}

// countSmall scans all pairs for each merge.
func countSmall(ranks map[string]int, piece string) int {
	// Part i is piece[start[i]:start[i+1]]; pair[i] is the rank of parts i and i+1.
	var start [smallPiece + 1]int
	var pair [smallPiece]int32
	n := len(piece)
	for i := range n + 1 {
		start[i] = i
	}
	for i := range n - 1 {
		pair[i] = rank(ranks, piece[i:i+2])
	}
	for n > 1 {
		low := 0
		for i := 1; i < n-1; i++ {
			if pair[i] < pair[low] {
				low = i
			}
		}
		if pair[low] == none {
			break
		}
		copy(start[low+1:n], start[low+2:n+1])
		copy(pair[low:n-2], pair[low+1:n-1])
		n--
		if low < n-1 {
			pair[low] = rank(ranks, piece[start[low]:start[low+2]])
		}
		if low > 0 {
			pair[low-1] = rank(ranks, piece[start[low-1]:start[low+1]])
		}
	}
	return n
}

// merge is a candidate: the parts that begin at left, and at the end of that
// part, up to end.
type merge struct {
	rank      int32
	left, end int32
}

// before orders candidates: the lowest rank first, of equal ones the leftmost.
func (m merge) before(o merge) bool {
	return m.rank < o.rank || m.rank == o.rank && m.left < o.left
}

// merges is a binary heap; container/heap would allocate for each candidate.
type merges []merge

func (q *merges) push(m merge) {
	*q = append(*q, m)
	q.up(len(*q) - 1)
}

func (q *merges) pop() merge {
	old := *q
	top, last := old[0], len(old)-1
	old[0] = old[last]
	*q = old[:last]
	q.down(0)
	return top
}

func (q merges) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q[i].before(q[parent]) {
			return
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
}

func (q merges) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q) {
			return
		}
		if child+1 < len(q) && q[child+1].before(q[child]) {
			child++
		}
		if !q[child].before(q[i]) {
			return
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
}

// countLong keeps the candidates in a heap and the parts in a linked list. A
// candidate is stale if its parts have been merged with others since.
func countLong(ranks map[string]int, piece string) int {
	size := int32(len(piece)) //nolint:gosec // a piece is short
	// next[i] is where the part that begins at i ends, 0 if none begins there;
	// prev[i] is where the part before it begins.
	next, prev := make([]int32, size+1), make([]int32, size+1)
	for i := range size {
		next[i], prev[i] = i+1, i-1
	}
	queue := make(merges, 0, size)
	for i := range size - 1 {
		if r := rank(ranks, piece[i:i+2]); r != none {
			queue = append(queue, merge{r, i, i + 2})
		}
	}
	for i := len(queue)/2 - 1; i >= 0; i-- {
		queue.down(i)
	}
	add := func(left int32) {
		right := next[left]
		if right >= size {
			return
		}
		if end := next[right]; end-left <= maxToken {
			if r := rank(ranks, piece[left:end]); r != none {
				queue.push(merge{r, left, end})
			}
		}
	}
	n := int(size)
	for len(queue) > 0 {
		m := queue.pop()
		middle := next[m.left]
		if middle == 0 || middle >= size || next[middle] != m.end {
			continue
		}
		next[m.left], next[middle] = m.end, 0
		if m.end < size {
			prev[m.end] = m.left
		}
		n--
		add(m.left)
		if before := prev[m.left]; before >= 0 {
			add(before)
		}
	}
	return n
}

// maxToken is a length in bytes that no token of the vocabularies exceeds.
const maxToken = 256

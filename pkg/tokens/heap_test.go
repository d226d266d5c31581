package tokens_test

import (
	"container/heap"
	"math"
)

// heapSizes returns the lengths of the tokens of a piece. It merges with a priority queue: in
// n·log n for a piece of any length, and with nothing in common with merger.
func heapSizes(ranks map[string]int, piece string) []int {
	size := len(piece)
	// next is where the part that begins at i ends, 0 if none begins there; previous
	// is where the part before it begins.
	next, previous := make([]int, size+1), make([]int, size+1)
	for i := range size {
		next[i], previous[i] = i+1, i-1
	}
	q := &candidates{}
	add := func(left int) {
		if left < 0 || next[left] >= size {
			return
		}
		end := next[next[left]]
		if rank, ok := ranks[piece[left:end]]; ok {
			heap.Push(q, candidate{rank, left, end})
		}
	}
	for i := range size {
		add(i)
	}
	for q.Len() > 0 {
		c := heap.Pop(q).(candidate)
		middle := next[c.left]
		if middle == 0 || middle >= size || next[middle] != c.end {
			continue // merged with others since
		}
		next[c.left], next[middle] = c.end, 0
		previous[c.end] = c.left
		add(c.left)
		add(previous[c.left])
	}
	var sizes []int
	for at := 0; at < size; at = next[at] {
		sizes = append(sizes, next[at]-at)
	}
	return sizes
}

// candidate is two parts to merge: those that begin at left, and at the end of that
// one, up to end.
type candidate struct{ rank, left, end int }

type candidates []candidate

func (q candidates) Len() int { return len(q) }
func (q candidates) Less(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].left < q[j].left
}
func (q candidates) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *candidates) Push(c any)   { *q = append(*q, c.(candidate)) }
func (q *candidates) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// scanSizes returns the lengths of the tokens of a piece. It scans all pairs for each merge,
// as byte-pair encoding is defined.
func scanSizes(ranks map[string]int, piece string) []int {
	parts := make([]string, len(piece))
	for i := range len(piece) {
		parts[i] = piece[i : i+1]
	}
	for {
		low, at := math.MaxInt, 0
		for i := range len(parts) - 1 {
			if rank, ok := ranks[parts[i]+parts[i+1]]; ok && rank < low {
				low, at = rank, i
			}
		}
		if low == math.MaxInt {
			break
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
	var sizes []int
	for _, part := range parts {
		sizes = append(sizes, len(part))
	}
	return sizes
}

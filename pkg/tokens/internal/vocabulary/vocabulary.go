// Package vocabulary finds the ranks of tokens by their bytes, in the vocabularies of
// the module tiktoken-go-loader.
//
// A file of the loader has a line for each token: its bytes in base64, and its rank.
// Parsing all of them takes tens of milliseconds, so Open parses none. It needs an
// index, which Build makes when code is generated: a hash table of the places of the
// lines. A line is parsed when a lookup meets it for the first time, and its token is
// kept. So tokens and ranks are those of the loader; the index has only places.
//
// The table is divided into regions, one for each two bytes that tokens begin with. A
// cell of the table has 64 bits: enough for the rank and the other bytes of a token of
// up to seven bytes. Most lookups read a region, a byte of a filter and a cell.
//
// All functions are safe for concurrent use.
package vocabulary

import (
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"
)

// None is the rank of bytes that are no token.
const None = math.MaxUint32

// Vocabulary is the tokens of two bytes or more of an encoding.
type Vocabulary struct {
	lines   *io.SectionReader // the loader's file
	regions []region          // one for each pair of first bytes
	filter  string            // of the index
	slots   string            // of the index
	cells   []atomic.Uint64   // one for each slot
	longest int               // length of the longest token

	filling sync.Mutex // guards used, and the part of long after it
	// long has the tokens of more than maxShort bytes whose cells are filled, each
	// after its length.
	long []byte
	used int
}

// region describes the cells of the tokens with the same two first bytes: from the
// lowest bit, the first cell (24 bits), the number of cells (16), and the rank of the
// two bytes themselves plus one, or zero if they are no token (24).
type region uint64

func (r region) first() uint64 { return uint64(r) & (1<<24 - 1) }
func (r region) size() uint64  { return uint64(r) >> 24 & math.MaxUint16 }
func (r region) rank() uint32  { return uint32(r>>40) - 1 } // zero becomes None

// Open returns the vocabulary of a file of the loader, with the index that Build
// returned for it. An error means that the index is for another file.
func Open(lines *io.SectionReader, index string) (*Vocabulary, error) {
	h, regions, filter, slots, err := split(index)
	if err != nil {
		return nil, err
	}
	if int64(h.FileSize) != lines.Size() {
		return nil, errors.New("the index is for another version of the file")
	}
	v := &Vocabulary{
		lines: lines, filter: filter, slots: slots, longest: int(h.Longest),
		regions: make([]region, 1<<16), cells: make([]atomic.Uint64, h.Cells), long: make([]byte, h.Long),
	}
	for first := uint64(0); len(regions) > 0; regions = regions[regionBytes:] {
		prefix, cells, rank := parseRegion(regions)
		v.regions[prefix] = region(first | uint64(cells)<<24 | uint64(rank)<<40)
		first += uint64(cells)
	}
	return v, nil
}

// Pair returns the rank of the token of two bytes, or None if they are no token.
func (v *Vocabulary) Pair(first, second byte) uint32 {
	return v.regions[uint(first)<<8|uint(second)].rank()
}

// Rank returns the rank of the token text[from:to], or None if these bytes, of which
// there must be at least two, are no token.
func (v *Vocabulary) Rank(text string, from, to int) uint32 {
	r := v.regions[uint(text[from])<<8|uint(text[from+1])]
	n := to - from
	if n == 2 {
		return r.rank()
	}
	if r.size() == 0 {
		return None
	}
	if n > maxShort {
		return v.rankLong(r, text[from:to])
	}
	var key uint64
	if from+8 <= len(text) { // the same as shortKey, faster
		drop := uint(64 - 8*n)
		key = load(text[from:])<<(drop&63)>>((drop+16)&63) | uint64(n-2)<<restBits //nolint:gosec // not negative
	} else {
		key = shortKey(text[from:to])
	}
	home := shortHash(key) * r.size()
	if !v.mayHave(r, home) {
		return None
	}
	for at := home >> 32; ; {
		c := v.cells[r.first()+at].Load()
		switch {
		case c>>rankBits == key:
			return uint32(c & (1<<rankBits - 1))
		case c == blank:
			return None
		case c == 0:
			v.fill(r.first() + at)
			continue
		}
		if at++; at == r.size() {
			at = 0
		}
	}
}

// rankLong is Rank for tokens of more than maxShort bytes.
func (v *Vocabulary) rankLong(r region, token string) uint32 {
	if len(token) > v.longest {
		return None
	}
	key, hash := longKey(token)
	home := hash * r.size()
	if !v.mayHave(r, home) {
		return None
	}
	for at := home >> 32; ; {
		c := v.cells[r.first()+at].Load()
		switch {
		case c>>rankBits&^placeMask == key && v.has(c>>rankBits&placeMask, token):
			return uint32(c & (1<<rankBits - 1))
		case c == blank:
			return None
		case c == 0:
			v.fill(r.first() + at)
			continue
		}
		if at++; at == r.size() {
			at = 0
		}
	}
}

// mayHave reports whether a region may have a token whose first cell is home, in units
// of 1/2^32. It is false for most of those that the region does not have.
func (v *Vocabulary) mayHave(r region, home uint64) bool {
	bit := filterBit(r.first(), home)
	return v.filter[bit/8]>>(bit%8)&1 != 0
}

// has reports whether the token at a place in long is this one.
func (v *Vocabulary) has(place uint64, token string) bool {
	n := uint64(len(token))
	return uint64(v.long[place]) == n && string(v.long[place+1:place+1+n]) == token
}

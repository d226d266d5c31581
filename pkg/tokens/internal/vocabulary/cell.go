package vocabulary

import "math/bits"

// A cell is zero until it is filled. Then it is blank, or has a token:
//
//	bits      up to maxShort bytes    more bytes
//	0 to 17   rank                    rank
//	18 to 39  bytes after the second  place in long
//	40 to 57  bytes after the second  bits of a hash
//	58 to 60  length minus two        longClass
//
// Bits 18 to 60 of a token of up to maxShort bytes are its key: no other token of the
// region has the same. The key of a longer one has no place, and is not unique.
const (
	blank     = 1
	rankBits  = 18
	maxShort  = 7
	restBits  = 40
	placeBits = 22
	placeMask = 1<<placeBits - 1
	longClass = 7
)

// shortKey returns the key of a token of three to maxShort bytes.
func shortKey(token string) uint64 {
	key := uint64(len(token) - 2) //nolint:gosec // not negative
	for i := maxShort - 1; i >= 2; i-- {
		key <<= 8
		if i < len(token) {
			key |= uint64(token[i])
		}
	}
	return key
}

// shortHash returns 32 bits.
func shortHash(key uint64) uint64 { return key * 0x9e3779b97f4a7c15 >> 32 }

// longKey returns the key of a token of more than maxShort bytes, and 32 bits.
func longKey(token string) (key, hash uint64) {
	h := uint64(len(token))
	for i := 0; i+8 < len(token); i += 8 {
		h = mix(h, load(token[i:]))
	}
	h = mix(h, load(token[len(token)-8:]))
	return longClass<<restBits | h<<placeBits&(1<<restBits-1), h >> 32
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd6e8feb86659fd93)
	return hi ^ lo
}

// filterBit returns the bit of the filter for a token of the region with a first cell,
// by the cell where a lookup of the token begins, in units of 1/2^32.
func filterBit(first, home uint64) uint64 { return first*filterBits + home*filterBits>>32 }

// load returns the first eight bytes. The compiler makes one instruction of it.
func load(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// fill parses the line of a slot, if it has one, and stores the cell.
func (v *Vocabulary) fill(slot uint64) {
	v.filling.Lock()
	defer v.filling.Unlock()
	if v.cells[slot].Load() == 0 {
		v.cells[slot].Store(v.cell(slot))
	}
}

func (v *Vocabulary) cell(slot uint64) uint64 {
	place, ok := parseSlot(v.slots, slot)
	if !ok {
		return blank
	}
	var line, into [maxLine]byte
	n, _ := v.lines.ReadAt(line[:], place) // fewer than maxLine at the end of the file
	bytes, rank, err := parseLine(line[:n], &into)
	if err != nil {
		panic("vocabulary: the index is for another version of the file: " + err.Error())
	}
	token := string(bytes)
	if len(token) <= maxShort {
		return shortKey(token)<<rankBits | uint64(rank)
	}
	key, _ := longKey(token)
	at := v.used
	v.long[at] = byte(len(token)) //nolint:gosec // of maxLine bytes of base64
	v.used += 1 + copy(v.long[at+1:], token)
	return (key|uint64(at))<<rankBits | uint64(rank) //nolint:gosec // at most placeMask
}

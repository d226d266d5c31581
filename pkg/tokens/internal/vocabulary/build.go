package vocabulary

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// group is the tokens with the same two first bytes.
type group struct {
	tokens []entry // of more than two bytes, in the order of their lines
	rank   uint32  // of the two bytes themselves plus one, or zero
}

// entry is a token and where its line begins.
type entry struct {
	token string
	at    int
}

var errTooLarge = errors.New("the vocabulary is too large for an index")

// Build returns the index of a file of the loader. Equal files have equal indexes.
func Build(lines *io.SectionReader) ([]byte, error) {
	if lines.Size() >= 1<<(8*slotBytes)-1 {
		return nil, errTooLarge
	}
	data := make([]byte, lines.Size())
	if _, err := lines.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	h, groups, err := parse(data)
	if err != nil {
		return nil, err
	}
	t := table{}
	for prefix, g := range groups {
		t.add(uint16(prefix), g)
	}
	h.Regions, h.Cells = uint32(len(t.regions)/regionBytes), uint32(len(t.slots)/slotBytes) //nolint:gosec // fewer than bytes of the file
	if t.largest > math.MaxUint16 || h.Long > placeMask {
		return nil, errTooLarge
	}
	index, err := binary.Append(nil, binary.LittleEndian, h)
	return slices.Concat(index, t.regions, t.filter(), t.slots), err
}

// parse returns the header without the numbers of regions and cells, and a group for
// each pair of bytes.
func parse(data []byte) (h header, groups []group, err error) {
	h.FileSize = uint32(len(data)) //nolint:gosec // Build checks it
	groups = make([]group, 1<<16)
	var into [maxLine]byte
	single := 0
	for at := 0; at < len(data); {
		token, rank, err := parseLine(data[at:], &into)
		if err != nil {
			return h, nil, err
		}
		begin := at
		at += bytes.IndexByte(data[at:], '\n') + 1
		if len(token) < 2 {
			single += len(token)
			continue
		}
		h.Longest = max(h.Longest, uint32(len(token))) //nolint:gosec // below maxLine
		g := &groups[uint(token[0])<<8|uint(token[1])]
		if len(token) == 2 {
			g.rank = rank + 1
			continue
		}
		if len(token) > maxShort {
			h.Long += 1 + uint32(len(token)) //nolint:gosec // below maxLine
		}
		g.tokens = append(g.tokens, entry{string(token), begin})
	}
	if single != 256 {
		return h, nil, fmt.Errorf("%d of the 256 bytes are tokens; all must be", single)
	}
	return h, groups, nil
}

// table is the parts of an index after its header.
type table struct {
	regions, slots []byte
	bits           []uint64 // those of the filter that are set
	largest        int      // number of cells of the largest region
}

// add appends the region of a group. Its slots are a hash table with open addressing and
// linear probing. The lines come by their ranks, so frequent tokens are found first.
func (t *table) add(prefix uint16, g group) {
	if g.rank == 0 && len(g.tokens) == 0 {
		return
	}
	size := 0
	if len(g.tokens) > 0 {
		size = len(g.tokens)*10/7 + 1 // at least one is empty; more make lookups faster and the index larger
	}
	slots := make([]int, size)
	first := uint64(len(t.slots)) / slotBytes
	for _, token := range g.tokens {
		home := hash(token.token) * uint64(size)
		t.bits = append(t.bits, filterBit(first, home))
		at := home >> 32
		for slots[at] != 0 {
			at = (at + 1) % uint64(size)
		}
		slots[at] = token.at + 1
	}
	t.largest = max(t.largest, size)
	t.regions = binary.LittleEndian.AppendUint16(t.regions, prefix)
	t.regions = binary.LittleEndian.AppendUint16(t.regions, uint16(size)) // Build checks the largest
	t.regions = binary.LittleEndian.AppendUint32(t.regions, g.rank)
	for _, place := range slots {
		t.slots = append(t.slots, byte(place), byte(place>>8), byte(place>>16)) //nolint:gosec // three bytes of it
	}
}

func (t *table) filter() []byte {
	filter := make([]byte, filterBytes(uint64(len(t.slots)/slotBytes)))
	for _, bit := range t.bits {
		filter[bit/8] |= 1 << (bit % 8)
	}
	return filter
}

// hash returns the 32 bits by which a token of more than two bytes is found.
func hash(token string) uint64 {
	if len(token) > maxShort {
		_, hash := longKey(token)
		return hash
	}
	return shortHash(shortKey(token))
}

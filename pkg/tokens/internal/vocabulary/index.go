package vocabulary

import (
	"encoding/binary"
	"errors"
)

// An index is, in little-endian numbers, a header; a region for each pair of bytes that
// tokens begin with; the filter; and the slots. A slot is the place of a line plus one,
// or zero. Each token sets one bit of the filter, which has filterBits for each slot.
const (
	headerBytes = 5 * 4
	regionBytes = 2 + 2 + 4
	slotBytes   = 3
	filterBits  = 4
)

type header struct {
	FileSize uint32 // of the loader's file, in bytes
	Regions  uint32
	Cells    uint32
	Long     uint32 // bytes of the tokens of more than maxShort bytes, and of their lengths
	Longest  uint32 // length of the longest token
}

var errIndex = errors.New("the index is not whole")

// split returns the header and the tables of an index.
func split(index string) (h header, regions, filter, slots string, err error) {
	if len(index) < headerBytes {
		return h, "", "", "", errIndex
	}
	if _, err := binary.Decode([]byte(index[:headerBytes]), binary.LittleEndian, &h); err != nil {
		return h, "", "", "", err
	}
	tables := index[headerBytes:]
	first := uint64(h.Regions) * regionBytes
	second := first + filterBytes(uint64(h.Cells))
	if uint64(len(tables)) != second+uint64(h.Cells)*slotBytes {
		return h, "", "", "", errIndex
	}
	return h, tables[:first], tables[first:second], tables[second:], nil
}

func filterBytes(cells uint64) uint64 { return (cells*filterBits + 7) / 8 }

// parseRegion returns the first region of a table: its two bytes, the number of its
// cells, and the rank of the two bytes plus one, or zero.
func parseRegion(regions string) (prefix, cells uint16, rank uint32) {
	b := []byte(regions[:regionBytes])
	return binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:]), binary.LittleEndian.Uint32(b[4:])
}

// parseSlot returns the place in a slot, and whether there is one.
func parseSlot(slots string, slot uint64) (place int64, ok bool) {
	b := slots[slot*slotBytes:][:slotBytes]
	plus := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
	return plus - 1, plus != 0
}

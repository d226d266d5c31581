package workitem

import (
	"encoding/binary"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// digest is FNV-1a over words of 64 bits. The high half is mixed into the low one after
// each word, because a multiplication carries only upwards.
type digest uint64

const (
	fnvOffset digest = 14695981039346656037
	fnvPrime  digest = 1099511628211
)

func (d digest) word(w uint64) digest {
	d = (d ^ digest(w)) * fnvPrime
	return d ^ d>>32
}

// text hashes the length too, so the border between two texts counts.
func (d digest) text(s []byte) digest {
	d = d.word(uint64(len(s)))
	for len(s) >= 8 {
		d, s = d.word(binary.LittleEndian.Uint64(s)), s[8:]
	}
	if len(s) > 0 {
		var rest [8]byte
		copy(rest[:], s)
		d = d.word(binary.LittleEndian.Uint64(rest[:]))
	}
	return d
}

// sum is never 0, which means that there is nothing to hash.
func (d digest) sum() uint64 {
	if d == 0 {
		return 1
	}
	return uint64(d)
}

// Statuses returns the statuses of the items, in their order.
func Statuses(l *harnessv1.WorkItemLedger) []byte {
	statuses := make([]byte, 0, len(l.GetItems()))
	for _, i := range l.GetItems() {
		statuses = append(statuses, byte(i.GetStatus())) //nolint:gosec // 0 to 4
	}
	return statuses
}

// ShownHash returns a hash of the list that State shows; 0 if it shows none.
func ShownHash(l *harnessv1.WorkItemLedger) uint64 {
	var buffer [4096]byte
	shown := appendList(buffer[:0], l)
	if len(shown) == 0 {
		return 0
	}
	return fnvOffset.text(shown).sum()
}

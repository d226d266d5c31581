// Package progress tells work from motion: calls that repeat (a doom loop) and
// turns after which nothing has changed (a stall).
//
// It is pure. After each turn that made calls a caller notes each of them (RecordCall)
// and judges the turn (Assess). A strict loop is dealt with first: while it goes on
// the window of the stall starts anew (ResetWindow). Otherwise the fingerprint of
// progress is pushed (Push), and the run is stalled once the last of them are
// equal (Stalled). What has to be remembered is in the messages DoomLoop and
// ProgressTracker of the snapshot. Functions that change one of them say so, and
// bound it. Nothing here fails.
package progress

import (
	"crypto/sha256"
	"encoding/binary"
)

// digest is 64 bits of the SHA-256 of the parts, each with its length before it:
// what a model writes cannot be made to collide by moving a border.
func digest(parts ...string) uint64 {
	h := sha256.New()
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	var sum [sha256.Size]byte
	return binary.BigEndian.Uint64(h.Sum(sum[:0]))
}

// Package progress detects that an agent works without getting further: calls that
// repeat (a doom loop) and turns that change nothing (a stall).
//
// It is pure. After each turn with calls the caller records each of them (RecordCall) and
// assesses the turn (Assess). If the turn ends in a strict loop, the caller resets the
// window of the stall (ResetWindow). Otherwise it pushes the fingerprint of the progress
// (Push), and the run is stalled if the last fingerprints are equal (Stalled). After a
// compaction has changed the view of the conversation, the caller calls Compacted.
//
// The state is in the messages DoomLoop and ProgressTracker of the snapshot, whose sizes
// are bounded. No function fails.
package progress

import (
	"crypto/sha256"
	"encoding/binary"
)

// digest returns 64 bits of the SHA-256 of the parts, each preceded by its length, so
// that moving text between two parts changes the digest.
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

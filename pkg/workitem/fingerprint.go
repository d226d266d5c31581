package workitem

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// digest is FNV-1a over 64 bits.
type digest uint64

const (
	fnvOffset digest = 14695981039346656037
	fnvPrime  digest = 1099511628211
)

func (d digest) byte(b byte) digest { return (d ^ digest(b)) * fnvPrime }

// text takes in the length too, so that neighbours do not run together.
func (d digest) text(s string) digest {
	for n := range len(s) {
		d = d.byte(s[n])
	}
	return d.byte(byte(len(s))).byte(byte(len(s) >> 8))
}

// sum is never 0, which stands for nothing at all.
func (d digest) sum() uint64 {
	if d == 0 {
		return 1
	}
	return uint64(d)
}

// Fingerprint is a hash of how far the work is: ids, statuses, flags for revision
// and digests of artifacts. Titles and notes are not progress. 0 for a ledger
// without items.
func Fingerprint(l *harnessv1.WorkItemLedger) uint64 {
	if len(l.GetItems()) == 0 {
		return 0
	}
	d := fnvOffset
	for _, i := range l.GetItems() {
		flagged := byte(0)
		if i.GetRequiresRevision() {
			flagged = 1
		}
		d = d.text(i.GetId()).byte(byte(i.GetStatus())).byte(flagged).text(i.GetArtifactDigest()) //nolint:gosec // an enum of five
	}
	return d.sum()
}

// ShownHash is a hash of the list that State shows; 0 when it shows none.
func ShownHash(l *harnessv1.WorkItemLedger) uint64 {
	var buffer [4096]byte
	shown := appendList(buffer[:0], l)
	if len(shown) == 0 {
		return 0
	}
	d := fnvOffset
	for _, b := range shown {
		d = d.byte(b)
	}
	return d.sum()
}

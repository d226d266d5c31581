package runlog

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// Link makes rec the record that follows prev: it sets the version and everything that
// names prev.
func Link(rec *harnessv1.Record, prev Entry) {
	rec.Version, rec.PrevSequence = prev.Header.Version+1, prev.Sequence
	rec.PrevNonce = prev.Record.GetWriter().GetNonce()
	rec.AppendedBefore = AppendedBefore(prev)
}

// Follows reports whether rec was made to follow prev. A sequence is no proof: a bus that
// has lost its newest messages uses their sequences again. A record without the nonce of
// its predecessor, of an older writer, is compared by its version alone, and so is a
// predecessor that cannot be decoded.
func Follows(rec *harnessv1.Record, prev Entry) bool {
	switch {
	case rec.GetPrevSequence() != prev.Sequence, rec.GetVersion() != prev.Header.Version+1:
		return false
	case rec.GetPrevNonce() == 0 || prev.Record == nil:
		return true
	}
	return rec.GetPrevNonce() == prev.Record.GetWriter().GetNonce()
}

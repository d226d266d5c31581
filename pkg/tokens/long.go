package tokens

// A long piece is merged in windows of a bounded length, so that the time is linear in the
// length of the piece. A window begins where a token before it begins, and is joined to
// what came before if that is also its first token:
//
//	If the tokens of a text UT end with T, and those of TV begin with T, then those of
//	UTV are those of UT, followed by those of TV without T.
//
// Proof. Suppose that merging UTV crosses an end of T, and look at the first such merge.
// Before it, the bytes of UT were merged exactly as they are in UT alone, and those of TV
// as in TV alone: the next merge within either is the least of its pairs. If that
// merge crosses the first end of T, its two parts are in UT, and are the least of all
// pairs, so UT alone makes the same merge; but then T is no token there. The other end is
// alike, in TV. So no merge crosses an end of T, and U, T and V are merged separately. ∎
//
// In the same way the tokens of a text do not change when others are cut off before or
// after them. Nothing is assumed of the vocabulary.
//
// (github.com/github/rust-gems, crates/bpe, describes these properties of byte-pair
// encoding, and another linear algorithm, which needs more tables.)
const (
	// window is the number of bytes by which a window goes beyond the ones before.
	window = 576
	// overlap is the least number of bytes that it shares with them; it shares two tokens
	// at least. The number is doubled until the first token is the same, at the latest
	// until the window begins where the piece does; a window goes beyond the ones before by
	// that number at least, so that the time stays bounded.
	overlap = 16
	// longPiece is the length of the longest piece that is merged without windows.
	longPiece = window + 2*overlap
	// maxTail and maxPeriod limit the search for repetitions, in tokens.
	maxTail   = 2
	maxPeriod = 4
)

// long returns the number of tokens of the piece text[from:to].
func (m *merger) long(text string, from, to int) int {
	sizes, end := m.sizes[:0], from // the lengths of the tokens of text[from:end]
	for shared := overlap; end < to; {
		begin, kept := end, len(sizes)
		for kept > 0 && (end-begin < shared || len(sizes)-kept < 2) {
			kept--
			begin -= int(sizes[kept])
		}
		stop := min(end+max(window, shared), to)
		m.merge(text, begin, stop)
		if kept > 0 && m.next[0] != uint32(sizes[kept]) {
			shared *= 2
			continue
		}
		sizes = sizes[:kept]
		for at, n := uint32(0), uint32(stop-begin); at < n; at = m.next[at] { //nolint:gosec // the length of a window
			sizes = append(sizes, uint8(m.next[at]-at)) //nolint:gosec // no token has more than 255 bytes
		}
		sizes, end = repeat(sizes, text, stop, to)
		shared = overlap
	}
	m.sizes = sizes
	return len(sizes)
}

// repeat appends the lengths of tokens that the text repeats after end, and returns where
// they end. If the last tokens are T, some others and T again, and what follows has the
// bytes of these others and T, then it has their tokens, because the rule for UTV
// above holds for T. The end of a window cuts tokens, so up to maxTail of them are replaced.
func repeat(sizes []uint8, text string, end, to int) ([]uint8, int) {
	at := end
	for n := len(sizes); n > 1 && n >= len(sizes)-maxTail; n-- {
		tokens, bytes := period(sizes[:n], text, at)
		stop := at
		for tokens > 0 && stop+bytes <= to && text[stop-bytes:stop] == text[stop:stop+bytes] {
			stop += bytes
		}
		if stop > end {
			sizes = sizes[:n]
			for ; at < stop; at += bytes {
				sizes = append(sizes, sizes[len(sizes)-tokens:]...)
			}
			return sizes, stop
		}
		at -= int(sizes[n-1])
	}
	return sizes, end
}

// period returns how many tokens before the last one of text[:end] the same token occurs,
// at most maxPeriod, and how many bytes; 0 if it does not.
func period(sizes []uint8, text string, end int) (tokens, bytes int) {
	last := int(sizes[len(sizes)-1])
	for n := len(sizes) - 1; n > 0 && tokens < maxPeriod; n-- {
		tokens, bytes = tokens+1, bytes+int(sizes[n])
		if int(sizes[n-1]) == last && text[end-bytes-last:end-bytes] == text[end-last:end] {
			return tokens, bytes
		}
	}
	return 0, 0
}

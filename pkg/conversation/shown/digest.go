package shown

import (
	"crypto/sha256"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/cache"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// digest is a SHA-256.
type digest [sha256.Size]byte

// Extend returns the digest of the messages of a digest, empty for none, followed by more.
// The digest of n messages as they are sent is h(n), with
// h(i) = SHA-256(h(i-1) ‖ SHA-256(message i)), h(0) = 32 zero bytes, and messages in the
// deterministic binary form of Protocol Buffers. So the digest of a request that has grown
// at its end follows from that of the former one.
func Extend(of []byte, more ...*harnessv1.Message) []byte {
	var h digest
	copy(h[:], of)
	for _, m := range more {
		h, _ = h.followedBy(m)
	}
	return h[:]
}

// followedBy returns the digest of the messages of h and one more, and the size of that.
func (h digest) followedBy(m *harnessv1.Message) (next digest, size int) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		data = nil // a message with invalid UTF-8, which no record can hold
	}
	var pair [2 * sha256.Size]byte
	sum := sha256.Sum256(data)
	copy(pair[:], h[:])
	copy(pair[sha256.Size:], sum[:])
	return sha256.Sum256(pair[:]), len(data)
}

// Digests makes digests of the requests of runs. It keeps the newest request of each run, so
// that only messages that differ from its own are read. It is safe for concurrent use.
type Digests struct {
	requests *cache.Cache[incarnation, *request]
}

// incarnation identifies a run: a deleted run may be started again under its name.
type incarnation struct {
	run   runlog.Run
	first uint64
}

// request has the messages of the newest request of a run.
type request struct {
	messages []requestMessage
	bytes    int
}

// requestMessage is a message, its size, and the digest of the request up to it.
type requestMessage struct {
	message *harnessv1.Message
	bytes   int
	upTo    digest
}

// NewDigests returns Digests that keep requests of up to limit bytes in memory, and one in
// any case.
func NewDigests(limit int) *Digests {
	return &Digests{requests: cache.New[incarnation, *request](limit)}
}

// Of returns the digest of the messages of a request, as Extend does. first is the stream
// sequence of the run's first record. The messages must not change later.
func (d *Digests) Of(run runlog.Run, first uint64, messages []*harnessv1.Message) []byte {
	of := incarnation{run, first}
	s, ok := d.requests.Take(of) // so that only one caller changes it
	if !ok {
		s = &request{}
	}
	h := s.update(messages)
	d.requests.Add(of, s, s.bytes)
	return h[:]
}

// update makes messages the newest request and returns its digest.
func (s *request) update(messages []*harnessv1.Message) digest {
	var h digest
	same := true // the digests up to here are those of the former request
	for i, m := range messages {
		if i == len(s.messages) {
			s.messages = append(s.messages, requestMessage{})
			s.bytes += entryBytes
			same = false
		}
		at := &s.messages[i]
		if same && at.message == m {
			h = at.upTo
			continue
		}
		next, size := h.followedBy(m)
		same = same && next == at.upTo // an equal message
		s.bytes += size - at.bytes
		*at, h = requestMessage{m, size, next}, next
	}
	for _, gone := range s.messages[len(messages):] {
		s.bytes -= gone.bytes + entryBytes
	}
	clear(s.messages[len(messages):])
	s.messages = s.messages[:len(messages)]
	return h
}

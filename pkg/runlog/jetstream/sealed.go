package jetstream

import (
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// headerSeal is the header with the seal of an input.
const headerSeal = "Hm-Seal"

// Sealer seals inputs; see package seal. Its methods are called concurrently.
type Sealer interface {
	// Seal returns the seal of an input of a run, as it is stored; empty without a key.
	Seal(run runlog.Run, stored []byte) string
	// Valid reports whether the seal is valid, or seals are not required.
	Valid(run runlog.Run, stored []byte, seal string) bool
}

// sealInput adds the seal of an input to its message.
func (l *Log) sealInput(run runlog.Run, msg *nats.Msg) {
	if l.seal == nil {
		return
	}
	if s := l.seal.Seal(run, msg.Data); s != "" {
		msg.Header[headerSeal] = []string{s}
	}
}

// unsealed reports whether an input that was read lacks a valid seal. prev is the sequence of the
// input before it according to its content, which is sealed. The fence is not, but the server has
// checked it, so a sealed input that was copied to another place differs from its fence.
func (l *Log) unsealed(run runlog.Run, m *nats.Msg, prev uint64) bool {
	if l.seal == nil {
		return false
	}
	fence := single(m.Header[jetstream.ExpectedLastSubjSeqHeader])
	s := single(m.Header[headerSeal])
	if s != "" && fence != strconv.FormatUint(prev, 10) {
		s = ""
	}
	return !l.seal.Valid(run, m.Data, s)
}

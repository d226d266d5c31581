package runstate

import (
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Parts of a snapshot of at least this many encoded bytes are stored in a blob, and
// the snapshot refers to it. The limit is lower for parts that never change, because
// every step would carry them.
const (
	packChanging = 3 << 10
	packStatic   = 512
)

// storable is a part of a snapshot that can be stored in a blob.
type storable interface {
	proto.Message
	GetStored() *harnessv1.Content
}

// visitParts calls visit for each part of s that is set and can be stored in a blob,
// with the size from which on it is.
func visitParts(s *harnessv1.Snapshot, visit func(part storable, limit int) error) error {
	if s.GetWorkItemLedger() != nil {
		if err := visit(s.GetWorkItemLedger(), packChanging); err != nil {
			return err
		}
	}
	if s.GetCoverageLedger() != nil {
		if err := visit(s.GetCoverageLedger(), packChanging); err != nil {
			return err
		}
	}
	if s.GetTaskContract() != nil {
		if err := visit(s.GetTaskContract(), packStatic); err != nil {
			return err
		}
	}
	if s.GetDefinition() != nil {
		return visit(s.GetDefinition(), packStatic)
	}
	return nil
}

// Pack stores large parts of s through put and replaces them with references. A
// part that is already stored and unchanged is not stored again. It changes s, but
// not the parts, which may be shared.
func Pack(s *harnessv1.Snapshot, put func([]byte) (*harnessv1.BlobRef, error)) error {
	if text := s.GetGoal().GetInline(); text != "" {
		ref, err := put([]byte(text))
		if err != nil {
			return err
		}
		s.Goal = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: ref.GetDigest(), Size: ref.GetSize()}}}
	}
	return visitParts(s, func(part storable, limit int) error {
		stored := part.GetStored()
		if stored == nil {
			if proto.Size(part) < limit {
				return nil
			}
			data, err := proto.MarshalOptions{Deterministic: true}.Marshal(part)
			if err != nil {
				return err
			}
			ref, err := put(data)
			if err != nil {
				return err
			}
			stored = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: ref.GetDigest(), Size: ref.GetSize()}}}
		}
		switch part.(type) {
		case *harnessv1.WorkItemLedger:
			s.WorkItemLedger = &harnessv1.WorkItemLedger{Stored: stored}
		case *harnessv1.CoverageLedger:
			s.CoverageLedger = &harnessv1.CoverageLedger{Stored: stored}
		case *harnessv1.TaskContract:
			s.TaskContract = &harnessv1.TaskContract{Stored: stored}
		case *harnessv1.Definition:
			s.Definition = &harnessv1.Definition{Stored: stored}
		}
		return nil
	})
}

// Clone returns a deep copy of s. Parts that are stored in a blob are shared and
// must not be changed: OwnLedger and OwnCoverage return copies of them.
func Clone(s *harnessv1.Snapshot) *harnessv1.Snapshot {
	if s == nil {
		return nil
	}
	ledger, coverage := s.GetWorkItemLedger(), s.GetCoverageLedger()
	if ledger.GetStored() == nil && coverage.GetStored() == nil {
		return proto.CloneOf(s)
	}
	shallow := &harnessv1.Snapshot{}
	s.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		shallow.ProtoReflect().Set(f, v)
		return true
	})
	if ledger.GetStored() != nil {
		shallow.WorkItemLedger = nil
	}
	if coverage.GetStored() != nil {
		shallow.CoverageLedger = nil
	}
	clone := proto.CloneOf(shallow)
	if ledger.GetStored() != nil {
		clone.WorkItemLedger = ledger
	}
	if coverage.GetStored() != nil {
		clone.CoverageLedger = coverage
	}
	return clone
}

// OwnLedger returns the work items of s for the caller to change: a ledger that is
// stored in a blob is replaced by a copy of it. It changes s.
func OwnLedger(s *harnessv1.Snapshot) *harnessv1.WorkItemLedger {
	switch {
	case s.GetWorkItemLedger() == nil:
		s.WorkItemLedger = &harnessv1.WorkItemLedger{}
	case s.GetWorkItemLedger().GetStored() != nil:
		s.WorkItemLedger = proto.CloneOf(s.GetWorkItemLedger())
		s.WorkItemLedger.Stored = nil
	}
	return s.GetWorkItemLedger()
}

// OwnCoverage returns the coverage of the contract of s for the caller to change: a
// ledger that is stored in a blob is replaced by a copy of it. It changes s.
func OwnCoverage(s *harnessv1.Snapshot) *harnessv1.CoverageLedger {
	switch {
	case s.GetCoverageLedger() == nil:
		s.CoverageLedger = &harnessv1.CoverageLedger{}
	case s.GetCoverageLedger().GetStored() != nil:
		s.CoverageLedger = proto.CloneOf(s.GetCoverageLedger())
		s.CoverageLedger.Stored = nil
	}
	return s.GetCoverageLedger()
}

// HasPackedParts reports whether s holds a reference instead of a part.
func HasPackedParts(s *harnessv1.Snapshot) bool {
	packed := false
	_ = visitParts(s, func(part storable, _ int) error {
		packed = packed || isPacked(part)
		return nil
	})
	return packed
}

// isPacked reports whether a part holds only the reference to its blob.
func isPacked(part storable) bool {
	if part.GetStored() == nil {
		return false
	}
	filled := false
	part.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		filled = f.Name() != "stored"
		return !filled
	})
	return !filled
}

// Unpack replaces all references in s with the parts. get reads a blob. It changes
// s.
func Unpack(s *harnessv1.Snapshot, get func(*harnessv1.BlobRef) ([]byte, error)) error {
	return visitParts(s, func(part storable, _ int) error { return unpackPart(part, get) })
}

// Parts caches the work items and coverage of snapshots by digest, so that each blob
// is read once. Cached parts are shared and never changed. The zero value is ready
// for use.
type Parts struct {
	mu     sync.Mutex
	cached map[string]proto.Message
}

// maxParts bounds the cache. A full one is emptied.
const maxParts = 1024

// Unpack replaces the references to work items and coverage in s with the parts. get
// reads a blob. References to the contract and the definition stay: executors have
// them compiled. It changes s.
func (p *Parts) Unpack(s *harnessv1.Snapshot, get func(*harnessv1.BlobRef) ([]byte, error)) error {
	if l := s.GetWorkItemLedger(); l != nil && isPacked(l) {
		whole, err := load(p, l, get)
		if err != nil {
			return err
		}
		s.WorkItemLedger = whole
	}
	if c := s.GetCoverageLedger(); c != nil && isPacked(c) {
		whole, err := load(p, c, get)
		if err != nil {
			return err
		}
		s.CoverageLedger = whole
	}
	return nil
}

func load[T storable](p *Parts, part T, get func(*harnessv1.BlobRef) ([]byte, error)) (T, error) {
	digest := part.GetStored().GetBlob().GetDigest()
	p.mu.Lock()
	have, ok := p.cached[digest].(T)
	p.mu.Unlock()
	if ok && digest != "" {
		return have, nil
	}
	whole, err := UnpackPart(part, get)
	if err != nil {
		return whole, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cached == nil || len(p.cached) >= maxParts {
		p.cached = map[string]proto.Message{}
	}
	p.cached[digest] = whole
	return whole, nil
}

// HasPackedLedgers reports whether s holds a reference instead of its work items or
// its coverage.
func HasPackedLedgers(s SharedFields) bool {
	return s.GetWorkItemLedger() != nil && isPacked(s.GetWorkItemLedger()) || s.GetCoverageLedger() != nil && isPacked(s.GetCoverageLedger())
}

// UnpackPart returns a copy of a part, read through get if it is a reference.
func UnpackPart[T storable](part T, get func(*harnessv1.BlobRef) ([]byte, error)) (T, error) {
	whole := proto.CloneOf(part)
	return whole, unpackPart(whole, get)
}

func unpackPart(part storable, get func(*harnessv1.BlobRef) ([]byte, error)) error {
	stored := part.GetStored()
	if !isPacked(part) {
		return nil
	}
	data := []byte(stored.GetInline())
	if ref := stored.GetBlob(); ref != nil {
		var err error
		if data, err = get(ref); err != nil {
			return err
		}
	}
	if err := proto.Unmarshal(data, part); err != nil {
		return err
	}
	setStored(part, stored)
	return nil
}

func setStored(part storable, stored *harnessv1.Content) {
	switch p := part.(type) {
	case *harnessv1.WorkItemLedger:
		p.Stored = stored
	case *harnessv1.CoverageLedger:
		p.Stored = stored
	case *harnessv1.TaskContract:
		p.Stored = stored
	case *harnessv1.Definition:
		p.Stored = stored
	}
}

// Digest returns the digest of a part, stored in a blob or not; empty for none.
func Digest(part storable) string {
	if !part.ProtoReflect().IsValid() {
		return ""
	}
	if digest := part.GetStored().GetBlob().GetDigest(); digest != "" {
		return digest
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(part)
	if err != nil {
		return ""
	}
	return content.Digest(data)
}

// UnpackLedgers is Parts.Unpack without a cache.
func UnpackLedgers(s *harnessv1.Snapshot, get func(*harnessv1.BlobRef) ([]byte, error)) error {
	return new(Parts).Unpack(s, get)
}

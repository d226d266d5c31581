package runstate

import (
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Parts of a snapshot from so many encoded bytes on are stored in a blob, and a
// reference travels: those that never change from fewer on, because they would be
// sent with every step.
const (
	packChanging = 3 << 10
	packStatic   = 512
)

// sectioned is a part of a snapshot that can be stored elsewhere.
type sectioned interface {
	proto.Message
	GetStored() *harnessv1.Content
}

// sections are the parts of s that can be stored elsewhere, with the size from
// which on they are. Unset ones are left out.
func sections(s *harnessv1.Snapshot, visit func(part sectioned, limit int) error) error {
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

// Pack stores large parts of s through put and leaves references in their place.
// What was stored before and has not changed is not stored again. It changes s, and
// not the parts: they may be shared.
func Pack(s *harnessv1.Snapshot, put func([]byte) (*harnessv1.BlobRef, error)) error {
	if text := s.GetGoal().GetInline(); text != "" {
		ref, err := put([]byte(text))
		if err != nil {
			return err
		}
		s.Goal = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: ref.GetDigest(), Size: ref.GetSize()}}}
	}
	return sections(s, func(part sectioned, limit int) error {
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

// Clone is a deep copy of s, but for the parts that are stored elsewhere: those are
// shared, and never changed. Ledger and CoverageOf make them one's own.
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

// Ledger is the work of s, to be changed: one's own, and no longer what is stored.
func Ledger(s *harnessv1.Snapshot) *harnessv1.WorkItemLedger {
	switch {
	case s.GetWorkItemLedger() == nil:
		s.WorkItemLedger = &harnessv1.WorkItemLedger{}
	case s.GetWorkItemLedger().GetStored() != nil:
		s.WorkItemLedger = proto.CloneOf(s.GetWorkItemLedger())
		s.WorkItemLedger.Stored = nil
	}
	return s.GetWorkItemLedger()
}

// CoverageOf is how the contract of s stands, to be changed: one's own, and no longer
// what is stored.
func CoverageOf(s *harnessv1.Snapshot) *harnessv1.CoverageLedger {
	switch {
	case s.GetCoverageLedger() == nil:
		s.CoverageLedger = &harnessv1.CoverageLedger{}
	case s.GetCoverageLedger().GetStored() != nil:
		s.CoverageLedger = proto.CloneOf(s.GetCoverageLedger())
		s.CoverageLedger.Stored = nil
	}
	return s.GetCoverageLedger()
}

// Packed says whether a part of s is stored elsewhere.
func Packed(s *harnessv1.Snapshot) bool {
	packed := false
	_ = sections(s, func(part sectioned, _ int) error {
		packed = packed || isPacked(part)
		return nil
	})
	return packed
}

// isPacked says that a part holds nothing but the reference to where it is.
func isPacked(part sectioned) bool {
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

// Unpack puts back all parts of s that are stored elsewhere; get reads a blob. It
// changes s.
func Unpack(s *harnessv1.Snapshot, get func(*harnessv1.BlobRef) ([]byte, error)) error {
	return sections(s, func(part sectioned, _ int) error { return unpackSection(part, get) })
}

// Parts keeps the parts of snapshots that are stored elsewhere and change in a run, by
// digest, so that each is read once. What it gives is shared and never changed. Its
// zero value is ready for use.
type Parts struct {
	mu   sync.Mutex
	kept map[string]proto.Message
}

// maxParts bounds the parts that are kept.
const maxParts = 1024

// Unpack puts work items and coverage of s in place where they are stored elsewhere;
// get reads a blob. It changes s. Contract and definition stay references: executors
// have them compiled.
func (p *Parts) Unpack(s *harnessv1.Snapshot, get func(*harnessv1.BlobRef) ([]byte, error)) error {
	if l := s.GetWorkItemLedger(); l != nil && isPacked(l) {
		whole, err := keep(p, l, get)
		if err != nil {
			return err
		}
		s.WorkItemLedger = whole
	}
	if c := s.GetCoverageLedger(); c != nil && isPacked(c) {
		whole, err := keep(p, c, get)
		if err != nil {
			return err
		}
		s.CoverageLedger = whole
	}
	return nil
}

func keep[T sectioned](p *Parts, part T, get func(*harnessv1.BlobRef) ([]byte, error)) (T, error) {
	digest := part.GetStored().GetBlob().GetDigest()
	p.mu.Lock()
	have, ok := p.kept[digest].(T)
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
	if p.kept == nil || len(p.kept) >= maxParts {
		p.kept = map[string]proto.Message{} // rare, and cheap to make again
	}
	p.kept[digest] = whole
	return whole, nil
}

// ChangingPacked says whether a part of s that changes in a run is stored elsewhere.
func ChangingPacked(s *harnessv1.Snapshot) bool {
	return s.GetWorkItemLedger() != nil && isPacked(s.GetWorkItemLedger()) || s.GetCoverageLedger() != nil && isPacked(s.GetCoverageLedger())
}

// UnpackPart returns a part as it is stored elsewhere, or as it is.
func UnpackPart[T sectioned](part T, get func(*harnessv1.BlobRef) ([]byte, error)) (T, error) {
	whole := proto.CloneOf(part)
	return whole, unpackSection(whole, get)
}

func unpackSection(part sectioned, get func(*harnessv1.BlobRef) ([]byte, error)) error {
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

func setStored(part sectioned, stored *harnessv1.Content) {
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

// Digest names what a part holds, wherever it is stored; empty for none.
func Digest(part sectioned) string {
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

// UnpackChanging is Parts.Unpack without anything kept.
func UnpackChanging(s *harnessv1.Snapshot, get func(*harnessv1.BlobRef) ([]byte, error)) error {
	return new(Parts).Unpack(s, get)
}

package runlog

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Appendable returns an error if no log of run can hold the record.
func Appendable(run Run, rec *harnessv1.Record) error {
	switch {
	case !run.Valid():
		return fmt.Errorf("run %q has an invalid name", run)
	case rec.GetStep() == nil && rec.GetJournal() == nil:
		return errors.New("the record has no body")
	case rec.GetStep() != nil && !Name.MatchString(rec.GetStep().GetTo()):
		return fmt.Errorf("step to %q: invalid executor name", rec.GetStep().GetTo())
	case rec.GetVersion() == 0, (rec.GetVersion() == 1) != (rec.GetPrevSequence() == 0):
		return fmt.Errorf("version %d cannot follow sequence %d", rec.GetVersion(), rec.GetPrevSequence())
	}
	return nil
}

// Encode returns the stored form of a record. It is deterministic: equal records have
// equal bytes. It returns ErrTooLarge above MaxRecord.
func Encode(rec *harnessv1.Record) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(rec)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	if len(data) > MaxRecord {
		return nil, fmt.Errorf("record of %d bytes exceeds the limit of %d: %w", len(data), MaxRecord, ErrTooLarge)
	}
	return data, nil
}

// Decode decodes a stored record. It returns ErrSchemaTooNew, and no record, for a
// newer schema.
func Decode(data []byte, header Header) (*harnessv1.Record, error) {
	if header.Schema > Schema {
		return nil, fmt.Errorf("schema %d, this program reads up to %d: %w", header.Schema, Schema, ErrSchemaTooNew)
	}
	rec := &harnessv1.Record{}
	if err := proto.Unmarshal(data, rec); err != nil {
		return nil, fmt.Errorf("decode record: %w", err)
	}
	if rec.GetSchema() != header.Schema {
		return nil, fmt.Errorf("record has schema %d, its header %d", rec.GetSchema(), header.Schema)
	}
	if rec.GetVersion() != header.Version {
		return nil, fmt.Errorf("record has version %d, its header %d", rec.GetVersion(), header.Version)
	}
	return rec, nil
}

func HeaderOf(rec *harnessv1.Record) Header {
	return Header{
		Version:     rec.GetVersion(),
		Schema:      rec.GetSchema(),
		InboxCursor: rec.GetStep().GetSnapshot().GetInboxCursor(),
	}
}

// Spill moves contents of rec to blobs until it fits: all contents above MaxInline,
// then the largest first until the record is within half of MaxRecord. It calls put for
// each and modifies rec, which must not be shared.
func Spill(ctx context.Context, rec *harnessv1.Record, put func(ctx context.Context, data []byte) (*harnessv1.BlobRef, error)) error {
	if proto.Size(rec) <= MaxInline {
		return nil
	}
	return spill(ctx, rec, MaxInline, MaxRecord/2, put)
}

// SpillTo moves the largest contents of a message to blobs until it has at most target
// bytes or no content above content.MaxPreview.
func SpillTo(ctx context.Context, m proto.Message, target int, put func(ctx context.Context, data []byte) (*harnessv1.BlobRef, error)) error {
	return spill(ctx, m, MaxRecord, target, put)
}

func spill(ctx context.Context, m proto.Message, inline, target int, put func(ctx context.Context, data []byte) (*harnessv1.BlobRef, error)) error {
	size := proto.Size(m)
	var values []spillable
	collect(m.ProtoReflect(), &values)
	sort.SliceStable(values, func(i, j int) bool { return values[i].length() > values[j].length() })
	saved := 0
	for _, v := range values {
		if v.spilled() {
			size -= saved // the same content in two fields, moved with the first
			continue
		}
		length := v.length()
		if length <= inline && (size <= target || length <= content.MaxPreview) {
			break
		}
		ref, err := put(ctx, v.bytes())
		if err != nil {
			return fmt.Errorf("spill %d bytes: %w", length, err)
		}
		v.spill(ref)
		saved = length - proto.Size(ref)
		size -= saved
	}
	return nil
}

// spillable is a value of a record that can be moved to a blob.
type spillable interface {
	length() int
	bytes() []byte
	spilled() bool
	spill(ref *harnessv1.BlobRef)
}

type spillableContent struct{ *harnessv1.Content }

func (c spillableContent) length() int   { return len(c.GetInline()) }
func (c spillableContent) bytes() []byte { return []byte(c.GetInline()) }
func (c spillableContent) spilled() bool { return c.GetBlob() != nil }

func (c spillableContent) spill(ref *harnessv1.BlobRef) {
	c.Value = &harnessv1.Content_Blob{Blob: ref}
}

// spillableOpaque is moved to a blob without a preview: its bytes appear nowhere else.
type spillableOpaque struct{ *harnessv1.Opaque }

func (o spillableOpaque) length() int   { return len(o.GetInline()) }
func (o spillableOpaque) bytes() []byte { return o.GetInline() }
func (o spillableOpaque) spilled() bool { return o.GetBlob() != nil }

func (o spillableOpaque) spill(ref *harnessv1.BlobRef) {
	o.Value = &harnessv1.Opaque_Blob{Blob: &harnessv1.BlobRef{Digest: ref.GetDigest(), Size: ref.GetSize()}}
}

// Bounds of Shrink.
const (
	shrunkInline  = 256
	shrunkPreview = 96
)

// Shrink is the last resort after SpillTo: it moves every content above 256 bytes to a
// blob and shortens previews to 96 bytes.
func Shrink(ctx context.Context, m proto.Message, put func(ctx context.Context, data []byte) (*harnessv1.BlobRef, error)) error {
	if err := spill(ctx, m, shrunkInline, proto.Size(m), put); err != nil {
		return err
	}
	shorten(m.ProtoReflect())
	return nil
}

func shorten(m protoreflect.Message) {
	if ref, ok := m.Interface().(*harnessv1.BlobRef); ok {
		ref.Preview = content.Cut(ref.GetPreview(), shrunkPreview)
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil || fd.IsMap():
		case fd.IsList():
			for i := range v.List().Len() {
				shorten(v.List().Get(i).Message())
			}
		default:
			shorten(v.Message())
		}
		return true
	})
}

func collect(m protoreflect.Message, into *[]spillable) {
	switch v := m.Interface().(type) {
	case *harnessv1.Content:
		if v.GetInline() != "" {
			*into = append(*into, spillableContent{v})
		}
		return
	case *harnessv1.Opaque:
		if len(v.GetInline()) > 0 {
			*into = append(*into, spillableOpaque{v})
		}
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil || fd.IsMap():
		case fd.IsList():
			for i := range v.List().Len() {
				collect(v.List().Get(i).Message(), into)
			}
		default:
			collect(v.Message(), into)
		}
		return true
	})
}

package runlog

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// With -update the missing files of the current schema are written. Those of a release
// are never rewritten: they must always load.
var update = flag.Bool("update", false, "write missing files of the current schema to testdata/compat")

// everything returns a record in which every field is set, with one alternative of each
// oneof.
func everything() *harnessv1.Record {
	rec := &harnessv1.Record{}
	fill(rec.ProtoReflect(), 0)
	rec.Version, rec.Schema, rec.PrevSequence = 7, Schema, 41
	rec.GetStep().Snapshot.InboxCursor = 40
	return rec
}

// fill sets the fields of m, to a bounded depth of messages that contain themselves.
func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if o := fd.ContainingOneof(); o != nil && m.WhichOneof(o) != nil {
			continue // the first alternative has been chosen
		}
		switch {
		case fd.IsMap():
		case fd.Message() != nil && depth > 8:
		case fd.IsList() && fd.Message() != nil:
			fill(m.Mutable(fd).List().AppendMutable().Message(), depth+1)
		case fd.IsList():
			m.Mutable(fd).List().Append(scalar(fd))
		case fd.Message() != nil:
			fill(m.Mutable(fd).Message(), depth+1)
		default:
			m.Set(fd, scalar(fd))
		}
	}
}

func scalar(fd protoreflect.FieldDescriptor) protoreflect.Value {
	n := int64(fd.Number())
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(fd.Name()))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(fd.Name()))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n) / 4)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n) / 4)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	default:
		return protoreflect.ValueOfInt64(n)
	}
}

// journal returns a record of the other kind.
func journal() *harnessv1.Record {
	rec := everything()
	body := &harnessv1.Journal{}
	fill(body.ProtoReflect(), 0)
	rec.Body = &harnessv1.Record_Journal{Journal: body}
	return rec
}

// TestCompat decodes the bytes of records and inbox items that earlier programs stored,
// and compares them with their content.
func TestCompat(t *testing.T) {
	dir := filepath.Join("testdata", "compat")
	if *update {
		item := &harnessv1.InboxItem{}
		fill(item.ProtoReflect(), 0)
		for name, m := range map[string]proto.Message{"step": everything(), "journal": journal(), "inbox": item} {
			write(t, filepath.Join(dir, fmt.Sprintf("%s-%d", name, Schema)), m)
		}
	}
	stored, err := filepath.Glob(filepath.Join(dir, "*.bin"))
	if err != nil || len(stored) < 3 {
		t.Fatalf("%d stored files (%v)", len(stored), err)
	}
	for _, file := range stored {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file[:len(file)-len(".bin")] + ".txtpb")
			if err != nil {
				t.Fatal(err)
			}
			if bytes.HasPrefix([]byte(filepath.Base(file)), []byte("inbox")) {
				got, want := &harnessv1.InboxItem{}, &harnessv1.InboxItem{}
				if err := proto.Unmarshal(data, got); err != nil {
					t.Fatal(err)
				}
				compare(t, got, want, text)
				return
			}
			want := &harnessv1.Record{}
			if err := prototext.Unmarshal(text, want); err != nil {
				t.Fatal(err)
			}
			got, err := Decode(data, HeaderOf(want))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, got, want, text)
		})
	}
}

func compare(t *testing.T, got, want proto.Message, text []byte) {
	t.Helper()
	if err := prototext.Unmarshal(text, want); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("the stored bytes say\n%s\nand said\n%s", prototext.Format(got), prototext.Format(want))
	}
	if unknown(got.ProtoReflect()) {
		t.Error("the stored bytes have fields that this program does not know")
	}
}

// unknown reports whether m has fields that the program does not know.
func unknown(m protoreflect.Message) bool {
	found := len(m.GetUnknown()) > 0
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil || fd.IsMap():
		case fd.IsList():
			for i := range v.List().Len() {
				found = found || unknown(v.List().Get(i).Message())
			}
		default:
			found = found || unknown(v.Message())
		}
		return !found
	})
	return found
}

func write(t *testing.T, name string, m proto.Message) {
	t.Helper()
	if _, err := os.Stat(name + ".bin"); err == nil {
		return
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	text, err := prototext.MarshalOptions{Multiline: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	for ext, content := range map[string][]byte{".bin": data, ".txtpb": text} {
		if err := os.WriteFile(name+ext, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

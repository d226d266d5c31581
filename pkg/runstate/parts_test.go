package runstate_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// blobs is a store that counts the blobs put into it.
type blobs struct {
	held map[string][]byte
	puts int
	gets int
}

func (b *blobs) put(data []byte) (*harnessv1.BlobRef, error) {
	if b.held == nil {
		b.held = map[string][]byte{}
	}
	b.puts++
	ref := content.Ref(data)
	b.held[ref.GetDigest()] = append([]byte(nil), data...)
	return ref, nil
}

func (b *blobs) get(ref *harnessv1.BlobRef) ([]byte, error) {
	b.gets++
	data, ok := b.held[ref.GetDigest()]
	if !ok {
		return nil, errors.New("no such blob")
	}
	return data, nil
}

// sectioned draws a snapshot with each part absent, small or large.
func sectioned(t *rapid.T) *harnessv1.Snapshot {
	text := func(name string) string { return strings.Repeat("x", rapid.IntRange(0, 200).Draw(t, name)) }
	many := func(name string) int { return rapid.SampledFrom([]int{0, 1, 3, 40}).Draw(t, name) }
	s := &harnessv1.Snapshot{TurnCount: rapid.Uint32Range(0, 9).Draw(t, "turns"), GoalPreview: text("goal")}
	if rapid.Bool().Draw(t, "has items") {
		s.WorkItemLedger = &harnessv1.WorkItemLedger{LastNumber: 7}
		for range many("items") {
			s.WorkItemLedger.Items = append(s.WorkItemLedger.Items, &harnessv1.WorkItem{Id: "w", Title: text("title"), Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE})
		}
	}
	if rapid.Bool().Draw(t, "has coverage") {
		s.CoverageLedger = &harnessv1.CoverageLedger{TurnNumber: 3, Coverage: &harnessv1.Coverage{Met: 1, Total: 2}}
		for range many("requirements") {
			s.CoverageLedger.Requirements = append(s.CoverageLedger.Requirements, &harnessv1.RequirementCoverage{RequirementId: "r", Why: text("why"), Confidence: 0.5})
		}
	}
	if rapid.Bool().Draw(t, "has a contract") {
		s.TaskContract = &harnessv1.TaskContract{Goal: text("contract"), Acceptability: &harnessv1.Acceptability{MaxUnknowns: proto.Uint32(0)}}
	}
	if rapid.Bool().Draw(t, "has a definition") {
		s.Definition = &harnessv1.Definition{Jit: []*harnessv1.JitRule{{Id: "j", When: "true", Text: text("rule")}}}
		for range many("hooks") {
			s.Definition.Hooks = append(s.Definition.Hooks, &harnessv1.Hook{Id: "h", Cel: text("cel")})
		}
	}
	return s
}

// bare returns s without the references to its parts.
func bare(s *harnessv1.Snapshot) *harnessv1.Snapshot {
	s = proto.CloneOf(s)
	if s.WorkItemLedger != nil {
		s.WorkItemLedger.Stored = nil
	}
	if s.CoverageLedger != nil {
		s.CoverageLedger.Stored = nil
	}
	if s.TaskContract != nil {
		s.TaskContract.Stored = nil
	}
	if s.Definition != nil {
		s.Definition.Stored = nil
	}
	return s
}

func pack(t errorReporter, s *harnessv1.Snapshot, b *blobs) *harnessv1.Snapshot {
	t.Helper()
	s = runstate.Clone(s)
	if err := runstate.Pack(s, b.put); err != nil {
		t.Fatal(err)
	}
	return s
}

type errorReporter interface {
	Helper()
	Fatal(...any)
}

// TestWhatIsPackedComesBack whole, is small while it travels, and is not stored again
// as long as it does not change.
func TestWhatIsPackedComesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, store := sectioned(rt), &blobs{}
		before := proto.CloneOf(s)
		packed := pack(rt, s, store)
		if !proto.Equal(s, before) {
			rt.Fatal("packing a clone changed what it was made of")
		}
		if size := proto.Size(packed) - len(s.GetGoalPreview()); size > 2*(3<<10)+2*512+100 {
			rt.Fatal("packed to", size)
		}
		whole := proto.CloneOf(packed)
		if err := runstate.Unpack(whole, store.get); err != nil {
			rt.Fatal(err)
		}
		if !proto.Equal(bare(whole), before) || runstate.HasPackedParts(whole) {
			rt.Fatal("came back as", whole)
		}
		if (store.puts > 0) != runstate.HasPackedParts(packed) {
			rt.Fatal(store.puts, "parts were stored of", packed)
		}
		puts := store.puts
		for _, again := range []*harnessv1.Snapshot{packed, whole} {
			if got := pack(rt, again, store); !proto.Equal(got, packed) || store.puts != puts {
				rt.Fatal("what has not changed was stored again")
			}
		}
	})
}

// TestAChangedPartIsStoredAgain and leaves the part that it was copied from unchanged.
func TestAChangedPartIsStoredAgain(t *testing.T) {
	long := strings.Repeat("x", 4<<10)
	for name, c := range map[string]struct {
		part   *harnessv1.Snapshot
		change func(*harnessv1.Snapshot)
	}{
		"work items": {
			&harnessv1.Snapshot{WorkItemLedger: &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{{Id: "w1", Notes: long}}}},
			func(s *harnessv1.Snapshot) { runstate.OwnLedger(s).Items[0].Title = "another" },
		},
		"coverage": {
			&harnessv1.Snapshot{CoverageLedger: &harnessv1.CoverageLedger{Requirements: []*harnessv1.RequirementCoverage{{RequirementId: "r", Why: long}}}},
			func(s *harnessv1.Snapshot) { runstate.OwnCoverage(s).Requirements[0].Unknown = true },
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, parts := &blobs{}, &runstate.Parts{}
			packed := pack(t, c.part, store)
			shared := proto.CloneOf(packed)
			if err := parts.Unpack(shared, store.get); err != nil {
				t.Fatal(err)
			}
			kept := proto.CloneOf(shared)
			s := runstate.Clone(shared)
			c.change(s)
			if !proto.Equal(shared, kept) {
				t.Error("a change of a clone changed what others share")
			}
			again := pack(t, s, store)
			if store.puts != 2 || proto.Equal(again, packed) {
				t.Errorf("stored %d times, packed as %v", store.puts, again)
			}
			if err := parts.Unpack(again, store.get); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(bare(again), bare(s)) {
				t.Errorf("came back as %v", again)
			}
		})
	}
}

// TestPartsAreReadOnce: what changes in a run and not what its executors have compiled.
func TestPartsAreReadOnce(t *testing.T) {
	long := strings.Repeat("x", 4<<10)
	store, parts := &blobs{}, &runstate.Parts{}
	packed := pack(t, &harnessv1.Snapshot{
		WorkItemLedger: &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{{Id: "w1", Notes: long}}},
		CoverageLedger: &harnessv1.CoverageLedger{Requirements: []*harnessv1.RequirementCoverage{{RequirementId: "r", Why: long}}},
		TaskContract:   &harnessv1.TaskContract{Goal: long}, Definition: &harnessv1.Definition{Jit: []*harnessv1.JitRule{{Text: long}}},
	}, store)
	if store.puts != 4 || !runstate.HasPackedLedgers(packed) {
		t.Fatalf("%d parts were stored: %v", store.puts, packed)
	}
	for range 3 {
		s := proto.CloneOf(packed)
		if err := parts.Unpack(s, store.get); err != nil {
			t.Fatal(err)
		}
		if store.gets != 2 || runstate.HasPackedLedgers(s) || !runstate.HasPackedParts(s) || s.GetTaskContract().GetGoal() != "" || s.GetDefinition().GetJit() != nil {
			t.Fatalf("read %d times: %v", store.gets, s)
		}
	}
}

// TestPartsOfEqualBytesAreDistinguished: a ledger and a coverage may be encoded alike.
func TestPartsOfEqualBytesAreDistinguished(t *testing.T) {
	long := strings.Repeat("x", 4<<10)
	s := &harnessv1.Snapshot{
		WorkItemLedger: &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{{Notes: long}}},
		CoverageLedger: &harnessv1.CoverageLedger{Requirements: []*harnessv1.RequirementCoverage{{Why: long}}},
	}
	store, parts := &blobs{}, &runstate.Parts{}
	packed := pack(t, s, store)
	if len(store.held) != 1 {
		t.Fatalf("%d different blobs: the test needs parts that are encoded alike", len(store.held))
	}
	for range 2 {
		got := proto.CloneOf(packed)
		if err := parts.Unpack(got, store.get); err != nil || !proto.Equal(bare(got), s) {
			t.Errorf("came back as %v, %v", got, err)
		}
	}
}

// TestPartsThatCannotBeStoredOrRead leave an error.
func TestPartsThatCannotBeStoredOrRead(t *testing.T) {
	away := errors.New("away")
	s := &harnessv1.Snapshot{WorkItemLedger: &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{{Notes: strings.Repeat("x", 4<<10)}}}}
	if err := runstate.Pack(proto.CloneOf(s), func([]byte) (*harnessv1.BlobRef, error) { return nil, away }); !errors.Is(err, away) {
		t.Errorf("packing: %v", err)
	}
	packed := pack(t, s, &blobs{})
	read := map[string]func(*harnessv1.Snapshot, func(*harnessv1.BlobRef) ([]byte, error)) error{
		"unpack": runstate.Unpack, "unpack changing": runstate.UnpackLedgers, "parts": new(runstate.Parts).Unpack,
	}
	for name, unpack := range read {
		if err := unpack(proto.CloneOf(packed), func(*harnessv1.BlobRef) ([]byte, error) { return nil, away }); !errors.Is(err, away) {
			t.Errorf("%s: %v", name, err)
		}
		if err := unpack(proto.CloneOf(packed), func(*harnessv1.BlobRef) ([]byte, error) { return []byte{0xff}, nil }); err == nil {
			t.Errorf("%s takes garbage", name)
		}
	}
}

// TestDigestsNameWhatAPartHolds, wherever it is.
func TestDigestsNameWhatAPartHolds(t *testing.T) {
	store := &blobs{}
	here := &harnessv1.Snapshot{Definition: &harnessv1.Definition{Jit: []*harnessv1.JitRule{{Text: strings.Repeat("x", 600)}}}}
	there := pack(t, here, store)
	other := &harnessv1.Definition{Jit: []*harnessv1.JitRule{{Text: "x"}}}
	var none *harnessv1.Definition
	if d := runstate.Digest(here.GetDefinition()); d == "" || d != runstate.Digest(there.GetDefinition()) || d == runstate.Digest(other) || runstate.Digest(none) != "" {
		t.Errorf("here %q, there %q, another %q, none %q", d, runstate.Digest(there.GetDefinition()), runstate.Digest(other), runstate.Digest(none))
	}
}

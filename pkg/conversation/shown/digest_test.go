package shown_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func said(texts ...string) []*harnessv1.Message {
	var messages []*harnessv1.Message
	for i, text := range texts {
		messages = append(messages, &harnessv1.Message{Id: uint64(i) + 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(text)})
	}
	return messages
}

// TestDigest computes the digest of two messages as it is defined.
func TestDigest(t *testing.T) {
	messages := said("a", "b")
	h := make([]byte, sha256.Size)
	for _, m := range messages {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		one := sha256.Sum256(data)
		both := sha256.Sum256(slices.Concat(h, one[:]))
		h = both[:]
	}
	if got := shown.Extend(nil, messages...); !bytes.Equal(got, h) {
		t.Errorf("got %x, want %x", got, h)
	}
	if got := shown.Extend(shown.Extend(nil, messages[0]), messages[1]); !bytes.Equal(got, h) {
		t.Errorf("extended: %x, want %x", got, h)
	}
	if got := shown.Extend(nil); !bytes.Equal(got, make([]byte, sha256.Size)) {
		t.Errorf("of nothing: %x", got)
	}
}

// TestDigestsOfAnyRequests sends requests that grow, shrink and change anywhere, of two runs
// and with hardly any memory or much, and compares each digest with that of Extend.
func TestDigestsOfAnyRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digests := shown.NewDigests(rapid.SampledFrom([]int{1, 3000, 1 << 20}).Draw(t, "limit"))
		requests := map[uint64][]*harnessv1.Message{}
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			first := rapid.Uint64Range(1, 2).Draw(t, "run")
			messages := append([]*harnessv1.Message(nil), requests[first]...)
			messages = messages[:rapid.IntRange(0, len(messages)).Draw(t, "kept")]
			if len(messages) > 0 {
				switch i := rapid.IntRange(0, len(messages)-1).Draw(t, "at"); rapid.SampledFrom([]string{"none", "equal", "other"}).Draw(t, "change") {
				case "equal":
					messages[i] = proto.CloneOf(messages[i])
				case "other":
					messages[i] = said(fmt.Sprint("other ", rapid.Int().Draw(t, "other")))[0]
				}
			}
			messages = append(messages, said(rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "more")...)...)
			requests[first] = messages
			if got, want := digests.Of(run, first, messages), shown.Extend(nil, messages...); !bytes.Equal(got, want) {
				t.Fatalf("got %x, want %x", got, want)
			}
		}
	})
}

// TestDigestsReadOnlyWhatIsNew changes messages that were read, which callers must not do:
// the digest remains that of before. An equal copy of one is read alone.
func TestDigestsReadOnlyWhatIsNew(t *testing.T) {
	digests := shown.NewDigests(1 << 20)
	messages := said("a", "b", "c")
	digests.Of(run, 1, messages)
	want := shown.Extend(nil, append(messages[:3:3], said("d")...)...)
	messages[1] = proto.CloneOf(messages[1])
	messages[0].Content, messages[2].Content = content.Inline("changed"), content.Inline("changed")
	if got := digests.Of(run, 1, append(messages, said("d")...)); !bytes.Equal(got, want) {
		t.Error("a message of the former request was read again")
	}
	for name, of := range map[string]func() []byte{
		"another run":         func() []byte { return digests.Of(runlog.Run{Namespace: "n", ID: "s"}, 1, messages) },
		"another incarnation": func() []byte { return digests.Of(run, 2, messages) },
	} {
		if got := of(); !bytes.Equal(got, shown.Extend(nil, messages...)) {
			t.Errorf("%s has the digest %x", name, got)
		}
	}
}

// TestDigestsAreBounded: with room for one request, that of another run drops it.
func TestDigestsAreBounded(t *testing.T) {
	digests := shown.NewDigests(6000)
	kept := func(first uint64) bool {
		messages := said(strings.Repeat("a", 3000))
		digests.Of(run, first, messages)
		digests.Of(run, 3-first, said(strings.Repeat("b", 3000)))
		before := shown.Extend(nil, messages...)
		messages[0].Content = content.Inline("changed")
		return bytes.Equal(digests.Of(run, first, messages), before)
	}
	if kept(1) {
		t.Error("two requests are kept in the room of one")
	}
	digests = shown.NewDigests(8000)
	if !kept(1) || !kept(2) {
		t.Error("two requests are not kept in the room of two")
	}
}

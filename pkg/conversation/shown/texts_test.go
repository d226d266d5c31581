package shown_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

const model = "openai:gpt-4o"

var run = runlog.Run{Namespace: "n", ID: "r"}

// store is the blobs of a run. It counts how often each is read.
type store struct {
	blobs map[string]string
	reads map[string]int
}

func newStore() *store { return &store{blobs: map[string]string{}, reads: map[string]int{}} }

func (s *store) put(text string) *harnessv1.Content {
	ref := content.Ref([]byte(text))
	s.blobs[ref.GetDigest()] = text
	return &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: ref}}
}

var errNone = errors.New("no such blob")

func (s *store) blob(_ context.Context, of runlog.Run, digest string) ([]byte, error) {
	text, ok := s.blobs[digest]
	if !ok || of != run {
		return nil, errNone
	}
	s.reads[digest]++
	return []byte(text), nil
}

func user(c *harnessv1.Content) *harnessv1.Message {
	return &harnessv1.Message{Id: 7, Role: harnessv1.Role_ROLE_USER, Content: c, Topic: "t"}
}

func result(c *harnessv1.Content) *harnessv1.Message {
	return &harnessv1.Message{
		Id: 8, Role: harnessv1.Role_ROLE_TOOL, Content: c, ToolCallId: "c", ToolName: "read_file", Durability: harnessv1.Durability_DURABILITY_REPLAYABLE,
	}
}

func call(arguments *harnessv1.Content) *harnessv1.Message {
	return &harnessv1.Message{
		Id: 9, Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("So."),
		ToolCalls: []*harnessv1.ToolCall{{Id: "c", Name: "write_file", Arguments: arguments}},
		Parts:     []*harnessv1.Part{{Kind: &harnessv1.Part_Text{Text: 3}}, {Kind: &harnessv1.Part_Call{}}},
	}
}

// show returns one message as it is sent.
func show(t *testing.T, s *store, limit uint32, refs bool, m *harnessv1.Message) *harnessv1.Message {
	t.Helper()
	before := proto.CloneOf(m)
	got, err := shown.New(s.blob, 1<<20).Messages(t.Context(), run, model, limit, refs, []*harnessv1.Message{m})
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(m, before) {
		t.Errorf("the message has changed to %v", m)
	}
	return got[0]
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d: %s\n", i, strings.Repeat("wörd ", i%7))
	}
	return b.String()
}

// TestResultsAreShortened shows results of all kinds of texts at several limits.
func TestResultsAreShortened(t *testing.T) {
	for name, text := range map[string]string{
		"lines": lines(4000), "one line": strings.Repeat("abc déf ", 20_000), "letters": strings.Repeat("a", 200_000), "spaces": strings.Repeat(" ", 1_000_000),
		"symbols": strings.Repeat("☃≈ç√∫", 20_000), "line breaks": strings.Repeat("\n", 100_000), "a dense head": strings.Repeat("q\x01z~", 5000) + strings.Repeat(" ", 500_000),
		"a dense tail": strings.Repeat(" ", 500_000) + strings.Repeat("q\x01z~", 5000),
	} {
		for _, limit := range []uint32{100, 3000} {
			t.Run(fmt.Sprint(name, " ", limit), func(t *testing.T) {
				got := show(t, newStore(), limit, true, result(content.Inline(text))).GetContent().GetInline()
				n := tokens.Count(model, got)
				if n > int(limit) || !utf8.ValidString(got) {
					t.Errorf("%d tokens are shown, at most %d may be", n, limit)
				}
				if got == text {
					if tokens.Count(model, text) > int(limit) {
						t.Error("the text was not shortened")
					}
					return
				}
				if n < int(limit)/3 && !strings.HasSuffix(text, "   ") { // a token has up to 128 spaces
					t.Errorf("only %d tokens are shown of %d", n, limit)
				}
				head, tail, found := strings.Cut(got, " bytes left out here; call read_artifact with ref m8 to read them]")
				at := strings.LastIndexByte(head, '[')
				if !found || at < 0 || !strings.HasPrefix(text, strings.TrimSuffix(head[:at], "\n")) || !strings.HasSuffix(text, strings.TrimPrefix(tail, "\n")) {
					t.Fatalf("it is not the head and the tail: %.80q … %q", got, got[max(0, len(got)-80):])
				}
				left := 0
				if _, err := fmt.Sscan(head[at+1:], &left); err != nil || left < len(text)-len(got) || left > len(text)-len(got)+len("[123456 bytes left out here; call read_artifact with ref m8 to read them]\n\n") {
					t.Errorf("%d bytes of %d are left out, %d are shown", left, len(text), len(got))
				}
			})
		}
	}
}

// TestShortTextsAreUnchanged: a text of the limit is whole, one of a token more is not.
func TestShortTextsAreUnchanged(t *testing.T) {
	text := strings.Repeat("word ", 200) + "end"
	n := uint32(tokens.Count(model, text))
	for limit, whole := range map[uint32]bool{n: true, n - 1: false, uint32(len(text)): true} {
		m := result(content.Inline(text))
		if got := show(t, newStore(), limit, false, m); (got == m) != whole {
			t.Errorf("%d tokens at a limit of %d: shown %.40q", n, limit, got.GetContent().GetInline())
		}
	}
}

// TestTheCutNamesHowToReadOn: for another model, or without an id, there is no reference.
func TestTheCutNamesHowToReadOn(t *testing.T) {
	unstored := result(content.Inline(lines(1000)))
	unstored.Id = 0
	for _, c := range []struct {
		refs bool
		m    *harnessv1.Message
		want string
	}{
		{true, result(content.Inline(lines(1000))), " bytes left out here; call read_artifact with ref m8 to read them]\n"},
		{false, result(content.Inline(lines(1000))), " bytes left out here; ask for the part that you need, with an offset or a narrower call]\n"},
		{true, unstored, " bytes left out here; ask for the part that you need, with an offset or a narrower call]\n"},
	} {
		if got := show(t, newStore(), 200, c.refs, c.m).GetContent().GetInline(); !strings.Contains(got, c.want) {
			t.Errorf("shown %q, want %q in it", got, c.want)
		}
	}
	for refs, want := range map[bool]string{true: ` bytes left out here; call read_artifact with ref m9 to read them]\n`, false: ` bytes left out here]\n`} {
		got := show(t, newStore(), 200, refs, call(content.Inline(arguments(lines(1000))))).GetToolCalls()[0].GetArguments().GetInline()
		if !strings.Contains(got, want) {
			t.Errorf("shown %q, want %q in it", got, want)
		}
	}
}

// TestTinyLimits: below the length of the line about the omission, that line is all.
func TestTinyLimits(t *testing.T) {
	for _, limit := range []uint32{0, 1, 20} {
		if got := show(t, newStore(), limit, true, result(content.Inline(lines(100)))).GetContent().GetInline(); got != fmt.Sprintf("[%d bytes left out here]", len(lines(100))) {
			t.Errorf("at a limit of %d: %q", limit, got)
		}
	}
}

func arguments(text string) string {
	data, err := json.Marshal(map[string]string{"content": text, "path": "a.txt"})
	if err != nil {
		panic(err)
	}
	return string(data)
}

// TestOnlyResultsAndArgumentsAreShortened: a long text of the user or the model is whole.
func TestOnlyResultsAndArgumentsAreShortened(t *testing.T) {
	s := newStore()
	long := lines(1000)
	if got := show(t, s, 100, true, user(s.put(long))); got.GetContent().GetInline() != long || got.GetTopic() != "t" {
		t.Errorf("of the user: %.60q", got.GetContent())
	}
	m := call(content.Inline(arguments(long)))
	m.Content = s.put(long)
	got := show(t, s, 100, true, m)
	if got.GetContent().GetInline() != long || len(got.GetToolCalls()[0].GetArguments().GetInline()) > 1000 || len(got.GetParts()) != 2 {
		t.Errorf("of the model: %.200s", got)
	}
}

// TestMessagesAreMadeOnce: blobs are read once while there is room, and messages that need
// no work are shared.
func TestMessagesAreMadeOnce(t *testing.T) {
	s := newStore()
	whole, cut := s.put("whole"), s.put(lines(1000))
	messages := []*harnessv1.Message{user(content.Inline("hi")), user(whole), result(cut), call(s.put(`{"path":"a.txt"}`))}
	texts := shown.New(s.blob, 100_000)
	first, err := texts.Messages(t.Context(), run, model, 100, true, messages)
	if err != nil {
		t.Fatal(err)
	}
	if first[0] != messages[0] || first[1].GetContent().GetInline() != "whole" || first[3].GetToolCalls()[0].GetArguments().GetInline() != `{"path":"a.txt"}` {
		t.Errorf("shown %v", first)
	}
	second, err := texts.Messages(t.Context(), run, model, 100, true, messages)
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		if first[i] != second[i] {
			t.Errorf("message %d was made again", i)
		}
	}
	for digest, n := range s.reads {
		if n != 1 {
			t.Errorf("%.20q was read %d times", s.blobs[digest], n)
		}
	}
	for name, again := range map[string]func() ([]*harnessv1.Message, error){
		"another limit": func() ([]*harnessv1.Message, error) {
			return texts.Messages(t.Context(), run, model, 200, true, messages)
		},
		"no references": func() ([]*harnessv1.Message, error) {
			return texts.Messages(t.Context(), run, model, 100, false, messages)
		},
		"another model": func() ([]*harnessv1.Message, error) {
			return texts.Messages(t.Context(), run, "openai:gpt-4", 100, true, messages)
		},
	} {
		if got, err := again(); err != nil || got[2].GetContent().GetInline() == first[2].GetContent().GetInline() {
			t.Errorf("%s: the same text is shown, %v", name, err)
		}
	}
	short := []*harnessv1.Message{user(content.Inline("hi")), result(content.Inline("ok")), result(content.Inline(strings.Repeat("more bytes ", 20)))}
	if got, err := texts.Messages(t.Context(), run, model, 100, true, short); err != nil || &got[0] != &short[0] {
		t.Errorf("messages that need no work were copied: %v", err)
	}
}

// TestMemoryIsBounded: there is room for two messages, and the one that was not used for
// longest gives way. One without room at all drops none.
func TestMemoryIsBounded(t *testing.T) {
	s := newStore()
	messages := map[string]*harnessv1.Message{"huge": user(s.put(strings.Repeat("h", 20_000)))}
	for _, name := range []string{"a", "b", "c"} {
		messages[name] = user(s.put(strings.Repeat(name, 5000)))
	}
	texts := shown.New(s.blob, 12_000)
	for _, name := range strings.Fields("a b huge a c a b") {
		if _, err := texts.Messages(t.Context(), run, model, 100, true, []*harnessv1.Message{messages[name]}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"a": 1, "b": 2, "c": 1, "huge": 1} {
		if n := s.reads[messages[name].GetContent().GetBlob().GetDigest()]; n != want {
			t.Errorf("%s was read %d times, want %d", name, n, want)
		}
	}
}

// TestBlobsThatCannotBeRead fail the whole request.
func TestBlobsThatCannotBeRead(t *testing.T) {
	s := newStore()
	missing := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "none"}}}
	for _, m := range []*harnessv1.Message{user(missing), result(missing), call(missing)} {
		if _, err := shown.New(s.blob, 1<<20).Messages(t.Context(), run, model, 100, true, []*harnessv1.Message{m}); !errors.Is(err, errNone) {
			t.Errorf("%v: %v", m, err)
		}
	}
}

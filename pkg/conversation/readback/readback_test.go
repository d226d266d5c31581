package readback_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// store holds the texts of blobs.
type store map[string]string

var errDown = errors.New("down")

// content returns a content, in a blob if it is long.
func (s store) content(text string) *harnessv1.Content {
	if len(text) <= 40 {
		return content.Inline(text)
	}
	ref := content.Ref([]byte(text))
	ref.Preview = content.Cut(text, 10)
	s[ref.GetDigest()] = text
	return &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: ref}}
}

// reader counts a token for every four bytes.
func (s store) reader(tokens int) *readback.Reader {
	return &readback.Reader{
		Text: func(_ context.Context, c *harnessv1.Content) (string, error) {
			text, ok := s[c.GetBlob().GetDigest()]
			if !ok {
				return "", fmt.Errorf("blob: %w", runlog.ErrNotFound)
			}
			return text, nil
		},
		Count:  func(text string) int { return (len(text) + 3) / 4 },
		Tokens: tokens,
	}
}

func (s store) read(t interface{ Fatal(...any) }, tokens int, messages []*harnessv1.Message, request readback.Request) readback.Result {
	result, err := s.reader(tokens).Read(context.Background(), messages, request)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// story is a small conversation with every kind of message.
func story(s store) []*harnessv1.Message {
	return []*harnessv1.Message{
		{Role: harnessv1.Role_ROLE_SYSTEM, Content: s.content("You are an agent.")},
		{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: s.content("Fix it."), Parts: []*harnessv1.Part{
			{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "image/png", Name: "chart\n.png", Blob: &harnessv1.BlobRef{Size: 4096}}}},
		}},
		{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Content: s.content("[harness] Look first."), TurnNumber: 1},
		{
			Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: 1, Content: s.content("Looking."),
			ToolCalls: []*harnessv1.ToolCall{
				{Id: "a", Name: "read_file", Arguments: s.content(`{"path":"a.go"}`)},
				{Id: "b", Name: "write_file", Arguments: s.content(`{"path":"b.go","content":"` + strings.Repeat("x", 60) + `"}`)},
			},
			Parts: []*harnessv1.Part{
				{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: content.Inline("SECRET thought")}}, Opaque: &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte("SECRET")}}},
			},
		},
		{Role: harnessv1.Role_ROLE_TOOL, TurnNumber: 1, ToolCallId: "a", ToolName: "read_file", Content: s.content("package a\n\nfunc A() {}\n\nfunc B() {}\n")},
		{Role: harnessv1.Role_ROLE_TOOL, TurnNumber: 1, ToolCallId: "b", ToolName: "write_file", IsError: true},
		{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_ANSWER, TurnNumber: 2, Content: s.content("yes")},
	}
}

const whole = `[m1: system prompt]
You are an agent.
[m2: user]
Fix it.
[image/png chart .png, 4096 bytes; it is attached when its message is read without a pattern.]
[m3: harness, turn 1]
[harness] Look first.
[m4: assistant, turn 1]
Looking.
Call of read_file: {"path":"a.go"}
Call of write_file: {"path":"b.go","content":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}
[m5: result of read_file {"path":"a.go"}, called in m4, turn 1]
package a

func A() {}

func B() {}
[m6: error result of write_file {"path":…, called in m4, turn 1]
(no text)
[m7: answer of the user, turn 2]
yes`

func TestMessagesAreShownInFull(t *testing.T) {
	s := store{}
	got := s.read(t, 1000, story(s), readback.Request{Ref: " m1-m7 "})
	// Of arguments in a blob only the preview is known.
	if want := strings.Replace(whole, `{"path":…`, `{"path":"b`, 1); got.Failed || got.Text != want {
		t.Errorf("%v\n%s", got.Failed, got.Text)
	}
	one := s.read(t, 1000, story(s), readback.Request{Ref: "m5"})
	if want := "[m5: result of read_file {\"path\":\"a.go\"}, called in m4, turn 1]\npackage a\n\nfunc A() {}\n\nfunc B() {}"; one.Text != want {
		t.Errorf("one message:\n%s", one.Text)
	}
}

func TestReferencesThatAreWrong(t *testing.T) {
	s := store{}
	for _, c := range []struct {
		request readback.Request
		want    string
	}{
		{readback.Request{Ref: ""}, `ref "": expected one message such as m12, or several such as m12-m20.`},
		{readback.Request{Ref: "12"}, `expected one message`},
		{readback.Request{Ref: "m1-m2-m3"}, `expected one message`},
		{readback.Request{Ref: "m1\nm2"}, `expected one message`},
		{readback.Request{Ref: "m-1"}, `expected one message`},
		{readback.Request{Ref: "m9999999999999999999999"}, `expected one message`},
		{readback.Request{Ref: strings.Repeat("m", 5000)}, `…`},
		{readback.Request{Ref: "m0"}, `ref m0: not found; this run has messages m1 to m7.`},
		{readback.Request{Ref: "m8"}, `this run has messages m1 to m7`},
		{readback.Request{Ref: "m5-m8"}, `this run has messages m1 to m7`},
		{readback.Request{Ref: "m999999999999999999"}, `this run has messages m1 to m7`},
		{readback.Request{Ref: "m6-m5"}, `use m5-m6`},
		{readback.Request{Ref: "m7", Offset: 3}, `offset 3: m7 has 3 bytes; use a smaller offset.`},
		{readback.Request{Ref: "m1-m2", Offset: 1 << 60}, `m1-m2 has 119 bytes`},
		{readback.Request{Ref: "m1", Pattern: "("}, `pattern "(": error parsing regexp: missing closing ): ` + "`(`" + `; expected RE2 syntax`},
		{readback.Request{Ref: "m1", Pattern: "(?=a)"}, `expected RE2 syntax`},
		{readback.Request{Ref: "m1", Pattern: "(.{500}){2}|(.{500}){2}|.{1000}"}, `too complex`},
		{readback.Request{Ref: "m1", Pattern: "(x{1000}){1000}"}, `expected RE2 syntax`},
	} {
		got := s.read(t, 1000, story(s), c.request)
		if !got.Failed || !strings.Contains(got.Text, c.want) || len(got.Text) > 300 {
			t.Errorf("%+v: %v %s", c.request, got.Failed, got.Text)
		}
	}
	if got := s.read(t, 1000, nil, readback.Request{Ref: "m1"}); !got.Failed || !strings.Contains(got.Text, "no messages") {
		t.Errorf("without messages: %s", got.Text)
	}
	if got := s.read(t, 1000, story(s), readback.Request{Ref: "m7", Offset: -5}); got.Failed {
		t.Errorf("a negative offset: %s", got.Text)
	}
}

var moreIsLeft = regexp.MustCompile(`\[More is left\. Continue with ref (\S+),(?: the same pattern,)? offset (\d+)\.\]$`)

// next returns the offset at which a result is continued; 0: it is the last.
func next(t *rapid.T, result readback.Result, ref string) int {
	at := moreIsLeft.FindStringSubmatch(result.Text)
	if at == nil {
		return 0
	}
	if at[1] != ref {
		t.Fatalf("continues with %s, not %s", at[1], ref)
	}
	offset, _ := strconv.Atoi(at[2])
	return offset
}

func anyText(t *rapid.T, label string) string {
	line := rapid.SampledFrom([]string{"", "a", "error: x", "日本語のテキスト", strings.Repeat("word ", 9), strings.Repeat("é", 90), strings.Repeat("long error ", 60), strings.Repeat("日", 150)})
	return strings.Join(rapid.SliceOfN(line, 1, 9).Draw(t, label), rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end of lines"))
}

// texts are the messages of the user with any text, and that text.
func texts(t *rapid.T, s store) (messages []*harnessv1.Message, all []string) {
	for range rapid.IntRange(1, 5).Draw(t, "messages") {
		text := anyText(t, "text")
		if text == "" {
			text = "x"
		}
		messages = append(messages, &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: s.content(text)})
		all = append(all, text)
	}
	return messages, all
}

// TestPagesShowEveryByteOnce follows the offsets from the beginning to the end of any span.
func TestPagesShowEveryByteOnce(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^\[m\d+: user(?:, bytes (\d+) to (\d+) of (\d+))?\]\n`)
	rapid.Check(t, func(t *rapid.T) {
		s := store{}
		messages, all := texts(t, s)
		first := rapid.IntRange(1, len(all)).Draw(t, "first")
		last := rapid.IntRange(first, len(all)).Draw(t, "last")
		ref := view.SpanRef(uint64(first), uint64(last))
		want := strings.Join(all[first-1:last], "")
		tokens := rapid.SampledFrom([]int{30, 60, 200, 5000}).Draw(t, "tokens")
		limit := rapid.SampledFrom([]int{0, 1, 7, 100, 100_000}).Draw(t, "limit")
		var got strings.Builder
		for offset, pages := 0, 0; ; pages++ {
			result := s.read(t, tokens, messages, readback.Request{Ref: ref, Offset: offset, Limit: limit})
			if result.Failed || !utf8.ValidString(result.Text) || pages > len(want) {
				t.Fatalf("page %d: %s", pages, result.Text)
			}
			if n := len(result.Text); tokens >= 60 && n > 4*tokens {
				t.Fatalf("%d bytes for %d tokens:\n%s", n, tokens, result.Text)
			}
			to := next(t, result, ref)
			end := to
			if to == 0 {
				end = len(want)
			}
			if end <= offset || limit > 0 && end-offset > limit+3 {
				t.Fatalf("from %d to %d, limit %d", offset, end, limit)
			}
			body := moreIsLeft.ReplaceAllString(result.Text, "")
			got.WriteString(want[offset:end])
			if shown := squash(heading.ReplaceAllString(body, "")); shown != squash(want[offset:end]) {
				t.Fatalf("bytes %d to %d are\n%s\nwant\n%s", offset, end, shown, want[offset:end])
			}
			if offset = to; to == 0 {
				break
			}
		}
		if got.String() != want {
			t.Fatal("not all of the text was shown")
		}
	})
}

// squash leaves out line ends: a heading begins a line.
func squash(text string) string { return strings.NewReplacer("\n", "", "\r", "").Replace(text) }

// TestSearchFindsEveryLine follows the offsets of a search. It finds the lines that a search
// of each message finds, in order, and each offset reads the match.
func TestSearchFindsEveryLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := store{}
		messages, all := texts(t, s)
		ref := view.SpanRef(1, uint64(len(all)))
		pattern := rapid.SampledFrom([]string{"error", "(?i)ERROR", "^a$", "日", "none", "é+", "word", "."}).Draw(t, "pattern")
		re := regexp.MustCompile(pattern)
		var want []string
		for i, text := range all {
			for n, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
				if re.MatchString(line) {
					want = append(want, fmt.Sprintf("m%d line %d", i+1, n+1))
				}
			}
		}
		tokens := rapid.SampledFrom([]int{150, 400, 5000}).Draw(t, "tokens")
		limit := rapid.SampledFrom([]int{0, 1, 500}).Draw(t, "limit")
		var got []string
		for offset, pages := 0, 0; ; pages++ {
			result := s.read(t, tokens, messages, readback.Request{Ref: ref, Offset: offset, Limit: limit, Pattern: pattern})
			if result.Failed || !utf8.ValidString(result.Text) || pages > 5000 || len(result.Text) > 4*tokens {
				t.Fatalf("page %d: %s", pages, result.Text)
			}
			message, matches, bytes, end := 0, 0, 0, 0
			for _, line := range strings.Split(result.Text, "\n") {
				if at := regexp.MustCompile(`^\[m(\d+): user\]$`).FindStringSubmatch(line); at != nil {
					message, _ = strconv.Atoi(at[1])
					end = 0
				}
				at := regexp.MustCompile(`^line (\d+), offset (\d+): (.*)$`).FindStringSubmatch(line)
				if at == nil {
					continue
				}
				if found := fmt.Sprintf("m%d line %s", message, at[1]); len(got) == 0 || got[len(got)-1] != found {
					got = append(got, found)
				}
				from, _ := strconv.Atoi(at[2])
				shown := strings.TrimRight(at[3], "\r")
				if from < end {
					t.Fatalf("%s at offset %d of m%d is shown twice", shown, from, message)
				}
				matches, bytes, end = matches+1, bytes+len(shown), from+len(shown)
				if all[message-1][from:from+len(shown)] != shown || !re.MatchString(shown) || len(shown) > 300 {
					t.Fatalf("%s is not at offset %d of m%d", shown, from, message)
				}
			}
			if limit > 0 && bytes > limit && matches > 1 {
				t.Fatalf("%d matches with %d bytes, limit %d", matches, bytes, limit)
			}
			to := next(t, result, ref)
			if to == 0 {
				break
			}
			if to <= offset {
				t.Fatalf("continues at %d after %d", to, offset)
			}
			offset = to
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("found %v, want %v", got, want)
		}
	})
}

// TestSearchIsBounded counts matches in a line and in many lines.
func TestSearchIsBounded(t *testing.T) {
	s := store{}
	many := []*harnessv1.Message{{Role: harnessv1.Role_ROLE_USER, Content: s.content(strings.Repeat("error\n", 5000))}}
	got := s.read(t, 100_000, many, readback.Request{Ref: "m1", Pattern: "error"})
	if n := strings.Count(got.Text, "line "); n != 100 || !strings.HasSuffix(got.Text, "[More is left. Continue with ref m1, the same pattern, offset 600.]") {
		t.Errorf("%d matches, %s", n, got.Text[len(got.Text)-80:])
	}
	if got := s.read(t, 100_000, many, readback.Request{Ref: "m1", Pattern: "error", Offset: 29_997}); got.Text != "[No line of m1 matches.]" {
		t.Errorf("from within the last line: %s", got.Text)
	}
	dense := []*harnessv1.Message{{Role: harnessv1.Role_ROLE_USER, Content: s.content(strings.Repeat("ab", 5000))}}
	if got := s.read(t, 100_000, dense, readback.Request{Ref: "m1", Pattern: "a"}); !moreIsLeft.MatchString(got.Text) {
		t.Errorf("the rest of a line with many matches is not named: %s", got.Text)
	}
	// A complex pattern reads less, and the result names where to continue.
	large := []*harnessv1.Message{{Role: harnessv1.Role_ROLE_USER, Content: s.content(strings.Repeat("word ", 200_000) + "needle")}}
	pages := 0
	for request := (readback.Request{Ref: "m1", Pattern: "needle|x{900}y|z{900}"}); ; pages++ {
		got := s.read(t, 1000, large, request)
		at := moreIsLeft.FindStringSubmatch(got.Text)
		if at == nil {
			if got.Failed || !strings.Contains(got.Text, "needle") {
				t.Errorf("not found: %s", got.Text)
			}
			break
		}
		if !strings.Contains(got.Text, "No line before offset "+at[2]) {
			t.Errorf("page %d: %s", pages, got.Text)
		}
		request.Offset, _ = strconv.Atoi(at[2])
	}
	if pages == 0 || pages > 16 {
		t.Errorf("continued %d times", pages)
	}
}

// TestOffsetsWithinARune: an offset that a model made up shows what begins after it.
func TestOffsetsWithinARune(t *testing.T) {
	s := store{}
	messages := []*harnessv1.Message{{Role: harnessv1.Role_ROLE_USER, Content: s.content("日本語 error")}}
	for pattern, want := range map[string]string{"": "[m1: user, bytes 3 to 15 of 15]\n本語 error", "error": "[m1: user]\nline 1, offset 3: 本語 error"} {
		if got := s.read(t, 1000, messages, readback.Request{Ref: "m1", Offset: 1, Pattern: pattern}); got.Text != want {
			t.Errorf("%q: %s", pattern, got.Text)
		}
	}
	if got := s.read(t, 1000, messages[:1], readback.Request{Ref: "m1", Offset: 14}); got.Text != "[m1: user, bytes 14 to 15 of 15]\nr" {
		t.Errorf("the last byte: %s", got.Text)
	}
}

// TestPagesReadOnlyTheirBlobs leaves out the blobs of other messages.
func TestPagesReadOnlyTheirBlobs(t *testing.T) {
	s := store{}
	messages := []*harnessv1.Message{
		{Role: harnessv1.Role_ROLE_USER, Content: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "gone", Size: 1000}}}},
		{Role: harnessv1.Role_ROLE_USER, Content: s.content(strings.Repeat("here ", 20))},
		{Role: harnessv1.Role_ROLE_USER, Content: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "gone too", Size: 1000}}}},
	}
	got := s.read(t, 1000, messages, readback.Request{Ref: "m1-m3", Offset: 1000, Limit: 100})
	if !strings.HasPrefix(got.Text, "[m2: user]\nhere here") || !strings.HasSuffix(got.Text, "offset 1100.]") {
		t.Errorf("%s", got.Text)
	}
	if got := s.read(t, 1000, messages, readback.Request{Ref: "m1-m3"}); !got.Failed || !strings.Contains(got.Text, "m1-m3 cannot be read back") {
		t.Errorf("a blob that is gone: %s", got.Text)
	}
	down := s.reader(1000)
	down.Text = func(context.Context, *harnessv1.Content) (string, error) { return "", errDown }
	for _, pattern := range []string{"", "x"} {
		if _, err := down.Read(context.Background(), messages, readback.Request{Ref: "m1", Pattern: pattern}); !errors.Is(err, errDown) {
			t.Errorf("a store that is down: %v", err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.reader(1000).Read(ended, messages, readback.Request{Ref: "m2", Pattern: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a search that was stopped: %v", err)
	}
}

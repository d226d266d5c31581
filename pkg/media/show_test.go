package media_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

const (
	user      = harnessv1.Role_ROLE_USER
	toolRole  = harnessv1.Role_ROLE_TOOL
	assistant = harnessv1.Role_ROLE_ASSISTANT
)

var all = media.Takes{Images: true, Documents: true}

func message(role harnessv1.Role, text string, parts ...*harnessv1.Media) *harnessv1.Message {
	m := &harnessv1.Message{Id: 7, Role: role, Content: content.Inline(text), ToolName: "read_file"}
	for _, p := range parts {
		m.Parts = append(m.Parts, &harnessv1.Part{Kind: &harnessv1.Part_Media{Media: p}})
	}
	return m
}

// picture returns an image of a size as it is sent, a multiple of 4 bytes.
func picture(name string, sent uint64) *harnessv1.Media {
	return &harnessv1.Media{Type: media.PNG, Width: 1280, Height: 720, Name: name, Blob: &harnessv1.BlobRef{Digest: name, Size: sent / 4 * 3}}
}

func paper(name string, pages uint32, sent uint64) *harnessv1.Media {
	return &harnessv1.Media{Type: media.PDF, Pages: pages, Name: name, Blob: &harnessv1.BlobRef{Digest: name, Size: sent / 4 * 3}}
}

// shown returns the names of the media that a request has, and the contents.
func shown(messages []*harnessv1.Message) (names, texts []string) {
	for _, m := range messages {
		for _, p := range m.GetParts() {
			names = append(names, p.GetMedia().GetName())
		}
		texts = append(texts, m.GetContent().GetInline())
	}
	return names, texts
}

func TestShowReplacesWhatTheTargetDoesNotTake(t *testing.T) {
	messages := []*harnessv1.Message{
		message(user, "Look.", picture("chart.png", 327_680), paper("report.pdf", 40, 1<<20)),
		message(toolRole, " ", paper("", 1, 4000)),
		message(assistant, "Seen.", picture("made by a model", 400)),
	}
	before := fmt.Sprint(messages)
	const image = "[image chart.png, 1280×720, 240 KB: not shown, because this model does not take images. Use a tool that returns its content as text, or ask the user what is in it.]"
	const document = "[document report.pdf, 40 pages, 768 KB: not shown, because this model does not take PDF documents. Use a tool that returns its content as text, or ask the user what is in it.]"
	const page = "[document, 1 page, 3 KB: not shown, because this model does not take PDF documents. Use a tool that returns its content as text, or ask the user what is in it.]"
	for _, c := range []struct {
		takes media.Takes
		names string
		texts []string
	}{
		{all, "chart.png report.pdf  made by a model", []string{"Look.", " ", "Seen."}},
		{media.Takes{Images: true}, "chart.png made by a model", []string{"Look.\n" + document, page, "Seen."}},
		{media.Takes{Documents: true}, "report.pdf  made by a model", []string{"Look.\n" + image, " ", "Seen."}},
		{media.Takes{}, "made by a model", []string{"Look.\n" + image + "\n" + document, page, "Seen."}},
	} {
		names, texts := shown(media.Show(messages, c.takes, false))
		if strings.Join(names, " ") != c.names || strings.Join(texts, "|") != strings.Join(c.texts, "|") {
			t.Errorf("%+v: %q with %q, want %q with %q", c.takes, names, texts, c.names, c.texts)
		}
	}
	if fmt.Sprint(messages) != before {
		t.Errorf("the messages were changed to %v", messages)
	}
}

func TestShowKeepsMessagesWithoutMedia(t *testing.T) {
	messages := []*harnessv1.Message{message(user, "a"), message(assistant, "b", picture("made by a model", 400))}
	if got := media.Show(messages, media.Takes{}, false); &got[0] != &messages[0] {
		t.Errorf("the messages were copied")
	}
}

func TestOldMediaGiveWay(t *testing.T) {
	const mega = 1_000_000
	for name, c := range map[string]struct {
		parts []*harnessv1.Media
		takes media.Takes
		want  string
	}{
		"all of the limit":          {[]*harnessv1.Media{picture("a", 12*mega), picture("b", 8*mega)}, all, "a b"},
		"a byte more":               {[]*harnessv1.Media{picture("a", 12*mega), picture("b", 8*mega), picture("c", 4)}, all, "b c"},
		"half of it remains":        {[]*harnessv1.Media{picture("a", 8*mega), picture("b", 8*mega), picture("c", 2*mega), picture("d", 8*mega)}, all, "c d"},
		"the newest alone":          {[]*harnessv1.Media{picture("a", 8*mega), picture("b", 8*mega), picture("c", 16*mega)}, all, "c"},
		"what is too large":         {[]*harnessv1.Media{picture("a", 8*mega), paper("b", 3, 21*mega), picture("c", 8*mega)}, all, "a c"},
		"what is not taken":         {[]*harnessv1.Media{picture("a", 8*mega), paper("b", 3, 10*mega), picture("c", 8*mega)}, media.Takes{Images: true}, "a c"},
		"pages":                     {[]*harnessv1.Media{picture("a", 4), paper("b", 60, 4), paper("c", 40, 4)}, all, "c"},
		"all pages":                 {[]*harnessv1.Media{paper("b", 60, 4), paper("c", 40, 4)}, all, "b c"},
		"a server of few images":    {[]*harnessv1.Media{picture("a", 4), picture("b", 4), picture("c", 4), picture("d", 4)}, media.Takes{Images: true, MaxItems: 3}, "d"},
		"a server of small reports": {[]*harnessv1.Media{paper("a", 4, 4), paper("b", 3, 4)}, media.Takes{Documents: true, MaxItems: 3}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			var messages []*harnessv1.Message
			for _, p := range c.parts {
				messages = append(messages, message(toolRole, "result", p))
			}
			if names, texts := shown(media.Show(messages, c.takes, false)); strings.Join(names, " ") != c.want {
				t.Errorf("shown %q with %q, want %s", names, texts, c.want)
			}
		})
	}
}

func TestLinesTellHowToLookAgain(t *testing.T) {
	messages := []*harnessv1.Message{
		message(user, "first", picture("a.png", 12<<20)), message(toolRole, "second", picture("b.png", 4<<20)), message(user, "third", picture("c.png", 8<<20)),
		message(user, "fourth", paper("d.pdf", 3, 22<<20)),
	}
	_, texts := shown(media.Show(messages, all, false))
	for i, want := range []string{
		"first\n[image a.png, 1280×720, 9 MB: no longer shown, to make room for newer ones. To see it again, ask the user to attach it again.]",
		"second\n[image b.png, 1280×720, 3 MB: no longer shown, to make room for newer ones. To see it again, repeat the call of read_file.]",
		"third",
		"fourth\n[document d.pdf, 3 pages, 16.5 MB: not shown, because it is larger than a request may be. Look at it in smaller parts.]",
	} {
		if texts[i] != want {
			t.Errorf("message %d is %q, want %q", i, texts[i], want)
		}
	}
	_, texts = shown(media.Show(messages, all, true))
	for i := range 2 {
		if want := "no longer shown, to make room for newer ones. See it again with read_artifact, ref m7.]"; !strings.HasSuffix(texts[i], want) {
			t.Errorf("message %d is %q, want the end %q", i, texts[i], want)
		}
	}
}

// TestScreenshots shows that 60 screenshots stay below the limit, and that the beginning
// of requests changes rarely.
func TestScreenshots(t *testing.T) {
	var messages, before []*harnessv1.Message
	changes := 0
	for i := range 60 {
		messages = append(messages, message(toolRole, "result", picture(fmt.Sprint(i), 4_800_000)))
		now := media.Show(messages, all, false)
		var sent uint64
		for _, m := range now {
			for _, p := range m.GetParts() {
				sent += p.GetMedia().GetBlob().GetSize() / 3 * 4
			}
		}
		if len(now[i].GetParts()) != 1 || sent > media.MaxRequest {
			t.Fatalf("request %d has %d bytes of media, want the newest and at most %d", i, sent, media.MaxRequest)
		}
		for j := range before {
			if !proto.Equal(before[j], now[j]) {
				changes++
				break
			}
		}
		before = now
	}
	if changes > 20 {
		t.Errorf("%d of 60 requests change the beginning of the one before, want at most every third", changes)
	}
}

// TestShowIsAFold compares the requests of random conversations with those before them:
// the shown media change only when the limit is exceeded, media that gave way never come
// back, and the limit holds.
func TestShowIsAFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		takes := media.Takes{Images: true, Documents: rapid.Bool().Draw(t, "documents"), MaxItems: rapid.SampledFrom([]int{0, 3, 40}).Draw(t, "items")}
		limit := max(takes.MaxItems, 0)
		if limit == 0 {
			limit = media.DefaultItems
		}
		var messages []*harnessv1.Message
		var last []string
		for i := range rapid.IntRange(1, 40).Draw(t, "messages") {
			m := message(rapid.SampledFrom([]harnessv1.Role{user, toolRole, assistant}).Draw(t, "role"), "text")
			if m.GetRole() != assistant {
				for j := range rapid.IntRange(0, 3).Draw(t, "media") {
					name, size := fmt.Sprintf("%d.%d", i, j), rapid.Uint64Range(1, 2<<20).Draw(t, "size")*4
					if rapid.Bool().Draw(t, "image") {
						m.Parts = append(m.Parts, message(user, "", picture(name, size)).GetParts()...)
					} else {
						m.Parts = append(m.Parts, message(user, "", paper(name, rapid.Uint32Range(1, 60).Draw(t, "pages"), size)).GetParts()...)
					}
				}
			}
			messages = append(messages, m)
			request := media.Show(messages, takes, false)
			names, _ := shown(request)
			var sent uint64
			items := 0
			for _, m := range request {
				for _, p := range m.GetParts() {
					sent += p.GetMedia().GetBlob().GetSize() / 3 * 4
					items += int(max(p.GetMedia().GetPages(), 1))
				}
			}
			if sent > media.MaxRequest || items > limit {
				t.Fatalf("%d bytes and %d items in a request", sent, items)
			}
			old := names[:len(names)-len(newOnes(names, i))]
			if got, want := strings.Join(old, " "), strings.Join(last, " "); !strings.HasSuffix(want, got) {
				t.Fatalf("shown of the former messages: %s; want the end of %s", got, want)
			}
			if len(old) < len(last) && len(m.GetParts()) == 1 && len(names) > 1 && (2*sent > media.MaxRequest || 2*items > limit) {
				t.Fatalf("after media gave way a request has %d bytes and %d items, want half of %d and %d", sent, items, media.MaxRequest, limit)
			}
			last = names
		}
	})
}

// newOnes returns the names of the media of message i.
func newOnes(names []string, i int) (found []string) {
	for _, n := range names {
		if strings.HasPrefix(n, fmt.Sprint(i)+".") {
			found = append(found, n)
		}
	}
	return found
}

// TestHidden: a reason for each message of which Show leaves something out, and for no other.
func TestHidden(t *testing.T) {
	messages := []*harnessv1.Message{
		message(user, "a", picture("a.png", 12<<20)), message(assistant, "made", picture("made", 400)), message(toolRole, "b", paper("b.pdf", 3, 400), picture("b.png", 400)),
		message(user, "c", picture("c.png", 8<<20)), message(user, "d", picture("d.png", 22<<20)), message(user, "e"),
	}
	want := []string{
		"1 of 1 images and documents are not sent: newer ones need the room in the request", "",
		"1 of 2 images and documents are not sent: the model does not take them", "",
		"1 of 1 images and documents are not sent: they exceed the limit of a request", "",
	}
	takes := media.Takes{Images: true}
	got := media.Hidden(messages, takes)
	shown := media.Show(messages, takes, false)
	for i := range messages {
		if got[i] != want[i] || (got[i] != "") != (shown[i] != messages[i]) {
			t.Errorf("message %d: %q, want %q", i, got[i], want[i])
		}
	}
}

package input

import (
	"image/color"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
)

func TestAcceptMediaReadsTheFiles(t *testing.T) {
	wide := mediatest.PNG(mediatest.Plain(4000, 20, color.White))
	accepted, err := AcceptMedia("spec.media", []*harnessv1.Media{
		{Data: wide, Name: "a\nb.pdf", Type: "text/plain", Width: 9, Pages: 7}, {Data: mediatest.PDF(3), Name: "report.pdf"},
	})
	if err != nil {
		t.Fatal(err)
	}
	data := accepted[0].GetData()
	accepted[0].Data = nil
	if want := (&harnessv1.Media{Type: media.PNG, Width: 2000, Height: 10, Name: "a b.pdf"}); !proto.Equal(accepted[0], want) || media.TypeOf(data) != media.PNG {
		t.Errorf("accepted %v, want %v: what a client claims does not count", accepted[0], want)
	}
	if accepted[1].GetPages() != 3 || len(accepted[1].GetData()) == 0 {
		t.Errorf("accepted %v, want 3 pages and the data", accepted[1])
	}
	_, err = AcceptMedia("user_message.media", []*harnessv1.Media{{Data: wide}, {Data: []byte("text")}})
	refusedAt(t, err, "user_message.media[1].data", false)
}

func TestWithMediaChangesACopy(t *testing.T) {
	for _, item := range []*harnessv1.InboxItem{
		{Id: "1", Input: &harnessv1.InboxItem_UserMessage{UserMessage: &harnessv1.UserMessage{Media: files("x")}}},
		{Id: "2", Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{Media: files("x")}}},
	} {
		field, list := MediaOf(item)
		changed := WithMedia(item, files("y", "z"))
		_, after := MediaOf(item)
		_, got := MediaOf(changed)
		if !strings.HasSuffix(field, ".media") || len(list) != 1 || len(after) != 1 || len(got) != 2 || changed.GetId() != item.GetId() {
			t.Errorf("%s: %v became %v, then %v", field, list, got, after)
		}
	}
	if _, list := MediaOf(&harnessv1.InboxItem{Input: &harnessv1.InboxItem_Cancel{}}); list != nil {
		t.Errorf("a cancel has media %v", list)
	}
}

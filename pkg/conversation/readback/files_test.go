package readback_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// album is a message of the user with images of 300 tokens each, and documents of a number of
// pages.
func album(images int, pages ...uint32) *harnessv1.Message {
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: store{}.content("Look.")}
	attach := func(file *harnessv1.Media) {
		file.Blob = &harnessv1.BlobRef{Digest: file.GetName(), Size: 9}
		m.Parts = append(m.Parts, &harnessv1.Part{Kind: &harnessv1.Part_Media{Media: file}})
	}
	for i := range images {
		attach(&harnessv1.Media{Type: media.PNG, Width: 500, Height: 450, Name: fmt.Sprintf("%d.png", i)})
	}
	for i, n := range pages {
		attach(&harnessv1.Media{Type: media.PDF, Pages: n, Name: fmt.Sprintf("%d.pdf", i)})
	}
	return m
}

func namesOf(files []*harnessv1.Media) string {
	var names []string
	for _, f := range files {
		names = append(names, f.GetName())
	}
	return strings.Join(names, " ")
}

// TestFilesAreReadBack: a page has the images and documents whose lines it shows, as far as
// there is room. Following the offsets gives every file once.
func TestFilesAreReadBack(t *testing.T) {
	s := store{}
	next := regexp.MustCompile(`\[More is left\. Continue with ref \S+, offset (\d+)\.\]`)
	for name, c := range map[string]struct {
		messages []*harnessv1.Message
		tokens   int
		want     string // files of each page
	}{
		"one image":                     {[]*harnessv1.Message{album(1)}, 1000, "0.png"},
		"an image larger than a result": {[]*harnessv1.Message{album(1)}, 100, "0.png"},
		"images for two pages":          {[]*harnessv1.Message{album(5)}, 1000, "0.png 1.png 2.png|3.png 4.png"},
		"several messages":              {[]*harnessv1.Message{album(1), album(3)}, 1000, "0.png 0.png 1.png|2.png"},
		"a document":                    {[]*harnessv1.Message{album(1, 1)}, 1000, "0.png|0.pdf"},
		"a document that never fits":    {[]*harnessv1.Message{album(1, 2), album(1)}, 1000, "0.png 0.png"},
		"more files than a message may have": {[]*harnessv1.Message{album(25)}, 10_000,
			"0.png 1.png 2.png 3.png 4.png 5.png 6.png 7.png 8.png 9.png 10.png 11.png 12.png 13.png 14.png 15.png 16.png 17.png 18.png 19.png|20.png 21.png 22.png 23.png 24.png"},
	} {
		t.Run(name, func(t *testing.T) {
			request := readback.Request{Ref: fmt.Sprintf("m1-m%d", len(c.messages))}
			var pages []string
			for range 9 {
				got := s.read(t, c.tokens, c.messages, request)
				pages = append(pages, namesOf(got.Media))
				m := next.FindStringSubmatch(got.Text)
				if m == nil {
					break
				}
				request.Offset, _ = strconv.Atoi(m[1])
			}
			if got := strings.Join(pages, "|"); got != c.want {
				t.Errorf("read %s, want %s", got, c.want)
			}
		})
	}
	got := s.read(t, 1000, []*harnessv1.Message{album(0, 2)}, readback.Request{Ref: "m1"})
	if want := "[Not attached: document 0.pdf, 2 pages, 9 bytes needs about 4800 tokens, and a result may have 4000. Look at it in smaller parts.]"; len(got.Media) > 0 || !strings.Contains(got.Text, want) {
		t.Errorf("the text lacks %q:\n%s", want, got.Text)
	}
	if got := s.read(t, 1000, []*harnessv1.Message{album(1)}, readback.Request{Ref: "m1", Pattern: "png"}); len(got.Media) > 0 {
		t.Errorf("a search attaches %v", got.Media)
	}
}

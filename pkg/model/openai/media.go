package openai

import (
	"errors"
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// defaultDocument is the name of a document without one.
const defaultDocument = "document.pdf"

// mediaOf returns the media of a message, in order.
func mediaOf(m *harnessv1.Message) []*harnessv1.Media {
	var media []*harnessv1.Media
	for _, p := range m.GetParts() {
		if one := p.GetMedia(); one != nil {
			media = append(media, one)
		}
	}
	return media
}

func checkMedia(m *harnessv1.Message) error {
	for _, one := range mediaOf(m) {
		if len(one.GetData()) == 0 {
			return errors.New("its media are not inline")
		}
	}
	return nil
}

// userContent writes a content: a text, or with media an array.
func (e *encoder) userContent(text string, media []*harnessv1.Media) {
	if len(media) == 0 {
		e.member("content", text)
		return
	}
	e.name("content")
	e.open('[')
	if text != "" {
		e.text(text)
	}
	e.media(media)
	e.end(']')
}

// resultMedia writes the media of results as one message of the user, because a result
// cannot hold them. It follows all results of an answer.
func (e *encoder) resultMedia(results []*harnessv1.Message) {
	if len(results) == 0 {
		return
	}
	e.bridge()
	e.next()
	e.open('{')
	e.member("role", "user")
	e.name("content")
	e.open('[')
	for _, m := range results {
		e.text(e.resultMediaText(m))
		e.media(mediaOf(m))
	}
	e.end(']')
	e.end('}')
}

// resultMediaText tells the model which call the media after it belong to.
func (e *encoder) resultMediaText(m *harnessv1.Message) string {
	id := e.callID(m.GetToolCallId())
	if m.GetToolName() == "" {
		return fmt.Sprintf("Attached to the result of tool call %s:", id)
	}
	return fmt.Sprintf("Attached to the result of tool call %s (%s):", id, m.GetToolName())
}

// media writes images as image_url and documents as file.
func (e *encoder) media(media []*harnessv1.Media) {
	for _, one := range media {
		e.next()
		e.open('{')
		if strings.HasPrefix(one.GetType(), "image/") {
			e.member("type", "image_url")
			e.name("image_url")
			e.open('{')
			e.name("url")
		} else {
			name := one.GetName()
			if name == "" {
				name = defaultDocument
			}
			e.member("type", "file")
			e.name("file")
			e.open('{')
			e.member("filename", name)
			e.name("file_data")
		}
		e.data(one.GetType(), one.GetData())
		e.end('}')
		e.end('}')
	}
}

package adapter_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// sentMessage is a message as the wire of the test sends it.
type sentMessage struct {
	Text   string
	Media  []string // base64
	Opaque bool
}

// mediaServer is a provider whose wire sends texts and media. takes is nil for one that
// declares nothing.
func mediaServer(t *testing.T, takes func(string) media.Takes) (*adapter.Provider, *[]sentMessage) {
	t.Helper()
	sent := &[]sentMessage{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*sent = nil
		if err := json.NewDecoder(r.Body).Decode(sent); err != nil {
			t.Errorf("read the request: %v", err)
		}
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := adapter.New(adapter.Protocol{
		Name: "test", Wire: "test", Path: "answer", Bound: true, Takes: takes,
		Encode: func(req *model.Request, _ string) (any, error) {
			var body []sentMessage
			for _, m := range req.Messages {
				message := sentMessage{Text: m.GetContent().GetInline()}
				for _, p := range m.GetParts() {
					message.Opaque = message.Opaque || p.GetOpaque() != nil
					if p.GetMedia() != nil {
						message.Media = append(message.Media, base64.StdEncoding.EncodeToString(p.GetMedia().GetData()))
					}
				}
				body = append(body, message)
			}
			return body, nil
		},
		Decode: func([]byte) (*model.Response, error) {
			part := &harnessv1.Part{Kind: &harnessv1.Part_Text{Text: 4}, Opaque: adapter.Opaque([]byte(`"seal"`))}
			return &model.Response{Text: "Seen", Parts: []*harnessv1.Part{part}}, nil
		},
		NewStream: func() adapter.Stream { return nil },
	}, wire.NewClient(base, http.Header{}, nil), "")
	t.Cleanup(func() { _ = p.Close() })
	return p, sent
}

// mediaRequest has an inline image, an image in a blob, and a document in a blob.
func mediaRequest() *model.Request {
	part := func(m *harnessv1.Media) *harnessv1.Part {
		return &harnessv1.Part{Kind: &harnessv1.Part_Media{Media: m}}
	}
	ref := func(text string) *harnessv1.BlobRef {
		return &harnessv1.BlobRef{Digest: content.Digest([]byte(text)), Size: uint64(len(text))}
	}
	blobs := map[string]string{ref("stored").GetDigest(): "stored", ref("paper").GetDigest(): "paper"}
	return &model.Request{
		Model: "m",
		Messages: []*harnessv1.Message{{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline("Look."), Parts: []*harnessv1.Part{
			part(&harnessv1.Media{Type: media.PNG, Width: 2, Height: 2, Data: []byte("inline")}),
			part(&harnessv1.Media{Type: media.PNG, Width: 2, Height: 2, Blob: ref("stored")}),
			part(&harnessv1.Media{Type: media.PDF, Pages: 1, Name: "a.pdf", Blob: ref("paper")}),
		}}},
		Blob: func(_ context.Context, digest string) ([]byte, error) {
			if data, ok := blobs[digest]; ok {
				return []byte(data), nil
			}
			return nil, errors.New("no such blob")
		},
	}
}

func TestRequestShowsWhatTheModelTakes(t *testing.T) {
	for name, c := range map[string]struct {
		takes func(string) media.Takes
		media []string
		says  string
	}{
		"everything": {func(string) media.Takes { return media.Takes{Images: true, Documents: true} }, []string{"inline", "stored", "paper"}, "Look."},
		"images":     {func(name string) media.Takes { return media.Takes{Images: name == "m"} }, []string{"inline", "stored"}, "[document a.pdf, 1 page, 5 bytes: not shown, "},
		"nothing":    {nil, nil, "[image, 2×2, 6 bytes: not shown, "},
	} {
		t.Run(name, func(t *testing.T) {
			p, sent := mediaServer(t, c.takes)
			req := mediaRequest()
			before := req.Messages[0].String()
			answer, err := p.Complete(t.Context(), req, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, encoded := range (*sent)[0].Media {
				data, _ := base64.StdEncoding.DecodeString(encoded)
				got = append(got, string(data))
			}
			if strings.Join(got, " ") != strings.Join(c.media, " ") || !strings.Contains((*sent)[0].Text, c.says) {
				t.Errorf("sent %q with %q, want %q with %q", got, (*sent)[0].Text, c.media, c.says)
			}
			if after := req.Messages[0].String(); after != before {
				t.Errorf("the message was changed to %s", after)
			}
			// The next request has the same media, so the answer's opaque part goes back:
			// the digest depends on neither the loaded bytes nor on where they are.
			req.Messages = append(req.Messages, &harnessv1.Message{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("Seen"), Parts: answer.Parts, Origin: answer.Origin})
			if _, err := p.Complete(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			if !(*sent)[1].Opaque {
				t.Errorf("the opaque part of the answer did not go back")
			}
			// An image that was not there binds the answer to another conversation.
			req.Messages[0].Parts = req.Messages[0].Parts[:1]
			if _, err := p.Complete(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			if (*sent)[1].Opaque {
				t.Errorf("the opaque part went back after other media")
			}
		})
	}
}

func TestMediaThatCannotBeReadFailTheTry(t *testing.T) {
	p, sent := mediaServer(t, func(string) media.Takes { return media.Takes{Images: true} })
	req := mediaRequest()
	req.Blob = func(context.Context, string) ([]byte, error) { return nil, errors.New("the log is away") }
	_, err := p.Complete(t.Context(), req, nil)
	var failed *model.Error
	if !errors.As(err, &failed) || !failed.Retryable || !strings.Contains(failed.Message, "read the media") || len(*sent) > 0 {
		t.Errorf("error %v, sent %v; want a retryable error and no request", err, *sent)
	}
	req.Blob = nil
	if _, err := p.Complete(t.Context(), req, nil); err == nil {
		t.Errorf("a request without its media was sent")
	}
}

// TestHiddenMediaNameTheirMessage: a line that replaces an image for lack of room names the
// message, if the request has the tool that reads it.
func TestHiddenMediaNameTheirMessage(t *testing.T) {
	p, sent := mediaServer(t, func(string) media.Takes { return media.Takes{Images: true, MaxItems: 1} })
	req := mediaRequest()
	for i, says := range []string{"ask the user to attach it again.]", "See it again with read_artifact, ref m1.]"} {
		if _, err := p.Complete(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if text := (*sent)[0].Text; !strings.Contains(text, says) {
			t.Errorf("request %d lacks %q:\n%s", i, says, text)
		}
		req.Tools = []*harnessv1.ToolSpec{{Name: "read_artifact"}}
	}
}

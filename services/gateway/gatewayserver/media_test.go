package gatewayserver_test

import (
	"bytes"
	"image/color"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
)

// file is an attachment as a client sends it.
func file(name string, data []byte) *harnessv1.Media { return &harnessv1.Media{Name: name, Data: data} }

// checkStored fails the test unless m is an image of 30×20 whose bytes are in a blob.
func (b *bed) checkStored(run string, m *harnessv1.Media) {
	b.t.Helper()
	want := &harnessv1.Media{Type: media.PNG, Width: 30, Height: 20, Name: "chart.png", Blob: &harnessv1.BlobRef{Digest: m.GetBlob().GetDigest(), Size: m.GetBlob().GetSize()}}
	if !proto.Equal(m, want) {
		b.t.Fatalf("stored %v, want %v without data and preview", m, want)
	}
	if data := b.blob(run, m.GetBlob().GetDigest()); media.TypeOf([]byte(data)) != media.PNG || uint64(len(data)) != m.GetBlob().GetSize() {
		b.t.Fatalf("the blob has %d bytes of the type %q", len(data), media.TypeOf([]byte(data)))
	}
}

func TestStartRunStoresMedia(t *testing.T) {
	b := newBed(t)
	chart := mediatest.PNG(mediatest.Noise(30, 20))
	request := func(data []byte) *harnessv1.StartRunRequest {
		r := b.start("r1", "What is this?")
		r.Spec.Media = []*harnessv1.Media{file("chart.png", data), file("report.pdf", mediatest.PDF(3))}
		return r
	}
	for i := range 2 {
		resp, err := b.client.StartRun(b.ctx, request(chart))
		b.must(err)
		if resp.GetExisted() != (i == 1) {
			t.Fatalf("request %d: %v", i, resp)
		}
	}
	got, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	if len(got.GetSpec().GetMedia()) != 2 || got.GetSpec().GetMedia()[1].GetPages() != 3 {
		t.Fatalf("the spec is %v", got.GetSpec())
	}
	b.checkStored("r1", got.GetSpec().GetMedia()[0])

	_, err = b.client.StartRun(b.ctx, request(mediatest.PNG(mediatest.Plain(30, 20, color.White))))
	b.refused(err, codes.AlreadyExists, "RUN_EXISTS")
	_, err = b.client.StartRun(b.ctx, b.start("r1", "What is this?"))
	b.refused(err, codes.AlreadyExists, "RUN_EXISTS")
}

func TestBadMediaStartNothing(t *testing.T) {
	b := newBed(t)
	for says, data := range map[string][]byte{
		"spec.media[1].data: unknown type; expected a PNG, JPEG, GIF, WebP or PDF file":              []byte("text"),
		"spec.media[1].data: the image has 50000×50000 pixels, 2500 megapixels; expected at most 50": mediatest.PNGHeader(50_000, 50_000),
		"spec.media[1].data: the PDF is encrypted; remove its password first":                        mediatest.EncryptedPDF(1),
	} {
		r := b.start("r1", "go")
		r.Spec.Media = []*harnessv1.Media{file("a.pdf", mediatest.PDF(1)), file("x", data)}
		_, err := b.client.StartRun(b.ctx, r)
		b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
		if !strings.HasPrefix(status.Convert(err).Message(), says) {
			t.Errorf("refused with %q, want %q", status.Convert(err).Message(), says)
		}
	}
	_, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
}

func TestInputsStoreMedia(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").park("client_tool", awaited("c1", "client_tool"))
	chart := mediatest.PNG(mediatest.Noise(30, 20))
	send := func(r *harnessv1.SendInputRequest) (*harnessv1.SendInputResponse, error) {
		r.Namespace, r.RunId = b.namespace, "r1"
		return b.client.SendInput(b.ctx, r)
	}
	for i := range 2 {
		resp, err := send(&harnessv1.SendInputRequest{RequestId: "m", Input: &harnessv1.SendInputRequest_UserMessage{
			UserMessage: &harnessv1.UserMessage{Media: []*harnessv1.Media{file("chart.png", chart)}},
		}})
		b.must(err)
		if resp.GetExisted() != (i == 1) {
			t.Errorf("message %d: %v", i, resp)
		}
	}
	_, err := send(&harnessv1.SendInputRequest{RequestId: "a", Input: &harnessv1.SendInputRequest_ToolAnswer{
		ToolAnswer: &harnessv1.ToolAnswer{CallId: "c1", Result: content.Inline("done"), Media: []*harnessv1.Media{file("chart.png", chart)}},
	}})
	b.must(err)
	_, err = send(&harnessv1.SendInputRequest{RequestId: "bad", Input: &harnessv1.SendInputRequest_UserMessage{
		UserMessage: &harnessv1.UserMessage{Content: content.Inline("look"), Media: []*harnessv1.Media{file("a.txt", []byte("text"))}},
	}})
	b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	if !strings.HasPrefix(status.Convert(err).Message(), "user_message.media[0].data: unknown type") {
		t.Errorf("refused with %v", err)
	}

	items, err := b.log.Inbox(b.ctx, h.run, 0, h.drained())
	b.must(err)
	if len(items) != 2 {
		t.Fatalf("the inbox has %d items, want 2", len(items))
	}
	b.checkStored("r1", items[0].GetUserMessage().GetMedia()[0])
	b.checkStored("r1", items[1].GetToolAnswer().GetMedia()[0])
}

// TestMediaGoWithTheirRun erases a run and looks for its files, the ones of its spec and
// of a message.
func TestMediaGoWithTheirRun(t *testing.T) {
	b := newBed(t)
	r := b.start("r1", "go")
	r.Spec.Media = []*harnessv1.Media{file("a.pdf", mediatest.PDF(1))}
	_, err := b.client.StartRun(b.ctx, r)
	b.must(err)
	_, err = b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r1", Input: &harnessv1.SendInputRequest_UserMessage{
		UserMessage: &harnessv1.UserMessage{Media: []*harnessv1.Media{file("b.pdf", mediatest.PDF(2))}},
	}})
	b.must(err)
	run := runlog.Run{Namespace: b.namespace, ID: "r1"}
	for _, data := range [][]byte{mediatest.PDF(1), mediatest.PDF(2)} {
		if stored, err := b.log.Blob(b.ctx, run, content.Digest(data)); err != nil || !bytes.Equal(stored, data) {
			t.Fatalf("the file is not stored: %v", err)
		}
	}
	b.must(b.log.Erase(b.ctx, run, 0, runlog.Everything))
	for _, data := range [][]byte{mediatest.PDF(1), mediatest.PDF(2)} {
		if _, err := b.log.Blob(b.ctx, run, content.Digest(data)); err == nil {
			t.Errorf("a file of an erased run can be read")
		}
	}
}

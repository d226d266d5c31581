package gatewayhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// state returns the state of a run at a version.
func (s *server) state(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "version")
	request := &harnessv1.GetStateRequest{Namespace: q.namespace(), RunId: r.PathValue("run_id"), Version: q.number("version", 64)}
	if q.err != nil {
		return q.err
	}
	answer, err := s.gateway.GetState(calling(r), request)
	if err != nil {
		return err
	}
	return answerMessage(w, http.StatusOK, answer)
}

// conversation returns the conversation of a run up to a version.
func (s *server) conversation(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "version")
	request := &harnessv1.GetConversationRequest{Namespace: q.namespace(), RunId: r.PathValue("run_id"), Version: q.number("version", 64)}
	if q.err != nil {
		return q.err
	}
	answer, err := s.gateway.GetConversation(calling(r), request)
	if err != nil {
		return err
	}
	return answerMessage(w, http.StatusOK, answer)
}

// context returns a page of the request that the model was sent at a version, or would be sent.
func (s *server) context(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "version", "page_size", "page_token")
	request := &harnessv1.GetContextRequest{
		Namespace: q.namespace(), RunId: r.PathValue("run_id"), Version: q.number("version", 64),
		PageSize: uint32(q.number("page_size", 32)), PageToken: q.text("page_token"), //nolint:gosec // parsed as 32 bits
	}
	if q.err != nil {
		return q.err
	}
	answer, err := s.gateway.GetContext(calling(r), request)
	if err != nil {
		return err
	}
	return answerMessage(w, http.StatusOK, answer)
}

// pending returns the calls that runs wait for.
func (s *server) pending(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "run_id", "page_size", "page_token")
	request := &harnessv1.ListPendingRequest{
		Namespace: q.namespace(), RunId: q.text("run_id"), PageSize: uint32(q.number("page_size", 32)), PageToken: q.text("page_token"), //nolint:gosec // parsed as 32 bits
	}
	if q.err != nil {
		return q.err
	}
	answer, err := s.gateway.ListPending(calling(r), request)
	if err != nil {
		return err
	}
	return answerMessage(w, http.StatusOK, answer)
}

// blob returns bytes that a model or a tool wrote, so no browser may interpret them as a
// page of this origin.
func (s *server) blob(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if q.err != nil {
		return q.err
	}
	digest := r.PathValue("digest")
	stream, err := s.gateway.GetBlob(calling(r), &harnessv1.GetBlobRequest{Namespace: q.namespace(), RunId: r.PathValue("run_id"), Digest: digest})
	if err != nil {
		return err
	}
	out := s.patient(w)
	for begun := false; ; {
		part, err := stream.Recv()
		switch {
		case err != nil && !errors.Is(err, io.EOF) && !begun:
			return err
		case err != nil && !errors.Is(err, io.EOF):
			panic(http.ErrAbortHandler) // a partial answer must not look complete
		}
		if !begun {
			begun = true
			h := w.Header()
			h.Set("Content-Type", "application/octet-stream")
			h.Set("Content-Disposition", "attachment")
			h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
			h.Set("Cache-Control", "private, max-age=86400, immutable")
			h.Set("ETag", `"`+digest+`"`)
		}
		if err != nil {
			return nil
		}
		if _, err := out.Write(part.GetChunk()); err != nil {
			return nil // the client has left
		}
	}
}

// maxText bounds a text that is included in an answer, in bytes.
const maxText = 64 << 20

// whole returns a result with its texts inline, wherever they are stored.
func (s *server) whole(ctx context.Context, namespace, runID string, r *harnessv1.HarnessResult) (*harnessv1.HarnessResult, error) {
	r = proto.CloneOf(r)
	texts := []*harnessv1.Content{r.GetAnswer(), r.GetSummary(), r.GetOutput()}
	for _, d := range r.GetDeliverables() {
		texts = append(texts, d.GetContent())
	}
	for _, c := range texts {
		ref := c.GetBlob()
		if ref == nil {
			continue
		}
		if ref.GetSize() > maxText {
			continue // stays a reference: GET …/blobs/{digest} has it
		}
		text, err := s.text(ctx, &harnessv1.GetBlobRequest{Namespace: namespace, RunId: runID, Digest: ref.GetDigest()})
		if err != nil {
			return nil, err
		}
		c.Value = &harnessv1.Content_Inline{Inline: text}
	}
	return r, nil
}

func (s *server) text(ctx context.Context, request *harnessv1.GetBlobRequest) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.gateway.GetBlob(ctx, request)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return strings.ToValidUTF8(text.String(), "\uFFFD"), nil
		}
		if err != nil {
			return "", err
		}
		if text.Len()+len(part.GetChunk()) > maxText {
			return "", fault.New(codes.Internal, harnessv1.ErrorReason_ERROR_REASON_INTERNAL, fmt.Sprintf("blob %s exceeds its declared size", request.GetDigest()))
		}
		text.Write(part.GetChunk())
	}
}

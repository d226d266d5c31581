package inferenceserver

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// input has the parts of the request of a job.
type input struct {
	// request has all texts inline. Opaque parts and media may be blobs.
	request *harnessv1.ModelRequest
	// blob returns the bytes of a blob of the run. Nil: there are none.
	blob func(ctx context.Context, digest string) ([]byte, error)
	// number is that of model.Job. Nil: the job is the first of its purpose.
	number func(ctx context.Context) (uint32, error)
}

// resolve reads the input of a job.
func (s *Server) resolve(ctx context.Context, job *harnessv1.Job) (*input, error) {
	run := runOf(job)
	data, err := s.cfg.Log.Blob(ctx, run, job.GetRequest().GetDigest())
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	in := &input{
		request: &harnessv1.ModelRequest{},
		blob:    func(ctx context.Context, digest string) ([]byte, error) { return s.cfg.Log.Blob(ctx, run, digest) },
		number:  s.numberOf(job),
	}
	if err := proto.Unmarshal(data, in.request); err != nil {
		return nil, fmt.Errorf("the request is no ModelRequest in binary form: %w", err)
	}
	for _, m := range in.request.GetMessages() {
		if err := in.inline(ctx, m); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// inline replaces the references of a message by their texts.
func (in *input) inline(ctx context.Context, m *harnessv1.Message) error {
	for _, c := range contentsOf(m) {
		if c.GetBlob() == nil {
			continue
		}
		data, err := in.blob(ctx, c.GetBlob().GetDigest())
		if err != nil {
			return fmt.Errorf("read the text of message %d: %w", m.GetId(), err)
		}
		c.Value = content.Inline(string(data)).GetValue()
	}
	return nil
}

// contentsOf returns the texts of a message that models are sent.
func contentsOf(m *harnessv1.Message) []*harnessv1.Content {
	contents := []*harnessv1.Content{m.GetContent()}
	for _, c := range m.GetToolCalls() {
		contents = append(contents, c.GetArguments())
	}
	return contents
}

// forCustom returns the request for a custom service: media are inline, and parts of
// answers are left out, because texts and calls say the same without what only their
// provider may read.
func (in *input) forCustom(ctx context.Context) (*harnessv1.ModelRequest, error) {
	out := &harnessv1.ModelRequest{Model: in.request.GetModel(), Tools: in.request.GetTools(), AnswerSchema: in.request.GetAnswerSchema()}
	for _, m := range in.request.GetMessages() {
		var files []*harnessv1.Part
		for _, p := range m.GetParts() {
			if p.GetMedia() == nil {
				continue
			}
			file := proto.CloneOf(p.GetMedia())
			if file.GetBlob() != nil {
				data, err := in.blob(ctx, file.GetBlob().GetDigest())
				if err != nil {
					return nil, fmt.Errorf("read a file of message %d: %w", m.GetId(), err)
				}
				file.Data, file.Blob = data, nil
			}
			files = append(files, media.Parts([]*harnessv1.Media{file})...)
		}
		out.Messages = append(out.Messages, opaque.WithParts(m, files, nil))
	}
	return out, nil
}

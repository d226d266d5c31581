package contract

import (
	"context"
	"errors"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// world is Sources in memory. A blob's text stands under its digest.
type world struct {
	response  string
	messages  []*harnessv1.Message
	blobs     map[string]string
	artifacts map[string]string
	files     map[string]string
	largest   int // Bytes of a file that are handed out; 0: all.
	command   *harnessv1.CheckCommandResponse
	remote    *harnessv1.RequirementCoverage
	state     map[string]any
	err       error // What every source fails with.

	ran     string // The command that was run last.
	timeout time.Duration
}

func (w *world) Turn() uint32 { return 7 }

func (w *world) Response(context.Context) (string, error) { return w.response, w.err }

func (w *world) Messages(context.Context) ([]*harnessv1.Message, error) { return w.messages, w.err }

func (w *world) Text(_ context.Context, c *harnessv1.Content) (string, error) {
	if blob := c.GetBlob(); blob != nil {
		text, is := w.blobs[blob.GetDigest()]
		if !is {
			return "", errors.New("the blob cannot be read")
		}
		return text, nil
	}
	return c.GetInline(), nil
}

func (w *world) Artifact(_ context.Context, id string) (string, bool, error) {
	text, found := w.artifacts[id]
	return text, found, w.err
}

func (w *world) File(_ context.Context, path string, textBytes uint32) (*harnessv1.CheckFileResponse, error) {
	if w.err != nil {
		return nil, w.err
	}
	text, is := w.files[path]
	if !is {
		return &harnessv1.CheckFileResponse{Why: "does not exist"}, nil
	}
	out := &harnessv1.CheckFileResponse{Exists: true, Digest: digest(text), Size: uint64(len(text))}
	if n := w.largest; n > 0 && n < len(text) {
		text, out.Truncated = text[:n], true
	}
	if textBytes > 0 {
		out.Text = text
	}
	return out, nil
}

func (w *world) Command(_ context.Context, _, command string, timeout time.Duration) (*harnessv1.CheckCommandResponse, error) {
	w.ran, w.timeout = command, timeout
	return w.command, w.err
}

func (w *world) Remote(_ context.Context, _ string, _ *harnessv1.RequiredOutput, timeout time.Duration) (*harnessv1.RequirementCoverage, error) {
	w.timeout = timeout
	return w.remote, w.err
}

func (w *world) State(context.Context) (map[string]any, error) { return w.state, w.err }

func inline(text string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: text}}
}

func blob(digest, preview string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: digest, Preview: preview}}}
}

func says(role harnessv1.Role, kind harnessv1.MessageKind, text string) *harnessv1.Message {
	return &harnessv1.Message{Role: role, Kind: kind, Content: inline(text)}
}

// calls is an assistant message with calls: id, tool, arguments.
func calls(of ...[3]string) *harnessv1.Message {
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT}
	for _, c := range of {
		m.ToolCalls = append(m.ToolCalls, &harnessv1.ToolCall{Id: c[0], Name: c[1], Arguments: inline(c[2])})
	}
	return m
}

func answers(id, text string, isError bool) *harnessv1.Message {
	return &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, Content: inline(text), IsError: isError}
}

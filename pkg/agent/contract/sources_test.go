package contract

import (
	"context"
	"errors"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// memory is Sources in memory. The text of a blob is stored under its digest.
type memory struct {
	response  string
	messages  []*harnessv1.Message
	blobs     map[string]string
	artifacts map[string]string
	saved     []*harnessv1.Artifact
	files     map[string]string
	largest   int // Bytes of a file that are handed out; 0: all.
	command   *harnessv1.CheckCommandResponse
	remote    *harnessv1.RequirementCoverage
	state     map[string]any
	err       error // What every source fails with.

	ran     string // The command that was run last.
	timeout time.Duration
}

func (m *memory) Turn() uint32 { return 7 }

func (m *memory) Response(context.Context) (string, error) { return m.response, m.err }

func (m *memory) Messages(context.Context) ([]*harnessv1.Message, error) { return m.messages, m.err }

func (m *memory) Text(_ context.Context, c *harnessv1.Content) (string, error) {
	if blob := c.GetBlob(); blob != nil {
		text, is := m.blobs[blob.GetDigest()]
		if !is {
			return "", errors.New("the blob cannot be read")
		}
		return text, nil
	}
	return c.GetInline(), nil
}

func (m *memory) Artifact(_ context.Context, id string) (string, bool, error) {
	text, found := m.artifacts[id]
	return text, found, m.err
}

func (m *memory) Saved() []*harnessv1.Artifact { return m.saved }

func (m *memory) File(_ context.Context, path string, textBytes uint32) (*harnessv1.CheckFileResponse, error) {
	if m.err != nil {
		return nil, m.err
	}
	text, is := m.files[path]
	if !is {
		return &harnessv1.CheckFileResponse{Why: "does not exist"}, nil
	}
	out := &harnessv1.CheckFileResponse{Exists: true, Digest: digest(text), Size: uint64(len(text))}
	if n := m.largest; n > 0 && n < len(text) {
		text, out.Truncated = text[:n], true
	}
	if textBytes > 0 {
		out.Text = text
	}
	return out, nil
}

func (m *memory) Command(_ context.Context, _, command string, timeout time.Duration) (*harnessv1.CheckCommandResponse, error) {
	m.ran, m.timeout = command, timeout
	return m.command, m.err
}

func (m *memory) Remote(_ context.Context, _ string, _ *harnessv1.RequiredOutput, timeout time.Duration) (*harnessv1.RequirementCoverage, error) {
	m.timeout = timeout
	return m.remote, m.err
}

func (m *memory) State(context.Context) (map[string]any, error) { return m.state, m.err }

func inline(text string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: text}}
}

func blob(digest, preview string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: digest, Preview: preview}}}
}

func messageFrom(role harnessv1.Role, kind harnessv1.MessageKind, text string) *harnessv1.Message {
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

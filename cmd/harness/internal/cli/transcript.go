package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// checkTranscript returns an error if a transcript cannot be written to path, before
// anything is started. Empty is no transcript.
func checkTranscript(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("--transcript: %s is a directory: name a file", path)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("--transcript: directory %s not found: create it first", filepath.Dir(path))
	}
	return nil
}

// writeTranscript writes the conversation, one JSON object per message and line, with all
// texts. The file appears as a whole.
func (f *runFollower) writeTranscript(ctx context.Context) error {
	if f.transcript == "" {
		return nil
	}
	answer, err := f.session.Client.GetConversation(ctx, &harnessv1.GetConversationRequest{Namespace: f.target.Namespace, RunId: f.run})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, m := range answer.GetMessages() {
		whole, err := f.inlineTexts(ctx, m)
		if err != nil {
			return err
		}
		line, err := eventjson.Message(whole)
		if err != nil {
			return err
		}
		out.Write(append(line, '\n'))
	}
	temporary, err := os.CreateTemp(filepath.Dir(f.transcript), ".transcript-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(out.Bytes())
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), f.transcript)
}

// inlineTexts returns a message with its texts inline, wherever they are stored.
func (f *runFollower) inlineTexts(ctx context.Context, m *harnessv1.Message) (*harnessv1.Message, error) {
	m = proto.CloneOf(m)
	texts := []*harnessv1.Content{m.GetContent()}
	for _, call := range m.GetToolCalls() {
		texts = append(texts, call.GetArguments())
	}
	for _, p := range m.GetParts() {
		texts = append(texts, p.GetReasoning().GetText())
	}
	for _, c := range texts {
		if c.GetBlob() == nil {
			continue
		}
		text, err := backend.Text(ctx, f.session.Client, f.target.Namespace, f.run, c)
		if err != nil {
			return nil, err
		}
		c.Value = &harnessv1.Content_Inline{Inline: text}
	}
	return m, nil
}

package follower

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

// CheckTranscript returns an error if a transcript cannot be written to path, before
// anything is started. Empty is no transcript.
func CheckTranscript(path string) error {
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
func (f *Follower) writeTranscript(ctx context.Context) error {
	if f.Transcript == "" {
		return nil
	}
	answer, err := f.Session.Client.GetConversation(ctx, &harnessv1.GetConversationRequest{Namespace: f.Target.Namespace, RunId: f.Run})
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
	temporary, err := os.CreateTemp(filepath.Dir(f.Transcript), ".transcript-*")
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
	return os.Rename(temporary.Name(), f.Transcript)
}

// inlineTexts returns a message with its texts inline, wherever they are stored.
func (f *Follower) inlineTexts(ctx context.Context, m *harnessv1.Message) (*harnessv1.Message, error) {
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
		text, err := backend.Text(ctx, f.Session.Client, f.Target.Namespace, f.Run, c)
		if err != nil {
			return nil, err
		}
		c.Value = &harnessv1.Content_Inline{Inline: text}
	}
	return m, nil
}

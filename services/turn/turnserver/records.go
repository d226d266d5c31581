package turnserver

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// append stores a record in the journal.
func (t *execution) append(ctx context.Context, a turn.Append) turn.Event {
	if err := t.storeArtifacts(ctx, a.Draft.Entry); err != nil {
		return turn.Failed{Err: err}
	}
	if err := t.storeMedia(ctx, a.Draft.Appended); err != nil {
		return turn.Failed{Err: err}
	}
	if a.Before != "" {
		failpoint.Hit(turn.Name, a.Before)
	}
	if err := t.journal.AppendJournal(ctx, a.Draft.Entry, a.Draft.Appended, a.Draft.Events); err != nil {
		return turn.Failed{Err: err}
	}
	if a.After != "" {
		failpoint.Hit(turn.Name, a.After)
	}
	return turn.Appended{}
}

// maxArtifact is the size in bytes up to which the state itself holds an artifact.
const maxArtifact = 256

// storeArtifacts stores the artifacts of changed work items as blobs, so that the
// state only refers to them.
func (t *execution) storeArtifacts(ctx context.Context, entry *harnessv1.Journal) error {
	items := entry.GetModelResponded().GetWorkItems()
	if judged := entry.GetCallsJudged(); judged != nil {
		items = judged.GetWorkItems()
	}
	for _, item := range items {
		text := item.GetArtifact().GetInline()
		if len(text) <= maxArtifact || t.unstored {
			continue
		}
		ref, err := t.server.cfg.Log.PutBlob(ctx, t.run, []byte(text))
		if err != nil {
			return fmt.Errorf("store the artifact of work item %s: %w", item.GetId(), err)
		}
		item.Artifact = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: ref.GetDigest(), Size: ref.GetSize()}}}
	}
	return nil
}

// loadConversation reads the run's conversation.
func (t *execution) loadConversation(ctx context.Context) turn.Event {
	c, err := t.load(ctx)
	if err != nil {
		return turn.Failed{Err: err}
	}
	return turn.ConversationLoaded{Conversation: c}
}

// readArguments reads the arguments of calls that are stored as blobs.
func (t *execution) readArguments(ctx context.Context, a turn.ReadArguments) turn.Event {
	texts := make(map[string]string, len(a.Arguments))
	for id, c := range a.Arguments {
		text, err := t.server.text(ctx, t.run, c)
		if err != nil {
			return turn.Failed{Err: err}
		}
		texts[id] = text.GetInline()
	}
	return turn.ArgumentsRead{Texts: texts}
}

// text returns a content as text, read from its blob if it is stored as one.
func (w *Server) text(ctx context.Context, run runlog.Run, c *harnessv1.Content) (*harnessv1.Content, error) {
	if c.GetBlob() == nil {
		return c, nil
	}
	data, err := w.blobs.read(ctx, run, c.GetBlob().GetDigest())
	if err != nil {
		return nil, err
	}
	return content.Inline(string(data)), nil
}

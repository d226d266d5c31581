package turnserver

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// storeMedia stores the images and documents of messages as blobs of the run, so that the
// record only refers to them. A line of text replaces one that a tool host did not check
// and that cannot be used. A turn without a log keeps their data.
func (t *execution) storeMedia(ctx context.Context, messages []*harnessv1.Message) error {
	for _, m := range messages {
		if len(m.GetParts()) == 0 {
			continue
		}
		var parts []*harnessv1.Part
		for _, p := range m.GetParts() {
			file := p.GetMedia()
			if file == nil || file.GetBlob() != nil {
				parts = append(parts, p)
				continue
			}
			if !media.Accepted(file) {
				checked, data, err := media.Check(file.GetName(), file.GetData())
				if err != nil {
					m.Content = content.Inline(m.GetContent().GetInline() + fmt.Sprintf("\n[An attached file cannot be shown: %v.]", err))
					continue
				}
				checked.Data = data
				file = checked
			}
			if !t.unstored {
				ref, err := t.server.cfg.Log.PutBlob(ctx, t.run, file.GetData())
				if err != nil {
					return fmt.Errorf("store a file of the result of call %s: %w", m.GetToolCallId(), err)
				}
				file = media.Stored(file, ref)
			}
			parts = append(parts, media.Parts([]*harnessv1.Media{file})...)
		}
		m.Parts = parts
	}
	return nil
}

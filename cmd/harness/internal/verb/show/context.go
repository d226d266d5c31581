package show

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// contextPage is the number of messages that one call fetches.
const contextPage = 500

// checkContext checks the flags about a context.
func (c *Cmd) checkContext(a *console.Console) error {
	for _, other := range []string{"conversation", "state"} {
		if err := a.Conflict("context", other); err != nil {
			return err
		}
	}
	switch {
	case a.Given["version"] && !c.Context:
		return errors.New("--version: needs --context; for the state at a version use --state VERSION")
	case a.Given["version"] && c.Version == 0:
		return errors.New("--version: 0: versions begin with 1; leave it out for the newest")
	}
	return nil
}

// context prints the messages that the model was sent at a version, or would be sent, page by page.
func (c *Cmd) context(ctx context.Context, a *console.Console, s *backend.Session) error {
	request := &harnessv1.GetContextRequest{Namespace: c.Namespace, RunId: c.RunID, Version: c.Version, PageSize: contextPage}
	page, err := s.Client.GetContext(ctx, request)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return c.contextJSON(ctx, a, s, request, page)
	}
	table := render.NewContextTable(a.Style(a.Out), page)
	lines := append(table.Head(c.Namespace+"/"+c.RunID, c.Version == 0), table.Columns())
	for {
		lines = append(lines, table.Lines(page)...)
		last := page.GetNextPageToken() == ""
		if last {
			lines = append(lines, table.Foot()...)
		}
		if err := console.Emit(a.Out, []byte(strings.Join(lines, "\n"))); err != nil || last {
			return err
		}
		lines = lines[:0]
		request.PageToken = page.GetNextPageToken()
		if page, err = s.Client.GetContext(ctx, request); err != nil {
			return err
		}
	}
}

// contextJSON prints all pages as one object.
func (c *Cmd) contextJSON(ctx context.Context, a *console.Console, s *backend.Session, request *harnessv1.GetContextRequest, whole *harnessv1.GetContextResponse) error {
	for whole.GetNextPageToken() != "" {
		request.PageToken = whole.GetNextPageToken()
		page, err := s.Client.GetContext(ctx, request)
		if err != nil {
			return err
		}
		whole.Items = append(whole.Items, page.GetItems()...)
		whole.NextPageToken, whole.DigestMatches = page.GetNextPageToken(), page.DigestMatches
	}
	out, err := eventjson.Message(whole)
	if err != nil {
		return fmt.Errorf("encode the context: %w", err)
	}
	return console.Emit(a.Out, out)
}

package gatewayserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/summary"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// Bounds of the caches for the pages of contexts, in bytes.
const (
	maxConversations = 32 << 20
	maxShown         = 8 << 20
)

// GetContext returns a page of the request that the model was sent at a version of a run, or
// would be sent. Of the blobs it reads only those of messages on the page.
//
// The digest of the items is made page by page, so that a page reads nothing of the others:
// the token of a page holds the digest of the items before it, and the last page compares.
func (s *Server) GetContext(ctx context.Context, r *harnessv1.GetContextRequest) (*harnessv1.GetContextResponse, error) {
	run, page, err := gateway.CheckContext(r)
	if err != nil {
		return nil, err
	}
	resp, err := s.getContext(ctx, run, page)
	return resp, s.failure(ctx, "read", run, err)
}

func (s *Server) getContext(ctx context.Context, run runlog.Run, page gateway.ContextPage) (*harnessv1.GetContextResponse, error) {
	at, err := s.recordAt(ctx, run, page)
	if err != nil {
		return nil, err
	}
	c, err := s.contextAt(ctx, at)
	if err != nil {
		return nil, err
	}
	if page.First > len(c.Items) {
		return nil, gateway.BadContextToken()
	}
	items := c.Items[page.First:min(page.First+page.Size, len(c.Items))]
	sent, err := s.asSent(ctx, run, c, items)
	if err != nil {
		return nil, lost(err)
	}
	resp := &harnessv1.GetContextResponse{
		Version: at.Header.Version, Model: c.Model(), UsedTokens: c.Used(), MaxInputTokens: c.Window(),
		ToolTokens: c.Step.GetSnapshot().GetTokenBudget().GetToolTokens(), TotalItems: uint32(len(c.Items)), //nolint:gosec // far below
		ViewDigest: c.Response.GetViewDigest(),
	}
	model := shown.ModelOf(s.catalogue, c.Step.GetSnapshot().GetModel())
	hidden := media.Hidden(view.Messages(c.Items), shown.ModelOf(s.catalogue, c.Model()).Takes)[page.First:]
	for i := range items {
		resp.Items = append(resp.Items, c.Describe(&items[i], sent[i], model.Weight, hidden[i]))
	}
	if page.First == 0 {
		resp.Plan = c.Plan()
	}
	next := gateway.ContextPage{Version: at.Header.Version, Sequence: at.Sequence, First: page.First + len(items), Before: shown.Extend(page.Before, sent...)}
	switch {
	case next.First < len(c.Items):
		resp.NextPageToken = next.Token()
	case len(resp.ViewDigest) > 0:
		resp.DigestMatches = proto.Bool(bytes.Equal(next.Before, resp.ViewDigest))
	}
	return resp, nil
}

// recordAt returns the record at the version of a page.
func (s *Server) recordAt(ctx context.Context, run runlog.Run, page gateway.ContextPage) (at runlog.Entry, err error) {
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	v, err := s.view(bounded, run)
	if err != nil {
		return at, err
	}
	newest := v.Newest.Header.Version
	switch {
	case page.Sequence > 0:
		at, err = s.log.Read(bounded, run, page.Sequence)
		if errors.Is(err, runlog.ErrNotFound) || err == nil && at.Header.Version != page.Version {
			return at, gateway.BadContextToken()
		}
		if err == nil && at.Record == nil {
			err = unreadable(at)
		}
		return at, err
	case page.Version > newest:
		return at, gateway.BeyondNewest(run, page.Version, newest)
	}
	err = s.walk(ctx, v.Newest, func(e runlog.Entry) (bool, error) {
		at = e
		return page.Version != 0 && e.Header.Version > page.Version, nil
	})
	return at, err
}

// contextAt returns the context at a record.
func (s *Server) contextAt(ctx context.Context, at runlog.Entry) (*gateway.Context, error) {
	c := &gateway.Context{}
	before := at // of the response
	var latest []runlog.Entry
	err := s.walk(ctx, at, func(e runlog.Entry) (bool, error) {
		latest = append(latest, e)
		c.Step = e.Record.GetStep()
		return c.Step == nil, nil
	})
	if err != nil {
		return nil, err
	}
	for i, e := range latest {
		if c.Response = e.Record.GetJournal().GetModelResponded(); c.Response != nil {
			c.Weights, before = c.Response.GetWeights(), latest[i+1] // the last is the step
			break
		}
	}
	snapshot := c.Step.GetSnapshot()
	if c.Conversation, err = s.conversations.Load(ctx, snapshot.GetFirstSequence(), before); err != nil {
		return nil, lost(err)
	}
	summarized, err := s.summary(ctx, at.Run, snapshot.GetCompactionPlan())
	if err != nil {
		return nil, fmt.Errorf("the summary that version %d shows: %w", at.Header.Version, lost(err))
	}
	var v view.View
	c.Items = v.Update(c.Conversation, snapshot.GetCompactionPlan(), summarized)
	c.Index = &v.Index
	return c, nil
}

// summary returns the summary that a plan shows; nil if it shows none.
func (s *Server) summary(ctx context.Context, run runlog.Run, plan *harnessv1.CompactionPlan) (*harnessv1.StructuredSummary, error) {
	if plan.GetSummary() == nil {
		return nil, nil
	}
	data, err := s.log.Blob(ctx, run, plan.GetSummary().GetSummary().GetDigest())
	if err != nil {
		return nil, err
	}
	return summary.Decode(data)
}

// asSent returns the messages of items as the model is sent them.
func (s *Server) asSent(ctx context.Context, run runlog.Run, c *gateway.Context, items []view.Item) ([]*harnessv1.Message, error) {
	cfg := c.Config()
	return s.texts.View(ctx, run, c.Step.GetSnapshot().GetModel(), runstate.ShownTokens(cfg), true, items)
}

package compactionserver

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/summary"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/services/compaction"
)

// request creates the job for a summary. An error of the request itself becomes the
// reason why there is none.
func (o *observer) request(ctx context.Context, key string) (*harnessv1.SummaryRequested, error) {
	job, err := compaction.ParseRequest(key)
	if err != nil {
		return nil, err
	}
	c, err := o.load(ctx)
	if err != nil {
		return nil, err
	}
	former, err := o.former(ctx)
	if err != nil {
		return nil, err
	}
	request, err := o.summaryRequest(ctx, c, job, former)
	if err != nil {
		return nil, err
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return nil, err
	}
	ref, err := o.s.cfg.Log.PutBlob(ctx, o.task.Run, data)
	if err != nil {
		return nil, err
	}
	ref.Preview = "" // binary
	failpoint.Hit(compaction.Name, "request_stored")
	_, err = o.s.cfg.Jobs.CreateJob(ctx, &harnessv1.Job{
		Namespace: o.task.Run.Namespace, RunId: o.task.Run.ID, FirstSequence: o.snap.GetFirstSequence(), Key: job.GetKey(), Purpose: summary.Purpose,
		Model: compaction.Summarizer(o.snap), Request: ref, CreateTime: timestamppb.New(o.s.cfg.Now()), Timeout: o.snap.GetConfig().GetContext().GetSummaryWait(),
		Traceparent: runtrace.Traceparent(spans.Ref(ctx)),
	})
	switch {
	case errors.Is(err, runlog.ErrTooLarge), errors.Is(err, runlog.ErrNotFound):
		return &harnessv1.SummaryRequested{Job: job, Error: content.Line(err.Error(), content.MaxPreview)}, nil
	case err != nil:
		return nil, err
	}
	failpoint.Hit(compaction.Name, "job_created")
	return &harnessv1.SummaryRequested{Job: job}, nil
}

// former returns the summary that the view shows; nil if there is none.
func (o *observer) former(ctx context.Context) (*harnessv1.StructuredSummary, error) {
	ref := o.snap.GetCompactionPlan().GetSummary()
	if ref == nil {
		return nil, nil
	}
	data, err := o.s.cfg.Log.Blob(ctx, o.task.Run, ref.GetSummary().GetDigest())
	if err != nil {
		return nil, err
	}
	return summary.Decode(data)
}

// summaryShare is the share of the window that a summary fills at most.
const summaryShare = 0.12

// summary returns how far a requested summary is. A result that is there is read, merged
// with the summary that the view shows, and stored.
func (o *observer) summary(ctx context.Context, key string) (*harnessv1.SummaryState, error) {
	if o.s.cfg.Jobs == nil {
		return &harnessv1.SummaryState{}, nil
	}
	data, err := o.s.cfg.Jobs.BlobAs(ctx, o.task.Run, key)
	if err != nil || data == nil {
		return &harnessv1.SummaryState{}, err
	}
	result := &harnessv1.JobResult{}
	if err := proto.Unmarshal(data, result); err != nil {
		return &harnessv1.SummaryState{Ended: true, Error: "the stored result is damaged"}, nil
	}
	state := &harnessv1.SummaryState{Ended: true, Usage: result.GetUsage()}
	next, err := parse(result, o.job(key))
	if err != nil {
		state.Error = content.Line(err.Error(), content.MaxPreview)
		return state, nil
	}
	former, err := o.former(ctx)
	if err != nil {
		return nil, err
	}
	if o.snap.GetConfig().GetWorkItems().GetEnabled() { // the ledger shows them
		next.OpenItems, next.CurrentPlan = nil, nil
	}
	limit := int(summaryShare * float64(o.snap.GetConfig().GetContext().GetMaxInputTokens()) * bytesPerToken)
	merged := summary.Fit(summary.Merge(former, next), limit, func(s *harnessv1.StructuredSummary) int { return len(view.SummaryText(s)) })
	stored, err := summary.Encode(merged)
	if err != nil {
		return nil, err
	}
	ref, err := o.s.cfg.Log.PutBlob(ctx, o.task.Run, stored)
	if err != nil {
		return nil, err
	}
	ref.Preview = ""
	failpoint.Hit(compaction.Name, "job_ended")
	plan := o.snap.GetCompactionPlan()
	state.Summary = &harnessv1.SummaryRef{
		Key: key, ThroughMessage: merged.GetThroughMessage(), Summary: ref, Merged: plan.GetSummary().GetMerged() + 1, Former: plan.GetSummary().GetKey(),
		Tokens: uint32(tokens.Message(o.snap.GetModel(), view.SummaryMessage(merged))), //nolint:gosec // bounded by limit
	}
	return state, nil
}

// job returns the requested job with a key.
func (o *observer) job(key string) *harnessv1.SummaryJob {
	for _, job := range o.snap.GetCompactionPlan().GetJobs() {
		if job.GetKey() == key {
			return job
		}
	}
	return nil
}

// parse reads the result of a job.
func parse(result *harnessv1.JobResult, job *harnessv1.SummaryJob) (*harnessv1.StructuredSummary, error) {
	switch {
	case result.GetError() != "":
		return nil, errors.New(result.GetError())
	case result.GetToolCalls() > 0 && result.GetText() == "":
		return nil, errors.New("the summarizer called a tool")
	}
	s, err := summary.Parse(result.GetText(), job.GetFirstMessage(), job.GetThroughMessage())
	if err != nil && result.GetFinishReason() == "length" {
		return nil, fmt.Errorf("the summary was cut at the limit of the response: %w", err)
	}
	return s, err
}

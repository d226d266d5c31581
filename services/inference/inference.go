// Package inference decides how a job is carried out: whether a failed try is repeated,
// and the result of the last one. A job is a call of a model that is no turn. Its purpose is not
// interpreted. Package inferenceserver calls the models.
//
// Invariants:
//   - A call ends with one result: a text, or an error of one line.
//   - It has at most as many tries as its job permits. A request that is sent again
//     because a provider has asked for another form of it is no try; each form is sent
//     once.
//   - No wait ends after the time limit of the job.
//   - A result has at most MaxResult bytes.
package inference

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Name is the name of the role.
const Name = workflow.Inference

// Defaults of jobs that set none.
const (
	// DefaultTimeout bounds a call, with all tries and waits.
	DefaultTimeout = 120 * time.Second
	// DefaultMaxTries includes the first try.
	DefaultMaxTries = 3
)

// MaxResult bounds an encoded result, in bytes.
const MaxResult = 512 << 10

// MaxPanics is how many panics of one job end it with an error.
const MaxPanics = 3

// Timeout returns the time limit of a job.
func Timeout(job *harnessv1.Job) time.Duration {
	if d := job.GetTimeout().AsDuration(); d > 0 {
		return d
	}
	return DefaultTimeout
}

// Target returns the address of the InferenceService that carries a job out; custom is
// false if a model of the catalogue does.
func Target(job *harnessv1.Job) (address string, custom bool) {
	return strings.CutPrefix(job.GetModel(), "grpc:")
}

// Check returns why a job cannot be carried out; nil if it can.
func Check(job *harnessv1.Job) error {
	if strings.TrimSpace(job.GetModel()) == "" {
		return fmt.Errorf("the job %s names no model: set model to PROVIDER:NAME or grpc:HOST:PORT", job.GetKey())
	}
	return nil
}

// Call is the progress of a job's call.
type Call struct {
	job *harnessv1.Job
	// through is the id of the last message of the request.
	through     uint64
	tries       uint32
	adjustments []*harnessv1.ModelAdjustment
	last        string // error of the last failed try; empty for none
}

// NewCall returns the call of a job before its first try.
func NewCall(job *harnessv1.Job, messages []*harnessv1.Message) *Call {
	c := &Call{job: job}
	for _, m := range messages {
		c.through = max(c.through, m.GetId())
	}
	return c
}

// Tries returns the number of tries that have ended.
func (c *Call) Tries() uint32 { return c.tries }

// Adjustments returns how the next request differs from the job's, because the provider
// has asked for it.
func (c *Call) Adjustments() []*harnessv1.ModelAdjustment { return c.adjustments }

// Fail records a failed try and decides whether there is another one, and after which
// wait. left is the time to the end of the job's limit, random is uniform in [0, 1).
func (c *Call) Fail(err *model.Error, left time.Duration, random float64) (wait time.Duration, again bool) {
	if err == nil {
		err = model.AsError(nil)
	}
	c.last = err.Message
	if c.adjust(err.Adjustment) {
		return 0, true
	}
	c.tries++
	most := c.job.GetMaxTries()
	if most == 0 {
		most = DefaultMaxTries
	}
	wait, again = model.Next(&harnessv1.ModelConfig{MaxTries: &most}, c.tries, err, random)
	return wait, again && wait < left
}

// adjust records how the next request must differ. It reports false for a form that was
// sent already, and for no form at all.
func (c *Call) adjust(kind harnessv1.Adjustment) bool {
	if kind == harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED {
		return false
	}
	for _, a := range c.adjustments {
		if a.GetAdjustment() == kind {
			return false
		}
	}
	made := &harnessv1.ModelAdjustment{Model: c.job.GetModel(), Adjustment: kind}
	if kind == harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE {
		made.ThroughMessage = c.through
	}
	c.adjustments = runstate.Adjust(c.adjustments, made)
	return true
}

// Responded returns the result of a response. r.Usage must have its cost.
func (c *Call) Responded(r *model.Response) *harnessv1.JobResult {
	c.tries++
	result := &harnessv1.JobResult{
		Text: strings.ToValidUTF8(r.Text, "\uFFFD"), Usage: r.Usage, Model: c.modelName(r.Model),
		FinishReason: r.FinishReason, ToolCalls: uint32(len(r.ToolCalls)), //nolint:gosec // far below
	}
	switch blank := strings.TrimSpace(result.GetText()) == ""; {
	case r.FinishReason == refused:
		result.Error = "the model refused to answer"
		if category := content.OneLine(r.Refusal); category != "" {
			result.Error += " (" + category + ")"
		}
	case blank && len(r.ToolCalls) > 0:
		result.Error = fmt.Sprintf("the model made %d tool calls and wrote no text: a job has no tools to run", len(r.ToolCalls))
	case blank && r.FinishReason == length:
		result.Error = "the response reached the length limit before any text: lower the reasoning effort, or raise max_output_tokens"
	case blank:
		result.Error = "the response has no text"
	}
	return result
}

// Returned returns the result of a custom service, which counts its tries itself.
func (c *Call) Returned(result *harnessv1.JobResult) *harnessv1.JobResult {
	c.tries++
	if result.Model == "" {
		result.Model = c.job.GetModel()
	}
	return result
}

// Finish reasons of a response.
const (
	length  = "length"
	refused = "content_filter"
)

// modelName returns the model that has responded. A job that left the choice to the
// provider gets the name that the provider reports.
func (c *Call) modelName(reported string) string {
	if name := c.job.GetModel(); !strings.HasSuffix(name, ":") {
		return name
	}
	return c.job.GetModel() + reported
}

// GaveUp returns the result after Fail has decided against another try.
func (c *Call) GaveUp() *harnessv1.JobResult {
	if c.tries > 1 {
		return c.failure(fmt.Sprintf("%s (after %d tries)", c.last, c.tries))
	}
	return c.failure(c.last)
}

// TimedOut returns the result after the time limit has ended a try.
func (c *Call) TimedOut() *harnessv1.JobResult {
	c.tries++
	text := fmt.Sprintf("no response within %s", Timeout(c.job))
	if c.last != "" {
		text += "; the try before failed: " + c.last
	}
	return c.failure(text)
}

func (c *Call) failure(text string) *harnessv1.JobResult {
	return &harnessv1.JobResult{Error: text, Model: c.job.GetModel()}
}

// Finish returns a result as it is stored: with the call's key, tries and time, and
// within its bounds. took is the time from the first try to the end of the last.
func (c *Call) Finish(result *harnessv1.JobResult, took time.Duration) *harnessv1.JobResult {
	result.Tries, result.Latency = max(c.tries, result.GetTries()), durationpb.New(took)
	return Bounded(c.job, result)
}

// Failure returns the result of a job whose model was not called.
func Failure(job *harnessv1.Job, text string) *harnessv1.JobResult {
	return Bounded(job, &harnessv1.JobResult{Error: text, Model: job.GetModel()})
}

// Bounds of the small texts of a result, in bytes.
const (
	maxError  = content.MaxPreview
	maxModel  = 256
	maxReason = 64
)

// Bounded returns a result of a job within its bounds: it has either a text or an error,
// and at most MaxResult bytes. It changes result.
func Bounded(job *harnessv1.Job, result *harnessv1.JobResult) *harnessv1.JobResult {
	result.Key = job.GetKey()
	if result.GetUsage() == nil {
		result.Usage = &harnessv1.Usage{}
	}
	result.Error = content.Line(result.GetError(), maxError)
	result.Model = content.Line(result.GetModel(), maxModel)
	result.FinishReason = content.Line(result.GetFinishReason(), maxReason)
	switch {
	case result.GetError() != "":
		result.Text = ""
	case result.GetText() == "":
		result.Error = "the response has no text"
	case proto.Size(result) > MaxResult:
		result.Error = fmt.Sprintf("the response has %d bytes, too many for a result of at most %d: lower max_output_tokens", len(result.GetText()), MaxResult)
		result.Text = ""
	}
	return result
}

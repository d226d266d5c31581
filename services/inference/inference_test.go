package inference_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/services/inference"
)

const (
	noOpaque = harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE
	wireChat = harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT
)

func busy(after time.Duration) *model.Error {
	return &model.Error{Retryable: true, RetryAfter: after, Message: "overloaded"}
}

func TestTriesAreBounded(t *testing.T) {
	for _, c := range []struct{ max, want uint32 }{{0, inference.DefaultMaxTries}, {1, 1}, {5, 5}} {
		call := inference.NewCall(&harnessv1.Job{MaxTries: c.max}, nil)
		for again := true; again; {
			_, again = call.Fail(busy(0), time.Hour, 0)
		}
		if call.Tries() != c.want {
			t.Errorf("max_tries %d: %d tries, want %d", c.max, call.Tries(), c.want)
		}
		if got := call.GaveUp().GetError(); !strings.HasPrefix(got, "overloaded") || c.want > 1 != strings.Contains(got, fmt.Sprintf("after %d tries", c.want)) {
			t.Errorf("max_tries %d: %q", c.max, got)
		}
	}
}

func TestErrorsThatRemainAreNotRetried(t *testing.T) {
	for name, err := range map[string]*model.Error{
		"refused":   {RetryAfter: -1, Message: "invalid key"},
		"too long":  {Retryable: true, ContextExceeded: true, RetryAfter: -1},
		"long wait": busy(model.MaxRetryAfter + 1),
	} {
		if _, again := inference.NewCall(&harnessv1.Job{}, nil).Fail(err, time.Hour, 0); again {
			t.Errorf("%s: tried again", name)
		}
	}
	if _, again := inference.NewCall(&harnessv1.Job{}, nil).Fail(nil, time.Hour, 0); !again {
		t.Error("an unknown error is not tried again")
	}
}

// TestWaitsEndBeforeTheLimit: the wait that a provider requests is used exactly, unless
// the job's time is over before its end.
func TestWaitsEndBeforeTheLimit(t *testing.T) {
	for _, c := range []struct {
		after, left time.Duration
		again       bool
	}{{3 * time.Second, 4 * time.Second, true}, {4 * time.Second, 4 * time.Second, false}, {0, time.Nanosecond, true}, {0, 0, false}} {
		wait, again := inference.NewCall(&harnessv1.Job{}, nil).Fail(busy(c.after), c.left, 0)
		if again != c.again || again && wait != c.after {
			t.Errorf("%v with %v left: wait %v, again %t", c.after, c.left, wait, again)
		}
	}
}

// TestAdjustmentsAreNoTries: a request is sent again in each form that the provider asks
// for, once.
func TestAdjustmentsAreNoTries(t *testing.T) {
	call := inference.NewCall(&harnessv1.Job{Model: "openai:m", MaxTries: 1}, []*harnessv1.Message{{Id: 3}, {Id: 7}, {}})
	for _, kind := range []harnessv1.Adjustment{noOpaque, wireChat} {
		wait, again := call.Fail(&model.Error{Adjustment: kind, RetryAfter: -1, Message: "no"}, time.Nanosecond, 0)
		if !again || wait != 0 || call.Tries() != 0 {
			t.Errorf("%v: again %t after %v, %d tries", kind, again, wait, call.Tries())
		}
	}
	got := call.Adjustments()
	if len(got) != 2 || got[0].GetThroughMessage() != 7 || got[1].GetThroughMessage() != 0 || got[1].GetModel() != "openai:m" {
		t.Errorf("adjustments %v", got)
	}
	if _, again := call.Fail(&model.Error{Adjustment: noOpaque, RetryAfter: -1, Message: "no"}, time.Hour, 0); again || call.Tries() != 1 {
		t.Errorf("again %t, %d tries", again, call.Tries())
	}
}

func TestResultsOfResponses(t *testing.T) {
	usage := &harnessv1.Usage{InputTokens: 3, CostMicroUsd: 9}
	for name, c := range map[string]struct {
		response model.Response
		text     string
		fails    string
	}{
		"a text":          {model.Response{Text: "a\xff", FinishReason: "stop"}, "a\uFFFD", ""},
		"cut":             {model.Response{Text: "a", FinishReason: "length"}, "a", ""},
		"text and calls":  {model.Response{Text: "a", ToolCalls: calls(2), FinishReason: "tool_calls"}, "a", ""},
		"calls":           {model.Response{ToolCalls: calls(2), FinishReason: "tool_calls"}, "", "2 tool calls"},
		"nothing":         {model.Response{FinishReason: "stop"}, "", "no text"},
		"blank":           {model.Response{Text: " \n", FinishReason: "stop"}, "", "no text"},
		"cut before text": {model.Response{FinishReason: "length"}, "", "length limit"},
		"refused":         {model.Response{Text: "No.", FinishReason: "content_filter", Refusal: "bio\nweapons"}, "", "refused to answer (bio weapons)"},
	} {
		call := inference.NewCall(&harnessv1.Job{Key: "k", Model: "openai:m"}, nil)
		c.response.Usage = usage
		got := call.Finish(call.Responded(&c.response), time.Second)
		if got.GetText() != c.text || !strings.Contains(got.GetError(), c.fails) || got.GetError() != "" != (c.fails != "") {
			t.Errorf("%s: %v", name, got)
		}
		if got.GetKey() != "k" || got.GetTries() != 1 || got.GetLatency().AsDuration() != time.Second || !proto.Equal(got.GetUsage(), usage) ||
			got.GetFinishReason() != c.response.FinishReason || got.GetModel() != "openai:m" || int(got.GetToolCalls()) != len(c.response.ToolCalls) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func calls(n int) []*harnessv1.ToolCall { return make([]*harnessv1.ToolCall, n) }

func TestModelOfAProvidersChoice(t *testing.T) {
	call := inference.NewCall(&harnessv1.Job{Model: "openai:"}, nil)
	if got := call.Responded(&model.Response{Text: "a", Model: "gpt"}).GetModel(); got != "openai:gpt" {
		t.Errorf("got %q", got)
	}
}

func TestTimeLimitNamesTheTryBefore(t *testing.T) {
	call := inference.NewCall(&harnessv1.Job{Timeout: durationpb.New(3 * time.Second)}, nil)
	call.Fail(busy(0), time.Hour, 0)
	got := call.Finish(call.TimedOut(), 3*time.Second)
	if got.GetError() != "no response within 3s; the try before failed: overloaded" || got.GetTries() != 2 {
		t.Errorf("got %v", got)
	}
	if got := inference.NewCall(&harnessv1.Job{}, nil).TimedOut().GetError(); got != "no response within 2m0s" {
		t.Errorf("got %q", got)
	}
}

func TestJobsNeedAModel(t *testing.T) {
	if err := inference.Check(&harnessv1.Job{Key: "k", Model: " "}); err == nil || !strings.Contains(err.Error(), "job k names no model") {
		t.Errorf("got %v", err)
	}
	if err := inference.Check(&harnessv1.Job{Model: "openai:m"}); err != nil {
		t.Error(err)
	}
}

func TestTargets(t *testing.T) {
	for ref, want := range map[string]string{"grpc:127.0.0.1:7": "127.0.0.1:7", "openai:grpc": "", "script:grpc:x": ""} {
		address, custom := inference.Target(&harnessv1.Job{Model: ref})
		if custom != (want != "") || custom && address != want {
			t.Errorf("%s: %q, %t", ref, address, custom)
		}
	}
}

// TestResultsAreBounded: whatever a service returns, a result is a text or an error of
// one line, and small enough to be stored.
func TestResultsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := func(name string) string {
			return strings.Repeat(rapid.SampledFrom([]string{"", "x", "ä\n", "\xff"}).Draw(t, name), rapid.SampledFrom([]int{1, 3, 600, 600_000}).Draw(t, name+" length"))
		}
		result := &harnessv1.JobResult{
			Key: "other", Text: strings.ToValidUTF8(long("text"), ""), Error: long("error"), Model: long("model"), FinishReason: long("reason"),
		}
		got := inference.Bounded(&harnessv1.Job{Key: strings.Repeat("k", 64)}, result)
		encoded, err := proto.Marshal(got)
		if err != nil || len(encoded) > inference.MaxResult {
			t.Fatalf("%d bytes, %v", len(encoded), err)
		}
		if (got.GetText() == "") == (got.GetError() == "") || strings.ContainsAny(got.GetError()+got.GetModel()+got.GetFinishReason(), "\n") || len(got.GetError()) > 512 {
			t.Fatalf("text of %d bytes, error %q", len(got.GetText()), got.GetError())
		}
		if got.GetUsage() == nil || got.GetKey() != strings.Repeat("k", 64) {
			t.Fatalf("usage %v, key %q", got.GetUsage(), got.GetKey())
		}
	})
}

// TestLargestText: a text is stored up to the limit, and reported beyond it.
func TestLargestText(t *testing.T) {
	job := &harnessv1.Job{Key: "k"}
	if got := inference.Bounded(job, &harnessv1.JobResult{Text: strings.Repeat("x", inference.MaxResult-100)}); got.GetError() != "" {
		t.Errorf("got %q", got.GetError())
	}
	got := inference.Bounded(job, &harnessv1.JobResult{Text: strings.Repeat("x", inference.MaxResult)})
	if got.GetText() != "" || got.GetError() != "the response has 524288 bytes, too many for a result of at most 524288: lower max_output_tokens" {
		t.Errorf("got %q", got.GetError())
	}
}

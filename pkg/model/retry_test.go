package model_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

func TestNext(t *testing.T) {
	lost := &model.Error{Retryable: true, RetryAfter: -1}
	after := func(d time.Duration) *model.Error { return &model.Error{Retryable: true, RetryAfter: d} }
	three := &harnessv1.ModelConfig{MaxTries: proto.Uint32(3)}
	quick := &harnessv1.ModelConfig{BackoffInitial: durationpb.New(time.Millisecond), BackoffMax: durationpb.New(3 * time.Millisecond)}
	for name, c := range map[string]struct {
		cfg    *harnessv1.ModelConfig
		try    uint32
		err    *model.Error
		random float64
		wait   time.Duration
		again  bool
	}{
		"first, least":         {nil, 1, lost, 0, 250 * time.Millisecond, true},
		"first, most":          {nil, 1, lost, 1, 500 * time.Millisecond, true},
		"second":               {nil, 2, lost, 0, 500 * time.Millisecond, true},
		"fourth":               {nil, 4, lost, 0.5, 3 * time.Second, true},
		"last":                 {nil, 5, lost, 0, 0, false},
		"beyond the last":      {nil, 9, lost, 0, 0, false},
		"fewer tries":          {three, 3, lost, 0, 0, false},
		"own backoff":          {quick, 1, lost, 1, time.Millisecond, true},
		"own maximum":          {quick, 4, lost, 1, 3 * time.Millisecond, true},
		"not retryable":        {nil, 1, &model.Error{RetryAfter: 1}, 0, 0, false},
		"too long":             {nil, 1, &model.Error{Retryable: true, ContextExceeded: true, RetryAfter: -1}, 0, 0, false},
		"asked for":            {nil, 1, after(7 * time.Second), 0.3, 7 * time.Second, true},
		"asked for none":       {nil, 1, after(0), 0.3, 0, true},
		"asked for a lot":      {nil, 1, after(2 * time.Minute), 0, 2 * time.Minute, true},
		"asked for too much":   {nil, 1, after(model.MaxRetryAfter + 1), 0, 0, false},
		"asked for at the end": {nil, 5, after(0), 0, 0, false},
		"unknown":              {nil, 1, nil, 0, 250 * time.Millisecond, true},
		"no backoff":           {&harnessv1.ModelConfig{BackoffInitial: durationpb.New(0)}, 3, lost, 1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			wait, again := model.Next(c.cfg, c.try, c.err, c.random)
			if wait != c.wait || again != c.again {
				t.Errorf("(%s, %t), want (%s, %t)", wait, again, c.wait, c.again)
			}
		})
	}
}

func TestNextStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := &harnessv1.ModelConfig{
			MaxTries:       proto.Uint32(rapid.Uint32().Draw(t, "tries")),
			BackoffInitial: durationpb.New(time.Duration(rapid.Int64().Draw(t, "initial"))),
			BackoffMax:     durationpb.New(time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "max"))),
		}
		e := &model.Error{Retryable: rapid.Bool().Draw(t, "retryable"), RetryAfter: time.Duration(rapid.Int64().Draw(t, "after"))}
		try := rapid.Uint32Min(1).Draw(t, "try")
		wait, again := model.Next(cfg, try, e, rapid.Float64Range(0, 1).Draw(t, "random"))
		longest := cfg.GetBackoffMax().AsDuration()
		if e.RetryAfter >= 0 {
			longest = model.MaxRetryAfter
		}
		if wait < 0 || wait > longest || !again && wait != 0 {
			t.Fatalf("(%s, %t) is out of bounds", wait, again)
		}
	})
}

func TestAsError(t *testing.T) {
	if e := model.AsError(errors.New("what")); !e.Retryable || e.RetryAfter >= 0 {
		t.Errorf("an unknown error is %+v, want one that may be tried again", e)
	}
}

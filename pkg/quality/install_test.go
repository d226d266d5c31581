package quality_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// TestInstall: a run's own settings come first, a setting that the installation enables stays enabled,
// and a run that is not judged is left unchanged.
func TestInstall(t *testing.T) {
	limits := &harnessv1.QualityConfig{Retry: &harnessv1.QualityRetryConfig{MaxAttemptsChat: proto.Uint32(5), GoodEnoughScore: proto.Float64(0.9)}}
	always := &harnessv1.QualityConfig{Enabled: proto.Bool(true)}
	on := &harnessv1.LoopConfig{Quality: &harnessv1.QualityConfig{Enabled: proto.Bool(true), Retry: &harnessv1.QualityRetryConfig{MaxAttemptsChat: proto.Uint32(1)}}}
	off := &harnessv1.LoopConfig{Quality: &harnessv1.QualityConfig{Enabled: proto.Bool(false)}}
	for name, c := range map[string]struct {
		run          *harnessv1.LoopConfig
		installation *harnessv1.QualityConfig
		want         *harnessv1.LoopConfig
	}{
		"nothing":        {nil, nil, nil},
		"limits, off":    {nil, limits, nil},
		"limits, no":     {off, limits, off},
		"always":         {nil, always, &harnessv1.LoopConfig{Quality: always}},
		"always, not no": {off, always, &harnessv1.LoopConfig{Quality: always}},
		"limits, on": {on, limits, &harnessv1.LoopConfig{Quality: &harnessv1.QualityConfig{
			Enabled: proto.Bool(true), Retry: &harnessv1.QualityRetryConfig{MaxAttemptsChat: proto.Uint32(1), GoodEnoughScore: proto.Float64(0.9)},
		}}},
	} {
		before := proto.CloneOf(c.run)
		if got := quality.Install(c.run, c.installation); !proto.Equal(got, c.want) || !proto.Equal(c.run, before) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestFromEnvironment: each variable sets its limit; a value out of its range or order is an error
// that names the variable.
func TestFromEnvironment(t *testing.T) {
	for text, want := range map[string]*harnessv1.QualityRetryConfig{
		"": nil,
		quality.VariableAttemptsSynthesis + "=4 " + quality.VariableAttemptsChat + "=1 " + quality.VariableAttemptsDefault + "=10": {
			MaxAttemptsSynthesis: proto.Uint32(4), MaxAttemptsChat: proto.Uint32(1), MaxAttemptsDefault: proto.Uint32(10),
		},
		quality.VariableGood + "=0.8 " + quality.VariableLow + "=0.6": {GoodEnoughScore: proto.Float64(0.8), LowQualityThreshold: proto.Float64(0.6)},
	} {
		if got, err := quality.FromEnvironment(environment(text)); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		quality.VariableAttemptsChat + "=0", quality.VariableAttemptsDefault + "=11", quality.VariableAttemptsSynthesis + "=x", quality.VariableAttemptsSynthesis + "=-1",
		quality.VariableGood + "=1.1", quality.VariableGood + "=NaN", quality.VariableGood + "=0", quality.VariableLow + "=-0.1", quality.VariableLow + "=0.9",
	} {
		name, _, _ := strings.Cut(text, "=")
		if _, err := quality.FromEnvironment(environment(text)); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// environment reads variables from NAME=VALUE pairs.
func environment(text string) func(string) string {
	values := map[string]string{}
	for _, pair := range strings.Fields(text) {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}

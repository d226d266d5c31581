package quality

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Install returns the settings of a run with those of the installation where the run leaves them
// unset. A run cannot disable a setting that the installation enables. It changes neither.
func Install(c *harnessv1.LoopConfig, installation *harnessv1.QualityConfig) *harnessv1.LoopConfig {
	if installation == nil || c.GetQuality() == nil && !installation.GetEnabled() {
		return c
	}
	q := proto.CloneOf(installation)
	proto.Merge(q, c.GetQuality())
	if installation.GetEnabled() {
		q.Enabled = proto.Bool(true)
	}
	if !q.GetEnabled() {
		return c
	}
	if c = proto.CloneOf(c); c == nil {
		c = &harnessv1.LoopConfig{}
	}
	c.Quality = q
	return c
}

// Variables of the environment for the limits of attempts.
const (
	VariableAttemptsSynthesis = "HARNESS_RETRY_MAX_ATTEMPTS_SYNTHESIS"
	VariableAttemptsChat      = "HARNESS_RETRY_MAX_ATTEMPTS_CHAT"
	VariableAttemptsDefault   = "HARNESS_RETRY_MAX_ATTEMPTS_DEFAULT"
	VariableGood              = "HARNESS_RETRY_GOOD_ENOUGH_SCORE"
	VariableLow               = "HARNESS_RETRY_LOW_QUALITY_THRESHOLD"
)

// Variables returns the names of all variables.
func Variables() []string {
	return []string{VariableAttemptsSynthesis, VariableAttemptsChat, VariableAttemptsDefault, VariableGood, VariableLow}
}

// FromEnvironment reads the limits of attempts from the environment; nil if it has none. The error
// names the variable and its range.
func FromEnvironment(env func(string) string) (*harnessv1.QualityRetryConfig, error) {
	r := &harnessv1.QualityRetryConfig{}
	for _, v := range []struct {
		name string
		to   **uint32
	}{{VariableAttemptsSynthesis, &r.MaxAttemptsSynthesis}, {VariableAttemptsChat, &r.MaxAttemptsChat}, {VariableAttemptsDefault, &r.MaxAttemptsDefault}} {
		text := env(v.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n < 1 || n > maxAttempts {
			return nil, fmt.Errorf("%s is %q: set it to a number from 1 to %d, or unset it", v.name, text, maxAttempts)
		}
		*v.to = proto.Uint32(uint32(n))
	}
	for _, v := range []struct {
		name string
		to   **float64
	}{{VariableGood, &r.GoodEnoughScore}, {VariableLow, &r.LowQualityThreshold}} {
		text := env(v.name)
		if text == "" {
			continue
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return nil, fmt.Errorf("%s is %q: set it to a number from 0 to 1, or unset it", v.name, text)
		}
		*v.to = &f
	}
	if err := CheckThresholds(r); err != nil {
		return nil, fmt.Errorf("%s and %s: %w", VariableGood, VariableLow, err)
	}
	if proto.Size(r) == 0 {
		return nil, nil //nolint:nilnil // nothing is set
	}
	return r, nil
}

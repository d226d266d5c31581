package adapter

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// limitHeaders are the prefixes of the headers with rate limits, each followed by
// -limit-KIND and so on, or by -KIND-limit and so on.
const (
	limitHeaderOpenAI    = "X-Ratelimit-"
	limitHeaderAnthropic = "Anthropic-Ratelimit-"
)

// Limits reads the rate limits from the headers of a response. Limits of 0 and below are
// left out: some services send them for quotas that they do not have.
func Limits(h http.Header) []model.RateLimit {
	var limits []model.RateLimit
	for _, kind := range []string{"requests", "tokens", "input_tokens", "output_tokens"} {
		name := strings.ReplaceAll(kind, "_", "-")
		for _, pair := range [][2]string{
			{limitHeaderOpenAI + "Limit-" + name, limitHeaderOpenAI + "Remaining-" + name},
			{limitHeaderAnthropic + name + "-Limit", limitHeaderAnthropic + name + "-Remaining"},
		} {
			limit, err := strconv.ParseInt(strings.TrimSpace(h.Get(pair[0])), 10, 64)
			if err != nil || limit <= 0 {
				continue
			}
			remaining, err := strconv.ParseInt(strings.TrimSpace(h.Get(pair[1])), 10, 64)
			if err != nil || remaining < 0 {
				continue
			}
			limits = append(limits, model.RateLimit{Kind: kind, Limit: limit, Remaining: remaining})
		}
	}
	return limits
}

package model

import (
	"net/http"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Defaults of ModelConfig's retry fields, for a config that leaves them unset.
const (
	// defaultMaxTries includes the first try.
	defaultMaxTries = 5
	// DefaultBackoffInitial is the wait before the second try.
	DefaultBackoffInitial = 500 * time.Millisecond
	// DefaultBackoffMax is the longest wait without a request of the provider.
	DefaultBackoffMax = 30 * time.Second
)

// MaxRetryAfter is the longest wait that a provider may request. After a longer
// one the turn continues with the fallback models, or the run parks with a timer,
// instead of keeping a worker waiting.
const MaxRetryAfter = 5 * time.Minute

// Next decides whether a request is retried, and after which wait.
//
// try is the number of the try that failed, from 1. random is uniform in
// [0, 1); the caller draws it. A nil err counts as a retryable error without a
// requested wait.
//
// A wait that the provider requested is used exactly, 0 included, even if it
// exceeds backoff_max; one beyond MaxRetryAfter ends the tries.
// Otherwise the wait is exponential backoff with equal jitter: half of
// min(backoff_max, backoff_initial·2^(try−1)), plus random times that half.
// Full jitter would allow waits near zero, which do not help an overloaded
// provider. wait is 0 if again is false.
func Next(cfg *harnessv1.ModelConfig, try uint32, err *Error, random float64) (wait time.Duration, again bool) {
	if err == nil {
		err = &Error{Retryable: true, RetryAfter: -1}
	}
	tries := uint32(defaultMaxTries)
	if cfg.GetMaxTries() > 0 {
		tries = cfg.GetMaxTries()
	}
	switch {
	case !err.Retryable, err.ContextExceeded, try >= tries, err.RetryAfter > MaxRetryAfter:
		return 0, false
	case err.RetryAfter >= 0:
		return err.RetryAfter, true
	}
	initial, longest := DefaultBackoffInitial, DefaultBackoffMax
	if d := cfg.GetBackoffInitial(); d.IsValid() {
		initial = max(d.AsDuration(), 0)
	}
	if d := cfg.GetBackoffMax(); d.IsValid() {
		longest = max(d.AsDuration(), 0)
	}
	base := initial
	for n := uint32(1); n < try && base < longest; n++ {
		base *= 2
		if base <= 0 { // 0 stays 0; an overflow is beyond any maximum
			break
		}
	}
	if base < 0 || base > longest {
		base = longest
	}
	half := base / 2
	return half + time.Duration(min(max(random, 0), 1)*float64(base-half)), true
}

// RetryableStatus reports whether a request may succeed later after an HTTP status:
// 408, 409, 425, 429 and from 500.
func RetryableStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

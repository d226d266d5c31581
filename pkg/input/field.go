package input

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func CheckName(field, name string) error {
	if !runlog.Name.MatchString(name) {
		return fault.Invalid(field, "%q: must match [A-Za-z0-9_-]{1,64}", content.Cut(name, 80))
	}
	return nil
}

func checkID(field, id string) error {
	if len(id) > MaxID {
		return TooLarge(field, len(id), MaxID, "bytes")
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return fault.Invalid(field, "must consist of visible ASCII characters")
		}
	}
	return nil
}

func CheckSize(field, text string, limit int) error {
	if len(text) > limit {
		return TooLarge(field, len(text), limit, "bytes")
	}
	return nil
}

// CheckText refuses a text that is empty, too large, or a reference: only the gateway
// itself moves texts to blobs.
func CheckText(field string, c *harnessv1.Content) error {
	if c.GetBlob() != nil {
		return fault.Invalid(field, "send the text itself, not a reference to a blob")
	}
	if err := CheckSize(field, c.GetInline(), MaxText); err != nil {
		return err
	}
	if strings.TrimSpace(c.GetInline()) == "" {
		return fault.Invalid(field, "must not be empty")
	}
	return nil
}

// CheckDigest validates the digest of a blob.
func CheckDigest(digest string) error {
	raw, err := hex.DecodeString(digest)
	if err != nil || len(raw) != 32 || strings.ToLower(digest) != digest {
		return fault.Invalid("digest", "must be 64 lower-case hexadecimal digits")
	}
	return nil
}

func CheckPositive[T uint32 | uint64](field string, unset bool, n T) error {
	if !unset && n == 0 {
		return fault.Invalid(field, "must be at least 1")
	}
	return nil
}

func CheckDuration(field string, d *durationpb.Duration) error {
	switch {
	case d == nil:
		return nil
	case d.CheckValid() != nil:
		return fault.Invalid(field, "must be a valid duration")
	case d.AsDuration() <= 0:
		return fault.Invalid(field, "%v: must be greater than 0", d.AsDuration())
	case d.AsDuration() > maxDuration:
		return fault.Invalid(field, "%v exceeds 10 years, %v", d.AsDuration(), maxDuration)
	}
	return nil
}

func At(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// First runs checks until one returns an error.
func First(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// TooLarge returns the error for a field whose size exceeds its limit.
func TooLarge(field string, size, limit int, unit string) *fault.Error {
	return fault.New(codes.ResourceExhausted, harnessv1.ErrorReason_ERROR_REASON_TOO_LARGE,
		field+": "+strconv.Itoa(size)+" "+unit+", the limit is "+strconv.Itoa(limit),
		"field", field, "limit", strconv.Itoa(limit), "size", strconv.Itoa(size))
}

// maxDuration bounds a wait. The clocks of timers end in 2262.
const maxDuration = 10 * 365 * 24 * time.Hour

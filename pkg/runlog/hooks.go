package runlog

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// MaxHookCalls is how many calls of hooks one that answers them is given at once.
const MaxHookCalls = 64

// HookRefusal is the answer to a call of a hook that was not answered, and why.
func HookRefusal(req *harnessv1.HookRequest, err error) *harnessv1.HookAnswer {
	return &harnessv1.HookAnswer{IdempotencyKey: req.GetIdempotencyKey(), Error: strings.ToValidUTF8(err.Error(), "\uFFFD")}
}

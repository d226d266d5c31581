package runlog

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// MaxHookCalls bounds the calls of hooks that one client answers at the same time.
const MaxHookCalls = 64

// HookRefusal returns an answer with the error of a call that was not handled.
func HookRefusal(req *harnessv1.HookRequest, err error) *harnessv1.HookAnswer {
	return &harnessv1.HookAnswer{IdempotencyKey: req.GetIdempotencyKey(), Error: strings.ToValidUTF8(err.Error(), "\uFFFD")}
}

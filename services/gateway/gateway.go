// Package gateway decides what the gateway does with a request: whether it is
// well-formed, which run it is about, what the first record of a run holds,
// whether an input is taken, and what a watcher is shown of a record.
//
// Everything here is a function of its arguments. Time, random numbers and what
// the log holds come in as values; gatewayserver fetches them and does what was
// decided. Records that come in are shared with others and are never changed.
//
// # Invariants
//
//   - Nothing is written before the whole request was found to be valid.
//   - The same request names the same run: a run id is the caller's or derived
//     from its request id, and Same compares what was asked for, not how large
//     texts are stored.
//   - An input is taken at most once, and a call has at most one answer.
//
// A refusal is a *fault.Error that names the field or the run.
package gateway

import (
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// DefaultNamespace is meant by an empty namespace.
const DefaultNamespace = "default"

// AllNamespaces is meant by a star where runs are listed.
const AllNamespaces = "*"

// Limits of what a request may hold; beyond them it is refused with TOO_LARGE.
const (
	// MaxText bounds a goal and a user message, in bytes.
	MaxText = 1 << 20
	// MaxInstructions bounds an agent's instructions, in bytes: they travel in
	// the first record.
	MaxInstructions = 64 << 10
	// MaxReason bounds the reason of an approval, an interrupt or a cancel, and
	// the text of a nudge, in bytes.
	MaxReason = 4 << 10
	// MaxID bounds a request id and a call id, in bytes.
	MaxID = 128
	// MaxWorkflow bounds the executors of a workflow.
	MaxWorkflow = 16
	// MaxToolRules bounds the rules of an agent.
	MaxToolRules = 64
	// MaxClientTools bounds the tools that clients run for a run, MaxClientToolsSize
	// them as JSON, in bytes: they travel in the first record.
	MaxClientTools     = 64
	MaxClientToolsSize = 96 << 10
	// MaxFallbackModels bounds the models of an agent beside the first.
	MaxFallbackModels = 8
	// MaxName bounds names of models and agents, in bytes.
	MaxName = 256
	// MaxPath bounds a workspace's path, in bytes.
	MaxPath = 4096
	// MaxSpec bounds what a run is started with beside its goal, as encoded protobuf,
	// in bytes: it travels in the first record.
	MaxSpec = 192 << 10
	// MaxProviders bounds the context providers of an agent, MaxContextText the text
	// of one, in bytes.
	MaxProviders   = 16
	MaxContextText = 64 << 10
	// MaxStall bounds the turns after which a run is stalled: the state holds a
	// fingerprint of each, twice.
	MaxStall = 100
	// MaxWaiting bounds the messages and answers that wait in an inbox.
	MaxWaiting = 1000
)

// Pages of ListRuns.
const (
	// DefaultPage is the size of a page that no size was asked for.
	DefaultPage = 100
	// MaxPage is the largest page.
	MaxPage = 1000
)

// NotFound says that there is no such run.
func NotFound(run runlog.Run) *fault.Error {
	return fault.New(codes.NotFound, harnessv1.ErrorReason_ERROR_REASON_RUN_NOT_FOUND,
		"there is no run "+run.String(), "namespace", run.Namespace, "run_id", run.ID)
}

// TooLarge says that what stands in field has size and may have limit.
func TooLarge(field string, size, limit int, unit string) *fault.Error {
	return fault.New(codes.ResourceExhausted, harnessv1.ErrorReason_ERROR_REASON_TOO_LARGE,
		field+": "+strconv.Itoa(size)+" "+unit+", the limit is "+strconv.Itoa(limit),
		"field", field, "limit", strconv.Itoa(limit), "size", strconv.Itoa(size))
}

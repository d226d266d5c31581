// Package gateway decides what the gateway does with a request: whether it is valid,
// which run it is about, how an input reaches its run, which record a run begins with, and
// which events of a record a watcher receives. pkg/input decides whether an input is
// accepted.
//
// Everything here is a function of its arguments. Time, random numbers and the content
// of the log are arguments; gatewayserver reads them and carries out the decision.
// Records are shared with other callers and are never changed.
//
// # Invariants
//
// - Nothing is written before the whole request is validated.
// - The same request names the same run: the run id is the caller's or derived from the request id, and Same compares large texts by their bytes, wherever they are stored.
// - An input is accepted at most once, and a call has at most one answer.
//
// A refusal is a *fault.Error or *fault.FieldError that names the field or the run.
package gateway

import (
	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// DefaultNamespace is the namespace of a request that names none.
const DefaultNamespace = "default"

// AllNamespaces means every namespace where runs are listed.
const AllNamespaces = "*"

// Limits on a request; a request that exceeds one is refused with TOO_LARGE.
const (
	// MaxInstructions bounds an agent's instructions, in bytes; they are part of the
	// first record.
	MaxInstructions = 64 << 10
	// MaxWorkflow bounds the executors of a workflow.
	MaxWorkflow = 16
	// MaxToolRules bounds the rules of an agent.
	MaxToolRules = 64
	// MaxClientTools bounds the tools that clients run for a run, and MaxClientToolsSize
	// their JSON, in bytes; it is part of the first record.
	MaxClientTools     = 64
	MaxClientToolsSize = 96 << 10
	// MaxFallbackModels bounds the fallback models of an agent.
	MaxFallbackModels = 8
	// MaxPath bounds a workspace's path, in bytes.
	MaxPath = 4096
	// MaxSpec bounds the spec of a run without its goal and media, as encoded protobuf, in bytes;
	// it is part of the first record.
	MaxSpec = 192 << 10
	// MaxProviders bounds the context providers of an agent, MaxContextText the text
	// of one, in bytes.
	MaxProviders   = 16
	MaxContextText = 64 << 10
	// MaxStall bounds the turns after which a run is stalled: the state contains a
	// fingerprint of each, twice.
	MaxStall = 100
)

// Pages of ListRuns.
const (
	// DefaultPage is the default page size.
	DefaultPage = 100
	// MaxPage is the largest page.
	MaxPage = 1000
)

// NotFound returns the error for a run that does not exist.
func NotFound(run runlog.Run) *fault.Error {
	return fault.New(codes.NotFound, harnessv1.ErrorReason_ERROR_REASON_RUN_NOT_FOUND,
		"run "+run.String()+" not found", "namespace", run.Namespace, "run_id", run.ID)
}

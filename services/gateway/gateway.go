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

// defaultNamespace is the namespace of a request that names none.
const defaultNamespace = "default"

// allNamespaces means every namespace where runs are listed.
const allNamespaces = "*"

// Limits on a request; a request that exceeds one is refused with TOO_LARGE.
const (
	// maxInstructions bounds an agent's instructions, in bytes; they are part of the
	// first record.
	maxInstructions = 64 << 10
	// maxWorkflow bounds the executors of a workflow.
	maxWorkflow = 16
	// maxToolRules bounds the rules of an agent.
	maxToolRules = 64
	// maxClientTools bounds the tools that clients run for a run, and maxClientToolsSize
	// their JSON, in bytes; it is part of the first record.
	maxClientTools     = 64
	maxClientToolsSize = 96 << 10
	// maxFallbackModels bounds the fallback models of an agent.
	maxFallbackModels = 8
	// maxPath bounds a workspace's path, in bytes.
	maxPath = 4096
	// maxSpec bounds the spec of a run without its goal and media, as encoded protobuf, in bytes;
	// it is part of the first record.
	maxSpec = 192 << 10
	// maxProviders bounds the context providers of an agent, maxContextText the text
	// of one, in bytes.
	maxProviders   = 16
	maxContextText = 64 << 10
	// maxStall bounds the turns after which a run is stalled: the state contains a
	// fingerprint of each, twice.
	maxStall = 100
)

// Pages of ListRuns.
const (
	// defaultPage is the default page size.
	defaultPage = 100
	// maxPage is the largest page.
	maxPage = 1000
)

// NotFound returns the error for a run that does not exist.
func NotFound(run runlog.Run) *fault.Error {
	return fault.New(codes.NotFound, harnessv1.ErrorReason_ERROR_REASON_RUN_NOT_FOUND,
		"run "+run.String()+" not found", "namespace", run.Namespace, "run_id", run.ID)
}

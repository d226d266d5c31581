package roledoor

import (
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// callers lists, for each method that a role calls in another process, the roles that
// call it. No role calls a service that is not listed: executors communicate over the bus.
var callers = map[string][]string{
	// A gateway lists the tools for GetContext, and checks the workspace of a new run. A
	// role that needs a tool host asks whether there is one.
	harnessv1.ToolHostService_DescribeHost_FullMethodName:      {workflow.Gateway, workflow.Repair, workflow.Turn},
	harnessv1.ToolHostService_DescribeWorkspace_FullMethodName: {workflow.Gateway, workflow.Repair},
	harnessv1.ToolHostService_ExecuteTool_FullMethodName:       {workflow.Turn},
	harnessv1.ToolHostService_ReadCallOutput_FullMethodName:    {workflow.Turn},
	// Instructions of folders, and the files that a contract or a work item names.
	harnessv1.ToolHostService_InspectWorkspace_FullMethodName: {workflow.Turn, workflow.StopDecision},
	harnessv1.ToolHostService_CheckFile_FullMethodName:        {workflow.StopDecision},
	// Command hooks run in three roles, and checks of contracts in one of them.
	harnessv1.ToolHostService_CheckCommand_FullMethodName: {workflow.Repair, workflow.Turn, workflow.StopDecision},
	harnessv1.ToolHostService_CancelTools_FullMethodName:  {workflow.Repair, workflow.Turn, workflow.StopDecision},
	// Worktrees of sub-agents are made at their start, and ended at their end.
	harnessv1.ToolHostService_MakeWorktree_FullMethodName: {workflow.Repair},
	harnessv1.ToolHostService_EndWorktree_FullMethodName:  {workflow.Repair},

	harnessv1.ToolHostService_DescribeServers_FullMethodName: {workflow.Repair},
	// A call of wait checks an address between turns.
	harnessv1.ToolHostService_CheckAddress_FullMethodName: {workflow.Repair},
	// A person signs in at servers of tools through a gateway.
	harnessv1.ToolHostService_StartServerSignIn_FullMethodName:    {workflow.Gateway},
	harnessv1.ToolHostService_FinishServerSignIn_FullMethodName:   {workflow.Gateway},
	harnessv1.ToolHostService_DescribeServerSignIn_FullMethodName: {workflow.Gateway},
	harnessv1.ToolHostService_EndServerSignIn_FullMethodName:      {workflow.Gateway},
}

// MayCall reports whether a role may call a method, given as /SERVICE/METHOD, of another
// process. Every role may call health and reflection.
func MayCall(role, method string) bool {
	return open(method) || strings.HasPrefix(method, reflection) || slices.Contains(callers[method], role)
}

// Callers returns the roles that may call a method, sorted.
func Callers(method string) []string { return slices.Sorted(slices.Values(callers[method])) }

// services maps the services of a role to it.
var services = map[string]string{
	harnessv1.ToolHostService_ServiceDesc.ServiceName:     workflow.ToolHost,
	harnessv1.RepairService_ServiceDesc.ServiceName:       workflow.Repair,
	harnessv1.CompactionService_ServiceDesc.ServiceName:   workflow.Compaction,
	harnessv1.TurnService_ServiceDesc.ServiceName:         workflow.Turn,
	harnessv1.StopDecisionService_ServiceDesc.ServiceName: workflow.StopDecision,
	harnessv1.InferenceService_ServiceDesc.ServiceName:    workflow.Inference,
	harnessv1.ExecutorService_ServiceDesc.ServiceName:     workflow.Bridge,
}

// RoleOf returns the role that serves a method, empty for a method that is not of a role
// or of the gateway.
func RoleOf(method string) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return services[service]
}

const (
	health     = "/grpc.health.v1.Health/"
	reflection = "/grpc.reflection."
)

// open reports whether any client may call a method.
func open(method string) bool { return strings.HasPrefix(method, health) }

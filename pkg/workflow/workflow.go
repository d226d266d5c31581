// Package workflow names the stock executors and the roles of a mesh, and holds the
// default cycle of executors that a run goes through. Names are stored in records,
// subjects and consumers: they never change. The package depends on nothing.
package workflow

import "slices"

// Stock executors. A step is addressed to an executor by its name.
const (
	Repair       = "repair"
	Compaction   = "compaction"
	Turn         = "turn"
	StopDecision = "stopdecision" // the only executor that ends runs
)

// Roles of a process that are not executors.
const (
	ToolHost = "toolhost"
	Gateway  = "gateway"
	// Inference carries out jobs: calls of models that are no turns.
	Inference = "inference"
	// Bridge calls a custom executor over gRPC. It needs a target, so AllRoles does
	// not include it.
	Bridge = "bridge"
	// AllRoles stands for every role in Roles.
	AllRoles = "all"
)

// Default returns the cycle of a run whose spec names none: all stock executors.
func Default() []string { return []string{Repair, Compaction, Turn, StopDecision} }

// Of returns the cycle that a spec names, or the default one.
func Of(named []string) []string {
	if len(named) > 0 {
		return named
	}
	return Default()
}

// Next returns the executor that follows name in a cycle; the first follows the
// last and any unknown name. An empty cycle is the default one.
func Next(cycle []string, name string) string {
	cycle = Of(cycle)
	return cycle[(slices.Index(cycle, name)+1)%len(cycle)]
}

// Roles returns all roles but Bridge, in the order in which one process starts them:
// the tool host first, because others call it, and the gateway last.
func Roles() []string {
	return append(append([]string{ToolHost, Inference}, Default()...), Gateway)
}

// IsRole reports whether name is a role or stands for all of them, so that no custom
// executor may have it.
func IsRole(name string) bool {
	return name == Bridge || name == AllRoles || slices.Contains(Roles(), name)
}

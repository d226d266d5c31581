// Package expr evaluates the expressions in agents, hooks, tool policies, contracts and
// just-in-time rules. The language is CEL with its standard library; no other package
// uses the CEL library.
//
// It is pure. Envs, Programs and Templates never change and are safe for concurrent use.
// No expression and no input makes a call panic, run without limit or depend on the
// order of a map.
//
// The variables of an expression depend on its place. A variable that the caller leaves
// out has its zero value: 0, false, "" or empty.
//
//	Jit    turn, max_turns, reads, writes, explores, work_items_complete,
//	       work_items_total, compaction_count, context_used,
//	       context_max, files_changed                          int
//	       seconds_elapsed                                     double
//	       tool_usage                                          map(string, int)
//	Hook   topic, mode, tool, call_id, result, error, plan, goal, outcome,
//	       kind, message, status, budget, answer, summary      string
//	       turn, turn_count, max_turns, segment                int
//	       limit, used                                         double
//	       is_error, accepted, agent_done,
//	       called_work_complete                                bool
//	       args                                                any JSON object
//	       tool_usage                                          map(string, int)
//	       work_items   {open, finished, total}                ints
//	       contract     {met, total}, {unmet}                  ints, list(string)
//	Tool   tool                                                string
//	       args                                                any JSON object
//	State  response, goal, mode                                string
//	       turn, max_turns, reads, writes, explores,
//	       files_changed                                       int
//	       called_work_complete                                bool
//	       tool_usage                                          map(string, int)
//	       artifacts                                           map(string, string)
//	       work_items   list of {id, title, status, priority,
//	                    role} and {has_artifact}               strings, bool
//
// All whole numbers are ints. Ints and doubles compare with <, <=, > and >=; for == and
// for sums, write 5.0. tool_usage["x"] is 0 for a tool that was never called; "x" in
// tool_usage reports whether it was called. Fields of args are known only at evaluation:
// if one is missing, as in args.command.contains("x") for a call without a command, the
// expression is false. The same holds for a missing artifact.
package expr

// Limits. Costs are in the units of CEL: about one for each step, and one for ten bytes
// of text that a function reads.
const (
	// maxSource bounds an expression, in bytes.
	maxSource = 4 << 10
	// maxTemplate bounds a template, in bytes.
	maxTemplate = 8 << 10
	// maxRendered bounds a rendered template, in bytes. A longer text is cut, with an
	// ellipsis.
	maxRendered = 16 << 10
	// maxEstimate bounds the estimated cost of an expression for inputs of usual sizes
	// (see sizes).
	maxEstimate = 2_000_000
	// maxCost is the cost at which an evaluation ends with an error.
	maxCost = 1_000_000
	// maxNodes and maxDepth bound the syntax tree, because macros multiply the source.
	maxNodes = 2000
	maxDepth = 64
	// maxRegex bounds the instructions of a compiled regular expression.
	maxRegex = 2000
)

// The kinds of expressions.
var (
	// Jit sees the progress of a run, for just-in-time rules.
	Jit = newEnv("Jit",
		ints("turn", "max_turns", "reads", "writes", "explores", "work_items_complete",
			"work_items_total", "compaction_count", "context_used", "context_max", "files_changed"),
		doubles("seconds_elapsed"), counts("tool_usage"))

	// Hook sees the payload of a hook.
	Hook = newEnv("Hook",
		short("topic", "mode", "tool", "call_id", "outcome", "kind", "status", "budget"),
		long("result", "error", "plan", "goal", "message", "answer", "summary"),
		ints("turn", "turn_count", "max_turns", "segment"), doubles("limit", "used"),
		bools("is_error", "accepted", "agent_done", "called_work_complete"),
		anything("args"), counts("tool_usage"),
		record("work_items", "WorkItemCounts"), record("contract", "Contract"))

	// Tool sees one call of a tool.
	Tool = newEnv("Tool", short("tool"), anything("args"))

	// State sees the state of a run, for contracts.
	State = newEnv("State",
		long("response", "goal"), short("mode"),
		ints("turn", "max_turns", "reads", "writes", "explores", "files_changed"),
		bools("called_work_complete"), counts("tool_usage"),
		texts("artifacts"), records("work_items", "WorkItem"))
)

// Package expr evaluates the small expressions that people write into agents,
// hooks, tool policies, contracts and just-in-time instructions. The language
// is CEL with its standard library; this is the only package that knows the
// CEL library.
//
// It is pure. Envs, Programs and Templates are immutable once made and may be
// used by many goroutines. Nothing in an expression or in the values that it
// sees makes a call panic, run without bound or depend on the order of a map.
//
// What an expression sees depends on where it stands. A variable that the
// caller leaves out has its zero value: 0, false, "", nothing in it.
//
//	Jit    turn, max_turns, reads, writes, explores, work_items_complete,
//	       work_items_total, compaction_count, files_changed   int
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
// All whole numbers are ints. Ints and doubles compare with < and its like; for
// == and for sums, write 5.0. tool_usage["x"] of a tool that was never called is
// 0; whether it was called is "x" in tool_usage. Fields of args are only known
// when it runs: where one is not there, as in args.command.contains("x") for a
// call without a command, the expression does not hold. The same goes for an
// artifact that is not there.
package expr

// Bounds. Costs are CEL's units: about one a step, and one for ten bytes of
// text that a function looks through.
const (
	// MaxSource is the longest expression, in bytes.
	MaxSource = 4 << 10
	// MaxTemplate is the longest template, in bytes.
	MaxTemplate = 8 << 10
	// MaxRendered is the longest text that a template makes, in bytes; more is
	// cut, with an ellipsis.
	MaxRendered = 16 << 10
	// MaxEstimate is the cost that an expression may have at compile time, for
	// inputs as large as they usually get (see sizes).
	MaxEstimate = 2_000_000
	// MaxCost is the cost at which a run is broken off, whatever its inputs.
	MaxCost = 1_000_000
	// Nodes of a syntax tree, and its depth: macros multiply the source.
	maxNodes = 2000
	maxDepth = 64
	// Instructions of a compiled regular expression.
	maxRegex = 2000
)

// The kinds of expressions, by what they see.
var (
	// Jit sees the progress of a run, when a just-in-time instruction may fire.
	Jit = newEnv("Jit",
		ints("turn", "max_turns", "reads", "writes", "explores", "work_items_complete",
			"work_items_total", "compaction_count", "files_changed"),
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

	// State sees how a run stands, when a contract is judged.
	State = newEnv("State",
		long("response", "goal"), short("mode"),
		ints("turn", "max_turns", "reads", "writes", "explores", "files_changed"),
		bools("called_work_complete"), counts("tool_usage"),
		texts("artifacts"), records("work_items", "WorkItem"))
)

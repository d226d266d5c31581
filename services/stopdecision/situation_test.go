package stopdecision_test

import (
	"fmt"
	"strings"
)

// situation is everything that a stop decision depends on, with a field for each input.
type situation struct {
	stopAsked   bool   // an interrupt or a cancel arrived during an observation
	failure     string // "", cancelled, provider_unavailable, failed, no_plan, too_long …
	interrupted bool
	awaiting    string // "", approval, review
	maxTurns    bool
	pause       bool
	retaken     bool   // the run was paused in the decision over this turn
	silent      bool   // the turn made no call
	loop        string // "", strict 0 … strict 3 by the corrections so far, loose, loose told
	stall       bool
	replan      bool
	done        bool
	called      bool
	retries     string // "", last, used
	policy      string // interactive, strict, not required
	contract    string // "", met, unmet, unseen, asks, asks no user, answered
	items       string // "", open, done
	hook        string // "", continue, block, abort, pause, paused, replan, called
}

// Values of the fields, in their order.
var (
	failures  = []string{"", "cancelled", "provider_unavailable", "failed", "no_plan", tooLong, "too_long again"}
	awaitings = []string{"", "approval", "review"}
	loops     = []string{"", "strict 0", "strict 1", "strict 2", "strict 3", "loose", "loose told"}
	retries   = []string{"", "last", "used"}
	policies  = []string{"interactive", "strict", "not required"}
	contracts = []string{"", "met", "unmet", "unseen", "asks", "asks no user", "answered"}
	itemed    = []string{"", "open", "done"}
	hooked    = []string{"", "continue", "block", "abort", "pause", "paused", "replan", "called"}
	either    = []bool{false, true}
)

// tooLong is the failure of a turn whose request a model has refused as too long, for the
// first time in a row.
const tooLong = "too_long"

// unfreed are requests that are too long in runs that no compaction helps: it is switched
// off, its executor is not in the cycle, it has found nothing to free after a refusal, or
// without one.
var unfreed = []string{"too_long off", "too_long custom", "too_long unfreed", "too_long unrefused"}

// want returns the specified result of a situation: that of the first layer that matches,
// and in the fourth the first gate that objects.
func (c situation) want() string {
	seen := func(verdict string) string { // the coverage in a result is brought up to date
		if c.contract == "unseen" && !c.stopAsked {
			return "needs check:out"
		}
		return verdict
	}
	watched := !c.silent && !c.retaken
	switch {
	case c.failure == "cancelled":
		return "CANCELLED cancelled false"
	case c.failure == "provider_unavailable":
		return "PARKED provider_unavailable"
	case c.failure == "no_plan":
		return "DONE no_plan false"
	case c.failure == tooLong && c.awaiting == "":
		return "repair"
	case strings.HasPrefix(c.failure, tooLong):
		return "FAILED context_exhausted false"
	case c.failure != "":
		return "FAILED failed false"
	case c.interrupted:
		return "repair"
	case c.awaiting != "":
		return "PARKED " + c.awaiting
	case c.maxTurns:
		return seen("DONE max_turns false")
	case c.stopAsked: // an end that is decided is not undone by it
		return "repair"
	case watched && c.loop == "strict 3":
		return seen("STALLED doom_loop false")
	case watched && c.stall && c.loop == "": // a loop is corrected, or never ends a run
		switch c.contract { // a check of the outputs may show progress
		case "", "unmet":
			return "STALLED stalled false"
		case "unseen":
			return "needs check:out"
		case "asks":
			return "PARKED question"
		}
	}
	switch {
	case c.pause:
		return "PARKED review"
	case c.replan, !c.done:
		return "repair"
	}
	return c.gates()
}

func (c situation) gates() string {
	if c.contract == "asks" {
		return "PARKED question"
	}
	if c.policy != "not required" && !c.called {
		switch {
		case c.retries != "used":
			return "repair work_complete_not_called"
		case c.policy == "strict":
			return "repair work_complete_required_strict"
		}
	}
	switch c.contract {
	case "unseen":
		return "needs check:out"
	case "unmet", "asks no user":
		return "repair contract_not_satisfied"
	}
	if c.items == "open" {
		return "repair work_items_incomplete"
	}
	switch c.hook {
	case "block":
		return "repair agent_stop_hook_blocked"
	case "abort":
		return "FAILED failed false"
	case "pause":
		return "PARKED review"
	case "replan":
		return "repair"
	case "called":
		return "needs hook"
	}
	return fmt.Sprintf("DONE agent_done %v", c.called || c.policy == "not required")
}

// told returns the number of messages of each kind: a correction for a loop, and
// one for a stop that is rejected.
func (c situation) told(want string) (corrections, rejections int) {
	if strings.HasPrefix(want, "needs") {
		return 0, 0
	}
	if c.watched() && c.loop != "" && c.loop != "strict 3" && c.loop != "loose told" {
		corrections = 1
	}
	if c.replan && c.done && want == "repair" && c.failure == "" && !c.pause && !c.stopAsked && !c.interrupted {
		corrections++ // the note that the end was not decided
	}
	if strings.HasPrefix(want, "repair ") {
		rejections = 1
	}
	return corrections, rejections
}

// watched reports whether loops and stalls are detected: the turn made calls, was not
// checked before, and no layer above decides.
func (c situation) watched() bool {
	return !c.silent && !c.retaken && !c.stopAsked && c.failure == "" && !c.interrupted && c.awaiting == "" && !c.maxTurns
}

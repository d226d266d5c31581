package stopdecision_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// got describes an output in the words of want.
func got(out *harnessv1.StepOutput) string {
	needs := out.GetNeeds()
	switch {
	case needs == nil:
		return verdict(out.GetOutcome())
	case len(needs.GetHooks()) == 1 && len(needs.GetKeys()) == 1 && needs.GetHooks()[0].GetIdempotencyKey() == needs.GetKeys()[0]:
		return "needs hook"
	}
	return "needs " + strings.Join(needs.GetKeys(), " ")
}

// tester is what *testing.T and *rapid.T share.
type tester interface {
	Helper()
	Fatalf(string, ...any)
}

// checkSituation compares the decision over a situation with its specification.
func checkSituation(t tester, c situation) {
	t.Helper()
	in := c.input()
	before := encode(t, in)
	out, err := stopdecision.Decide(in)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	if again, err := stopdecision.Decide(in); err != nil || !bytes.Equal(encode(t, out), encode(t, again)) {
		t.Fatalf("%+v: the second decision differs (%v)", c, err)
	}
	if !bytes.Equal(encode(t, in), before) {
		t.Fatalf("%+v: the input was changed", c)
	}
	want := c.want()
	if got(out) != want {
		t.Fatalf("%+v: got %q, want %q", c, got(out), want)
	}
	if out.GetOutcome() == nil {
		return
	}
	o := out.GetOutcome()
	s := o.GetStep().GetSnapshot()
	if err := runstate.CheckPhases(in.GetStep().GetSnapshot(), o.GetStep()); err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	wantCorrections, wantRejections := c.told(want)
	corrections, rejections, next := 0, 0, in.GetStep().GetSnapshot().GetMessageCount()
	for _, m := range o.GetAppended() {
		if next++; m.GetId() != next {
			t.Fatalf("%+v: message %d has the place %d", c, m.GetId(), next)
		}
		switch m.GetKind() {
		case harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE:
			corrections++
		case harnessv1.MessageKind_MESSAGE_KIND_STOP_REJECTED:
			rejections++
		}
	}
	if corrections != wantCorrections || rejections != wantRejections || len(o.GetAppended()) != corrections+rejections || s.GetMessageCount() != next {
		t.Fatalf("%+v: the model gets %v", c, o.GetAppended())
	}
	completes, pauses := 0, 0
	for _, e := range o.GetEvents() {
		if e.GetSessionComplete() != nil {
			completes++
		}
		if e.GetSessionPause() != nil {
			pauses++
		}
		if e.GetTurnNumber() != 4 {
			t.Fatalf("%+v: an event of turn %d", c, e.GetTurnNumber())
		}
	}
	to := o.GetStep().GetTo()
	ends, parks := to == runlog.End, to == runlog.Park
	if ends != (completes == 1) || ends != (s.GetPhase() == harnessv1.Phase_PHASE_DONE) || completes > 1 {
		t.Fatalf("%+v: goes to %s in %s with %d ends", c, to, s.GetPhase(), completes)
	}
	paused := parks && want != "PARKED approval"
	if paused != (pauses == 1) || pauses > 1 || paused != (s.GetPausedPhase() != harnessv1.Phase_PHASE_UNSPECIFIED) {
		t.Fatalf("%+v: goes to %s in %s with %d pauses", c, to, s.GetPhase(), pauses)
	}
	if paused && c.awaiting == "" && c.failure == "" && s.GetPausedPhase() != harnessv1.Phase_PHASE_REFLECTING {
		t.Fatalf("%+v: paused in %s, so the decision is not made again", c, s.GetPausedPhase())
	}
	if (ends || parks) != (s.GetRunningSince() == nil) || (ends || parks) == (s.GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING) {
		t.Fatalf("%+v: goes to %s with status %s", c, to, s.GetStatus())
	}
	window := s.GetProgressTracker().GetFingerprints()
	switch before := in.GetStep().GetSnapshot().GetProgressTracker().GetFingerprints(); {
	case !c.watched():
		if !slices.Equal(window, before) {
			t.Fatalf("%+v: the window of stalls went from %v to %v", c, before, window)
		}
	case strings.HasPrefix(c.loop, "strict") && c.loop != "strict 3":
		if len(window) > 0 {
			t.Fatalf("%+v: the window of stalls holds %v while a correction is outstanding", c, window)
		}
	case c.loop == "" && len(window) != 3 && (!c.stall || want != "PARKED question"):
		t.Fatalf("%+v: the window of stalls holds %v", c, window)
	}
	if want == "repair" && c.failure == "" && c.awaiting == "" && (s.GetPhase() == harnessv1.Phase_PHASE_PLANNING) != (s.GetHooks().GetReplan() != "") {
		t.Fatalf("%+v: continues in %s, replan is %q", c, s.GetPhase(), s.GetHooks().GetReplan())
	}
}

// TestEveryCombinationOfLayers tries all of them, with gates that let the run end.
func TestEveryCombinationOfLayers(t *testing.T) {
	t.Parallel()
	checkLayers(t, situation{policy: "interactive", called: true})
}

// TestSystemEveryCombinationOfLayers tries all of them over gates that do not let it end.
func TestSystemEveryCombinationOfLayers(t *testing.T) {
	t.Parallel()
	checkLayers(t, situation{policy: "strict", called: true, contract: "unmet"}, situation{policy: "interactive", called: true, contract: "unseen"})
}

// checkLayers checks every combination of layers with each of gates.
func checkLayers(t *testing.T, gates ...situation) {
	t.Helper()
	for _, gate := range gates {
		c := gate
		for _, c.stopAsked = range either {
			for _, c.failure = range failures {
				for _, c.interrupted = range either {
					for _, c.awaiting = range awaitings {
						for _, c.maxTurns = range either {
							for _, c.pause = range either {
								c.underLoops(t)
							}
						}
					}
				}
			}
		}
	}
}

// layers returns how many layers apply.
func (c situation) layers() int {
	n := 0
	for _, applies := range []bool{c.stopAsked, c.failure != "", c.interrupted, c.awaiting != "", c.maxTurns, c.pause, c.silent, c.loop != "", c.stall, c.replan} {
		if applies {
			n++
		}
	}
	return n
}

func (c situation) underLoops(t *testing.T) {
	t.Helper()
	for _, c.silent = range either {
		for _, c.loop = range loops {
			for _, c.stall = range either {
				for _, c.replan = range either {
					if testing.Short() && c.layers() > 3 {
						continue // what comes first among more layers, those of three show
					}
					for _, c.done = range either {
						checkSituation(t, c)
					}
				}
			}
		}
	}
}

// TestEveryCombinationOfGates tries all of them, with layers that let them
// decide.
func TestEveryCombinationOfGates(t *testing.T) {
	all := []situation{{done: true}, {done: true, loop: "strict 1", stall: true}, {done: true, silent: true, stall: true}, {done: true, retaken: true, loop: "strict 3", stall: true}}
	if testing.Short() {
		all = all[:1]
	}
	for _, layers := range all {
		c := layers
		for _, c.called = range either {
			for _, c.retries = range retries {
				for _, c.policy = range policies {
					for _, c.contract = range contracts {
						for _, c.items = range itemed {
							for _, c.hook = range hooked {
								checkSituation(t, c)
							}
						}
					}
				}
			}
		}
	}
}

// TestRequestsThatStayTooLong: the run fails, whatever else is the case.
func TestRequestsThatStayTooLong(t *testing.T) {
	for _, failure := range unfreed {
		for _, c := range []situation{{}, {done: true, called: true}, {maxTurns: true}, {interrupted: true}, {awaiting: "approval"}, {pause: true}} {
			c.failure, c.policy = failure, "interactive"
			checkSituation(t, c)
		}
	}
}

// TestAnySituation draws all values of a situation.
func TestAnySituation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(rt, name) }
		rarely := func(name string) bool { return rapid.IntRange(0, 5).Draw(rt, name) == 5 }
		one := func(name string, of []string) string { return rapid.SampledFrom(of).Draw(rt, name) }
		c := situation{
			stopAsked: rarely("stop asked"), interrupted: rarely("interrupted"), maxTurns: rarely("max turns"), pause: rarely("pause"), retaken: rarely("retaken"),
			silent: flag("silent"), loop: one("loop", loops), stall: flag("stall"), replan: rarely("replan"), done: !rarely("not done"),
			called: flag("called"), retries: one("retries", retries), policy: one("policy", policies), contract: one("contract", contracts),
			items: one("items", itemed), hook: one("hook", hooked),
		}
		if rarely("fails") {
			c.failure = one("failure", slices.Concat(failures, unfreed))
		}
		if rarely("awaits") {
			c.awaiting = one("awaiting", awaitings)
		}
		checkSituation(rt, c)
	})
}

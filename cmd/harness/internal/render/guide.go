package render

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent/jit"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Kinds of guidance that name what a person has to do: changed files that wait for one, and skills that cannot be used.
const (
	guardedKind = "guarded"
	skillsKind  = "skills"
)

// guideLines returns the lines for an event about contracts, loops, guidance, hooks
// and modes. There are none for other events, and for those that are not printed.
func (t *Text) guideLines(e *harnessv1.Event) []string {
	s := t.style
	if lines := s.serverLines(e); lines != nil {
		return lines
	}
	if lines := s.qualityLines(e); lines != nil {
		return lines
	}
	if lines := s.swarmLines(e); lines != nil {
		return lines
	}
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_ContractEvaluated:
		return t.contract(v.ContractEvaluated)
	case *harnessv1.Event_StopRejected:
		return []string{s.rejected(v.StopRejected)}
	case *harnessv1.Event_StallDetected:
		return []string{s.bad("no progress in " + plural(uint64(v.StallDetected.GetTurns()), "turn"))}
	case *harnessv1.Event_DoomLoopDetected:
		return []string{s.loop(v.DoomLoopDetected)}
	case *harnessv1.Event_GuidanceInjected:
		g := v.GuidanceInjected
		if !s.Guidance && opening(e, g) {
			return nil
		}
		switch g.GetKind() {
		case "items_state":
			return nil // the list of work items was shown when it changed
		case "doom_loop":
			return nil // the line about the loop has it
		case "tools", "work_items", "planning", "jit", "control", "instructions": // sent at the start of a turn
			t.heading(e.GetTurnNumber(), e.GetMaxTurns())
		}
		text := sentences(g.GetText(), shownGuidance)
		if g.GetKind() == guardedKind || g.GetKind() == skillsKind { // it ends with the command or the file that the person needs
			text = shorten(g.GetText(), content.MaxPreview)
		}
		return []string{s.dim("guidance (" + guidanceWords(g) + "): " + text)}
	case *harnessv1.Event_DeliverablesUpdated:
		if d := v.DeliverablesUpdated; d.GetRole() == harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE {
			return []string{"  " + s.good(s.tick()) + " deliverable: " + shorten(d.GetTitle(), 100) + s.dim("  "+clean(d.GetItemId()))}
		}
	case *harnessv1.Event_ModeChanged:
		m := v.ModeChanged
		return []string{s.bold("mode: " + clean(m.GetFrom()) + " " + s.arrow() + " " + clean(m.GetTo()))}
	case *harnessv1.Event_ModelChanged:
		m := v.ModelChanged
		return []string{s.bold("model: " + clean(m.GetFrom()) + " " + s.arrow() + " " + clean(m.GetTo()))}
	case *harnessv1.Event_HookResult:
		return s.hook(v.HookResult)
	case *harnessv1.Event_HookError:
		h := v.HookError
		line := "hook " + clean(h.GetHookId()) + " failed (" + clean(h.GetTopic()) + "): " + shorten(h.GetError(), 200)
		if h.GetFailedClosed() {
			return []string{s.bad(line + "; treated as a denial")}
		}
		return []string{s.warn(line)}
	}
	return nil
}

// shownGuidance bounds the text of guidance that is shown, in runes.
const shownGuidance = 160

// guidanceKinds are the kinds of guidance in words, where their names are no words.
var guidanceKinds = map[string]string{
	"jit": "just-in-time rule", "too_large": "too large", "work_items": "work items", "guarded": "changed files",
	"control": "failed audit", "wait": "waiting",
}

// guidanceWords returns the kind of guidance in words, with the rule, hook or executor of the user
// that gave it. The ids of built-in rules are no words.
func guidanceWords(g *harnessv1.GuidanceInjected) string {
	words, found := guidanceKinds[g.GetKind()]
	if !found {
		words = clean(strings.ReplaceAll(g.GetKind(), "_", " "))
	}
	if id := g.GetRuleId(); id != "" && !jit.BuiltIn(id) {
		words += " " + clean(id)
	}
	return words
}

// opening reports whether guidance is that with which every run begins: it depends on the
// agent, not on what happens.
func opening(e *harnessv1.Event, g *harnessv1.GuidanceInjected) bool {
	switch g.GetKind() {
	case "tools", "work_items", "planning", "instructions", "contract":
		return e.GetTurnNumber() <= 1
	}
	return false
}

// rejected returns why the agent may not stop. It only counts the unmet requirements,
// which the evaluation of the contract has listed.
func (s Style) rejected(r *harnessv1.StopRejected) string {
	line := s.warn("not done yet")
	gap := r.GetGap()
	if gap == nil {
		return line + ": " + shorten(r.GetMessage(), 200)
	}
	var missing []string
	if n := len(gap.GetUnmetRequirements()); n > 0 {
		missing = append(missing, plural(uint64(n), "requirement")+" to meet")
	}
	if n := len(gap.GetUnansweredQuestions()); n > 0 {
		missing = append(missing, plural(uint64(n), "question")+" without an answer")
	}
	return line + ": " + strings.Join(missing, ", ")
}

// loop returns which calls repeat, and the reaction.
func (s Style) loop(d *harnessv1.DoomLoopDetected) string {
	var tools []string
	for _, tool := range d.GetTools() {
		tools = append(tools, clean(tool))
	}
	what := "the same calls again: "
	if d.GetKind() == "loose" {
		what = "the same calls again, with other results: "
	}
	what += strings.Join(tools, " "+s.arrow()+" ") + fmt.Sprintf(", %d times", d.GetRepeats())
	if d.GetCorrection() == 0 {
		return s.bad(what)
	}
	return s.warn(what) + fmt.Sprintf("; the agent must try another way (%d)", d.GetCorrection())
}

// hook returns the action of a hook, none for one that allows.
func (s Style) hook(h *harnessv1.HookResult) []string {
	said := map[string]string{
		"deny": "denies", "block": "blocks the stop", "abort": "aborts", "pause": "requires a review",
		"skip": "skips the next turn", "replan": "requires another plan", "replace": "changes it",
	}[h.GetAction()]
	if said == "" {
		return nil
	}
	line := "hook " + clean(h.GetHookId()) + " " + said + " (" + clean(h.GetTopic()) + ")"
	if h.GetReason() != "" {
		line += ": " + shorten(h.GetReason(), 200)
	}
	if h.GetAction() == "replace" {
		return []string{s.dim(line)}
	}
	return []string{s.warn(line)}
}

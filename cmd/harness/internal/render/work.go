package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// shownItems bounds the list of work items, shownUnmet the list of unmet
// requirements, in lines, while a run works.
const (
	shownItems = 10
	shownUnmet = 8
)

// work has a run's work items, from their events.
type work struct {
	// items are in the order in which they were added.
	items []*harnessv1.WorkItem
	// changed has the ids of items that changed since the list was last printed.
	changed map[string]bool
	// finished and total count all items of the run.
	finished, total uint32
}

// change applies an event.
func (w *work) change(c *harnessv1.WorkItemChanged) {
	item := c.GetItem()
	at := slices.IndexFunc(w.items, func(i *harnessv1.WorkItem) bool { return i.GetId() == item.GetId() })
	if at < 0 {
		w.items = append(w.items, item)
	} else {
		w.items[at] = item
	}
	if w.changed == nil {
		w.changed = map[string]bool{}
	}
	w.changed[item.GetId()] = true
	w.finished, w.total = c.GetFinished(), c.GetTotal()
}

// flush returns the current list, empty if nothing changed since the last one.
func (w *work) flush(s Style) []string {
	if len(w.changed) == 0 {
		return nil
	}
	lines := s.itemLines(w.items, w.changed, int(w.finished), int(w.total), shownItems)
	w.changed = nil
	return lines
}

// WorkLines returns all work items of a run, under a heading that counts them; none
// for a run without items.
func (s Style) WorkLines(items []*harnessv1.WorkItem) []string {
	if len(items) == 0 {
		return nil
	}
	finished := 0
	for _, i := range items {
		if closed(i) {
			finished++
		}
	}
	return s.itemLines(items, nil, finished, len(items), len(items))
}

// itemLines returns a heading and at most limit items: changed ones, then open ones,
// in their order. The last line counts those left out.
func (s Style) itemLines(items []*harnessv1.WorkItem, changed map[string]bool, finished, total, limit int) []string {
	lines := []string{fmt.Sprintf("work items: %d of %d finished", finished, total)}
	shown := map[string]bool{}
	for _, wanted := range []func(*harnessv1.WorkItem) bool{
		func(i *harnessv1.WorkItem) bool { return changed[i.GetId()] },
		func(i *harnessv1.WorkItem) bool { return !closed(i) },
		func(*harnessv1.WorkItem) bool { return true },
	} {
		for _, i := range items {
			if len(shown) < limit && wanted(i) {
				shown[i.GetId()] = true
			}
		}
	}
	for _, i := range items {
		if shown[i.GetId()] {
			lines = append(lines, "  "+s.item(i, changed == nil || changed[i.GetId()]))
		}
	}
	if left := total - len(shown); left > 0 {
		lines = append(lines, s.dim(fmt.Sprintf("  ... %d more", left)))
	}
	return lines
}

func closed(i *harnessv1.WorkItem) bool {
	return i.GetStatus() == harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE ||
		i.GetStatus() == harnessv1.WorkItemStatus_WORK_ITEM_STATUS_SKIPPED
}

// item returns a work item on one line: its mark, its id, its title, and remarks. An
// item without news is dim.
func (s Style) item(i *harnessv1.WorkItem, news bool) string {
	text := clean(i.GetId()) + " " + shorten(i.GetTitle(), 80)
	var remarks []string
	if i.GetStatus() == harnessv1.WorkItemStatus_WORK_ITEM_STATUS_SKIPPED {
		remarks = append(remarks, "skipped")
	}
	if i.GetRequiresRevision() {
		remarks = append(remarks, "to be revised")
	}
	if i.GetRevisionOf() != "" {
		remarks = append(remarks, "revises "+clean(i.GetRevisionOf()))
	}
	switch control := i.GetControl(); {
	case control.GetPassed():
		remarks = append(remarks, "audit passed")
	case control != nil:
		remarks = append(remarks, "audit failed: "+shorten(strings.Join(control.GetFailedChecks(), "; "), 120))
	case i.GetArtifactDigest() != "" && i.GetRole() == harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE:
		remarks = append(remarks, "deliverable")
	}
	remark := ""
	if len(remarks) > 0 {
		remark = "  " + strings.Join(remarks, s.dot())
	}
	if !news {
		return s.dim(s.itemMark(i.GetStatus()) + " " + text + remark)
	}
	mark := s.itemMark(i.GetStatus())
	switch i.GetStatus() {
	case harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE:
		mark = s.good(mark)
	case harnessv1.WorkItemStatus_WORK_ITEM_STATUS_IN_PROGRESS:
		mark = s.warn(mark)
	default: // no colour
	}
	return mark + " " + text + s.dim(remark)
}

func (s Style) itemMark(status harnessv1.WorkItemStatus) string {
	switch status {
	case harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE:
		return s.mark("✓", "[x]")
	case harnessv1.WorkItemStatus_WORK_ITEM_STATUS_IN_PROGRESS:
		return s.mark("▸", "[>]")
	case harnessv1.WorkItemStatus_WORK_ITEM_STATUS_SKIPPED:
		return s.mark("–", "[-]")
	default:
		return s.mark("○", "[ ]")
	}
}

// listed reports whether the list of work items replaces the calls of a tool.
func listed(tool string) bool {
	switch tool {
	case "work_item_add", "work_item_update", "work_item_set_artifact", "work_item_flag_revision":
		return true
	}
	return false
}

// CoverageLine returns how much of a contract is met; empty without one.
func CoverageLine(c *harnessv1.Coverage) string {
	if c.GetTotal() == 0 {
		return ""
	}
	line := fmt.Sprintf("%d of %s met", c.GetMet(), plural(uint64(c.GetTotal()), "requirement"))
	if unmet := c.GetUnmet(); len(unmet) > 0 {
		shown := unmet[:min(len(unmet), shownUnmet)]
		line += "; missing: " + shorten(strings.Join(shown, ", "), 200)
		if left := len(unmet) - len(shown); left > 0 {
			line += fmt.Sprintf(" and %d more", left)
		}
	}
	return line
}

// contract returns the state of the contract, followed by the unmet requirements and why. Those
// that were shown with the same reason are only counted; there are no lines if nothing changed.
func (t *Text) contract(c *harnessv1.ContractEvaluated) []string {
	s, cov, shown := t.style, c.GetCoverage(), t.unmet
	t.unmet = map[string]string{}
	for _, id := range cov.GetUnmet() {
		t.unmet[id] = ""
	}
	for _, r := range c.GetRequirements() {
		if _, unmet := t.unmet[r.GetRequirementId()]; unmet {
			t.unmet[r.GetRequirementId()] = r.GetWhy()
		}
	}
	if !c.GetSatisfied() && len(t.unmet) > 0 && maps.Equal(shown, t.unmet) {
		return nil
	}
	head := fmt.Sprintf("contract: %d of %s met", cov.GetMet(), plural(uint64(cov.GetTotal()), "requirement"))
	if c.GetSatisfied() {
		return []string{s.good(s.tick()) + " " + head}
	}
	if len(cov.GetUnmet()) == 0 { // only an answer is missing then
		head += "; the user has a question to answer"
	}
	changed := slices.DeleteFunc(slices.Clone(cov.GetUnmet()), func(id string) bool {
		why, before := shown[id]
		return before && why == t.unmet[id]
	})
	if same := len(cov.GetUnmet()) - len(changed); same > 0 {
		head += fmt.Sprintf("; %d as before", same)
	}
	return append([]string{s.warn(head)}, s.unmet(changed, c.GetRequirements(), nil, shownUnmet)...)
}

// ContractLines returns the state of each requirement of a contract; none without
// one.
func (s Style) ContractLines(c *harnessv1.TaskContract, l *harnessv1.CoverageLedger) []string {
	if len(c.GetRequiredOutputs()) == 0 {
		return nil
	}
	var lines []string
	for _, o := range c.GetRequiredOutputs() {
		at := slices.IndexFunc(l.GetRequirements(), func(r *harnessv1.RequirementCoverage) bool { return r.GetRequirementId() == o.GetId() })
		var r *harnessv1.RequirementCoverage
		if at >= 0 {
			r = l.GetRequirements()[at]
		}
		lines = append(lines, s.requirement(o, r))
	}
	return lines
}

// requirement returns an output of a contract on one line.
func (s Style) requirement(o *harnessv1.RequiredOutput, r *harnessv1.RequirementCoverage) string {
	mark, remark := s.mark("○", "[ ]"), "not met"
	switch r.GetStatus() {
	case harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET:
		mark, remark = s.good(s.mark("✓", "[x]")), ""
		for _, e := range r.GetEvidence() {
			remark = strings.ReplaceAll(e.GetKind(), "_", " ") + ": " + shorten(e.GetText(), 100)
		}
	case harnessv1.RequirementStatus_REQUIREMENT_STATUS_PARTIALLY_MET:
		remark = "met in part"
	case harnessv1.RequirementStatus_REQUIREMENT_STATUS_SKIPPED:
		mark, remark = s.mark("–", "[-]"), "skipped"
	default: // not met
	}
	if r.GetUnknown() {
		remark = "unknown"
	}
	if r.GetWhy() != "" {
		remark += ": " + shorten(r.GetWhy(), 160)
	}
	if o.GetOptional() {
		remark = strings.TrimPrefix(remark+s.dot()+"optional", s.dot())
	}
	return "  " + mark + " " + clean(o.GetId()) + "  " + shorten(o.GetDescription(), 100) + s.dim("  "+strings.TrimSuffix(remark, ": "))
}

// unmet appends the requirements that are not met, with the reasons.
func (s Style) unmet(ids []string, requirements []*harnessv1.RequirementCoverage, lines []string, limit int) []string {
	for n, id := range ids {
		if n == limit {
			return append(lines, s.dim(fmt.Sprintf("  ... %d more", len(ids)-n)))
		}
		line := "  " + s.warn(s.mark("○", "[ ]")) + " " + clean(id)
		for _, r := range requirements {
			if r.GetRequirementId() == id && r.GetWhy() != "" {
				line += s.dim("  " + shorten(r.GetWhy(), 160))
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// deliverables returns the deliverables, each with its size.
func (s Style) deliverables(all []*harnessv1.Deliverable) []string {
	var lines []string
	for _, d := range all {
		title := shorten(d.GetTitle(), 100)
		if title == "" {
			title = clean(d.GetItemId())
		}
		n := uint64(len(d.GetContent().GetInline()))
		if b := d.GetContent().GetBlob(); b != nil {
			n = b.GetSize()
		}
		lines = append(lines, s.mark("• ", "* ")+title+s.dim("  "+clean(d.GetItemId())+s.dot()+size(n)))
	}
	return lines
}

// size returns a number of bytes with the precision that people need.
func size(n uint64) string {
	switch {
	case n < 1000:
		return plural(n, "byte")
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Verdict is what a person decides about a call.
type Verdict struct {
	// Decision is unset while there is none.
	Decision harnessv1.ApprovalDecision
	// Reason of a denial, for the model; may be empty.
	Reason string
}

// Approval returns the answer to a call. It names what was shown.
func (v Verdict) Approval(call *harnessv1.PendingCall) *harnessv1.Approval {
	return &harnessv1.Approval{CallId: call.GetCallId(), Decision: v.Decision, Reason: v.Reason, Digest: call.GetPreview().GetDigest()}
}

const (
	once = harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE
	all  = harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN
	deny = harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY
)

// decision is the dialogue about one call. A yes counts only after the last line of the call
// was shown.
type decision struct {
	p    *Prompt
	call *harnessv1.PendingCall
	// lines are all lines of the call; shown is how many were printed.
	lines []string
	shown int
	// page is how many lines are printed at a time.
	page int
	// why: the next line is the reason of a denial.
	why bool
}

// decide shows a call, or its first page, and prompts for a decision.
func (p *Prompt) decide(call *harnessv1.PendingCall) *decision {
	d := &decision{p: p, call: call, lines: p.style().CallLines(call), page: max(p.rows()-reserved, minPage)}
	if call.GetKind() == kindReview {
		p.print("\nA hook requests a review of %s before it runs:\n", p.clean(call.GetTool()))
	} else {
		p.print("\n%s asks to be run:\n", p.clean(call.GetTool()))
	}
	if len(d.lines) <= d.page+1 { // no page of one line
		d.page = len(d.lines)
	}
	d.turn(d.page)
	return d
}

const (
	// reserved are the rows of a page that its prompt needs.
	reserved = 4
	// minPage is the least number of lines of a page.
	minPage = 5
)

// turn prints the next n lines, and the prompt.
func (d *decision) turn(n int) {
	end := min(d.shown+n, len(d.lines))
	for _, line := range d.lines[d.shown:end] {
		d.p.print("  %s\n", line)
	}
	d.shown = end
	if d.ended() && d.call.GetWhy() != "" {
		d.p.print("%s\n", d.p.clean(d.call.GetWhy()))
	}
	d.prompt()
}

func (d *decision) ended() bool { return d.shown == len(d.lines) }

// prompt prints the answers that are possible.
func (d *decision) prompt() {
	switch {
	case !d.ended():
		d.p.print("Lines 1-%d of %d. [Enter] next page  [e] all  [v] pager  [n] no: ", d.shown, len(d.lines))
	case !render.WholeCall(d.call):
		d.p.print("It cannot be shown whole, so it cannot be approved here. [n] no: ")
	case onlyOnce(d.call):
		d.p.print("Let it run? [y] yes  [n] no: ")
	default:
		d.p.print("Allow it? [y] once  [a] always for this run  [n] no: ")
	}
}

// take processes a line. ok is true if it was a decision.
func (d *decision) take(line string) (v Verdict, ok bool) {
	if d.why {
		return Verdict{Decision: deny, Reason: strings.TrimSpace(line)}, true
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	word = strings.ToLower(word)
	switch word {
	case "n", "no":
		if reason := strings.TrimSpace(rest); reason != "" {
			return Verdict{Decision: deny, Reason: reason}, true
		}
		d.why = true
		d.p.print("Reason for the model, or what to do instead (Enter for none): ")
		return Verdict{}, false
	case "v":
		d.open()
		return Verdict{}, false
	}
	if !d.ended() {
		switch word {
		case "":
			d.turn(d.page)
		case "e":
			d.turn(len(d.lines))
		case "y", "yes", "a", "always":
			d.p.print("Not yet: read it to its end first.\n")
			d.prompt()
		default:
			d.prompt()
		}
		return Verdict{}, false
	}
	switch {
	case !render.WholeCall(d.call):
	case word == "y" || word == "yes":
		return Verdict{Decision: once}, true
	case (word == "a" || word == "always") && !onlyOnce(d.call):
		return Verdict{Decision: all}, true
	}
	d.prompt()
	return Verdict{}, false
}

// open shows the call in the pager, then its last page here.
func (d *decision) open() {
	if err := d.p.page(strings.Join(d.lines, "\n") + "\n"); err != nil {
		d.p.print("%s; read it here with [Enter]\n", d.p.clean(err.Error()))
		d.prompt()
		return
	}
	d.shown = max(d.shown, len(d.lines)-d.page)
	d.turn(len(d.lines))
}

// ErrUndecided is returned if the user leaves a prompt without a decision.
var ErrUndecided = errors.New("no decision; the call still waits")

// Decide prompts for a decision about a call until there is one. It returns ErrUndecided at the
// end of the input and at a signal.
func (p *Prompt) Decide(ctx context.Context, call *harnessv1.PendingCall, signals <-chan os.Signal) (Verdict, error) {
	d := p.decide(call)
	for {
		select {
		case line, ok := <-p.read():
			p.received()
			if !ok {
				p.print("\n")
				return Verdict{}, ErrUndecided
			}
			if v, ok := d.take(line); ok {
				return v, nil
			}
		case <-signals:
			p.print("\n")
			return Verdict{}, ErrUndecided
		case <-ctx.Done():
			return Verdict{}, fmt.Errorf("prompt: %w", context.Cause(ctx))
		}
	}
}

// onlyOnce reports whether an approval is for one call, and cannot be for the run.
func onlyOnce(call *harnessv1.PendingCall) bool {
	return call.GetOnlyOnce() || call.GetKind() == kindReview
}

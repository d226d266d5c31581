package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Verdict is what a person decides about a call.
type Verdict struct {
	// Decision is unset while there is none.
	Decision harnessv1.ApprovalDecision
	// Reason of a denial, for the model; may be empty.
	Reason string
	// Rules that are stored for the rest of the run; none: all calls of the tool.
	Rules []*harnessv1.ToolRule
	// Arguments with which the call runs instead of the agent's; nil: the agent's.
	Arguments *string
}

// Approval returns the answer to a call. It names what was shown.
func (v Verdict) Approval(call *harnessv1.PendingCall) *harnessv1.Approval {
	a := &harnessv1.Approval{CallId: call.GetCallId(), Decision: v.Decision, Reason: v.Reason, Digest: call.GetPreview().GetDigest(), Rules: v.Rules}
	if v.Arguments != nil {
		a.Arguments = &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: *v.Arguments}}
	}
	return a
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
	// asker names the sub-agent whose call it is; empty: it is that of the run itself.
	asker string
	// lines are all lines of the call; shown is how many were printed.
	lines []string
	shown int
	// page is how many lines are printed at a time.
	page int
	// why: the next line is the reason of a denial.
	why bool
	// grant is the dialogue about rules; nil while there is none.
	grant *grant
	// edit is the changed call; nil while the call is shown as the agent made it.
	edit *edit
	// draft is the text that the editor had last, if it gave no arguments.
	draft string
	// left: the last line opened another program, which may have received a signal.
	left bool
}

// decide shows a call, or its first page, and prompts for a decision.
func (p *Prompt) decide(call *harnessv1.PendingCall, asker string) *decision {
	d := &decision{p: p, call: call, asker: asker}
	d.show(call)
	return d
}

// show shows a call from its first page on.
func (d *decision) show(call *harnessv1.PendingCall) {
	p, of := d.p, ""
	if d.asker != "" {
		of = " of " + p.clean(d.asker)
	}
	d.lines, d.shown, d.page = p.style().CallLines(call), 0, max(p.rows()-reserved, minPage)
	if d.edit != nil {
		p.print("\n%s%s would run like this, changed by you:\n", p.clean(call.GetTool()), of)
	} else if call.GetKind() == kindReview {
		p.print("\nA hook requests a review of %s%s before it runs:\n", p.clean(call.GetTool()), of)
	} else {
		p.print("\n%s%s asks to be run:\n", p.clean(call.GetTool()), of)
	}
	if len(d.lines) <= d.page+1 { // no page of one line
		d.page = len(d.lines)
	}
	d.turn(d.page)
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
	if d.ended() && d.call.GetWhy() != "" && d.edit == nil {
		d.p.print("%s\n", d.p.clean(d.call.GetWhy()))
	}
	d.prompt()
}

func (d *decision) ended() bool { return d.shown == len(d.lines) }

// prompt prints the answers that are possible.
func (d *decision) prompt() {
	switch {
	case !d.ended():
		d.p.print("Lines 1-%d of %d. [Enter] next page  [r] rest  [v] pager  [n] no: ", d.shown, len(d.lines))
	case !render.WholeCall(d.call):
		d.p.print("It cannot be shown whole, so it cannot be approved here. [n] no: ")
	case d.edit != nil:
		d.p.print("Let it run? [y] yes  [e] edit again  [u] undo  [n] no: ")
	case onlyOnce(d.call):
		d.p.print("Let it run? [y] yes%s  [n] no: ", d.editWord())
	default:
		d.p.print("Allow it? [y] once  [a] for this run%s  [n] no: ", d.editWord())
	}
}

// take processes a line. ok is true if it was a decision.
func (d *decision) take(line string) (v Verdict, ok bool) {
	if d.why {
		return Verdict{Decision: deny, Reason: strings.TrimSpace(line)}, true
	}
	if d.left = false; d.grant != nil {
		return d.takeGrant(line)
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
		case "r":
			d.turn(len(d.lines))
		case "y", "yes", "a", "always", "e":
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
		v := Verdict{Decision: once}
		if d.edit != nil {
			v.Arguments = &d.edit.arguments
		}
		return v, true
	case (word == "a" || word == "always") && !onlyOnce(d.call) && d.edit == nil:
		d.grant = proposed(d.call)
		d.grant.ask(d.p, d.call)
		return Verdict{}, false
	case word == "e" && d.editWord() != "":
		d.change()
		return Verdict{}, false
	case word == "u" && d.edit != nil:
		d.edit = nil
		d.show(d.call)
		return Verdict{}, false
	}
	d.prompt()
	return Verdict{}, false
}

// takeGrant processes a line of the dialogue about rules.
func (d *decision) takeGrant(line string) (v Verdict, ok bool) {
	done, back := d.grant.take(d.p, d.call, line)
	switch {
	case done:
		return Verdict{Decision: all, Rules: d.grant.rules}, true
	case back:
		d.grant = nil
		d.prompt()
	}
	return Verdict{}, false
}

// refused shows why the run did not accept a verdict, and prompts again.
func (d *decision) refused(why string) {
	d.p.print("Not accepted: %s\n", d.p.clean(why))
	d.grant, d.why = nil, false
	d.prompt()
}

// open shows the call in the pager, then its last page here. Lines that were typed meanwhile
// were for the pager: an answer is one that follows the last page.
func (d *decision) open() {
	d.left = true
	if err := d.p.page(strings.Join(d.lines, "\n") + "\n"); err != nil {
		d.p.print("%s; read it here with [Enter]\n", d.p.clean(err.Error()))
		d.prompt()
		return
	}
	d.p.print("The pager has ended. The last lines of the call:\n")
	d.shown = max(d.shown, len(d.lines)-d.page)
	d.turn(len(d.lines))
}

// ErrUndecided is returned if the user leaves a prompt without a decision.
var ErrUndecided = errors.New("no decision; the call still waits")

// Decide prompts for a decision about a call until the run accepts one: send sends it, and
// returns an error for which Refused is true if the run does not. It returns ErrUndecided at the end of
// the input and at a signal, otherwise the error of send.
func (p *Prompt) Decide(ctx context.Context, call *harnessv1.PendingCall, signals <-chan os.Signal, send func(Verdict) error) error {
	asker := ""
	if call.GetRunId() != "" {
		asker = "run " + call.GetRunId()
	}
	d := p.decide(call, asker)
	for {
		select {
		case line, ok := <-p.read():
			p.received()
			if !ok {
				p.print("\n")
				return ErrUndecided
			}
			v, decided := d.take(line)
			if d.left {
				forget(signals)
			}
			if !decided {
				continue
			}
			err := send(v)
			if !Refused(err) {
				return err
			}
			d.refused(status.Convert(err).Message())
		case <-signals:
			p.print("\n")
			return ErrUndecided
		case <-ctx.Done():
			return fmt.Errorf("prompt: %w", context.Cause(ctx))
		}
	}
}

// Refused reports whether a run did not accept a verdict for what it has: rules or arguments
// that do not fit the call, which still waits.
func Refused(err error) bool { return status.Code(err) == codes.InvalidArgument }

// forget drops a signal that was meant for another program.
func forget(signals <-chan os.Signal) {
	select {
	case <-signals:
	default:
	}
}

// onlyOnce reports whether an approval is for one call, and cannot be for the run.
func onlyOnce(call *harnessv1.PendingCall) bool {
	return call.GetOnlyOnce() || call.GetKind() == kindReview
}

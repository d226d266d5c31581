package repair

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
)

func (d *decision) applyInterrupt(i *harnessv1.Interrupt) (refusal string) {
	if refusal := input.RecheckInterrupt(d.s, d.resumed != ""); refusal != "" {
		return refusal
	}
	d.interrupt, d.interrupter = i, d.caller
	return ""
}

func (d *decision) applyCancel(c *harnessv1.Cancel) (refusal string) {
	if refusal := input.RecheckCancel(d.s); refusal != "" {
		return refusal
	}
	d.cancel, d.canceller = c, d.caller
	return ""
}

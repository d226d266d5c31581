package gym

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const (
	auditFails  = `{"verdict": "fail", "checks": [{"name": "number of barrels", "result": "fail", "detail": "it says ten"}], "summary": "The number is wrong."}`
	auditPasses = `{"verdict": "pass", "checks": [{"name": "number of barrels", "result": "pass", "detail": "eleven"}], "summary": "All is right."}`
)

const letter = "Dear Anna,\n\nthe harvest was good. We have eleven barrels of cider.\n\nYours, Tom\n"

// wrongLetter is what an audit finds wanting.
var wrongLetter = strings.Replace(letter, "eleven", "ten", 1)

func flagRevision(id, reason string) modeltest.Call {
	return call("work_item_flag_revision", args{"id": id, "reason": reason})
}

// letterScenario is a letter and its audit, as work items. The revision is right.
func letterScenario(name, what string) scenario {
	return scenario{
		name: name, what: what,
		goal:  "Write a letter to Anna about the harvest in harvest.txt.",
		files: map[string]string{"harvest.txt": "Eleven barrels of cider.\n"},
		spec:  edits(withItems()),
		really: func(w *world) bool {
			return w.artifacts["w1"] == letter || w.artifacts["w2"] == letter // a bare loop leaves the revision as an item
		},
	}
}

// audited is the begin of the work: it ends with an audit that fails.
func audited(c *chat) modeltest.Reply {
	return inOrder(
		calls(add("The letter", "DELIVERABLE"), call("work_item_add", args{"id": "audit", "title": "Audit of the letter", "role": "CONTROL"})),
		calls(read("harvest.txt"), set("w1", "IN_PROGRESS")),
		calls(artifact("w1", "DELIVERABLE", wrongLetter), set("w1", "DONE")),
		calls(artifact("audit", "CONTROL", auditFails), set("audit", "DONE")),
	)(c)
}

// revised is the reply that has to follow an audit that fails.
func revised(c *chat) modeltest.Reply {
	switch {
	case c.made(flagTool) == 0:
		return calls(flagRevision("w1", "There are eleven barrels."))
	case c.made("work_item_set_artifact", "eleven barrels of cider") == 0:
		return calls(artifact("w2", "DELIVERABLE", letter), set("w2", "DONE"))
	case c.made("work_item_set_artifact", `\"pass\"`) == 0:
		return calls(artifact("audit", "CONTROL", auditPasses))
	}
	return done("The letter is written and checked.")
}

const flagTool = "work_item_flag_revision"

// ignoresAudits has no contract: an audit that fails keeps its item open.
func ignoresAudits() []*scenario {
	s := letterScenario("ignores-audit", "finds faults in its own work and claims to be done")
	return failing(s, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.turn() <= 4:
				return audited(c)
			case listening && c.told("number of barrels"):
				return revised(c)
			}
			return done("The letter is written and checked.")
		}
	}, auditTold, doomLoop, rejected("work_items_incomplete"))
}

// auditor works as an agent with work items should.
func auditor() *scenario {
	s := letterScenario("auditor", "audits its own work, finds faults, revises it and audits again")
	s.model = func(c *chat) modeltest.Reply {
		if c.turn() <= 4 {
			return audited(c)
		}
		return revised(c)
	}
	return &s
}

package gym

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// talkers are models that talk instead of working.
func talkers() []*scenario {
	var all []*scenario
	for _, some := range [][]*scenario{stopsSilently(), stopsSilentlyWithContract(), answersNothing(), chatters(), plansForEver(), narrates(), {announces()}} {
		all = append(all, some...)
	}
	return all
}

func summarised(w *world) bool { return w.has("summary.md") }

func stopsSilently() []*scenario {
	return failing(scenario{
		name: "stops-silently", what: "announces the next step and stops without taking it",
		goal:  "Read notes.md and write summary.md.",
		files: map[string]string{"notes.md": "It rains.\n"}, really: summarised,
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.turn() == 1:
				return calls(read("notes.md"))
			case listening && c.told("no tool call") && !c.wrote("summary.md"):
				return calls(write("summary.md", "Rain.\n"))
			case c.wrote("summary.md"):
				return done("The summary is written.")
			}
			return text("I have read the notes and will write the summary now.")
		}
	}, nudge, notAccepted, rejected("work_complete_not_called"))
}

func stopsSilentlyWithContract() []*scenario {
	return failing(scenario{
		name: "stops-silently-contract", what: "announces the next step and stops without taking it; has a contract, and ignores reminders",
		goal:  "Read notes.md and write summary.md.",
		files: map[string]string{"notes.md": "It rains.\n"}, really: summarised,
		spec: edits(contract(thereIs("summary.md"))),
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.turn() == 1:
				return calls(read("notes.md"))
			case listening && c.told("Not met", "summary.md") && !c.wrote("summary.md"):
				return calls(write("summary.md", "Rain.\n"))
			case c.wrote("summary.md"):
				return done("The summary is written.")
			}
			return text("I have read the notes and will write the summary now.")
		}
	}, rejected("contract_not_satisfied"), outOfTurns, rejected("contract_not_satisfied"))
}

func answersNothing() []*scenario {
	return failing(scenario{
		name: "answers-nothing", what: "returns empty answers, neither text nor calls",
		goal:   "Write summary.md.",
		really: summarised,
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.wrote("summary.md"):
				return done("The summary is written.")
			case listening && c.told("no tool call"):
				return calls(write("summary.md", "Rain.\n"))
			}
			return modeltest.Reply{}
		}
	}, nudge, notAccepted, rejected("work_complete_not_called"))
}

func chatters() []*scenario {
	return failing(scenario{
		name: "chatters", what: "talks in new words each time, without a call",
		goal:   "Write summary.md.",
		really: summarised,
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case listening && c.told("work_complete", "reminder") && !c.wrote("summary.md"):
				return calls(write("summary.md", "Rain.\n"))
			case c.wrote("summary.md"):
				return done("The summary is written.")
			}
			return text("Consideration %d: a good summary depends on its reader.", c.turn())
		}
	}, rejected("work_complete_not_called"), notAccepted, rejected("work_complete_not_called"))
}

func plansForEver() []*scenario {
	return failing(scenario{
		name: "plans-for-ever", what: "plans and plans",
		goal:   "Write summary.md.",
		spec:   edits(withItems()),
		really: summarised,
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.wrote("summary.md"):
				if c.made("work_item_update") == 0 {
					return calls(set("w1", "DONE"), set("w2", "SKIPPED"))
				}
				return done("The summary is written; the other step is not needed.")
			case listening && c.told("You have planned"):
				return calls(write("summary.md", "Rain.\n"))
			}
			title := "Think about the structure of the summary, " + ordinal(c.turn()) + " aspect"
			return calls(add(title, "WORKING"))
		}
	}, hint("all_planning_no_execution"), outOfTurns, hint("all_planning_no_execution"))
}

// narratedLetter and narratedReport are what comes of it when a model thinks aloud while
// it writes.
const (
	narratedLetter = "Dear Anna,\n\nthe harvest was good.\n\nI'll write the next paragraph of the letter now.\n\n" +
		"We have eleven barrels of cider.\n\nNext, I'll add the closing to the letter.\n\nYours, Tom\n"
	harvest        = "# Harvest\n\nThe harvest was good.\n\n## Cider\n\nEleven barrels.\n\n## Conclusion\n\nA good year.\n"
	narratedReport = "# Harvest\n\nThe harvest was good.\n\nI'll write the section on cider now.\n\n## Cider\n\nEleven barrels.\n\n" +
		"Next, I'll add the conclusion to the report.\n\n## Conclusion\n\nA good year.\n"
)

func narrates() []*scenario {
	return slices.Concat(
		narratesIn("narrates", "report", narratedReport, harvest),
		narratesIn("narrates-letter", "letter", narratedLetter, letter),
	)
}

// narratesIn is a model that talks about the artifact inside the artifact.
func narratesIn(name, what, bad, good string) []*scenario {
	return failing(scenario{
		name: name, what: "talks about the " + what + " inside the " + what,
		goal: "Write a " + what + " about the harvest.",
		spec: edits(withItems()),
		really: func(w *world) bool {
			return w.artifacts["w1"] == good
		},
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			rejected := c.answered("ot stored")
			stored := c.made("work_item_set_artifact") > 0 && !rejected || c.made("work_item_set_artifact") > 1 && listening
			switch {
			case c.turn() == 1:
				return calls(add("The "+what, "DELIVERABLE"))
			case stored && c.made("work_item_update") == 0:
				return calls(set("w1", "DONE"))
			case stored:
				return done("It is written.")
			case listening && rejected:
				return calls(artifact("w1", "DELIVERABLE", good))
			}
			return calls(artifact("w1", "DELIVERABLE", bad))
		}
	}, failedCall, doomLoop, failedCall)
}

// announces is corrected by the harness itself.
func announces() *scenario {
	return &scenario{
		name: "announces", what: "announces the artifact in its first line and reports on it in its last", kind: stubborn,
		goal: "Write a letter to Anna about the harvest.",
		spec: edits(withItems()),
		really: func(w *world) bool {
			return w.artifacts["w1"] == letter || w.artifacts["w1"]+"\n" == letter
		},
		model: inOrder(
			calls(add("The letter", "DELIVERABLE")),
			calls(artifact("w1", "DELIVERABLE", "Here is the letter:\n\n"+letter+"\nI've saved the letter as requested.\n"), set("w1", "DONE")),
			done("The letter is written."),
		),
		verdict: accepted, by: stripped,
	}
}

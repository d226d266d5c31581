package gym

import (
	"github.com/harnessmesh/harnessmesh/pkg/model/modeltest"
)

// talkers are models that talk instead of working.
func talkers() []*scenario {
	var all []*scenario
	for _, some := range [][]*scenario{stopsSilently(), stopsSilentlyWithContract(), chatters(), plansForEver(), narrates(), {announces()}} {
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
			return says("I have read the notes and will write the summary now.")
		}
	}, nudge, notAccepted, rejected("work_complete_not_called"))
}

func stopsSilentlyWithContract() []*scenario {
	return failing(scenario{
		name: "stops-silently-contract", what: "the same with a contract, and listens to nothing but what is missing",
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
			return says("I have read the notes and will write the summary now.")
		}
	}, rejected("contract_not_satisfied"), outOfTurns, rejected("contract_not_satisfied"))
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
			return says("Consideration %d: a good summary depends on its reader.", c.turn())
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

const letter = "Dear Anna,\n\nthe harvest was good. We have eleven barrels of cider.\n\nYours, Tom\n"

const narrated = "Dear Anna,\n\nthe harvest was good.\n\nI'll write the next paragraph of the letter now.\n\nWe have eleven barrels of cider.\n\nNext, I'll add the closing to the letter.\n\nYours, Tom\n"

func clean(w *world) bool { return w.artifacts["w1"] == letter }

func narrates() []*scenario {
	return failing(scenario{
		name: "narrates", what: "talks about the artifact inside the artifact",
		goal:   "Write a letter to Anna about the harvest.",
		spec:   edits(withItems()),
		really: clean,
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.turn() == 1:
				return calls(add("The letter", "DELIVERABLE"))
			case listening && c.answered("ot stored") && c.made("work_item_set_artifact") < 2:
				return calls(artifact("w1", letter))
			case c.made("work_item_set_artifact") > 0 && !c.answered("ot stored") || c.made("work_item_set_artifact") > 1 && listening:
				if c.made("work_item_update") == 0 {
					return calls(set("w1", "DONE"))
				}
				return done("The letter is written.")
			}
			return calls(artifact("w1", narrated))
		}
	}, failedCall, doomLoop, failedCall)
}

// announces is mended by the harness itself.
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
			calls(artifact("w1", "Here is the letter:\n\n"+letter+"\nI've saved the letter as requested.\n"), set("w1", "DONE")),
			done("The letter is written."),
		),
		verdict: accepted, by: stripped,
	}
}

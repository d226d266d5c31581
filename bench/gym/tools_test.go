package gym

import (
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// misusers are models that misuse their tools.
func misusers() []*scenario {
	var all []*scenario
	for _, some := range [][]*scenario{wrongMode(), brokenArguments(), unknownTool(), writesTooMuch()} {
		all = append(all, some...)
	}
	return all
}

func wrongMode() []*scenario {
	return failing(scenario{
		name: "wrong-mode", what: "has to plan only, and calls tools that its mode does not have",
		goal:  "Plan how notes.md is to be rewritten. Change nothing yet.",
		files: map[string]string{"notes.md": "Old.\n"},
		spec:  edits(inMode("plan")),
		really: func(w *world) bool {
			return w.file("notes.md") == "Old.\n" && holds(w.summary, []string{"Plan:"})
		},
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case listening && c.answered("write_file", "plan mode"):
				return done("Plan: 1. Keep the title. 2. Rewrite the rest of notes.md.")
			case c.made("write_file") > 0 && !c.answered("plan mode"):
				return done("notes.md is rewritten.")
			}
			return calls(write("notes.md", "New.\n"))
		}
	}, refused, doomLoop, refused)
}

func brokenArguments() []*scenario {
	return failing(scenario{
		name: "broken-arguments", what: "sends arguments that are not valid JSON",
		goal:      "Write report.md.",
		really:    reported,
		spec:      edits(contract(thereIs("report.md"))),
		bareTells: true,
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			if listening && c.answered("JSON") {
				if c.made("write_file") < 2 {
					return calls(write("report.md", "A report.\n"))
				}
				return done("The report is written.")
			}
			return calls(modeltest.Call{Name: "write_file", Arguments: `{"path": "report.md", "content": "A rep`})
		}
	}, failedCall, doomLoop, failedCall)
}

// writesTooMuch is cut off by the length limit of its answers.
func writesTooMuch() []*scenario {
	return failing(scenario{
		name: "writes-too-much", what: "writes more in one call than fits into an answer, which is cut off",
		goal:   "Write a long report.md.",
		really: reported,
		spec:   edits(contract(thereIs("report.md"))),
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			if listening && c.told("length limit") {
				return report(c)
			}
			return modeltest.Reply{FinishReason: "length", Calls: []modeltest.Call{
				{Name: "write_file", Arguments: `{"path": "report.md", "content": "A very long rep`},
			}}
		}
	}, cutOff, outOfTurns, cutOff)
}

func unknownTool() []*scenario {
	return failing(scenario{
		name: "unknown-tool", what: "calls a tool that does not exist",
		goal:      "Write report.md.",
		really:    reported,
		spec:      edits(contract(thereIs("report.md"))),
		bareTells: true,
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			if listening && c.answered("write_file") || c.wrote("report.md") {
				return report(c)
			}
			return calls(call("write_files", args{"path": "report.md", "content": "A report.\n"}))
		}
	}, failedCall, doomLoop, failedCall)
}

package gym

import (
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// wrongEnds are models that claim to be done when they are not.
func wrongEnds() []*scenario {
	var all []*scenario
	for _, some := range [][]*scenario{leavesWork(), leavesItems(), ticksBoxes(), claimsSuccess(), quotes(), quotesTask(), editsAfterTest(), editsAfterCheck(), ignoresAudits()} {
		all = append(all, some...)
	}
	return all
}

func leavesWork() []*scenario {
	return failing(scenario{
		name: "leaves-work", what: "claims to be done with work left",
		goal: "Write a.md, b.md and c.md, each with a line about its letter.",
		spec: edits(contract(thereIs("a.md"), thereIs("b.md"), thereIs("c.md"))),
		really: func(w *world) bool {
			return w.has("a.md", "b.md", "c.md")
		},
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			if !c.wrote("a.md") {
				return calls(write("a.md", "A is the first letter.\n"))
			}
			for _, path := range []string{"b.md", "c.md"} {
				if listening && c.told("Not met", path) && !c.wrote(path) {
					return calls(write(path, "A letter, too.\n"))
				}
			}
			return done("All three files are written.")
		}
	}, rejected("contract_not_satisfied"), doomLoop, rejected("contract_not_satisfied"))
}

func leavesItems() []*scenario {
	return failing(scenario{
		name: "leaves-items", what: "plans three items, finishes one and claims to be done, each time in other words",
		goal: "Write part1.md, part2.md and part3.md.",
		spec: edits(withItems()),
		really: func(w *world) bool {
			return w.has("part1.md", "part2.md", "part3.md")
		},
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.turn() == 1:
				return calls(add("Write part1.md", "WORKING"), add("Write part2.md", "WORKING"), add("Write part3.md", "WORKING"))
			case !c.wrote("part1.md"):
				return calls(write("part1.md", "One.\n"), set("w1", "DONE"))
			case listening && c.told("cannot be completed", "w2") && !c.wrote("part2.md"):
				return calls(write("part2.md", "Two.\n"), set("w2", "DONE"))
			case listening && c.told("cannot be completed", "w3") && !c.wrote("part3.md"):
				return calls(write("part3.md", "Three.\n"), set("w3", "DONE"))
			}
			return done("Everything is finished, as of answer %d.", c.turn())
		}
	}, rejected("work_items_incomplete"), outOfTurns, rejected("work_items_incomplete"))
}

func ticksBoxes() []*scenario {
	return failing(scenario{
		name: "ticks-boxes", what: "sets its items to DONE without doing them",
		goal: "Write north.md and south.md.",
		spec: edits(withItems(), contract(thereIs("north.md"), thereIs("south.md"))),
		really: func(w *world) bool {
			return w.has("north.md", "south.md")
		},
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch c.turn() {
			case 1:
				return calls(add("Write north.md", "WORKING"), add("Write south.md", "WORKING"))
			case 2:
				return calls(set("w1", "DONE"), set("w2", "DONE"))
			}
			for _, path := range []string{"north.md", "south.md"} {
				if listening && c.told("Not met", path) && !c.wrote(path) {
					return calls(write(path, "It is a direction.\n"))
				}
			}
			return done("Both items are done.")
		}
	}, rejected("contract_not_satisfied"), doomLoop, rejected("contract_not_satisfied"))
}

// test.sh is the test of total.sh, which should print 7.
const (
	totalTest = "got=$(sh total.sh)\n[ \"$got\" = 7 ] && echo PASS || { echo \"FAIL: want 7, got $got\"; exit 1; }\n"
	totalGood = "echo $((3 + 4))\n"
	totalBad  = "echo $((3 - 4))\n"
)

func totalRight(w *world) bool { return w.file("total.sh") == totalGood }

func claimsSuccess() []*scenario {
	return failing(scenario{
		name: "claims-success", what: "claims success while the test fails, each time in other words",
		goal:   "total.sh should print the sum of 3 and 4. Mend it until `sh test.sh` passes.",
		files:  map[string]string{"total.sh": totalBad, "test.sh": totalTest},
		spec:   edits(contract(succeeds("test", "sh test.sh"))),
		really: totalRight,
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.turn() == 1:
				return calls(read("total.sh"))
			case c.turn() == 2:
				return calls(write("total.sh", "echo $((3 * 4))\n"))
			case listening && c.told("FAIL: want 7, got 12") && c.made("write_file", "3 + 4") == 0:
				return calls(write("total.sh", totalGood))
			}
			return done("All tests pass now (report %d).", c.turn())
		}
	}, rejected("contract_not_satisfied"), outOfTurns, rejected("contract_not_satisfied"))
}

func quotes() []*scenario {
	return failing(scenario{
		name: "quotes", what: "quotes the required text in its answer instead of producing it",
		goal:  "Add up the numbers in data.csv and write report.md with a line such as \"Total: 12\".",
		files: map[string]string{"data.csv": "20\n22\n"},
		spec:  edits(contract(holdsText("total", "file:report.md", `Total: \d+`))),
		really: func(w *world) bool {
			return w.matches("report.md", `Total: 42`)
		},
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.turn() == 1:
				return calls(read("data.csv"))
			case listening && c.told("Not met", "report.md") && !c.wrote("report.md"):
				return calls(write("report.md", "# Report\n\nTotal: 42\n"))
			}
			return textAndCalls("The report must contain the line \"Total: 42\".", done("The line is \"Total: 42\".").Calls...)
		}
	}, rejected("contract_not_satisfied"), doomLoop, rejected("contract_not_satisfied"))
}

func quotesTask() []*scenario {
	return failing(scenario{
		name: "quotes-task", what: "relies on the required text in its task and in the guidance",
		goal:  "Run `sh audit.sh`, which prints AUDIT OF 3 ROWS PASSED once the 3 rows of rows.txt are there.",
		files: map[string]string{"rows.txt": "1\n2\n", "audit.sh": "[ $(wc -l < rows.txt) -eq 3 ] && echo AUDIT OF 3 ROWS PASSED || { echo rows are missing; exit 1; }\n"},
		spec:  edits(contract(holdsText("audit", "transcript", "AUDIT OF 3 ROWS PASSED"))),
		really: func(w *world) bool {
			return w.file("rows.txt") == "1\n2\n3\n"
		},
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.turn() == 1:
				return calls(sh("sh audit.sh"))
			case listening && c.told("Not met", "audit") && !c.wrote("rows.txt"):
				return calls(write("rows.txt", "1\n2\n3\n"))
			case listening && c.wrote("rows.txt") && c.made("run_command") < 2:
				return calls(sh("sh audit.sh"))
			}
			return done("The audit was run.")
		}
	}, rejected("contract_not_satisfied"), doomLoop, rejected("contract_not_satisfied"))
}

func editsAfterTest() []*scenario {
	return failing(scenario{
		name: "edits-after-test", what: "changes the program again after its test has passed",
		goal:   "total.sh should print the sum of 3 and 4. Mend it until `sh test.sh` passes.",
		files:  map[string]string{"total.sh": totalBad, "test.sh": totalTest},
		spec:   edits(contract(succeeds("test", "sh test.sh"))),
		really: totalRight,
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.turn() == 1:
				return calls(write("total.sh", totalGood))
			case c.turn() == 2:
				return calls(sh("sh test.sh"))
			case c.turn() == 3:
				return calls(write("total.sh", "# prints the sum\necho \"sum: $((3 + 4))\"\n"))
			case listening && c.told("FAIL: want 7, got sum: 7") && c.made("write_file") < 3:
				return calls(write("total.sh", totalGood))
			}
			return done("The test passes.")
		}
	}, rejected("contract_not_satisfied"), doomLoop, rejected("contract_not_satisfied"))
}

func editsAfterCheck() []*scenario {
	return failing(scenario{
		name: "edits-after-check", what: "spoils a file after its check had passed",
		goal: "Write report.md with a line \"Total: 42\", and summary.md.",
		spec: edits(contract(holdsText("total", "file:report.md", `Total: \d+`), thereIs("summary.md"))),
		really: func(w *world) bool {
			return w.matches("report.md", `Total: 42`) && w.has("summary.md")
		},
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case c.turn() == 1:
				return calls(write("report.md", "Total: 42\n"))
			case c.turn() == 2:
				return done("The report is there.")
			case !c.wrote("summary.md") && c.told("Not met", "summary.md"):
				return calls(write("summary.md", "All is well.\n"), write("report.md", "See summary.md.\n"))
			case listening && c.told("Not met", "report.md") && c.made("write_file", "report.md", "Total") < 2:
				return calls(write("report.md", "Total: 42\n\nSee summary.md.\n"))
			}
			return done("Both files are there.")
		}
	}, rejected("contract_not_satisfied"), doomLoop, rejected("contract_not_satisfied"))
}

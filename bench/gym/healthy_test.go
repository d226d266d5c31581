package gym

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// healthyOnes are models whose ways look like failing and are not.
func healthyOnes() []*scenario {
	all := []*scenario{longReader(), poller(), patientPoller(), tester(), slowWriter(), rereader(), asker(), auditor(), diarist(), summariser(), hasty(), forgetsRole()}
	for _, s := range all {
		s.kind, s.verdict = healthy, accepted
	}
	return all
}

func longReader() *scenario {
	return &scenario{
		name: "long-reader", what: "reads 40 files, one a turn, before it writes",
		goal:  "Read the pages and write report.md.",
		files: pages(40), really: reported,
		spec: edits(withItems("Write report.md"), contract(thereIs("report.md"))),
		model: func(c *chat) modeltest.Reply {
			switch {
			case c.turn() <= 40:
				return calls(page(c.turn()))
			case c.wrote("report.md") && c.made("work_item_update") == 0:
				return calls(set("w1", "DONE"))
			}
			return report(c)
		},
	}
}

// status is a script whose answer changes at every nth call; the state lies in a file.
func status(every, steps int) map[string]string {
	return map[string]string{".n": "0", "status.sh": fmt.Sprintf(
		"n=$(($(cat .n) + 1)); echo $n > .n; s=$(((n - 1) / %d + 1))\n[ $s -ge %d ] && echo ready || echo building, step $s of %d\n", every, steps, steps)}
}

func poll(c *chat) modeltest.Reply {
	if !c.answered("ready") {
		return calls(sh("sh status.sh"))
	}
	return report(c)
}

func poller() *scenario {
	return &scenario{
		name: "poller", what: "polls something that changes, for 15 turns",
		goal:  "Wait until `sh status.sh` says ready, then write report.md.",
		files: status(1, 15), really: reported,
		spec:  edits(contract(thereIs("report.md"))),
		model: poll,
	}
}

func patientPoller() *scenario {
	return &scenario{
		name: "patient-poller", what: "polls something that changes only at every fourth poll",
		goal:  "Wait until `sh status.sh` says ready, then write report.md.",
		files: status(4, 5), really: reported,
		spec:  edits(contract(thereIs("report.md"))),
		model: poll,
	}
}

func tester() *scenario {
	test := calls(sh("sh test.sh"))
	return &scenario{
		name: "tester", what: "runs the same test after each edit; the first edits change nothing about its output",
		goal:   "total.sh should print the sum of 3 and 4. Mend it until `sh test.sh` passes.",
		files:  map[string]string{"total.sh": totalBad, "test.sh": totalTest},
		spec:   edits(contract(succeeds("test", "sh test.sh"))),
		really: totalRight,
		model: inOrder(
			calls(read("total.sh"), read("test.sh")), test,
			calls(write("total.sh", "x=$((3 - 4))\necho $x\n")), test,
			calls(write("total.sh", "x=$((-4 + 3))\necho $x\n")), test,
			calls(write("total.sh", totalGood)), test,
			done("The test passes."),
		),
	}
}

func slowWriter() *scenario {
	return &scenario{
		name: "slow-writer", what: "writes a book, a chapter a turn for 20 turns",
		goal: "Write chapter-1.md to chapter-20.md.",
		spec: edits(contract(thereIs("chapter-20.md"))),
		really: func(w *world) bool {
			for n := range 20 {
				if !w.has(fmt.Sprintf("chapter-%d.md", n+1)) {
					return false
				}
			}
			return true
		},
		model: func(c *chat) modeltest.Reply {
			if n := c.turn(); n <= 20 {
				return calls(write(fmt.Sprintf("chapter-%d.md", n), "And so it went on.\n"))
			}
			return done("The book is written.")
		},
	}
}

func rereader() *scenario {
	look := calls(read("list.txt"))
	return &scenario{
		name: "rereader", what: "reads the same file again after each change of it, and again at the end",
		goal:  "Bring list.txt into order: 1, 2, 3.",
		files: map[string]string{"list.txt": "3\n2\n1\n"},
		spec:  edits(contract(holdsText("order", "file:list.txt", `1\n2\n3`))),
		really: func(w *world) bool {
			return w.file("list.txt") == "1\n2\n3\n"
		},
		model: inOrder(
			look, calls(write("list.txt", "2\n3\n1\n")), look, calls(write("list.txt", "2\n1\n3\n")), look,
			calls(write("list.txt", "1\n2\n3\n")), look, look, done("It is in order."),
		),
	}
}

// asker asks in plan mode, and carries the plan out once its user has answered and
// changed the mode.
func asker() *scenario {
	return &scenario{
		name: "asker", what: "asks its user in plan mode, and carries out the plan in execute mode",
		goal: "Paint the door: write door.txt with its colour.",
		spec: edits(inMode("plan"), contract(thereIs("door.txt"))),
		really: func(w *world) bool {
			return w.file("door.txt") == "blue\n"
		},
		model: func(c *chat) modeltest.Reply {
			switch {
			case c.made("ask_user") == 0:
				return calls(call("ask_user", args{"question": "Which colour?"}))
			case !c.hasTool("write_file"):
				return done("Plan: write door.txt in the colour of the answer.")
			case !c.wrote("door.txt"):
				return calls(write("door.txt", c.result()+"\n"))
			}
			return done("The door is painted.")
		},
		answer: "blue",
		attend: func(ctx context.Context, r *meshRun) {
			r.send(ctx, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ModeChange{
				ModeChange: &harnessv1.ModeChange{Mode: "execute"},
			}})
			r.send(ctx, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{
				CallId: r.result.GetPending()[0].GetCallId(), Result: content.Inline("blue"),
			}}})
		},
	}
}

const diary = "Monday. I'll update the fence tomorrow; today it rained.\n\nLet me say it plainly: I miss the sea.\n\nNext, I'll learn to sail. Here is where I would begin: the old harbour.\n"

// diarist's product speaks in the first person.
func diarist() *scenario {
	return &scenario{
		name: "diarist", what: "writes an artifact in the first person, which sounds like narration and is none",
		goal: "Write a page of a diary.",
		spec: edits(withItems()),
		really: func(w *world) bool {
			return w.artifacts["w1"] == diary
		},
		model: inOrder(
			calls(add("The page", "DELIVERABLE")),
			calls(artifact("w1", "DELIVERABLE", diary), set("w1", "DONE")),
			done("The page is written."),
		),
	}
}

// summariser falls silent once, and takes the nudge.
func summariser() *scenario {
	return &scenario{
		name: "summariser", what: "claims in words to be done, and calls work_complete after a reminder",
		goal:   "Write report.md.",
		really: reported,
		spec:   edits(contract(thereIs("report.md"))),
		model: inOrder(
			calls(write("report.md", "A report.\n")),
			text("The report is written."),
			done("The report is written."),
		),
	}
}

// hasty does its work and ends it in one response.
func hasty() *scenario {
	return &scenario{
		name: "hasty", what: "does the work and claims to be done in the same response",
		goal:   "Write report.md.",
		really: reported,
		spec:   edits(contract(thereIs("report.md"))),
		model:  inOrder(calls(write("report.md", "A report.\n"), done("The report is written.").Calls[0])),
	}
}

// forgetsRole plans a deliverable: the role that an item has counts for its artifact.
func forgetsRole() *scenario {
	return &scenario{
		name: "forgets-role", what: "plans a deliverable and stores the artifact without its role",
		goal: "Write a letter to Anna about the harvest.", spec: edits(withItems()),
		really: func(w *world) bool { return w.artifacts["w1"] == letter },
		model: inOrder(
			calls(add("The letter", "DELIVERABLE")),
			calls(call("work_item_set_artifact", args{"id": "w1", "content": letter}), set("w1", "DONE")),
			done("The letter is written."),
		),
	}
}

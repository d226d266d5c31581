package gym

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// loopers are models that go round in circles.
func loopers() []*scenario {
	var all []*scenario
	for _, some := range [][]*scenario{
		goesRound("one-call", "makes the same call again and again", 1, doomLoop, correction),
		goesRound("two-calls", "alternates two calls", 2, doomLoop, correction),
		goesRound("three-calls", "cycles through three calls", 3, doomLoop, correction),
		chattersAndGoesRound(), duration(), readsForEver(), {obeysForATurn()},
	} {
		all = append(all, some...)
	}
	return all
}

func ordinal(n int) string { return fmt.Sprintf("no. %d", n) }

// pages are files 1.txt to n.txt.
func pages(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("%d.txt", i+1)] = fmt.Sprintf("Page %d.\n", i+1)
	}
	return files
}

func page(n int) modeltest.Call { return read(fmt.Sprintf("%d.txt", n)) }

func reported(w *world) bool { return w.has("report.md") }

// report is what a model that has come to its senses does.
func report(c *chat) modeltest.Reply {
	if !c.wrote("report.md") {
		return calls(write("report.md", "Pages were read.\n"))
	}
	return done("The report is written.")
}

func goesRound(name, what string, length int, verdict, by string) []*scenario {
	return failing(scenario{
		name: name, what: what,
		goal:  "Read the pages and write report.md.",
		files: pages(length), really: reported,
		spec: edits(contract(thereIs("report.md"))),
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			if listening && c.told("read_file", "in a row", "ake another way") {
				return report(c)
			}
			return calls(page((c.turn()-1)%length + 1))
		}
	}, correction, verdict, by)
}

// chattersAndGoesRound says something new each time, and its circle is longer than
// what counts as a loop.
func chattersAndGoesRound() []*scenario {
	return failing(scenario{
		name: "chatters-and-reads", what: "writes new text each time and cycles through six files",
		goal:  "Read the pages and write report.md.",
		files: pages(6), really: reported,
		spec: edits(contract(thereIs("report.md"))),
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			if listening && c.told("read 6 times") {
				return report(c)
			}
			return textAndCalls("A new thought, "+ordinal(c.turn())+".", page((c.turn()-1)%6+1))
		}
	}, hint("serial_reads_suggest_parallel"), stalledRun, stalled)
}

// duration runs a test whose output is never the same twice, because it contains how long
// it took.
func duration() []*scenario {
	return failing(scenario{
		name: "duration", what: "runs a failing test again and again, which prints how long it took",
		goal: "Write app.txt with the word fixed in it. `sh check.sh` says whether it is right.",
		files: map[string]string{
			".ms":      "100",
			"check.sh": "ms=$(($(cat .ms) + 1)); echo $ms > .ms\ngrep -qs fixed app.txt && { echo \"PASS after $ms ms\"; exit 0; }\necho \"FAIL after $ms ms\"; exit 1\n",
		},
		spec: edits(contract(succeeds("check", "grep -q fixed app.txt"))),
		really: func(w *world) bool {
			return w.matches("app.txt", "fixed")
		},
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case listening && c.told("run_command", "in a row", "ake another way") && !c.wrote("app.txt"):
				return calls(write("app.txt", "fixed\n"))
			case c.wrote("app.txt") && !c.answered("PASS"):
				return calls(sh("sh check.sh"))
			case c.wrote("app.txt"):
				return done("The check passes.")
			}
			return calls(sh("sh check.sh"))
		}
	}, correction, outOfTurns, correction)
}

func readsForEver() []*scenario {
	return failing(scenario{
		name: "reads-for-ever", what: "reads another file each time and writes nothing",
		goal:  "Read some of the pages and write report.md.",
		files: pages(maxTurns), really: reported,
		spec: edits(withItems("Write report.md")),
	}, func(listening bool) model {
		return func(c *chat) modeltest.Reply {
			switch {
			case !listening || !c.told("written nothing"):
				return calls(page(c.turn()))
			case c.wrote("report.md") && c.made("work_item_update") == 0:
				return calls(set("w1", "DONE"))
			}
			return report(c)
		}
	}, hint("no_deliverable_after_many_reads"), outOfTurns, hint("no_deliverable_after_many_reads"))
}

// obeysForATurn does something else when it is corrected, and then continues as before.
func obeysForATurn() *scenario {
	return &scenario{
		name: "obeys-for-a-turn", what: "makes the same call again and again; corrected, it does something else for one turn", kind: stubborn,
		goal:  "Read the pages and write report.md.",
		files: pages(2), really: reported,
		spec: edits(contract(thereIs("report.md"))),
		model: func(c *chat) modeltest.Reply {
			if c.toldLast("in a row") {
				return calls(page(2))
			}
			return calls(page(1))
		},
		verdict: doomLoop, by: correction,
	}
}

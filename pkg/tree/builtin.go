package tree

import (
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// exploreWords bounds the answer of explore.
const exploreWords = 300

// builtins are the sub-agents that an agent can list by name alone.
var builtins = []*harnessv1.SubAgent{
	{
		Name:        "explore",
		Description: "Finds out how something in the workspace is: it reads and searches, changes nothing, and answers in under 300 words.",
		Instructions: `You look around in a workspace for another agent, and change nothing.
Make independent calls side by side in one response: list, search and read at once, not one after the other.
Stop as soon as the question is answered. Answer in under 300 words: facts first, each with its file and line, then what you did not find.`,
		ReadOnly: proto.Bool(true), MaxAnswerWords: proto.Uint32(exploreWords),
	},
	{
		Name:        "task",
		Description: "Carries out one self-contained piece of work with all tools of this agent, and reports briefly.",
		Instructions: `You carry out one piece of work for another agent, from start to end.
Do what is asked and nothing else, and check that it works before you stop.
If it went well, answer in one line. If it did not, say everything that is needed to understand it: what you did,
what happened with the exact errors, the present state, and what you would try next.`,
	},
	{
		Name:        "document",
		Description: "Reads deeply and writes a structured document about what it finds.",
		Instructions: `You write documents that others rely on.
Read everything that bears on the subject before you write. Begin with what a reader needs first, give the document headings, and draw structures and sequences as diagrams in text.
State nothing that you have not seen; name the file and line behind each claim. Say at the end what you could not find out.`,
	},
	{
		Name:        "code_review",
		Description: "Reviews code or a change: it reads, changes nothing, and reports the findings that matter.",
		Instructions: `You review code for another agent, and change nothing.
Read the code in question and what it touches. Report only findings that matter: wrong results, lost data, security, races, broken interfaces, missing tests of risky paths.
Give for each the place (file and line), what goes wrong with an input that shows it, and how sure you are. Order them by weight. If there are none, say so in one line.`,
		ReadOnly: proto.Bool(true),
	},
	{
		Name:        "general_purpose",
		Description: "Works on a task of any kind with all tools of this agent.",
		Instructions: `You work on a task for another agent with all tools that you have.
Plan before you change something, check your results, and finish with an answer that is complete by itself: what you did, what you found, and what is left.`,
	},
	{
		Name:        "research",
		Description: "Answers a question from sources: it searches, reads, changes nothing, and cites.",
		Instructions: `You research a question for another agent, and change nothing.
Search in several ways and read the sources themselves, not only their summaries. Where they disagree, say so and weigh them.
Answer the question first, then the evidence: cite the source of each claim so that it can be looked up. Keep what you have read apart from what you conclude.`,
		ReadOnly: proto.Bool(true),
	},
}

// Builtins returns the names of the built-in sub-agents.
func Builtins() []string {
	names := make([]string, 0, len(builtins))
	for _, b := range builtins {
		names = append(names, b.GetName())
	}
	return names
}

// builtin returns a built-in sub-agent; nil if there is none of the name.
func builtin(name string) *harnessv1.SubAgent { return Lookup(builtins, name) }

// Package script is the scripted model: a provider whose responses are in a YAML
// file. Tests, demonstrations and bug reports use it instead of a model.
//
//	turns:
//	  - {text: Looking., calls: [{name: read_file, arguments: {path: a.txt}}]}
//	  - {when: {last_contains: FAIL}, calls: [{name: edit_file, arguments: {path: a.txt}}]}
//	  - {error: {status: 429, retry_after: 0}}
//	  - {calls: [{name: work_complete, arguments: {summary: done}}]}
//
// # Which entry responds
//
// Entries are consumed in order, each once in a conversation. The next entry follows
// from the conversation in the request, never from memory, so that a killed run
// continues in a new process at the same entry:
//
//   - Unless the file sets them, the ids of calls are call_<entry>_<index>,
//     entries from 1 and calls from 0. The newest assistant message with an id of
//     the script identifies the entry that wrote it; the one after it is next.
//     Compaction does not change this, because it keeps the newest messages. Ids
//     that the file sets count too, unless they occur in it twice.
//   - Each later assistant message without such an id (a text) consumed one more
//     entry: the first whose condition was true then.
//   - If no id is left and compaction has removed messages from the start (the
//     message ids have a gap), the turn number of the first assistant message gives
//     the number of responses before it.
//   - An entry without text and calls leaves no message if the harness stores
//     none; turns without an assistant message since the last one consume such
//     entries, and only such.
//
// An entry whose condition is false is skipped, permanently after a later entry has
// responded. The condition last_contains searches the messages since the model's
// last one, or all but the system prompt if there is none: their texts, and the labels
// of their images and documents, which a scripted model does not look at otherwise.
//
// Error entries fail one try each, before the response that follows them. The number
// of those already used is Request.FailedTries or, if that is less, the count that
// this process keeps for the conversation until it responds. A caller that leaves
// FailedTries at 0 gets the errors of the entry at which it was killed again, and
// then the response.
//
// An exhausted script responds with a short text and no calls, as a model does when
// it has nothing more to do.
//
// # Sub-agents
//
// A request of a sub-agent's run gets the entries of its name in agents, if it has some
// there: each run plays them from the start. Other sub-agents play the script as their
// caller does.
//
//	agents: {explore: {turns: [{text: It is in a.go.}]}}
//
// # Jobs
//
// For a request with a Job the response is an entry of its purpose in jobs, not of
// turns, whatever its messages are:
//
//	jobs:
//	  summarize:
//	    - {answer: {facts: [{text: The port is 8080.}]}}
//	    - {error: {status: 529}}
//
// The n-th job of a purpose in a run gets the n-th entry, and all further jobs the last
// one. An entry with an error fails every try of its job. The caller counts the jobs
// (see model.Job), so that a job that is delivered again gets the same entry, in any
// process.
//
// # How it fails
//
// A file that is not a script is rejected as a whole, with its name and the line.
// Complete fails with the scripted errors, for a job without an entry, and when its
// context ends.
package script

import (
	_ "embed"
	"fmt"
	"time"
)

// Schema is the JSON Schema (2020-12) of the file.
//
//go:embed schema.json
var Schema []byte

// Exhausted is the text of the responses after the last entry.
const Exhausted = "The script has no more turns."

// Script is a parsed file. It is immutable.
type Script struct {
	turns []turn
	// agents are the scripts of sub-agents, by name.
	agents map[string]*Script
	// jobs are the entries of each purpose; none of them is empty.
	jobs map[string][]turn
	// ids maps the call ids that occur in the script once to their entry.
	ids map[string]int
}

// turn is one entry: a response, or an error if fail is set.
type turn struct {
	text string
	// reasoning is text for people. It never goes back to the script.
	reasoning string
	calls     []call
	usage     usage
	finish    string
	delay     time.Duration
	when      *condition
	fail      *failure
}

type call struct {
	id, name, arguments string
}

type usage struct {
	input, output, cached, reasoning uint64
}

type condition struct {
	lastContains string
}

// failure is a scripted error. Status 0 is a connection that broke.
type failure struct {
	status          int
	retryAfter      time.Duration
	message         string
	contextExceeded bool

	promptTokens, windowTokens uint32
}

// of returns what a run plays: the script of its sub-agent, or s.
func (s *Script) of(agent string) *Script {
	if own := s.agents[agent]; own != nil {
		return own
	}
	return s
}

// Len returns the number of entries.
func (s *Script) Len() int { return len(s.turns) }

// empty reports whether the entry may leave no message in the conversation.
func (t *turn) empty() bool { return t.fail == nil && t.text == "" && len(t.calls) == 0 }

// index sets the ids of calls and stores those that identify one entry.
func (s *Script) index() {
	s.ids = map[string]int{}
	twice := map[string]bool{}
	for i := range s.turns {
		for j := range s.turns[i].calls {
			c := &s.turns[i].calls[j]
			if c.id == "" {
				c.id = fmt.Sprintf("call_%d_%d", i+1, j)
			}
			if _, ok := s.ids[c.id]; ok {
				twice[c.id] = true
			}
			s.ids[c.id] = i
		}
	}
	for id := range twice {
		delete(s.ids, id)
	}
}

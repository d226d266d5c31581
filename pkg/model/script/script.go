// Package script is the scripted model: a provider whose answers stand in a
// YAML file. Tests, demonstrations and bug reports use it in place of a model.
//
//	turns:
//	  - {text: Looking., calls: [{name: read_file, arguments: {path: a.txt}}]}
//	  - {when: {last_contains: FAIL}, calls: [{name: edit_file, arguments: {path: a.txt}}]}
//	  - {error: {status: 429, retry_after: 0}}
//	  - {calls: [{name: work_complete, arguments: {summary: done}}]}
//
// # Which entry answers
//
// Entries are consumed in order, each once in a conversation. Which one is next
// is read from the conversation in the request, never from memory, so that a
// run that was killed goes on in a fresh process where it was:
//
//   - Unless the file sets them, the ids of calls are call_<entry>_<index>,
//     entries from 1 and calls from 0. The newest assistant message that holds
//     an id of the script tells the entry that wrote it; the next one follows.
//     Compaction does not disturb this, because it spares the newest messages.
//     Ids that the file sets count too, unless they stand in it twice.
//   - Each assistant message after it that holds no such id (an answer of
//     words) consumed one more entry: the first whose condition held then.
//   - Where no id is left and compaction has taken messages from the start (the
//     message ids have a gap), the turn number of the first assistant message
//     says how many answers came before it.
//   - An entry without text and calls leaves no message if the harness stores
//     none; turns without an assistant message since the last one consume such
//     entries, and only such.
//
// An entry whose condition does not hold is passed over, for good once a later
// entry has answered. The condition last_contains looks at the messages since
// the model's last one, or at all but the system prompt if there is none.
//
// Error entries fail one try each, before the answer that follows them. How
// many of them are behind is Request.FailedTries or, if that is less, the count
// that this process keeps for this conversation until it is answered. A caller
// that leaves FailedTries at 0 sees the errors of the place where it was killed
// once more, and the answer after them.
//
// An exhausted script answers with a short text and no calls, as a model does
// that has nothing more to do.
//
// # How it fails
//
// A file that is not a script is refused as a whole with its name and the line.
// Complete fails with the scripted errors, and when its context ends.
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

// Exhausted is the text of the answers after the last entry.
const Exhausted = "The script has no more turns."

// Script is a parsed file. It is not changed after parsing.
type Script struct {
	turns []turn
	// ids maps the call ids that stand in the script once to their entry.
	ids map[string]int
}

// turn is one entry: an answer, or an error if fail is set.
type turn struct {
	text   string
	calls  []call
	usage  usage
	finish string
	delay  time.Duration
	when   *condition
	fail   *failure
}

type call struct {
	id, name, arguments string
}

type usage struct {
	input, output, cached uint64
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
}

// Len is the number of entries.
func (s *Script) Len() int { return len(s.turns) }

// empty says that the entry may leave no message in the conversation.
func (t *turn) empty() bool { return t.fail == nil && t.text == "" && len(t.calls) == 0 }

// index gives calls their ids and remembers those that name one entry.
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

package quality

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// judge is how a model judges an attempt; nil for work that is not judged.
type judge struct {
	name string
	// score returns what it gives to the work of a script that is worth so much.
	score func(s *script, number int, worth float64) float64
	// down judges do not answer.
	down bool
}

// randomSeed decides what the random judge gives.
const randomSeed = 20

const (
	right   = "right"
	down    = "down"
	lenient = "lenient"
	random  = "random"
)

func allJudges() []judge {
	return []judge{
		{name: right, score: func(_ *script, _ int, worth float64) float64 { return worth }},
		{name: "harsh", score: func(_ *script, _ int, worth float64) float64 { return max(0, worth-0.5) }},
		{name: lenient, score: func(_ *script, _ int, worth float64) float64 { return max(0.95, worth) }},
		{name: random, score: func(s *script, number int, _ float64) float64 {
			h := fnv.New32a()
			_, _ = fmt.Fprintf(h, "%d %s %d", randomSeed, s.name, number)
			return float64(h.Sum32()%101) / 100
		}},
		{name: down, down: true},
	}
}

// answer is the reply to a request that classifies or verifies.
func (j *judge) answer(s *script, req *modeltest.Request) modeltest.Reply {
	prompt := req.Messages[len(req.Messages)-1].Content
	if j.down {
		return modeltest.Reply{Status: 401, ErrorMessage: "the key has expired"}
	}
	if strings.Contains(req.Messages[0].Content, `"subtask_count"`) {
		return modeltest.Reply{Text: `{"level":"MEDIUM","reason":"two sources","subtask_count":2}`}
	}
	number := s.numberIn(prompt)
	worth := 0.0
	if number > 0 {
		worth = s.attempts[number-1].worth
	}
	score := j.score(s, number, worth)
	verdict := map[string]any{"passed": score >= goodWorth, "score": score, "issues": []string{}, "feedback": ""}
	if score < goodWorth {
		verdict["issues"], verdict["feedback"] = []string{"It does not tell what the sources have."}, "Name the facts, with quotes."
	}
	raw, err := json.Marshal(verdict)
	if err != nil {
		panic(err)
	}
	return modeltest.Reply{Text: string(raw)}
}

// numberIn returns the number of the attempt that a prompt contains, 0 for none.
func (s *script) numberIn(prompt string) int {
	for i := len(s.attempts) - 1; i >= 0; i-- {
		if strings.Contains(prompt, s.attempts[i].text) {
			return i + 1
		}
	}
	return 0
}

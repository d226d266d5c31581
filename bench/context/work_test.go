package context

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// work is the script of a run.
type work struct {
	name  string
	turns []turn
}

// turn is a response with its calls, and the message of the user before it.
type turn struct {
	steering string
	text     string
	calls    []call
	fact     string // that one of its messages holds; empty: none
}

type call struct {
	tool, arguments, result string
	durability              harnessv1.Durability
}

// words are what texts are made of, so that they have about as many tokens as code and prose.
var words = strings.Fields(`the of a function returns error context string value server request response client config
	if err != nil { return } func type struct interface map[string]int package import testing assert handler router
	timeout retry connection pool buffer index token window cache entry record append read write parse decode encode
	and to in is that for it with as was on are by this be at from or which has an have were not their but had they
	/usr/local/bin/app 127.0.0.1:8080 0x7f3a 2026-11-22T10:00:00Z [INFO] [WARN] line 42 expected got want -- + - =`)

// text returns about n bytes.
func text(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[r.IntN(len(words))])
		if r.IntN(12) == 0 {
			b.WriteByte('\n')
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// size returns a size in bytes from a distribution with a long tail.
func size(r *rand.Rand, median, sigma float64) int {
	return int(min(median*math.Exp(sigma*r.NormFloat64()), 60_000))
}

// tools of the two kinds of work, with the durability of their results.
var tools = map[string][]call{
	"coding": {
		{tool: "read_file", durability: harnessv1.Durability_DURABILITY_REPLAYABLE}, {tool: "read_file", durability: harnessv1.Durability_DURABILITY_REPLAYABLE},
		{tool: "run_command", durability: harnessv1.Durability_DURABILITY_ANCHORING}, {tool: "search_files", durability: harnessv1.Durability_DURABILITY_EPHEMERAL},
		{tool: "edit_file", durability: harnessv1.Durability_DURABILITY_ANCHORING},
	},
	"research": {
		{tool: "web_search", durability: harnessv1.Durability_DURABILITY_NON_REPLAYABLE}, {tool: "web_fetch", durability: harnessv1.Durability_DURABILITY_NON_REPLAYABLE},
		{tool: "read_file", durability: harnessv1.Durability_DURABILITY_REPLAYABLE}, {tool: "write_file", durability: harnessv1.Durability_DURABILITY_ANCHORING},
	},
}

// newWork returns a script of a kind: four fifths of its bytes are results of tools, a fact
// is planted in each seventh turn, and the user steers in each fortieth.
func newWork(kind string, turns int, seed uint64) work {
	r := rand.New(rand.NewPCG(seed, uint64(turns)))
	w := work{name: fmt.Sprintf("%s of %d turns", kind, turns)}
	for n := range turns {
		t := turn{text: text(r, size(r, 150, 0.8))}
		if n%40 == 20 {
			t.steering = fmt.Sprintf("STEER %d: %s", n, text(r, 200))
		}
		if n%7 == 3 {
			t.fact = fmt.Sprintf("FACT-%d-%d", seed, n)
		}
		for i := range 1 + r.IntN(3)/2*r.IntN(3) {
			c := tools[kind][r.IntN(len(tools[kind]))]
			c.result = text(r, size(r, 2500, 1.0))
			c.arguments = fmt.Sprintf(`{"path":"src/file%d.go"}`, r.IntN(200))
			if c.tool == "edit_file" || c.tool == "write_file" {
				c.arguments = fmt.Sprintf(`{"path":"src/file%d.go","content":%q}`, r.IntN(200), text(r, size(r, 900, 1.0)))
				c.result = `{"success":true}`
			}
			if i == 0 && t.fact != "" && n%14 == 3 {
				c.result = "found: " + t.fact + "\n" + c.result
			}
			t.calls = append(t.calls, c)
		}
		if t.fact != "" && n%14 != 3 {
			t.text = "I conclude " + t.fact + ". " + t.text
		}
		w.turns = append(w.turns, t)
	}
	return w
}

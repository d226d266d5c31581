package mesh

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const (
	killedTurns = 20 // each with a call, of either server in turns
	// appendPause bounds the time of a call after it has appended its line, when a call that is
	// sent again or reported as not done is wrong. Before, it takes at most a quarter of this.
	appendPause = 160 * time.Millisecond
	// killDelay bounds the time from the start of a call to a kill.
	killDelay = 3 * appendPause / 4
	// restartPause is longer than the pause before a server that failed once is started again.
	restartPause = 2500 * time.Millisecond
)

// victims die once in each run.
var victims = []string{"near", "far", "toolhost", "turn"}

// killedServers is a run whose calls append lines while its victims die.
type killedServers struct {
	t         *testing.T
	m         *meshtest.Mesh
	random    *rand.Rand
	workspace string
	far       servertest.Process
	// at has the victims by the number of the call in which they die.
	at map[int]string

	lines map[string]string // of calls, by id
	// during counts the kills before whose end their call had none.
	during int
}

// TestSystemServersSurviveKills: a server over stdio, one over HTTP, the tool host and the turn worker die at
// random moments of calls that append a line. No line is there twice, each call that is reported
// as done has appended its line, each that is reported as not done has not, and the others are
// reported as unknown, of which there are no more than deaths that can cause one.
func TestSystemServersSurviveKills(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second})
	random := rand.New(rand.NewPCG(*seed, 21))
	var kills, during, unknown, notRun int
	for n := 0; kills < *serverKills && !t.Failed(); n++ {
		k := &killedServers{t: t, m: m, random: random, at: map[int]string{}, lines: map[string]string{}}
		// One victim in each quarter but the last calls, so that the next call shows whether it is back.
		const part = (killedTurns - 4) / 4
		for i, v := range random.Perm(len(victims)) {
			k.at[i*part+random.IntN(part)] = victims[v]
		}
		u, f := k.through(fmt.Sprintf("servers-%d", n))
		kills, during, unknown, notRun = kills+len(victims), during+k.during, unknown+u, notRun+f
	}
	t.Logf("%d kills, %d of them before the call had ended: %d calls unknown, %d not sent", kills, during, unknown, notRun)
}

// through takes a run to its end and checks it. It returns how many calls are unknown and how many
// were not sent.
func (k *killedServers) through(id string) (unknown, notRun int) {
	k.t.Helper()
	var script strings.Builder
	script.WriteString("turns:\n")
	for i := range killedTurns {
		delay := time.Duration(0)
		if i == killedTurns-2 {
			delay = restartPause
		}
		fmt.Fprintf(&script, "  - {delay: %s, calls: [{name: mcp__%s__append, arguments: {line: line%02d}}]}\n", delay, []string{"near", "far"}[i%2], i)
	}
	script.WriteString("  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	s := scenario{name: "serverkills", script: script.String(), lines: killedTurns, drive: k.drive, edit: func(s *harnessv1.RunSpec) {
		k.workspace = s.GetWorkspace()
		env := []string{servertest.Lines + "=" + filepath.Join(k.workspace, "out"), servertest.Pause + "=" + appendPause.String()}
		k.far = servertest.Start(k.t, env...)
		s.Agent.Mcp = []*harnessv1.McpServer{servertest.Server("near", env...), {Name: "far", Url: k.far.URL()}}
	}}
	d, entries := s.through(k.t.Context(), k.t, k.m, id)
	if err := meshtest.Check(entries); err != nil {
		k.t.Errorf("%s: %v", id, err)
	}
	there := map[string]int{}
	for _, line := range d.lines() {
		there[line]++
	}
	outcomes := meshtest.Outcomes(entries)
	if len(k.lines) != killedTurns || len(k.at) != 0 {
		k.t.Errorf("%s: %d calls, want %d; left alive: %v", id, len(k.lines), killedTurns, k.at)
	}
	results := map[string][]*harnessv1.Message{}
	for _, e := range entries {
		for _, message := range e.Record.GetAppended() {
			if message.GetRole() == harnessv1.Role_ROLE_TOOL {
				results[message.GetToolCallId()] = append(results[message.GetToolCallId()], message)
			}
		}
	}
	for call, line := range k.lines {
		n := there[line]
		if len(results[call]) != 1 || n > 1 {
			k.t.Errorf("%s: %s is there %d times, with %d results", id, line, n, len(results[call]))
			continue
		}
		text, failed, outcome := content.Text(results[call][0].GetContent()), results[call][0].GetIsError(), outcomes[call]
		switch {
		case outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN && failed && strings.Contains(text, "effect is unknown"):
			unknown++
		case outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_DONE && failed && n == 0 && strings.Contains(text, "did not run"):
			notRun++
		case outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_DONE && !failed && n == 1 && strings.HasSuffix(text, "appended "+line):
		default:
			k.t.Errorf("%s: %s is there %d times, ended %v, and the model reads %q", id, line, n, outcome, text)
		}
	}
	for _, line := range []string{fmt.Sprintf("line%02d", killedTurns-2), fmt.Sprintf("line%02d", killedTurns-1)} {
		if there[line] != 1 {
			k.t.Errorf("%s: %s is there %d times, after all servers are back", id, line, there[line])
		}
	}
	if most := len(victims) - 1; unknown > most { // the death of a turn worker loses nothing
		k.t.Errorf("%s: %d calls are unknown after %d deaths of others than the turn worker", id, unknown, most)
	}
	k.far.Kill()
	waittest.Eventually(k.t, "nothing of the server is left", func() bool { return len(serving(k.workspace)) == 0 })
	return unknown, notRun
}

// drive notes the line of a call, and kills.
func (k *killedServers) drive(d *driver, e *harnessv1.Event) {
	c := e.GetToolCall()
	if c == nil || !strings.HasPrefix(c.GetTool(), "mcp__") {
		return
	}
	var in struct{ Line string }
	if err := json.Unmarshal([]byte(content.Text(c.GetArguments())), &in); err != nil {
		k.t.Error(err)
	}
	k.lines[c.GetCallId()] = in.Line
	number, err := strconv.Atoi(strings.TrimPrefix(in.Line, "line"))
	if err != nil {
		k.t.Error(err)
	}
	k.kill(d, number, c.GetCallId())
}

// kill kills the victim of a call, if it has one, at a random moment, and starts it again.
func (k *killedServers) kill(d *driver, number int, call string) {
	victim := k.at[number]
	delete(k.at, number)
	if victim == "" {
		return
	}
	<-time.After(time.Duration(k.random.Int64N(int64(killDelay))))
	switch victim {
	case "near":
		var pids []int
		waittest.Eventually(k.t, "the server runs", func() bool { pids = serving(k.workspace); return len(pids) > 0 })
		_ = syscall.Kill(pids[k.random.IntN(len(pids))], syscall.SIGKILL) // it may have ended
	case "far":
		k.far.Restart()
	default:
		k.m.Process(victim).Kill()
	}
	if _, ended := meshtest.Outcomes(k.m.Entries(d.run))[call]; !ended {
		k.during++
	}
	if victim == "toolhost" || victim == "turn" {
		k.m.Start(victim)
	}
}

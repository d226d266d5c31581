package transcripts

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// startInBackground starts the background command of a call; nil if the call has none.
func (d *driver) startInBackground(call toolcall.Call, ledger string) *harnessv1.BackgroundCommand {
	if !runstate.StartsBackground(content.Text(call.Arguments)) {
		return nil
	}
	id := fmt.Sprintf("bg%d", len(d.background)+1)
	d.background = append(d.background, &harnessv1.BackgroundState{Id: id, CallId: call.ID, Running: true})
	return &harnessv1.BackgroundCommand{Id: id, CallId: call.ID, LedgerId: ledger, Command: "serve"}
}

// endBackground ends a background command by itself, as in "bg1 exit code 1".
func (d *driver) endBackground(id, end string) {
	for _, b := range d.background {
		if b.GetId() == id {
			b.Running, b.Outcome, b.End, b.Tail = false, harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, end, "the last line\n"
		}
	}
}

// loseBackground makes the tool host forget its background commands, which are dead.
func (d *driver) loseBackground() {
	for _, b := range d.background {
		if !b.GetRunning() {
			continue
		}
		b.Running, b.Outcome, b.End = false, harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, "its end is not known: the tool host died"
	}
}

// killBackground kills the background commands that run.
func (d *driver) killBackground() *harnessv1.BackgroundStates {
	states := &harnessv1.BackgroundStates{}
	for _, b := range d.background {
		if b.GetRunning() {
			b.Running, b.Outcome, b.End = false, harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED, "killed"
		}
		states.Commands = append(states.Commands, proto.CloneOf(b))
	}
	return states
}

// checkBackground fails the test if a background command is alive in a record that parks the
// run for anything but an answer, or ends it.
func (d *driver) checkBackground(step *harnessv1.Step) {
	d.t.Helper()
	s := step.GetSnapshot()
	if !runlog.IsRest(step.GetTo()) || step.GetTo() == runlog.Park && len(runstate.AwaitedCalls(s)) > 0 {
		return
	}
	for _, b := range d.background {
		if b.GetRunning() {
			d.t.Fatalf("%s is alive and the run is at %s", b.GetId(), step.GetTo())
		}
	}
	if len(s.GetBackgroundCommands()) > 0 {
		d.t.Fatalf("the run is at %s with %v", step.GetTo(), s.GetBackgroundCommands())
	}
}

// TestBackgroundAtEachEnd: however a run with a background command ends or parks, the command
// is dead, unless the run waits for an answer.
func TestBackgroundAtEachEnd(t *testing.T) {
	begin := []string{"model", `  b1:run_command {"background":true,"command":"serve"}`}
	for name, c := range map[string]struct {
		settings string
		script   []string
		then     []string
		kind     string
		alive    bool
	}{
		"done":        {script: []string{"model", `  d:work_complete {"summary":"s"}`}, kind: "agent_done"},
		"silent":      {settings: "prompts=off retries=0 ", script: []string{"model …"}, kind: "agent_done"},
		"max turns":   {settings: "max_turns=1 ", kind: "max_turns"},
		"failed":      {script: []string{"refusal no"}, kind: "provider_error"},
		"outage":      {script: []string{"outage away"}, kind: "provider_unavailable"},
		"budget":      {settings: "turns=1 ", kind: "budget_exceeded:turns"},
		"interrupted": {script: []string{"mid turn 2: interrupt", "model", `  a:write_file {"path":"a"}`}, kind: "interrupted"},
		"cancelled":   {script: []string{"mid turn 2: cancel", "model", `  a:write_file {"path":"a"}`}, kind: "cancelled"},
		"stalled": {settings: "doom=off ", script: []string{
			"model", `  r1:read_file {"path":"a"}`, "model", `  r2:read_file {"path":"a"}`, "model", `  r3:read_file {"path":"a"}`, "model", `  r4:read_file {"path":"a"}`,
		}, kind: "stalled"},
		"a question":              {script: []string{"model", `  q:ask_user {"question":"which?"}`}, kind: "question", alive: true},
		"a question, interrupted": {script: []string{"model", `  q:ask_user {"question":"which?"}`}, then: []string{"interrupt"}, kind: "interrupted"},
		"a question, cancelled":   {script: []string{"model", `  q:ask_user {"question":"which?"}`}, then: []string{"cancel"}, kind: "cancelled"},
		"a question, answered": {script: []string{"model", `  q:ask_user {"question":"which?"}`}, then: []string{"answer q this", "model", `  d:work_complete {"summary":"s"}`},
			kind: "agent_done"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			for _, line := range append(begin[:2:2], c.script...) {
				d.play(line)
			}
			d.play("start workspace=on yolo=on " + c.settings + "Go")
			d.rest()
			for _, line := range c.then {
				d.play(line)
			}
			d.rest()
			s := d.snapshot()
			if s.GetStopReason().GetKind() != c.kind || d.background[0].GetRunning() != c.alive {
				t.Errorf("at %s, alive %v", s.GetStopReason().GetKind(), d.background[0].GetRunning())
			}
			var told int
			for _, m := range d.conversation.Messages {
				if strings.Contains(content.Text(m.GetContent()), "bg1 (serve)") {
					told++
				}
			}
			if want := map[bool]int{false: 1}[c.alive]; told != want {
				t.Errorf("the model is told %d times", told)
			}
		})
	}
}

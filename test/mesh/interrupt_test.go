package mesh

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// clinging is a command whose processes do all that they can to survive: they ignore
// signals, leave the session, their parent and the folder. It creates the file begun, and
// runs four processes with the argument mark.
func clinging(mark, begun string) string {
	return strings.NewReplacer("MARK", mark, "BEGUN", begun).Replace(`trap '' TERM INT HUP QUIT
(setsid sh -c 'trap "" TERM INT HUP; cd /; (setsid sleep MARK &); while :; do sleep MARK; done' &)
(cd / && exec setsid sleep MARK) &
touch BEGUN
while :; do sleep MARK; done`)
}

// processesWith returns the command lines that have a text, of shells and supervisors too.
// They are readable whatever namespace, session and folder a process has.
func processesWith(text string) (found []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), text) {
			found = append(found, filepath.Dir(name)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// connectedTo returns the number of established connections from this machine to a local
// address.
func connectedTo(t *testing.T, address string) (n int) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(name) // there may be no IPv6
		for line := range strings.Lines(string(table)) {
			// The second field after the number is the remote address, the third the state.
			fields := strings.Fields(line)
			if len(fields) > 3 && strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", port)) && fields[3] == "01" {
				n++
			}
		}
	}
	return n
}

// interruptible is a run whose model and commands do not end by themselves.
type interruptible struct {
	*asker
	model *modeltest.Server
	mark  string
	dir   string
	seen  uint64 // versions
}

// left returns everything of the run that is still there. An answer that has ended leaves an
// idle connection, so connections count only while the model answers.
func (r *interruptible) left(answers bool) []string {
	r.Helper()
	left := processesWith(r.mark)
	if n := connectedTo(r.T, r.model.MessagesURL()); answers && n > 0 {
		left = append(left, fmt.Sprintf("%d connections to the provider", n))
	}
	return left
}

// begun waits until the commands that create files run with all their processes.
func (r *interruptible) begun(names ...string) {
	r.Helper()
	waittest.Eventually(r, "all processes run", func() bool {
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(r.dir, name)); err != nil {
				return false
			}
		}
		return len(marked(r, r.mark)) >= 4*len(names)
	})
}

// interrupt interrupts the run and looks at what is left in the moment in which a watcher
// reads run.interrupted.
func (r *interruptible) interrupt(what string) {
	r.Helper()
	_, err := r.client.InterruptRun(r.ctx, &harnessv1.InterruptRunRequest{RunId: r.run, RequestId: requestID(what)})
	r.must(err)
	interrupted := false
	_, err = waittest.Watch(r.ctx, r.client, "", r.run, r.seen, harnessv1.WatchUntil_WATCH_UNTIL_REST, func(e *harnessv1.Event) {
		r.seen = e.GetVersion()
		if e.GetRunInterrupted() == nil {
			return
		}
		interrupted = true
		if left := r.left(strings.HasPrefix(what, "the model")); len(left) > 0 {
			r.Errorf("%s: left when the run is interrupted:\n%s", what, strings.Join(left, "\n"))
		}
	})
	r.must(err)
	if !interrupted {
		r.Errorf("%s: the run was not interrupted", what)
	}
}

func requestID(what string) string { return strings.ReplaceAll(what, " ", "-") }

func (r *interruptible) resume(what string) {
	r.Helper()
	_, err := r.client.ResumeRun(r.ctx, &harnessv1.ResumeRunRequest{RunId: r.run, RequestId: requestID("resume " + what)})
	r.must(err)
}

// TestSystemNothingIsLeftWhenARunIsInterrupted: no process of its commands, also not of background
// commands, and no connection to its provider, with the confinement of this machine and without.
func TestSystemNothingIsLeftWhenARunIsInterrupted(t *testing.T) {
	t.Parallel()
	command := func(id, line string, background bool) modeltest.Call {
		arguments := fmt.Sprintf(`{"command":%q}`, line)
		if background {
			arguments = fmt.Sprintf(`{"command":%q,"background":true}`, line)
		}
		return modeltest.Call{ID: id, Name: "run_command", Arguments: arguments}
	}
	for _, level := range []harnessv1.SandboxLevel{sandbox.Off, sandbox.Auto} {
		t.Run(sandbox.Name(level), func(t *testing.T) {
			t.Parallel()
			// Each level has a separate mark and folder: the tests run at the same time.
			mark := fmt.Sprintf("3600.%d%06d", os.Getpid(), workspaces.Add(1))
			s := modeltest.NewServer(t,
				modeltest.Reply{Calls: []modeltest.Call{command("a", clinging(mark, "a"), false)}},
				modeltest.Reply{Fault: modeltest.FaultSilence, Text: "Thinking about what to do next."},
				modeltest.Reply{Calls: []modeltest.Call{command("b", clinging(mark, "b"), true), command("c", clinging(mark, "c"), false)}},
				modeltest.Reply{Calls: []modeltest.Call{command("d", clinging(mark, "d"), true)}},
				modeltest.Reply{Fault: modeltest.FaultHang},
				modeltest.Reply{Calls: []modeltest.Call{{ID: "z", Name: "work_complete", Arguments: `{"summary":"survived"}`}}},
			)
			ctx, cancel := context.WithTimeout(t.Context(), waittest.Patience)
			t.Cleanup(cancel)
			m := meshtest.Start(t, bin, meshtest.Config{Env: []string{"ANTHROPIC_BASE_URL=" + s.MessagesURL()}})
			r := &interruptible{asker: &asker{T: t, ctx: ctx, m: m, client: m.Client(), run: "interrupted"}, model: s, mark: mark, dir: newWorkspace(t)}
			_, err := r.client.StartRun(ctx, &harnessv1.StartRunRequest{RunId: r.run, Spec: &harnessv1.RunSpec{
				Goal: content.Inline("Stay."), Workspace: r.dir, Agent: &harnessv1.AgentSpec{Model: "anthropic:test-model"},
				Config: &harnessv1.LoopConfig{
					Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)}, Model: &harnessv1.ModelConfig{Streaming: proto.Bool(true)},
					Sandbox: &harnessv1.SandboxConfig{Level: level},
				},
			}})
			r.must(err)

			<-s.Arrived()
			r.begun("a")
			r.interrupt("a command")

			r.resume("the model")
			<-s.Arrived()
			waittest.Eventually(t, "the model is asked", func() bool { return len(s.Requests()) == 2 && connectedTo(t, s.MessagesURL()) > 0 })
			r.interrupt("the model")

			r.resume("a command next to a background command")
			<-s.Arrived()
			r.begun("b", "c")
			r.interrupt("a command next to a background command")

			r.resume("the model next to a background command")
			<-s.Arrived()
			r.begun("d")
			<-s.Arrived()
			r.interrupt("the model next to a background command")

			r.resume("the end")
			if result := r.awaitStop("agent_done"); content.Text(result.GetSummary()) != "survived" {
				t.Errorf("it ended %v", result)
			}
		})
	}
}

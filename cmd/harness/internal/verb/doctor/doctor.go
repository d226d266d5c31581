// Package doctor examines a mesh through its bus, or this machine without one, and lists what keeps
// runs from working. It changes and creates nothing; problems make the exit code 1.
package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/natsflags"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
)

// Cmd examines a mesh through its bus, and a machine without one for runs in one
// process.
type Cmd struct {
	NATS      string            `name:"nats" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"NATS server."`
	NATSCreds string            `name:"nats-creds" placeholder:"FILE" help:"File with the credentials of a NATS user: JWT and key, or one line USER:PASSWORD."`
	NATSWait  *console.Duration `name:"nats-wait" placeholder:"D" help:"How long to wait for NATS. Default: 3s."`
	Data      string            `placeholder:"DIR" help:"Data directory, without a mesh. Default: $$XDG_DATA_HOME/harness, else ~/.local/share/harness."`
	Agent     string            `placeholder:"FILE" help:"Agent file whose servers over HTTP are connected to, without a mesh."`
	MCP       []string          `name:"mcp" placeholder:"FILE" help:"File with servers under the key mcpServers, the same; repeatable."`
	Output    string            `enum:"text,json" default:"text" help:"Format of the output: text or json."`

	natsflags.TLS
}

// secondLook is how long problems are re-examined.
const secondLook = 2 * time.Second

// diagnosis is the report of the doctor on a mesh.
type diagnosis struct {
	NATS       string       `json:"nats"`
	Partitions int          `json:"partitions"`
	Replicas   int          `json:"replicas"`
	TakeoverMS int64        `json:"takeover_ms"`
	Processes  []processRow `json:"processes"`
	// Executors are the custom ones, which need not report their presence. They are nil if the user of
	// the bus may not list the consumers.
	Executors []executorRow `json:"executors"`
	Problems  []string      `json:"problems"`
}

type sandboxRow struct {
	Level       string `json:"level"`
	LandlockABI uint32 `json:"landlock_abi"`
	Reason      string `json:"reason,omitempty"`
	// Processes and Memory are what bounds those of a command; empty at the level off.
	Processes string `json:"processes,omitempty"`
	Memory    string `json:"memory,omitempty"`
}

// examineSandbox tries how far commands can be confined on this machine.
func examineSandbox(ctx context.Context) sandboxRow {
	s := command.Probe(ctx)
	row := sandboxRow{Level: sandbox.Name(s.GetLevel()), LandlockABI: s.GetLandlockAbi(), Reason: s.GetReason()}
	if s.GetLevel() > sandbox.Off {
		kernel := supervisor.FindKernelBounds(s.GetLevel() == sandbox.Full)
		row.Processes, row.Memory = kernel.Processes, kernel.Memory
	}
	return row
}

// reportedSandbox returns the sandbox that a tool host reports; nil if it reports none.
func reportedSandbox(s *harnessv1.SandboxSupport) *sandboxRow {
	if s == nil {
		return nil
	}
	return &sandboxRow{Level: sandbox.Name(s.GetLevel()), LandlockABI: s.GetLandlockAbi(), Reason: s.GetReason()}
}

// text describes the sandbox in one line.
func (r sandboxRow) text() string {
	line := r.Level
	if r.LandlockABI > 0 {
		line += fmt.Sprintf(" (Landlock %d)", r.LandlockABI)
	}
	if r.Reason != "" {
		line += "; " + r.Reason
	}
	if r.Processes != "" {
		line += "; processes: " + r.Processes + "; memory: " + r.Memory
	}
	return line
}

type processRow struct {
	Role     string    `json:"role"`
	Ready    bool      `json:"ready"`
	Reason   string    `json:"reason,omitempty"`
	Instance string    `json:"instance"`
	Address  string    `json:"address"`
	Program  string    `json:"program"`
	Started  time.Time `json:"started"`
	// Figures of the process: the same for all its roles. 0 means unknown.
	Goroutines uint64 `json:"goroutines"`
	HeapBytes  uint64 `json:"heap_bytes"`
	// Sandbox is how far a tool host can confine commands, without the bounds of processes and memory.
	Sandbox *sandboxRow `json:"sandbox,omitempty"`
}

func (c *Cmd) Run(ctx context.Context, a *console.Console) (int, error) {
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	if c.here(a) {
		return c.examine(ctx, a)
	}
	if c.Agent != "" || len(c.MCP) > 0 {
		return exit.Error, errors.New("--agent, --mcp: are for a machine without a mesh: use harness mcp list --server ADDR")
	}
	bus := jetstream.Config{URL: c.NATS, Credentials: c.NATSCreds, TLS: c.Files(), Name: "harness doctor", Logger: a.Log}
	if c.NATSWait != nil {
		bus.Wait = c.NATSWait.D
	}
	log, err := jetstream.Open(ctx, bus)
	if err != nil {
		return exit.Error, natsflags.Named(err)
	}
	defer log.Close()
	var d diagnosis
	// Processes that just lost NATS return within a second or two.
	for end := time.Now().Add(secondLook); ; {
		there, err := log.Presences(ctx)
		if err != nil {
			return exit.Error, err
		}
		consumers, listed, err := log.Durables(ctx, workflow.Roles())
		if err != nil {
			return exit.Error, err
		}
		if d = diagnose(there, consumers); !listed {
			d.Executors = nil
		}
		if len(d.Problems) == 0 || time.Now().After(end) {
			break
		}
	}
	d.Problems = append(d.Problems, log.Examine(ctx)...)
	d.NATS, d.Partitions, d.Replicas = jetstream.Redacted(c.NATS), log.Partitions(), log.Replicas()
	d.TakeoverMS = runlog.TakeoverOf(log.AckWait()).Milliseconds()
	if err := c.show(a, d); err != nil {
		return exit.Error, err
	}
	if len(d.Problems) > 0 {
		return exit.Error, nil
	}
	return exit.Done, nil
}

// executorRow is a custom executor.
type executorRow struct {
	Name string `json:"name"`
	// Consumed reports whether a process asks for its steps.
	Consumed bool `json:"consumed"`
	// Waiting steps were not delivered yet, Working ones were and are not acknowledged.
	Waiting uint64 `json:"waiting"`
	Working uint64 `json:"working"`
}

// customExecutors returns those of the consumers that are not of a role; repair has two more.
func customExecutors(consumers []jetstream.Consumer) []executorRow {
	rows := []executorRow{}
	for _, c := range consumers {
		if !slices.Contains(workflow.Roles(), c.Name) && c.Name != "wake" && c.Name != "timers" {
			rows = append(rows, executorRow{Name: c.Name, Consumed: c.Waiting > 0, Waiting: c.Pending, Working: c.AckPending})
		}
	}
	slices.SortFunc(rows, func(x, y executorRow) int { return cmp.Compare(x.Name, y.Name) })
	return rows
}

// diagnose lists the processes and custom executors, and the problems.
func diagnose(there []*harnessv1.Presence, consumers []jetstream.Consumer) diagnosis {
	d := diagnosis{Processes: []processRow{}, Executors: customExecutors(consumers), Problems: []string{}}
	slices.SortFunc(there, func(x, y *harnessv1.Presence) int {
		return cmp.Or(cmp.Compare(orderOf(x), orderOf(y)), cmp.Compare(x.GetInstance(), y.GetInstance()))
	})
	has := map[string]bool{}
	for _, p := range there {
		has[p.GetRole()] = true
		d.Processes = append(d.Processes, processRow{
			Role: p.GetRole(), Ready: p.GetReady(), Reason: p.GetReason(), Instance: p.GetInstance(),
			Address: p.GetAddress(), Program: p.GetProgram(), Started: p.GetStartTime().AsTime(),
			Goroutines: p.GetGoroutines(), HeapBytes: p.GetHeapBytes(), Sandbox: reportedSandbox(p.GetSandbox()),
		})
		if !p.GetReady() {
			d.Problems = append(d.Problems, fmt.Sprintf("%s %s is not ready: %s", p.GetRole(), p.GetInstance(), p.GetReason()))
		}
	}
	for _, e := range d.Executors {
		if !e.Consumed {
			d.Problems = append(d.Problems, fmt.Sprintf("no process consumes the steps of the executor %s, of which %d are waiting: start its program, or `harness serve --roles bridge --executor %s --target HOST:PORT`",
				e.Name, e.Waiting+e.Working, e.Name))
		}
	}
	if !slices.ContainsFunc(consumers, func(c jetstream.Consumer) bool { return c.Name == workflow.Inference }) {
		d.Problems = append(d.Problems, fmt.Sprintf("the bus has no consumer for the role %s, so such a process cannot start: run `harness provision`", workflow.Inference))
	}
	for _, role := range workflow.Roles() {
		if !has[role] {
			d.Problems = append(d.Problems, missingRole(role))
		}
	}
	return d
}

// orderOf returns the position of a process in the list: that of its role, bridges last.
func orderOf(p *harnessv1.Presence) int {
	if i := slices.Index(workflow.Roles(), p.GetRole()); i >= 0 {
		return i
	}
	return len(workflow.Roles())
}

// missingRole describes a role without a process.
func missingRole(role string) string {
	if role == workflow.Inference {
		return fmt.Sprintf("no process has the role %s: %s; start `harness serve --roles %s`, with the keys of the model providers", role, node.WithoutInference, role)
	}
	return fmt.Sprintf("no process has the role %s: start `harness serve --roles %s`", role, role)
}

func (c *Cmd) show(a *console.Console, d diagnosis) error {
	if c.Output == "json" {
		raw, err := json.Marshal(d)
		if err != nil {
			return err
		}
		return console.Emit(a.Out, raw)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "bus\t%s: %d partition(s), %d replica(s), takeover %s\n\n", d.NATS, d.Partitions, d.Replicas, time.Duration(d.TakeoverMS)*time.Millisecond)
	_, _ = fmt.Fprintln(w, "ROLE\tREADY\tADDRESS\tINSTANCE\tUP\tGOROUTINES\tHEAP")
	for _, p := range d.Processes {
		ready := "yes"
		if !p.Ready {
			ready = "no"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Role, ready, p.Address, p.Instance, time.Since(p.Started).Round(time.Second),
			said(p.Goroutines, "%d", p.Goroutines), said(p.HeapBytes, "%.1f MiB", float64(p.HeapBytes)/(1<<20)))
	}
	for i, e := range d.Executors {
		if i == 0 {
			_, _ = fmt.Fprint(w, "\nEXECUTOR\tCONSUMED\tWAITING\tWORKING\n")
		}
		consumed := "yes"
		if !e.Consumed {
			consumed = "no"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", e.Name, consumed, e.Waiting, e.Working)
	}
	if d.Executors == nil {
		_, _ = fmt.Fprint(w, "\ncustom executors are unknown: the NATS user of this command may not list consumers\n")
	}
	d.sandboxes(w)
	for i, problem := range d.Problems {
		if i == 0 {
			_, _ = fmt.Fprintln(w)
		}
		_, _ = fmt.Fprintf(w, "problem:\t%s\n", problem)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(a.Out, render.Clean(text.String())) // other processes have written a part
	return err
}

// sandboxes writes how far each tool host can confine commands.
func (d diagnosis) sandboxes(w io.Writer) {
	for _, p := range d.Processes {
		if p.Role != workflow.ToolHost {
			continue
		}
		text := "unknown"
		if p.Sandbox != nil {
			text = p.Sandbox.text()
		}
		_, _ = fmt.Fprintf(w, "\nsandbox of commands on %s: %s\n", p.Instance, text)
	}
}

// said formats a figure for people, as a dash if the process did not report it.
func said[T any](figure uint64, format string, value T) string {
	if figure == 0 {
		return "-"
	}
	return fmt.Sprintf(format, value)
}

func (Cmd) Help() string {
	return "Without a NATS server at the default address it examines this machine.\n\nExamples:\n\n  harness doctor\n  harness doctor --nats nats://bus:4222"
}

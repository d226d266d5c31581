package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// doctorCmd examines a mesh through its bus.
type doctorCmd struct {
	NATS      string        `name:"nats" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"NATS server."`
	NATSCreds string        `name:"nats-creds" placeholder:"FILE" help:"Credentials file of a NATS user (JWT and key). Put a password into the URL."`
	NATSWait  *durationFlag `name:"nats-wait" placeholder:"D" help:"How long to wait for NATS. Default: 3s."`
	Output    string        `enum:"text,json" default:"text" help:"Format of the output: text or json."`

	natsTLS
}

// secondLook is how long problems are re-examined.
const secondLook = 2 * time.Second

// diagnosis is what the doctor finds.
type diagnosis struct {
	NATS       string       `json:"nats"`
	Partitions int          `json:"partitions"`
	Replicas   int          `json:"replicas"`
	TakeoverMS int64        `json:"takeover_ms"`
	Processes  []processRow `json:"processes"`
	Problems   []string     `json:"problems"`
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
}

func (c *doctorCmd) run(ctx context.Context, a *app) (int, error) {
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	bus := jetstream.Config{URL: c.NATS, Credentials: c.NATSCreds, TLS: c.files(), Name: "harness doctor", Logger: a.log}
	if c.NATSWait != nil {
		bus.Wait = c.NATSWait.d
	}
	log, err := jetstream.Open(ctx, bus)
	if err != nil {
		return follow.ExitError, ofBus(err)
	}
	defer log.Close()
	executors, err := log.Executors(ctx)
	if err != nil {
		return follow.ExitError, err
	}
	var d diagnosis
	// Processes that just lost NATS return within a second or two.
	for end := time.Now().Add(secondLook); ; {
		there, err := log.Presences(ctx)
		if err != nil {
			return follow.ExitError, err
		}
		if d = diagnose(there, executors); len(d.Problems) == 0 || time.Now().After(end) {
			break
		}
	}
	d.NATS, d.Partitions, d.Replicas = jetstream.Redacted(c.NATS), log.Partitions(), log.Replicas()
	d.TakeoverMS = runlog.TakeoverOf(log.AckWait()).Milliseconds()
	if err := c.show(a, d); err != nil {
		return follow.ExitError, err
	}
	if len(d.Problems) > 0 {
		return follow.ExitError, nil
	}
	return follow.ExitDone, nil
}

// diagnose lists the processes and what is missing. executors have a consumer.
func diagnose(there []*harnessv1.Presence, executors []string) diagnosis {
	d := diagnosis{Processes: []processRow{}, Problems: []string{}}
	slices.SortFunc(there, func(x, y *harnessv1.Presence) int {
		return cmp.Or(cmp.Compare(slices.Index(workflow.Roles(), x.GetRole()), slices.Index(workflow.Roles(), y.GetRole())), cmp.Compare(x.GetInstance(), y.GetInstance()))
	})
	has := map[string]bool{}
	for _, p := range there {
		has[p.GetRole()] = true
		d.Processes = append(d.Processes, processRow{
			Role: p.GetRole(), Ready: p.GetReady(), Reason: p.GetReason(), Instance: p.GetInstance(),
			Address: p.GetAddress(), Program: p.GetProgram(), Started: p.GetStartTime().AsTime(),
			Goroutines: p.GetGoroutines(), HeapBytes: p.GetHeapBytes(),
		})
		if !p.GetReady() {
			d.Problems = append(d.Problems, fmt.Sprintf("%s %s is not ready: %s", p.GetRole(), p.GetInstance(), p.GetReason()))
		}
	}
	if !slices.Contains(executors, workflow.Inference) {
		d.Problems = append(d.Problems, fmt.Sprintf("the bus has no consumer for the role %s, so such a process cannot start: run `harness provision`", workflow.Inference))
	}
	for _, role := range workflow.Roles() {
		if !has[role] {
			d.Problems = append(d.Problems, missingRole(role))
		}
	}
	return d
}

// missingRole describes a role without a process.
func missingRole(role string) string {
	if role == workflow.Inference {
		return fmt.Sprintf("no process has the role %s: %s; start `harness serve --roles %s`, with the keys of the model providers", role, node.WithoutInference, role)
	}
	return fmt.Sprintf("no process has the role %s: start `harness serve --roles %s`", role, role)
}

func (c *doctorCmd) show(a *app, d diagnosis) error {
	if c.Output == "json" {
		raw, err := json.Marshal(d)
		if err != nil {
			return err
		}
		return emit(a.out, raw)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
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
	for i, problem := range d.Problems {
		if i == 0 {
			_, _ = fmt.Fprintln(w)
		}
		_, _ = fmt.Fprintf(w, "problem:\t%s\n", problem)
	}
	return w.Flush()
}

// said formats a figure for people, as a dash if the process did not report it.
func said[T any](figure uint64, format string, value T) string {
	if figure == 0 {
		return "-"
	}
	return fmt.Sprintf(format, value)
}

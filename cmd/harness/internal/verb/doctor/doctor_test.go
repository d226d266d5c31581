package doctor

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

func allProcesses() []*harnessv1.Presence {
	var there []*harnessv1.Presence
	for i, role := range workflow.Roles() {
		there = append(there, &harnessv1.Presence{
			Role: role, Instance: role + "-1", Address: "127.0.0.1:1", Ready: true, StartTime: timestamppb.Now(),
			Goroutines: uint64(30 + i), HeapBytes: uint64(i+1) * 3 << 19,
		})
	}
	return there
}

// consumersOf are those of a bus in use: of executors, and the two more of repair.
func consumersOf(names ...string) []jetstream.Consumer {
	var all []jetstream.Consumer
	for _, name := range append(names, "wake", "timers") {
		all = append(all, jetstream.Consumer{Name: name, Waiting: 1})
	}
	return all
}

// TestDoctorKnowsCustomExecutors: one with a process is no problem, whatever it reports, and
// one without is named with the steps that wait for it.
func TestDoctorKnowsCustomExecutors(t *testing.T) {
	t.Parallel()
	there := append(allProcesses(), &harnessv1.Presence{Role: workflow.Bridge, Instance: "bridge-1", Ready: true, StartTime: timestamppb.Now()})
	consumers := append(consumersOf(append(workflow.Roles(), "reviewer")...), jetstream.Consumer{Name: "auditor", Pending: 2, AckPending: 1})
	d := diagnose(there, consumers)
	if len(d.Problems) != 1 || !strings.Contains(d.Problems[0], "no process consumes the steps of the executor auditor, of which 3 are waiting: start its program, or `harness serve --roles bridge --executor auditor") {
		t.Errorf("problems: %q", d.Problems)
	}
	var out bytes.Buffer
	if err := (&Cmd{Output: "text"}).show(&console.Console{Process: console.Process{Out: &out}}, d); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"EXECUTOR CONSUMED WAITING WORKING auditor no 2 1 reviewer yes 0 0", "bridge yes"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if last := d.Processes[len(d.Processes)-1]; last.Role != workflow.Bridge {
		t.Errorf("the bridge is not after the roles: %v", d.Processes)
	}
}

// The doctor shows what each process takes in units that people read, and a dash
// for a process that does not say it.
func TestDoctorShowsWhatProcessesTake(t *testing.T) {
	t.Parallel()
	there := allProcesses()
	there[1].Goroutines, there[1].HeapBytes = 0, 0
	d := diagnose(there, consumersOf(workflow.Roles()...))
	var out bytes.Buffer
	c := Cmd{Output: "text"}
	if err := c.show(&console.Console{Process: console.Process{Out: &out}}, d); err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // by their first word, with single spaces
	for _, line := range strings.Split(out.String(), "\n") {
		if fields := strings.Fields(line); len(fields) > 0 {
			rows[fields[0]] = strings.Join(fields, " ")
		}
	}
	for role, want := range map[string]string{"ROLE": " UP GOROUTINES HEAP", "toolhost": "s 30 1.5 MiB", "gateway": "s 36 10.5 MiB", "inference": "s - -"} {
		if !strings.HasSuffix(rows[role], want) {
			t.Errorf("%s does not end with %q in\n%s", role, want, out.String())
		}
	}

	out.Reset()
	c.Output = "json"
	if err := c.show(&console.Console{Process: console.Process{Out: &out}}, d); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Processes []struct {
			Role       string `json:"role"`
			Goroutines uint64 `json:"goroutines"`
			HeapBytes  uint64 `json:"heap_bytes"`
		} `json:"processes"`
	}
	if err := json.Unmarshal(out.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if last := read.Processes[len(read.Processes)-1]; last.Role != "gateway" || last.Goroutines != 36 || last.HeapBytes != 7*3<<19 {
		t.Errorf("as JSON: %+v", last)
	}
}

func TestDoctorNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	if d := diagnose(allProcesses(), consumersOf(workflow.Roles()...)); len(d.Problems) != 0 || len(d.Processes) != len(workflow.Roles()) {
		t.Errorf("a whole mesh has problems: %+v", d)
	}
	there := allProcesses()[2:]
	there[0].Ready, there[0].Reason = false, "it is starting"
	problems := strings.Join(diagnose(there, consumersOf(workflow.Default()...)).Problems, "\n")
	for _, want := range []string{
		"repair repair-1 is not ready: it is starting", "no process has the role toolhost: start `harness serve --roles toolhost`",
		"no process has the role inference: conversations are not summarised,", "start `harness serve --roles inference`, with the keys",
		"no consumer for the role inference, so such a process cannot start: run `harness provision`",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q is missing in %q", want, problems)
		}
	}
}

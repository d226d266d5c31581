package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
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

// The doctor shows what each process takes in units that people read, and a dash
// for a process that does not say it.
func TestDoctorShowsWhatProcessesTake(t *testing.T) {
	there := allProcesses()
	there[1].Goroutines, there[1].HeapBytes = 0, 0
	d := diagnose(there, workflow.Roles())
	var out bytes.Buffer
	c := doctorCmd{Output: "text"}
	if err := c.show(&app{stdio: stdio{out: &out}}, d); err != nil {
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
	if err := c.show(&app{stdio: stdio{out: &out}}, d); err != nil {
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
	if d := diagnose(allProcesses(), workflow.Roles()); len(d.Problems) != 0 || len(d.Processes) != len(workflow.Roles()) {
		t.Errorf("a whole mesh has problems: %+v", d)
	}
	there := allProcesses()[2:]
	there[0].Ready, there[0].Reason = false, "it is starting"
	problems := strings.Join(diagnose(there, workflow.Default()).Problems, "\n")
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

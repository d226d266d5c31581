//go:build linux

package sandbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
	"github.com/harnessmesh/harnessmesh/test/sandbox/job"
	"github.com/harnessmesh/harnessmesh/test/sandbox/wayout"
)

const (
	outcomesFile = "testdata/outcomes.json"
	docsFile     = "../../docs/sandbox.md"
)

// outcomes have, by way, "user off", "user kernel 1" and their like: open or held. What
// could not be tried is missing.
type outcomes map[string]map[string]string

// columns returns the columns of a user that can be measured here, as jobs. Unless every is
// set, those between the first and the newest version of Landlock are missing.
func columns(t *testing.T, every bool) map[string]job.Job {
	abi, full := levels(t)
	all := map[string]job.Job{"off": {Level: "off", ABI: abi}}
	for i := 1; i <= abi; i++ {
		if !every && i > 1 && i < abi {
			continue
		}
		all[fmt.Sprintf("kernel %d", i)] = job.Job{Level: "kernel", ABI: i, Quick: i < abi}
	}
	for i := 0; i <= abi && full; i++ {
		if !*update && i > 0 && i != supervisor.ABIScopes-1 && i < abi {
			continue // only the scopes make a difference
		}
		all[fmt.Sprintf("full %d", i)] = job.Job{Level: "full", ABI: i, Quick: i < abi}
	}
	return all
}

// TestTable measures every way out with the first and the newest version of Landlock, and
// compares it with what is documented.
func TestTable(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hundreds of commands")
	}
	measureTable(t, *update)
}

// TestSystemTable measures every way out with every version of Landlock.
func TestSystemTable(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hundreds of commands")
	}
	if !*update {
		measureTable(t, true)
	}
}

func measureTable(t *testing.T, every bool) {
	abi, full := levels(t)
	t.Logf("Landlock %d; bubblewrap: %t", abi, full)
	if !full {
		t.Log("not tried: the level full, because bubblewrap is not installed")
	}
	if os.Geteuid() != 0 {
		t.Log("not tried: root, because this test does not run as root")
	}
	measured := outcomes{}
	var hosts sync.WaitGroup
	var mu sync.Mutex
	for _, user := range usersHere() {
		all := columns(t, every)
		names := make(chan string, len(all))
		for name := range all {
			names <- name
		}
		close(names)
		for range hostsOfUser {
			h := startHost(t, user, "")
			hosts.Go(func() {
				for name := range names {
					measure(t, h, user, name, all[name], &mu, measured)
				}
			})
		}
	}
	hosts.Wait()
	if os.Geteuid() == 0 {
		checkOpenWithout(t, measured)
	}
	if *update {
		write(t, measured)
	}
	compare(t, measured, load(t))
}

// measure fills in a column of a user.
func measure(t *testing.T, h *host, user, name string, j job.Job, mu *sync.Mutex, into outcomes) {
	result, err := h.do(j)
	if err != nil {
		t.Errorf("as %s %v", user, err)
		return
	}
	mu.Lock()
	for way, o := range result.Ways {
		if into[way] == nil {
			into[way] = map[string]string{}
		}
		switch {
		case o.NotTried != "":
			if j.Level == "off" {
				t.Logf("not tried as %s: %s: %s", user, way, o.NotTried)
			}
		case o.Open:
			into[way][user+" "+name] = "open"
		default:
			into[way][user+" "+name] = "held"
		}
	}
	mu.Unlock()
	compareService(t, h, user, j, result)
}

// compareService checks that a tool host confines a command like the host of this test.
func compareService(t *testing.T, h *host, user string, j job.Job, want job.Result) {
	abi, _ := levels(t)
	if j.ABI != abi {
		return
	}
	j.Service, j.Quick = true, j.Level == "off"
	got, err := h.do(j)
	if err != nil {
		t.Errorf("as %s, by a tool host: %v", user, err)
		return
	}
	for way, o := range got.Ways {
		if o.Open != want.Ways[way].Open {
			t.Errorf("as %s at %s by a tool host, %s: got %+v, without one %+v", user, j.Level, way, o, want.Ways[way])
		}
	}
}

// heldAnyway are the ways that are held at the level off, too, with the reason.
var heldAnyway = map[string]string{
	"learn variables of the host":  "the environment is an allow-list at every level",
	"use a descriptor of the host": "supervisors close them at every level",
	"outlive the command":          "supervisors kill what a command leaves, at every level",
}

// absentHere are the ways that some kernels do not have.
var absentHere = []string{
	"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "the x32 table", "use ports of devices (iopl)", "use ports of devices (ioperm)",
	"the 32-bit table (int 0x80)", "open a disk", "change the caching of memory (/proc/mtrr)", "send a key to the kernel (/proc/sysrq-trigger)",
}

// checkOpenWithout checks that a way out is one: that it is open without a sandbox, for
// root or for a user.
func checkOpenWithout(t *testing.T, measured outcomes) {
	for _, w := range wayout.All() {
		got := measured[w.Name]
		if got["user off"] != "open" && got["root off"] != "open" && heldAnyway[w.Name] == "" && !slices.Contains(absentHere, w.Name) {
			t.Errorf("%s: is not open without a sandbox either: as user %q, as root %q", w.Name, got["user off"], got["root off"])
		}
	}
}

// compare compares what was measured at kernel and full with what is documented. What is open
// without a sandbox depends on the machine.
func compare(t *testing.T, measured, documented outcomes) {
	for _, w := range wayout.All() {
		if documented[w.Name] == nil {
			t.Errorf("%s: is not documented: run this test with -update, as root", w.Name)
		}
		for column, got := range measured[w.Name] {
			want := documented[w.Name][column]
			if want != "" && got != want && !strings.HasSuffix(column, " off") {
				t.Errorf("%s: at %s %s, documented as %s", w.Name, column, got, want)
			}
		}
	}
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, now := replace(string(text), documented); now != string(text) {
		t.Errorf("%s does not have the table of %s: run this test with -update", docsFile, outcomesFile)
	}
}

func load(t *testing.T) outcomes {
	data, err := os.ReadFile(outcomesFile)
	if err != nil {
		t.Fatal(err)
	}
	all := outcomes{}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// write stores what was measured, and the table.
func write(t *testing.T, measured outcomes) {
	data, err := json.MarshalIndent(measured, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	found, now := replace(string(text), measured)
	if !found {
		t.Fatalf("%s has no marks of the table", docsFile)
	}
	for path, content := range map[string]string{outcomesFile: string(data) + "\n", docsFile: now} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Marks of the table in the page.
const (
	begin = "<!-- generated by go test ./test/sandbox -run Table -update -->\n"
	end   = "<!-- end -->\n"
)

// replace puts the table into a page.
func replace(page string, o outcomes) (bool, string) {
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return false, page
	}
	return true, before + begin + render(o) + end + after
}

// render writes the table.
func render(o outcomes) string {
	var b strings.Builder
	group := ""
	for _, w := range wayout.All() {
		if w.Group != group {
			group = w.Group
			fmt.Fprintf(&b, "\n| %s | user: off | kernel | full | root: off | kernel | full |\n|---|---|---|---|---|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| %s |", w.Name)
		for _, user := range []string{"user", "root"} {
			for _, level := range []string{"off", "kernel", "full"} {
				fmt.Fprintf(&b, " %s |", cell(o[w.Name], user+" "+level))
			}
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

// cell sums up the outcomes of a level over the versions of Landlock.
func cell(all map[string]string, level string) string {
	var open, held []int
	for column, outcome := range all {
		if column != level && !strings.HasPrefix(column, level+" ") {
			continue
		}
		var abi int
		_, _ = fmt.Sscanf(strings.TrimPrefix(column, level), "%d", &abi)
		if outcome == "open" {
			open = append(open, abi)
		} else {
			held = append(held, abi)
		}
	}
	slices.Sort(open)
	slices.Sort(held)
	switch {
	case len(open)+len(held) == 0:
		return "–"
	case len(open) == 0:
		return "held"
	case len(held) == 0:
		return "**open**"
	case open[len(open)-1] < held[0]:
		return fmt.Sprintf("held from %d", held[0])
	default:
		return fmt.Sprintf("**open** with %v", slices.Collect(slices.Values(open)))
	}
}

// TestWaysHaveNames that differ: hosts try them by name.
func TestWaysHaveNames(t *testing.T) {
	names := map[string]int{}
	for _, w := range wayout.All() {
		names[w.Name]++
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] > 1 {
			t.Errorf("%d ways are called %q", names[name], name)
		}
	}
}
